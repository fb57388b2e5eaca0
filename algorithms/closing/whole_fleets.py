"""Whole machines for whole jobs; only what is on which machine may be in parts.

Where many jobs are alike and many machines are cut at will, a fractional packing into whole
machines nearly always is as good as a whole one: how many machines of each type there are, and how
many jobs of a kind take which option, is all that is hard. That is a program of a few hundred whole
numbers, which SCIP solves (theory 6.6).
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, gcd
from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack.pricing import common_denominator

from ..prices.choices import choices_of
from ..solvers.floats import near
from ..solvers.mixed import MixedProgram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.plugin.algorithm import Budget

    from ..prices.choices import Choices
    from ..prices.jobs import Jobs
    from ..prices.region import Bounded, Region, Row
    from .undecided import Pick


#: So many pieces of a set's capacity and arcs between them, at most, make its contents paths.
_MOST_PIECES, _MOST_ARCS = 200, 2_000


class WholeFleet(NamedTuple):
    """What every job takes, and what machines for that cost if contents may be in parts."""

    choices: Choices
    cost: Fraction


def cheapest_fleet(
    jobs: Jobs,
    region: Region,
    options: Iterable[Pick],
    contents: Iterable[Row],
    budget: Budget,
    *,
    least: Fraction,
    target: Fraction,
    nodes: int,
) -> list[int] | None:
    """Choose whole numbers of machines, for jobs that may choose in parts; that is soon done.

    Parameters
    ----------
    jobs : Jobs
    region : Region
        Without branches.
    options : iterable of Pick
    contents : iterable of Row
    budget : Budget
    least, target : Fraction
        A lower bound on the cost, and the highest cost of interest.
    nodes : int
        SCIP's.

    Returns
    -------
    list of int, or None if none was found
    """
    fleet = _Fleet(jobs, region, options, contents, whole=False)
    fleet.between(least, target)
    values = fleet.program.search(budget, nodes=nodes)
    return None if values is None else [round(values[at]) for at in fleet.machines]


def whole_fleet(
    jobs: Jobs,
    region: Region,
    options: Iterable[Pick],
    contents: Iterable[Row],
    budget: Budget,
    *,
    least: Fraction,
    target: Fraction,
    nodes: int,
    machines: Sequence[int] | None = None,
) -> WholeFleet | None:
    """Choose whole numbers of machines and of jobs for each option.

    Parameters
    ----------
    jobs : Jobs
    region : Region
        Without branches.
    options : iterable of Pick
    contents : iterable of Row
    budget : Budget
    least, target : Fraction
        A lower bound on the cost, and the highest cost of interest.
    nodes : int
        SCIP's.
    machines : sequence of int, optional
        No more of each type than these.

    Returns
    -------
    WholeFleet, or None if none was found
    """
    fleet = _Fleet(jobs, region, options, contents, whole=True)
    fleet.between(least, target)
    for at, most in zip(fleet.machines, machines or (), strict=machines is not None):
        fleet.program.row([(at, 1.0)], high=float(most))
    values = fleet.program.search(budget, nodes=nodes)
    choices = None if values is None else _chosen(jobs, fleet.picks, values)
    if values is None or choices is None:
        return None
    whole = zip(fleet.machines, region.costs, strict=True)
    cost = sum((round(values[at]) * cost for at, cost in whole), Fraction(0))
    return WholeFleet(choices, cost)


class _Fleet:
    """The program of whole machines whose contents may be in parts."""

    def __init__(
        self,
        jobs: Jobs,
        region: Region,
        options: Iterable[Pick],
        contents: Iterable[Row],
        *,
        whole: bool,
    ) -> None:
        self.program = program = MixedProgram()
        self._step = jobs.problem.cost_step
        self._steps = [near(cost / self._step) for cost in region.costs]
        self.machines = [
            program.variable(cost, high=float("inf") if limit is None else float(limit), whole=True)
            for cost, limit in zip(self._steps, region.limits, strict=True)
        ]
        needs: list[list[tuple[int, float]]] = [[] for _ in region.blocks]
        mine: list[list[tuple[int, float]]] = [[(machine, 1.0)] for machine in self.machines]
        paths = {
            bounded.machine: arcs for bounded in region.bounded if (arcs := _arcs(region, bounded))
        }
        for bounded in region.bounded:
            if bounded.machine in paths:
                _add_paths(program, paths[bounded.machine], needs, mine[bounded.machine])
        for row in contents:
            if row.machine in paths and row.shape is None:
                continue
            variable = program.variable()
            mine[row.machine].append((variable, -1.0))
            for i, n in enumerate(row.counts):
                if n:
                    needs[i].append((variable, float(n)))
        self.picks = _add_picks(program, jobs, options, needs, -1.0, whole=whole)
        for terms in (*needs, *mine):
            program.row(terms, low=0.0)

    def between(self, least: Fraction, most: Fraction) -> None:
        """Bound the cost."""
        self.program.row(
            [(at, cost) for at, cost in zip(self.machines, self._steps, strict=True) if cost],
            low=near(least / self._step),
            high=float(floor(most / self._step)),
        )


def within(
    jobs: Jobs, options: Iterable[Pick], blocks: Sequence[int], budget: Budget, *, nodes: int
) -> Choices | None:
    """Let all jobs choose so that they take no more blocks than there are; None if none was found.

    Where every option is one block, a linear program does it.

    Parameters
    ----------
    jobs : Jobs
    options : iterable of Pick
    blocks : sequence of k ints
    budget : Budget
    nodes : int
        SCIP's.
    """
    program = MixedProgram()
    taken: list[list[tuple[int, float]]] = [[] for _ in blocks]
    picks = _add_picks(program, jobs, options, taken, 1.0)
    for terms, number in zip(taken, blocks, strict=True):
        program.row(terms, high=float(number))
    values = program.search(budget, nodes=nodes)
    return None if values is None else _chosen(jobs, picks, values)


def _add_picks(
    program: MixedProgram,
    jobs: Jobs,
    options: Iterable[Pick],
    blocks: Sequence[list[tuple[int, float]]],
    sign: float,
    *,
    whole: bool = True,
) -> dict[Pick, int]:
    """Let all jobs of each kind choose; ``blocks`` get the terms of what they take."""
    choose: list[list[tuple[int, float]]] = [[] for _ in range(len(jobs))]
    picks: dict[Pick, int] = {}
    for kind, option in options:
        variable = program.variable(high=float(jobs.weight(kind)), whole=whole)
        picks[kind, option] = variable
        choose[kind].append((variable, 1.0))
        for i, n in enumerate(option):
            if n:
                blocks[i].append((variable, sign * n))
    for kind, terms in enumerate(choose):
        program.row(terms, low=float(jobs.weight(kind)), high=float(jobs.weight(kind)))
    return picks


def _chosen(jobs: Jobs, picks: Mapping[Pick, int], values: Sequence[float]) -> Choices | None:
    """Read off what jobs chose; None if there are more of them than floats can count."""
    taken = [(kind, option, round(values[at])) for (kind, option), at in picks.items()]
    counts = [0] * len(jobs)
    for kind, _, number in taken:
        counts[kind] += number
    if counts != [jobs.weight(kind) for kind in range(len(jobs))]:
        return None
    return choices_of(taken, len(jobs.problem.blocks))


class _Arc(NamedTuple):
    """A block of a type that fills a machine from one level to another."""

    start: int
    end: int
    block: int


def _arcs(region: Region, bounded: Bounded) -> list[_Arc] | None:
    """List the arcs of which every content is a path, the largest blocks first; None if too many.

    An arc-flow formulation, which is as good as all contents together (Valério de Carvalho 1999,
    DOI 10.1023/A:1018952112615).
    """
    shape = bounded.shape
    if shape.max_blocks is not None:
        return None
    own = [shape.sizes[region.blocks[i]] for i in bounded.columns]
    room, *sizes = common_denominator([shape.capacity, *own])[0]
    divisor = gcd(*sizes) or 1
    room //= divisor
    if room > _MOST_PIECES:
        return None
    found: list[_Arc] = []
    reached = {0}
    pieces = [(size // divisor, i) for size, i in zip(sizes, bounded.columns, strict=True)]
    for size, i in sorted(pieces, key=lambda piece: (-piece[0], piece[1])):
        for start in range(room - size + 1):
            if start in reached:
                found.append(_Arc(start, start + size, i))
                reached.add(start + size)
    return found if len(found) <= _MOST_ARCS else None


def _add_paths(
    program: MixedProgram,
    arcs: Iterable[_Arc],
    needs: list[list[tuple[int, float]]],
    machines: list[tuple[int, float]],
) -> None:
    """Add the contents of a set as paths: what leaves a level does not exceed what comes to it."""
    levels: dict[int, list[tuple[int, float]]] = {}
    for start, end, block in arcs:
        variable = program.variable()
        needs[block].append((variable, 1.0))
        levels.setdefault(end, []).append((variable, 1.0))
        (levels.setdefault(start, []) if start else machines).append((variable, -1.0))
    for terms in levels.values():
        program.row(terms, low=0.0)
