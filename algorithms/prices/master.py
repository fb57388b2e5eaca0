"""The linear program over the cuts found so far (theory 6.4)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..solvers.floats import near
from ..solvers.linear import INFINITY, ITERATIONS, LinearProgram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..solvers.linear import Answer
    from .region import Region, Row, Vector

#: Coefficients of a cut that are this many times smaller than its largest would be bad pivots; the
#: master's value is a hint, never a bound.
_NOISE = 10**9
#: GLOP's parameters, tried in this order.
_WAYS = tuple(
    f"{ITERATIONS} {way}"
    for way in (
        "use_dual_simplex: false use_preprocessing: true",
        "use_dual_simplex: true use_preprocessing: true",
        "use_dual_simplex: true use_preprocessing: false",
        "use_dual_simplex: false use_preprocessing: false use_scaling: false",
    )
)
#: Above so many blocks bought in all, the last way comes first: from the first GLOP may not return.
_MANY_BLOCKS = 10**12
#: A machine with more blocks of a type counts them in as many: floats hold no prices that small.
_MANY_ON_A_MACHINE = 10**12
#: A constraint holds the prices where its dual value is larger.
_HOLDS = 1e-9
#: Block types up to which there is a search for a vertex; more take minutes.
MOST_BLOCKS = 32
ZERO = Fraction(0)


#: A cut is what a group of jobs buys in one pass: blocks of each type.
Cut: TypeAlias = tuple[int, ...]


class Proposal(NamedTuple):
    """The master's answer: the next prices, and the most they can be worth."""

    prices: list[Fraction]
    value: Fraction


def block_sizes(region: Region) -> list[int]:
    """Return what the blocks of each type count in: 1, or all that a machine has of very many."""
    columns = zip(*(row.counts for row in region.rows), strict=True)
    largest = [max(column) for column in columns] or [1] * len(region.blocks)
    return [count if count > _MANY_ON_A_MACHINE else 1 for count in largest]


class Master:
    """Maximise the jobs' values over the region, as far as the cuts tell.

    The program's variables are ``(value - centre) * zoom``: with a centre that is nearly best and a
    large zoom the same program finds the digits that floating-point numbers left out (iterative
    refinement of linear programs, Gleixner, Steffy and Wolter 2016, DOI 10.1287/ijoc.2016.0692).
    ``scales`` are the sizes of the groups' loads, the units of the program; no price of a limit
    exceeds ``largest`` (proofs of infeasibility have no end).
    """

    def __init__(
        self,
        region: Region,
        scales: Sequence[int],
        largest: float,
        centre: Vector,
        zoom: int = 1,
    ) -> None:
        self._region, self._zoom = region, zoom
        # Prices count in this unit, so that floating-point numbers see no tiny or large costs.
        self._unit = region.unit
        self._scales = [max(1, scale) for scale in scales]
        self.scale = sum(self._scales)
        self._k = len(region.blocks)
        free = region.free()
        highs = [0.0 if i in free else INFINITY for i in range(self._k)]
        highs += [0.0 if limit is None else largest for limit in region.limits]
        # In this order in all that follows: prices, limit prices.
        whole = (*centre.prices, *centre.limit_prices)
        self._centre = tuple(value / self._unit for value in whole)
        # A variable is so many times what it stands for.
        self._sizes = [*block_sizes(region), *([1] * len(region.limits))]
        weights = [Fraction(0)] * self._k
        weights += [Fraction(-(limit or 0), self.scale) for limit in region.limits]
        self._constant = sum(
            (w * c for w, c in zip(weights, self._centre, strict=True)), Fraction(0)
        )
        self._program = program = LinearProgram(maximise=True)
        self._values = [
            program.variable(near(scale, self.scale), low=-INFINITY) for scale in self._scales
        ]
        self._variables = [
            program.variable(
                near(weight, size),
                near(-zoom * size * c),
                near(zoom * size * (Fraction(high) - c)) if high < INFINITY else high,
            )
            for c, high, size, weight in zip(self._centre, highs, self._sizes, weights, strict=True)
        ]
        self._rows: list[int] = []
        self._cuts: list[int] = []
        self._cut_data: list[tuple[int, Cut]] = []
        # What each group is worth at the centre, by its first cut.
        self._worth: list[Fraction | None] = [None] * len(self._scales)
        self._answer: Answer | None = None
        # Of the last solve: the cuts' shares in their groups, and how many machines of each row.
        self.weights: list[float] = []
        self.machines: list[Fraction] = []

    def zoomed(self, centre: Vector, zoom: int, largest: float) -> Master:
        """Return the same program around another centre."""
        master = Master(self._region, self._scales, largest, centre, zoom)
        for group, cut in self._cut_data:
            master.add(group, cut)
        # Should the program fail around the new centre, these are still right but for digits.
        master.weights, master.machines = self.weights, self.machines
        return master

    def _row_terms(self, described: Row) -> dict[int, int]:
        """What a row of the region counts."""
        terms = _counted(described.counts)
        terms[self._k + described.machine] = -1
        return terms

    def _at_centre(self, terms: Mapping[int, int]) -> Fraction:
        return sum((c * self._centre[v] for v, c in terms.items() if self._centre[v]), ZERO)

    def add(self, group: int, cut: Cut) -> None:
        """Add a group's cut; its number is the number of cuts before it."""
        scale = self._scales[group]
        terms = _counted(cut)
        worth = self._at_centre(terms)
        base = self._worth[group]
        if base is None:
            base = self._worth[group] = worth
        room = near(self._zoom * (worth - base), scale)
        largest = max(cut, default=0)
        # Divisions of integers: exact to the last bit however large the demands are.
        parts = [
            (self._variables[variable], near(-blocks, scale * self._sizes[variable]))
            for variable, blocks in terms.items()
            if blocks * _NOISE * self._zoom > largest
        ]
        self._cuts.append(self._program.row([(self._values[group], 1.0), *parts], high=room))
        self._cut_data.append((group, cut))

    def solve(self) -> Proposal | None:
        """Return the next prices and the master's value; None if the program failed."""
        for described in self._region.rows[len(self._rows) :]:
            terms = self._row_terms(described)
            cost = self._region.costs[described.machine] / self._unit
            room = near(self._zoom * (cost - self._at_centre(terms)))
            parts = [(self._variables[v], near(n, self._sizes[v])) for v, n in terms.items()]
            self._rows.append(self._program.row(parts, high=room))
        ways = _WAYS[::-1] if self.scale > _MANY_BLOCKS else _WAYS
        self._answer = answer = self._program.solve(None, ways)
        if answer is None:
            return None
        prices = self._variables[: self._k]
        moves = zip((answer.values[v] for v in prices), self._sizes, strict=False)
        moved = [Fraction(x) / (self._zoom * size) if x else 0 for x, size in moves]
        pairs = zip(self._centre[: self._k], moved, strict=True)
        x = [max(ZERO, c + d) if c or d else ZERO for c, d in pairs]
        self.weights = [
            self._weight(answer.duals[cut], group)
            for cut, (group, _) in zip(self._cuts, self._cut_data, strict=True)
        ]
        duals = (answer.duals[row] for row in self._rows)
        self.machines = [Fraction(dual) * self.scale if dual > 0 else ZERO for dual in duals]
        value = (Fraction(answer.value) / self._zoom + self._constant) * self.scale
        value += sum((worth for worth in self._worth if worth is not None), Fraction(0))
        return Proposal([price * self._unit for price in x], value * self._unit)

    def _weight(self, dual: float, group: int) -> float:
        """Turn a cut's dual value into its share of its group; scales may be beyond all floats."""
        if dual <= 0:
            return 0.0
        return near(Fraction(dual) * self.scale, self._scales[group])

    def vertex(self) -> list[Fraction] | None:
        """Return the last solve's prices, solved for in rationals; None if there are none."""
        region, answer = self._region, self._answer
        if answer is None:
            return None
        moves = (answer.values[variable] for variable in self._variables)
        guess = [
            max(Fraction(0), c + Fraction(x) / (self._zoom * size))
            for c, x, size in zip(self._centre, moves, self._sizes, strict=True)
        ]
        equations = [{at: 1} for at, value in enumerate(guess) if value == 0]
        values = [Fraction(0)] * len(equations)
        for described, row in zip(region.rows, self._rows, strict=False):
            if abs(answer.duals[row]) > _HOLDS:
                equations.append(self._row_terms(described))
                values.append(region.costs[described.machine] / self._unit)
        first: dict[int, dict[int, int]] = {}
        for (group, cut), row in zip(self._cut_data, self._cuts, strict=True):
            if abs(answer.duals[row]) > _HOLDS:
                terms = _counted(cut)
                # Two cuts of one group hold the same value.
                other = first.setdefault(group, terms)
                if other is not terms:
                    both = {at: terms.get(at, 0) - other.get(at, 0) for at in {*terms, *other}}
                    equations.append(both)
                    values.append(Fraction(0))
        from ..solvers.simplex import solved

        solution = solved(equations, values, guess)
        if solution is None or any(value < 0 for value in solution):
            return None
        return [value * self._unit for value in solution[: self._k]]


def _counted(blocks: Sequence[int]) -> dict[int, int]:
    return {i: count for i, count in enumerate(blocks) if count}
