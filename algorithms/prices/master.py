"""The linear program over the cuts found so far (theory 6.4), in floats and in rationals."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.knapsack.pricing import common_denominator

from ..solvers.floats import near
from ..solvers.linear import INFINITY, ITERATIONS, LinearProgram
from ..solvers.simplex import Program, solved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..solvers.linear import Answer
    from ..solvers.simplex import Basic
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
#: Above this many blocks bought, the last way comes first: from the first GLOP may not return.
_MANY_BLOCKS = 10**12
#: A machine with more blocks of a type counts them in as many: floats hold no prices that small.
_MANY_ON_A_MACHINE = 10**12
#: A constraint holds the prices where its dual value is larger.
_HOLDS = 1e-9
#: Block types up to which there is a search for a vertex; more take minutes.
MOST_BLOCKS = 32
#: Rows of the exact program from which on it takes minutes; machines that join it at a time.
MOST_ROWS, _AT_A_TIME = 40, 8
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
        self, region: Region, scales: Sequence[int], largest: float, centre: Vector, zoom: int = 1
    ) -> None:
        self._region, self._zoom = region, zoom
        # Prices count in this unit, so that floating-point numbers see no tiny or large costs.
        self._unit = region.unit
        self._scales = [max(1, scale) for scale in scales]
        self.scale = sum(self._scales)
        self._k = len(region.blocks)
        free = region.free()
        highs = [0.0 if i in free else INFINITY for i in range(self._k)]
        highs += [largest] * len(region.limits)
        # In this order in all that follows: prices, limit prices.
        whole = (*centre.prices, *centre.limit_prices)
        self._centre = tuple(value / self._unit for value in whole)
        # A variable is this multiple of what it stands for.
        self._sizes = [*block_sizes(region), *(limit.size for limit in region.limits)]
        weights = [Fraction(0)] * self._k
        weights += [Fraction(-limit.at_most, self.scale) for limit in region.limits]
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
        terms = _counted(described.counts)
        for at, n in self._region.room.counting(described.machine):
            terms[self._k + at] = -n
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
        # Scales may be beyond all floats.
        duals = (answer.duals[cut] for cut in self._cuts)
        self.weights = [
            near(Fraction(dual) * self.scale, self._scales[group]) if dual > 0 else 0.0
            for dual, (group, _) in zip(duals, self._cut_data, strict=True)
        ]
        duals = (answer.duals[row] for row in self._rows)
        self.machines = [Fraction(dual) * self.scale if dual > 0 else ZERO for dual in duals]
        value = (Fraction(answer.value) / self._zoom + self._constant) * self.scale
        value += sum((worth for worth in self._worth if worth is not None), Fraction(0))
        return Proposal([price * self._unit for price in x], value * self._unit)

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
        solution = solved(equations, values, guess)
        if solution is None or any(value < 0 for value in solution):
            return None
        return [value * self._unit for value in solution[: self._k]]


def _counted(blocks: Sequence[int]) -> dict[int, int]:
    return {i: count for i, count in enumerate(blocks) if count}


class ExactMaster:
    """The dual of ``Master`` in exact rationals: serve all jobs with passes and machines.

    Floats stop short of prices of 10^-80 of a machine beside others of a quarter of one, and what
    they say of a trillion blocks is no basic solution. At first those passes and machines take part
    that floats say are used; those that its prices find missing join, until there are none.
    """

    def __init__(self, region: Region, n_groups: int, stopped: Callable[[], bool]) -> None:
        self._region, self._stopped = region, stopped
        self._k = len(region.blocks)
        self._loads: list[tuple[int, ...]] = []
        # Each group's cuts; those that it may mix, from the one on that it takes by default; and
        # the machines that take part.
        self._cuts: list[list[int]] = [[] for _ in range(n_groups)]
        self._mixing: list[list[int]] = [[] for _ in range(n_groups)]
        self._rows = sorted({cheapest_holder(region, i) for i in range(self._k)})
        # The program, once solved, and its columns: (None, machine) or (group, cut).
        self._program: Program | None = None
        self._columns: list[tuple[int | None, int]] = []
        # Its rows of groups that are split; those of limits follow those of blocks.
        self._whole: dict[int, int] = {}
        self._prices: list[Fraction] = []
        self.weights: list[Fraction] = []
        self.machines: list[Fraction] = []

    @staticmethod
    def fits(region: Region, n_groups: int) -> bool:
        """Whether the program is small enough with all groups split."""
        rows = len(region.blocks) + n_groups + len(region.limits)
        return not region.free_machines and rows <= MOST_ROWS

    def add(self, group: int, cut: Cut, weight: float = 0.0) -> None:
        """Add what a group buys in a pass; a positive weight lets it take part from the start."""
        number = len(self._loads)
        self._loads.append(cut)
        self._cuts[group].append(number)
        self.weights.append(Fraction(weight))
        if weight:
            self._mixing[group].append(number)
            self._mixing[group].sort(key=lambda number: -self.weights[number])
            self._program = None  # what it takes by default may be another pass

    def use(self, row: int) -> None:
        """Let a machine take part from the start."""
        self._rows = sorted({*self._rows, row})

    def solve(self) -> Proposal | None:
        """Return the best prices as far as the cuts tell; None if limits forbid, or if stopped."""
        for cuts, mixing in zip(self._cuts, self._mixing, strict=True):
            if not mixing:
                mixing.append(cuts[0])
        while True:
            try:
                found = self._solved()
            except ValueError:
                if self._all_in():
                    return None  # so far no passes fit the limits
                continue
            if found is None:
                return None
            if not self._extended(found.prices[: self._k]):
                return self._read(found)

    def vertex(self) -> list[Fraction]:
        """Return the last solve's prices."""
        return self._prices

    def _solved(self) -> Basic | None:
        """Go on from the last solution with all that takes part by now."""
        # Columns cannot join a program that was not solved to the end.
        program, self._program = self._program, None
        if program is None:
            # No machines yet, and all groups take their default pass.
            self._columns, self._whole = [], {}
            loads = [self._loads[mine[0]] for mine in self._mixing]
            least = [sum(load[i] for load in loads) for i in range(self._k)]
            program = Program([*least, *(-limit.at_most for limit in self._region.limits)])
        wanted: list[tuple[int | None, int]] = [(None, r) for r in self._rows]
        wanted += [(group, cut) for group, mine in enumerate(self._mixing) for cut in mine[1:]]
        there = {*self._columns}
        for column in wanted:
            if column not in there:
                self._join(program, *column)
        found = program.solve(self._stopped)
        if found is not None:
            self._program = program
        return found

    def _join(self, program: Program, group: int | None, number: int) -> None:
        """Let a machine take part, or what a group takes of another pass than by default."""
        self._columns.append((group, number))
        if group is None:
            row = self._region.rows[number]
            counts = _counted(row.counts)
            counts |= {self._k + at: -n for at, n in self._region.room.counting(row.machine)}
            program.add(self._region.costs[row.machine], counts)
            return
        if group not in self._whole:  # no more than all of it
            self._whole[group] = program.add_row(-1)
        loads = zip(self._loads[self._mixing[group][0]], self._loads[number], strict=True)
        less = {i: a - b for i, (a, b) in enumerate(loads)}
        program.add(Fraction(0), {**less, self._whole[group]: -1})

    def _all_in(self) -> bool:
        """Whether all machines and passes took part already; now they do."""
        rows = list(range(len(self._region.rows)))
        mixing = [
            [*dict.fromkeys([*m, *cuts])] for m, cuts in zip(self._mixing, self._cuts, strict=True)
        ]
        done = (rows, mixing) == (self._rows, self._mixing)
        self._rows, self._mixing = rows, mixing
        return done

    def _extended(self, prices: Sequence[Fraction]) -> bool:
        """Let what the prices find missing take part; say whether there was anything."""
        region = self._region
        numbers, denominator = common_denominator(prices)
        dear = []
        for r in sorted({*range(len(region.rows))} - {*self._rows}):
            row = region.rows[r]
            beyond = sum(map(mul, numbers, row.counts)) - region.costs[row.machine] * denominator
            if beyond > 0:
                dear.append((-beyond, r))
        self._rows = sorted([*self._rows, *(r for _, r in sorted(dear)[:_AT_A_TIME])])
        missing = bool(dear)
        for cuts, mine in zip(self._cuts, self._mixing, strict=True):
            if len(cuts) > len(mine):
                worth = {cut: sum(map(mul, numbers, self._loads[cut])) for cut in cuts}
                best = min(cuts, key=worth.__getitem__)
                if worth[best] < min(worth[cut] for cut in mine):
                    mine.append(best)
                    missing = True
        return missing

    def _read(self, found: Basic) -> Proposal:
        self.machines = [Fraction(0)] * len(self._region.rows)
        self.weights = [Fraction(0)] * len(self._loads)
        for mine in self._mixing:
            self.weights[mine[0]] = Fraction(1)
        for (group, number), value in zip(self._columns, found.values, strict=True):
            if group is None:
                self.machines[number] = value
            else:
                self.weights[number] += value
                self.weights[self._mixing[group][0]] -= value
        self._prices = found.prices[: self._k]
        return Proposal(self._prices, found.cost)


def cheapest_holder(region: Region, block: int) -> int:
    """Return the row of the cheapest machine that has a block; of equals one with most of them."""
    holders = [r for r, row in enumerate(region.rows) if row.counts[block]]
    return min(
        holders, key=lambda r: (region.costs[region.rows[r].machine], -region.rows[r].counts[block])
    )
