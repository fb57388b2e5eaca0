"""The linear program over the cuts found so far (theory 6.4), warm-started from pass to pass."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..solvers.equations import solved
from ..solvers.floats import near

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .region import Region, Row, Vector

#: Coefficients of a cut that are this many times smaller than its largest would be bad pivots; the
#: master's value is a hint, never a bound.
_NOISE = 10**9
#: Numbers of very different sizes can keep the simplex method going round for ever.
_ITERATIONS = "max_number_of_iterations: 20000"
#: GLOP's parameters, tried in this order.
_WAYS = (
    "use_dual_simplex: false use_preprocessing: true",
    "use_dual_simplex: true use_preprocessing: true",
    "use_dual_simplex: true use_preprocessing: false",
    "use_dual_simplex: false use_preprocessing: false use_scaling: false",
)
#: Above so many blocks bought in all, the last way comes first: from the first GLOP may not return.
_MANY_BLOCKS = 10**12
#: A machine with more blocks of a type counts them in as many: floats hold no prices that small.
_MANY_ON_A_MACHINE = 10**12
#: A constraint holds the prices where its dual value is larger.
_HOLDS = 1e-9


class Proposal(NamedTuple):
    """The master's answer: the next prices and multipliers, and the most they can be worth."""

    prices: list[Fraction]
    multipliers: list[Fraction]
    value: Fraction


class Cut(NamedTuple):
    """What a group of jobs buys in one pass: ``load`` of all its jobs, ``own`` of a branch's job.

    ``own`` has a pair (branch, blocks) for each branch on a job of the group.
    """

    load: tuple[int, ...]
    own: tuple[tuple[int, int], ...] = ()


def block_sizes(region: Region) -> list[int]:
    """Return what the blocks of each type count in: 1, or all that a machine has of very many.

    Examples
    --------
    >>> from algorithms.prices.region import Region
    >>> from cms import Configuration, Problem
    >>> block_sizes(Region(Problem(configurations=Configuration({"a": 7, "b": 10**13}))))
    [1, 10000000000000]
    """
    columns = zip(*(row.counts for row in region.rows), strict=True)
    largest = [max(column) for column in columns] or [1] * len(region.blocks)
    return [count if count > _MANY_ON_A_MACHINE else 1 for count in largest]


class Master:
    """Maximise the jobs' values over the region, as far as the cuts tell.

    The program's variables are ``(value - centre) * zoom``: with a centre that is nearly best and a
    large zoom the same program finds the digits that floating-point numbers left out (iterative
    refinement of linear programs, Gleixner, Steffy and Wolter 2016, DOI 10.1287/ijoc.2016.0692).

    Parameters
    ----------
    region : Region
    scales : sequence of int
        The size of each group's loads, in ``block_sizes``; the program works in these units.
    largest : float
        No price of a limit and no multiplier exceeds it, in the region's unit; proofs of
        infeasibility have no end.
    centre : Vector
        Exact prices.
    zoom : int, default 1
    """

    def __init__(
        self,
        region: Region,
        scales: Sequence[int],
        largest: float,
        centre: Vector,
        zoom: int = 1,
    ) -> None:
        from ortools.linear_solver import pywraplp

        self._region, self._zoom = region, zoom
        # Prices count in this unit, so that floating-point numbers see no tiny or large costs.
        self._unit = region.unit
        self._scales = [max(1, scale) for scale in scales]
        self.scale = sum(self._scales)
        self._solver = solver = pywraplp.Solver.CreateSolver("GLOP")
        infinity = solver.infinity()
        self._k, self._m = len(region.blocks), len(region.path)
        free_blocks, free_branches = region.free()
        self._values = [solver.NumVar(-infinity, infinity, "") for _ in self._scales]
        highs = [0.0 if i in free_blocks else infinity for i in range(len(region.blocks))]
        highs += [0.0 if at in free_branches else largest for at in range(len(region.path))]
        highs += [0.0 if limit is None else largest for limit in region.limits]
        # In this order in all that follows: prices, multipliers, limit prices.
        whole = (*centre.prices, *centre.multipliers, *centre.limit_prices)
        self._centre = tuple(value / self._unit for value in whole)
        # A variable is so many times what it stands for.
        self._sizes = [*block_sizes(region), *([1] * (len(whole) - self._k))]
        self._variables = [
            solver.NumVar(
                near(-zoom * size * c),
                near(zoom * size * (Fraction(high) - c)) if high < infinity else infinity,
                "",
            )
            for c, high, size in zip(self._centre, highs, self._sizes, strict=True)
        ]
        weights = [Fraction(0)] * self._k
        weights += [Fraction(c.sign * c.value, self.scale) for c in region.path]
        weights += [Fraction(-(limit or 0), self.scale) for limit in region.limits]
        self._constant = sum(
            (w * c for w, c in zip(weights, self._centre, strict=True)), Fraction(0)
        )
        objective = solver.Objective()
        objective.SetMaximization()
        for value, scale in zip(self._values, self._scales, strict=True):
            objective.SetCoefficient(value, near(scale, self.scale))
        for variable, weight, size in zip(self._variables, weights, self._sizes, strict=True):
            objective.SetCoefficient(variable, near(weight, size))
        self._rows: list[Any] = []
        self._cuts: list[Any] = []
        self._cut_data: list[tuple[int, Cut]] = []
        # What each group is worth at the centre, by its first cut.
        self._worth: list[Fraction | None] = [None] * len(self._scales)
        self._job_rows: dict[tuple[int, int], Any] = {}
        for at, i, job in region.job_terms:
            # No job is paid for taking a block.
            row = self._job_rows.get((i, job))
            if row is None:
                row = self._job_rows[i, job] = solver.RowConstraint(0, infinity, "")
                row.SetCoefficient(self._variables[i], near(1, self._sizes[i]))
                row.SetLb(near(-zoom * self._centre[i]))
            sign = region.path[at].sign
            row.SetCoefficient(self._variables[self._k + at], -sign)
            row.SetLb(row.lb() + near(zoom * sign * self._centre[self._k + at]))
        # Of the last solve: the cuts' shares in their groups, how many machines the rows stand for,
        # and how many blocks (block, job) takes beyond its options for a branch's sake.
        self.weights: list[float] = []
        self.machines: list[Fraction] = []
        self.extra: dict[tuple[int, int], float] = {}

    def zoomed(self, centre: Vector, zoom: int, largest: float) -> Master:
        """Return the same program around another centre."""
        master = Master(self._region, self._scales, largest, centre, zoom)
        for group, cut in self._cut_data:
            master.add(group, cut)
        # Should the program fail around the new centre, these are still right but for digits.
        master.weights, master.machines, master.extra = self.weights, self.machines, self.extra
        return master

    def _cut_terms(self, cut: Cut) -> list[tuple[int, int]]:
        """What a cut counts, as (variable, coefficient)."""
        terms = [(i, blocks) for i, blocks in enumerate(cut.load) if blocks]
        path = self._region.path
        return terms + [(self._k + at, -path[at].sign * n) for at, n in cut.own if n]

    def _row_terms(self, described: Row) -> dict[int, int]:
        """What a row of the region counts, without repetition."""
        terms = {i: count for i, count in enumerate(described.counts) if count}
        for at, coefficient in self._region.row_terms(described):
            terms[self._k + at] = terms.get(self._k + at, 0) + coefficient
        terms[self._k + self._m + described.machine] = -1
        return terms

    def _at_centre(self, terms: Iterable[tuple[int, int]]) -> Fraction:
        return sum((c * self._centre[v] for v, c in terms if self._centre[v]), Fraction(0))

    def add(self, group: int, cut: Cut) -> None:
        """Add a group's cut; its number is the number of cuts before it."""
        solver, scale = self._solver, self._scales[group]
        terms = self._cut_terms(cut)
        worth = self._at_centre(terms)
        base = self._worth[group]
        if base is None:
            base = self._worth[group] = worth
        room = near(self._zoom * (worth - base), scale)
        row = solver.RowConstraint(-solver.infinity(), room, "")
        row.SetCoefficient(self._values[group], 1)
        largest = max((abs(blocks) for _, blocks in terms), default=0)
        for variable, blocks in terms:
            # Divisions of integers: exact to the last bit however large the demands are.
            if abs(blocks) * _NOISE * self._zoom > largest:
                part = near(-blocks, scale * self._sizes[variable])
                row.SetCoefficient(self._variables[variable], part)
        self._cuts.append(row)
        self._cut_data.append((group, cut))

    def solve(self) -> Proposal | None:
        """Return the next prices and the master's value; None if the program failed."""
        for described in self._region.rows[len(self._rows) :]:
            terms = self._row_terms(described)
            cost = self._region.costs[described.machine] / self._unit
            room = near(self._zoom * (cost - self._at_centre(terms.items())))
            row = self._solver.RowConstraint(-self._solver.infinity(), room, "")
            for variable, coefficient in terms.items():
                row.SetCoefficient(
                    self._variables[variable], near(coefficient, self._sizes[variable])
                )
            self._rows.append(row)
        if not self._solved():
            return None
        wanted = self._k + self._m
        moves = zip(self._polished(), self._sizes, strict=False)
        moved = [Fraction(x) / (self._zoom * size) for x, size in moves]
        x = [max(Fraction(0), c + d) for c, d in zip(self._centre[:wanted], moved, strict=True)]
        self.weights = [
            self._weight(cut.dual_value(), group)
            for cut, (group, _) in zip(self._cuts, self._cut_data, strict=True)
        ]
        self.machines = [Fraction(max(0.0, row.dual_value())) * self.scale for row in self._rows]
        self.extra = {
            key: near(Fraction(max(0.0, -row.dual_value())) * self.scale)
            for key, row in self._job_rows.items()
        }
        value = (
            Fraction(self._solver.Objective().Value()) / self._zoom + self._constant
        ) * self.scale
        value += sum((worth for worth in self._worth if worth is not None), Fraction(0))
        x = [value * self._unit for value in x]
        return Proposal(x[: self._k], x[self._k :], value * self._unit)

    def _solved(self) -> bool:
        """Solve the program; numbers of very different sizes may need other ways than the first."""
        for way in reversed(_WAYS) if self.scale > _MANY_BLOCKS else _WAYS:
            # The last text set is the only one that counts.
            if not self._solver.SetSolverSpecificParametersAsString(f"{_ITERATIONS} {way}"):
                raise AssertionError(f"GLOP does not know one of the parameters {way!r}")
            if self._solver.Solve() == self._solver.OPTIMAL:
                return True
        return False

    def _weight(self, dual: float, group: int) -> float:
        """Turn a cut's dual value into its share of its group; scales may be beyond all floats."""
        if dual <= 0:
            return 0.0
        return near(Fraction(dual) * self.scale, self._scales[group])

    def _polished(self) -> list[float]:
        """Return the moves of prices and multipliers, solved once more for what holds them.

        The simplex method stops at a tolerance of about 1e-7, which is a machine in ten million;
        the equations themselves are small and well-conditioned.
        """
        wanted = self._variables[: self._k + self._m]
        if len(self._values) > 1 or self._zoom > 1:
            # Many groups are few jobs; their sums are small and need no polish.
            return [variable.solution_value() for variable in wanted]
        variables = [*self._variables, *self._values]
        x = np.array([variable.solution_value() for variable in variables])
        constraints = [*self._rows, *self._cuts, *self._job_rows.values()]
        holding = [c for c in constraints if abs(c.dual_value()) > _HOLDS]
        fixed = [at for at in range(len(self._variables)) if x[at] == 0]
        a = np.zeros((len(holding) + len(fixed), len(x)))
        b = np.zeros(len(a))
        for at, constraint in enumerate(holding):
            a[at] = [constraint.GetCoefficient(variable) for variable in variables]
            upper = constraint.ub()
            b[at] = upper if abs(upper) < self._solver.infinity() else constraint.lb()
        for at, column in enumerate(fixed, start=len(holding)):
            a[at, column] = 1
        correction = np.linalg.lstsq(a, b - a @ x, rcond=None)[0] if len(a) else np.zeros(len(x))
        if np.abs(correction).max(initial=0) < 1e-4 * max(1.0, np.abs(x).max(initial=0)):
            x = x + correction
        polished: list[float] = x[: len(wanted)].tolist()
        return polished

    def vertex(self) -> list[Fraction] | None:
        """Return the last solve's prices and multipliers as exact rationals; None if they are none.

        The constraints that hold them are solved once more, in rationals: right to the last block
        however large the demands are.
        """
        region = self._region
        moves = (variable.solution_value() for variable in self._variables)
        guess = [
            max(Fraction(0), c + Fraction(x) / (self._zoom * size))
            for c, x, size in zip(self._centre, moves, self._sizes, strict=True)
        ]
        equations = [{at: 1} for at, value in enumerate(guess) if value == 0]
        values = [Fraction(0)] * len(equations)
        for described, row in zip(region.rows, self._rows, strict=False):
            if abs(row.dual_value()) > _HOLDS:
                equations.append(self._row_terms(described))
                values.append(region.costs[described.machine] / self._unit)
        first: dict[int, dict[int, int]] = {}
        for (group, cut), row in zip(self._cut_data, self._cuts, strict=True):
            if abs(row.dual_value()) > _HOLDS:
                terms = dict(self._cut_terms(cut))
                # Two cuts of one group hold the same value.
                other = first.setdefault(group, terms)
                if other is not terms:
                    both = {at: terms.get(at, 0) - other.get(at, 0) for at in {*terms, *other}}
                    equations.append(both)
                    values.append(Fraction(0))
        solution = solved(equations, values, guess)
        if solution is None or any(value < 0 for value in solution):
            return None
        return [value * self._unit for value in solution[: self._k + self._m]]
