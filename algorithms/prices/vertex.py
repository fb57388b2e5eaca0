"""From floating-point weights to a basic optimal solution in exact rationals.

The solver says which jobs are split between which passes and which machines there are; an exact
program over these columns says how many, and at which prices. Columns that its prices find missing
are added until there are none. So the number of jobs that are split is at most what basic solutions
allow, and nothing is lost to rounding errors, however large the numbers are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.knapsack.pricing import common_denominator

from ..solvers.simplex import cheapest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..solvers.simplex import Basic
    from .passes import Groups, Passes
    from .proposals import Proposal
    from .region import Region, Row

#: With more block types the exact program would take minutes: floats have to do.
MOST_EXACT = 32
#: Machines that are added at a time.
_AT_A_TIME = 8
#: Columns tie, as far as floats can tell, if they differ by less than the whole over this; so many
#: groups a block type with such columns take part in the exact program from the start.
_TIE, _TIED_GROUPS = 10**9, 2
#: Floats are rounded to denominators up to this.
_FINEST = 10**6


@dataclass(frozen=True)
class Vertex:
    """A basic solution of the linear program over passes.

    Attributes
    ----------
    cost : Fraction
    machines : list of (Row, number)
        The positive ones.
    groups : Groups
    chosen : list of int
        The pass that each group takes, unless it is mixed.
    shares : dict of lists of (pass, share)
        For each group that is mixed; the shares are positive and add up to 1.
    prices : list of k Fractions
        The dual solution; exact if the vertex is.
    """

    cost: Fraction
    machines: list[tuple[Row, Fraction]]
    groups: Groups
    chosen: list[int]
    shares: dict[int, list[tuple[int, Fraction]]]
    prices: list[Fraction]


def vertex_of(
    passes: Passes,
    groups: Groups,
    proposal: Proposal,
    stopped: Callable[[], bool] = lambda: False,
) -> Vertex | None:
    """Work a proposal out exactly, over all columns and machines there are.

    Parameters
    ----------
    passes : Passes
    groups : Groups
    proposal : Proposal
    stopped : callable, optional

    Returns
    -------
    Vertex, or None if it was stopped
        Optimal over the columns that the groups have; with more than 32 block types it is the
        proposal itself, its floats rounded.
    """
    region = passes.region
    if len(region.blocks) > MOST_EXACT:
        return _rounded(region, groups, proposal)
    program = _Exact(region, groups, proposal)
    while True:
        basic = program.solved(stopped)
        if basic is None:
            return None
        if not program.extended(basic):
            return program.vertex(basic)


def undivided(passes: Passes, groups: Groups, stopped: Callable[[], bool]) -> Vertex | None:
    """Return a solution in which everybody takes what the best prices say, as one option.

    Parameters
    ----------
    passes : Passes
    groups : Groups
    stopped : callable

    Returns
    -------
    Vertex, or None if it was stopped
        Basic, but hardly optimal.
    """
    region, number = passes.region, passes.best.number
    chosen = [groups.column(group, number) for group in range(len(groups))]
    load = groups.totals[number]
    rows = list(dict.fromkeys(cheapest_holder(region, i) for i in range(len(region.blocks))))
    costs = [region.costs[region.rows[r].machine] for r in rows]
    table = [[region.rows[r].counts[i] for r in rows] for i in range(len(region.blocks))]
    basic = cheapest(costs, table, load, stopped)
    if basic is None:
        return None
    machines = [(region.rows[r], x) for r, x in zip(rows, basic.values, strict=True) if x]
    return Vertex(basic.cost, machines, groups, chosen, {}, basic.prices)


def cheapest_holder(region: Region, block: int) -> int:
    """Return the row of the cheapest machine that has a block; of equals one with most of them.

    Examples
    --------
    >>> from algorithms.prices.region import Region
    >>> from cms import Configuration, Problem
    >>> shapes = [Configuration({"a": 1}), Configuration({"a": 2}), Configuration({"b": 1})]
    >>> cheapest_holder(Region(Problem(configurations=shapes)), 0)
    1
    """
    holders = [r for r, row in enumerate(region.rows) if row.counts[block]]
    return min(
        holders,
        key=lambda r: (region.costs[region.rows[r].machine], -region.rows[r].counts[block]),
    )


class _Exact:
    """The exact program over some of the machines, and some of the passes of some groups."""

    def __init__(self, region: Region, groups: Groups, proposal: Proposal) -> None:
        self._region, self._groups = region, groups
        self._k = len(region.blocks)
        # One machine for each block type makes the program feasible.
        holders = (cheapest_holder(region, i) for i in range(self._k))
        self._rows = sorted({*proposal.machines, *holders})
        by_weight = [sorted(weights, key=lambda t: -weights[t]) for weights in proposal.weights]
        self._chosen = [numbers[0] for numbers in by_weight]
        # The passes that groups may mix, their chosen one first.
        self._mixing = {g: numbers for g, numbers in enumerate(by_weight) if len(numbers) > 1}
        self._add_ties(proposal)

    def _add_ties(self, proposal: Proposal) -> None:
        """Let groups mix passes that seem to cost the same: their ties decide the prices."""
        groups, left = self._groups, _TIED_GROUPS * self._k
        prices, denominator = common_denominator(proposal.prices)
        near = proposal.upper * denominator / _TIE
        for group, columns in enumerate(groups.columns):
            if len(columns) == 1 or not left:
                continue
            chosen = groups.load(group, self._chosen[group])
            mine = self._mixing.get(group, [self._chosen[group]])
            tied = []
            for number in columns:
                load = groups.load(group, number)
                more = sum(p * (a - b) for p, a, b in zip(prices, load, chosen, strict=True))
                if number not in mine and abs(more) <= near:
                    tied.append(number)
            if tied:
                self._mixing[group] = [*mine, *tied]
                left -= 1

    def _moves(self) -> list[tuple[int, int]]:
        return [(group, number) for group, mine in self._mixing.items() for number in mine[1:]]

    def solved(self, stopped: Callable[[], bool]) -> Basic | None:
        """Solve the program; None if stopped."""
        region, groups, moves = self._region, self._groups, self._moves()
        load = [0] * self._k
        for group, number in enumerate(self._chosen):
            load = [a + n for a, n in zip(load, groups.load(group, number), strict=True)]
        # Every group takes its chosen pass, less what it moves to others.
        less = [
            [
                a - b
                for a, b in zip(
                    groups.load(group, self._chosen[group]), groups.load(group, number), strict=True
                )
            ]
            for group, number in moves
        ]
        table = [
            [*(region.rows[r].counts[i] for r in self._rows), *(column[i] for column in less)]
            for i in range(self._k)
        ]
        for group in self._mixing:  # no more than all of it
            table.append([0] * len(self._rows) + [-int(mine == group) for mine, _ in moves])
        costs = [region.costs[region.rows[r].machine] for r in self._rows]
        costs += [Fraction(0)] * len(moves)
        return cheapest(costs, table, [*load, *([-1] * len(self._mixing))], stopped)

    def extended(self, basic: Basic) -> bool:
        """Add what the prices find missing; say whether there was anything."""
        region, groups = self._region, self._groups
        numbers, denominator = common_denominator(basic.prices[: self._k])

        def worth(counts: Sequence[int]) -> int:
            return sum(p * n for p, n in zip(numbers, counts, strict=True))

        dear = []
        for r in sorted(set(range(len(region.rows))) - set(self._rows)):
            row = region.rows[r]
            beyond = worth(row.counts) - region.costs[row.machine] * denominator
            if beyond > 0:
                dear.append((-beyond, r))
        self._rows = sorted([*self._rows, *(r for _, r in sorted(dear)[:_AT_A_TIME])])
        missing = bool(dear)
        for group, columns in enumerate(groups.columns):
            if len(columns) == 1:
                continue
            mine = self._mixing.get(group, [self._chosen[group]])
            values = {number: worth(groups.load(group, number)) for number in columns}
            best = min(columns, key=values.__getitem__)
            if values[best] < min(values[number] for number in mine):
                self._mixing[group] = [*mine, best]
                missing = True
        return missing

    def vertex(self, basic: Basic) -> Vertex:
        """Read the solution."""
        region, moves = self._region, self._moves()
        machines = zip(self._rows, basic.values, strict=False)
        moved = dict(zip(moves, basic.values[len(self._rows) :], strict=True))
        chosen = list(self._chosen)
        shares: dict[int, list[tuple[int, Fraction]]] = {}
        for group, mine in self._mixing.items():
            others = [(number, moved[group, number]) for number in mine[1:]]
            stay = 1 - sum((share for _, share in others), Fraction(0))
            taken = [(number, x) for number, x in [(mine[0], stay), *others] if x]
            if len(taken) > 1:
                shares[group] = taken
            else:
                chosen[group] = taken[0][0]
        return Vertex(
            basic.cost,
            [(region.rows[r], x) for r, x in machines if x],
            self._groups,
            chosen,
            shares,
            basic.prices[: self._k],
        )


def _rounded(region: Region, groups: Groups, proposal: Proposal) -> Vertex:
    """Return the solver's own numbers as rationals, near enough to be rounded and repaired."""
    machines = [
        (region.rows[r], x.limit_denominator(_FINEST)) for r, x in proposal.machines.items()
    ]
    machines = [(row, x) for row, x in machines if x]
    chosen: list[int] = []
    shares: dict[int, list[tuple[int, Fraction]]] = {}
    for group, weights in enumerate(proposal.weights):
        by_weight = sorted(weights, key=lambda number: -weights[number])
        chosen.append(by_weight[0])
        left = Fraction(1)
        others: list[tuple[int, Fraction]] = []
        for number in by_weight[1:]:
            share = min(left, Fraction(weights[number]).limit_denominator(_FINEST))
            if share:
                others.append((number, share))
                left -= share
        if others and left:
            shares[group] = [(by_weight[0], left), *others]
    cost = sum((region.costs[row.machine] * x for row, x in machines), Fraction(0))
    return Vertex(cost, machines, groups, chosen, shares, proposal.prices)
