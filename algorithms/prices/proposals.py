"""The linear program over the options found so far, in floating-point numbers: a hint.

It is stated around the best exact prices: every column costs what it costs *more* than these prices
allow, worked out in rationals. Near the optimum these costs are tiny, and they can be blown up, so
that floating-point numbers still tell options apart that differ in one block of a trillion.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack.pricing import common_denominator

from ..solvers.floats import near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .passes import Groups, Point
    from .region import Region

#: Columns that cost more than this (where the optimum costs about 1) are not told apart.
_DEAR = 10**9
#: Rows are scaled by their load, but not so far that entries leave what the solver can hold.
_SPREAD = 10**6
#: Numbers of very different sizes can keep the simplex method going round for ever; then it is
#: tried in other ways, in this order.
_ITERATIONS = "max_number_of_iterations: 20000"
_WAYS = (
    "use_dual_simplex: true use_preprocessing: true",
    "use_dual_simplex: false use_preprocessing: true",
    "use_dual_simplex: false use_preprocessing: false use_scaling: false",
)
#: Weights below this are noise of the solver.
_NOTHING = 1e-13


class Proposal(NamedTuple):
    """An optimal solution of the linear program, as far as floating-point numbers go.

    Attributes
    ----------
    prices : list of k Fractions
        The dual solution.
    upper : Fraction
        The program's value: about the most that any prices can prove.
    weights : list of {pass: weight}
        For each group; weights add up to 1.
    machines : dict of Fractions
        How many machines there are, by row of the region; the positive ones.
    """

    prices: list[Fraction]
    upper: Fraction
    weights: list[dict[int, float]]
    machines: dict[int, Fraction]

    def mixed(self) -> dict[int, list[int]]:
        """Return the groups that more than one pass has a part in."""
        return {
            group: sorted(weights) for group, weights in enumerate(self.weights) if len(weights) > 1
        }


class _Floats(NamedTuple):
    """The solver's answer: values of the columns, how the prices move, and the objective."""

    values: list[float]
    moves: list[float]
    cost: float


def propose(groups: Groups, region: Region, point: Point, zoom: int) -> Proposal | None:
    """Solve the linear program over all columns that the groups have.

    Parameters
    ----------
    groups : Groups
        Up to date.
    region : Region
        Its rows are the machines.
    point : Point
        Exact prices around which the program is stated; each group buys its pass by default.
    zoom : int
        What the costs beyond these prices are multiplied by.

    Returns
    -------
    Proposal, or None if the solver failed
    """
    return _Program(groups, region, point, zoom).solve()


class _Program:
    """One linear program being built; all entries are quotients of integers."""

    def __init__(self, groups: Groups, region: Region, point: Point, zoom: int) -> None:
        self._groups, self._region, self._point = groups, region, point
        self._k = len(region.blocks)
        self._prices, self._denominator = common_denominator(point.vector.prices)
        # A cost of ``worth`` counts as 1 in the objective.
        self._worth = max(point.bound, region.unit)
        self._zoom = Fraction(zoom) / self._worth
        largest = [max(1, *column) for column in zip(*groups.totals, strict=True)]
        self._least = groups.totals[point.number]
        self._scales = [max(load, max(largest) // _SPREAD) for load in largest]
        self._costs: list[float] = []
        # Entries of the equations (a row a block type) and of the groups' rows.
        self._entries: list[tuple[int, int, float]] = []
        self._shares: list[tuple[int, int]] = []

    def _cost(self, beyond: Fraction) -> None:
        """Add a column of this reduced cost."""
        self._costs.append(near(min(beyond * self._zoom, Fraction(_DEAR))))

    def solve(self) -> Proposal | None:
        sizes = self._add_machines()
        self._add_surplus()
        picks, rows = self._add_choices()
        result = self._optimum(rows)
        if result is None:
            return None
        values = result.values
        machines = {
            r: Fraction(values[r]) * size for r, size in enumerate(sizes) if values[r] > _NOTHING
        }
        weights = self._weights(picks, values[len(sizes) + self._k :])
        prices = [
            price + Fraction(move) / self._zoom / scale
            for price, move, scale in zip(
                self._point.vector.prices, result.moves, self._scales, strict=True
            )
        ]
        spent = sum(p * load for p, load in zip(self._prices, self._least, strict=True))
        upper = Fraction(spent, self._denominator) + Fraction(result.cost) / self._zoom
        return Proposal(prices, upper, weights, machines)

    def _add_machines(self) -> list[Fraction]:
        """Add a column a row of the region; returns how many machines each one's unit is."""
        region, sizes = self._region, []
        for row in region.rows:
            worth = sum(p * count for p, count in zip(self._prices, row.counts, strict=True))
            most = [
                Fraction(scale, count)
                for scale, count in zip(self._scales, row.counts, strict=True)
                if count
            ]
            size = max(most, default=Fraction(1))
            for i, count in enumerate(row.counts):
                if count:
                    entry = near(size * count, self._scales[i])
                    self._entries.append((i, len(self._costs), entry))
            self._cost(size * (region.costs[row.machine] - Fraction(worth, self._denominator)))
            sizes.append(size)
        return sizes

    def _add_surplus(self) -> None:
        """Add a column for the idle blocks of each type."""
        for i, (price, scale) in enumerate(zip(self._prices, self._scales, strict=True)):
            self._entries.append((i, len(self._costs), -1.0))
            self._cost(Fraction(price * scale, self._denominator))

    def _add_choices(self) -> tuple[list[tuple[int, int]], int]:
        """Add a column for every pass in which a group bought something else than by default."""
        groups, number = self._groups, self._point.number
        picks: list[tuple[int, int]] = []
        rows = 0
        for group, columns in enumerate(groups.columns):
            if len(columns) == 1:
                continue
            default, own = groups.load(group, number), groups.column(group, number)
            for other in columns:
                if other == own:
                    continue
                more = [a - b for a, b in zip(groups.load(group, other), default, strict=True)]
                column = len(self._costs)
                for i, blocks in enumerate(more):
                    if blocks:
                        self._entries.append((i, column, near(-blocks, self._scales[i])))
                self._shares.append((rows, column))
                worth = sum(p * blocks for p, blocks in zip(self._prices, more, strict=True))
                self._cost(Fraction(worth, self._denominator))
                picks.append((group, other))
            rows += 1
        return picks, rows

    def _optimum(self, rows: int) -> _Floats | None:
        """Run the solver; None if it fails, even in another way than its first."""
        # GLOP, since importing it takes a tenth of a second: runs may be stopped sooner than it
        # takes to import larger libraries.
        from ortools.linear_solver import pywraplp

        solver = pywraplp.Solver.CreateSolver("GLOP")
        infinity = solver.infinity()
        columns = [solver.NumVar(0, infinity, "") for _ in self._costs]
        objective = solver.Objective()
        for column, cost in zip(columns, self._costs, strict=True):
            objective.SetCoefficient(column, cost)
        objective.SetMinimization()
        right = [near(load, scale) for load, scale in zip(self._least, self._scales, strict=True)]
        equations = [solver.RowConstraint(value, value, "") for value in right]
        for at, number, entry in self._entries:
            equations[at].SetCoefficient(columns[number], entry)
        shares = [solver.RowConstraint(-infinity, 1, "") for _ in range(rows)]
        for at, number in self._shares:
            shares[at].SetCoefficient(columns[number], 1)
        for way in _WAYS:
            if not solver.SetSolverSpecificParametersAsString(f"{_ITERATIONS} {way}"):
                raise AssertionError(f"GLOP does not know one of the parameters {way!r}")
            if solver.Solve() == solver.OPTIMAL:
                return _Floats(
                    [column.solution_value() for column in columns],
                    [equation.dual_value() for equation in equations],
                    objective.Value(),
                )
        return None

    def _weights(
        self, picks: Sequence[tuple[int, int]], values: Sequence[float]
    ) -> list[dict[int, float]]:
        groups, number = self._groups, self._point.number
        weights: list[dict[int, float]] = [{} for _ in range(len(groups))]
        for (group, other), value in zip(picks, values, strict=True):
            if value > _NOTHING:
                weights[group][other] = value
        for group, others in enumerate(weights):
            left = 1.0 - sum(others.values())
            # Rounding may leave some weight where there is none: 1 less a sum is not that exact.
            if not others or left > _NOTHING * 1e3:
                others[groups.column(group, number)] = left
        return weights
