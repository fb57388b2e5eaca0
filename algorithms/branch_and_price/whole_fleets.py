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
from .options import NearOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cms.plugin.algorithm import Budget

    from ..prices.choices import Choices
    from ..prices.jobs import Jobs
    from ..prices.points import PricePoint
    from ..prices.region import Bounded, Region, Row
    from ..prices.search import PriceSearch
    from .undecided import Pick

#: Programs take so many kinds of jobs; these are alike if there are so many of a kind on average.
MAX_KINDS, _ALIKE = 128, 8
#: So many pieces of a set's capacity and arcs between them, at most, make its contents paths.
_MOST_PIECES, _MOST_ARCS = 200, 2_000
#: Options of lowest reduced cost: so many of all kinds together, out of so many of each within some
#: cost steps of its cheapest one; of each kind so many anyway, within more steps.
_WIDE, _WIDE_LISTED, _WIDE_STEPS = 1_500, 200, 5
_EACH, _LISTED, _STEPS = 8, 60, 20
#: SCIP's nodes for a fleet that is known.
_NODES = 300


class WholeFleet(NamedTuple):
    """What every job takes, and what machines for that cost if contents may be in parts."""

    choices: Choices
    cost: Fraction


def alike(jobs: Jobs) -> bool:
    """Whether jobs are few kinds, many of each."""
    return len(jobs) <= MAX_KINDS and jobs.problem.n_jobs >= _ALIKE * len(jobs)


def list_options(search: PriceSearch, point: PricePoint, jobs: Jobs) -> list[Pick]:
    """List options of all kinds that fit together: what some pass took, and what costs little more.

    Of hundreds of jobs some take what costs a little more, for how all that is taken adds up to
    whole machines (theory 6.7).
    """
    step, near = jobs.problem.cost_step, NearOptions(jobs, point)
    found = dict.fromkeys(
        (kind, tuple(option))
        for options in search.options
        for kind, option in enumerate(options.tolist())
    )
    ranked: list[tuple[int, Pick]] = []
    for kind in range(len(jobs)):
        each = near.some(kind, _STEPS * step, _LISTED)[:_EACH]
        found |= dict.fromkeys((kind, option) for option in each)
        priced = [(near.price(o), o) for o in near.some(kind, _WIDE_STEPS * step, _WIDE_LISTED)]
        least = min(price for price, _ in priced)
        ranked += [(price - least, (kind, option)) for price, option in priced]
    return [*(found | dict.fromkeys(pick for _, pick in sorted(ranked)[:_WIDE]))]


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
    fleet: Mapping[str, int] | None = None,
) -> WholeFleet | None:
    """Choose whole numbers of machines and of jobs for each option; None if none were found."""
    program, step = MixedProgram(), jobs.problem.cost_step
    steps = [near(cost / step) for cost in region.costs]
    most = [float("inf") if limit is None else float(limit) for limit in region.limits]
    if fleet is not None:
        most = [float(fleet[machine.name]) for machine in jobs.problem.machine_types]
    machines = [
        program.variable(cost, high=high, whole=True)
        for cost, high in zip(steps, most, strict=True)
    ]
    needs: list[list[tuple[int, float]]] = [[] for _ in region.blocks]
    mine: list[list[tuple[int, float]]] = [[(machine, 1.0)] for machine in machines]
    paths = {each.machine: arcs for each in region.bounded if (arcs := _arcs(region, each))}
    for machine, arcs in paths.items():
        _add_paths(program, arcs, needs, mine[machine])
    for row in contents:
        if row.machine in paths and row.shape is None:
            continue
        variable = program.variable()
        mine[row.machine].append((variable, -1.0))
        for i, n in enumerate(row.counts):
            if n:
                needs[i].append((variable, float(n)))
    choose: list[list[tuple[int, float]]] = [[] for _ in range(len(jobs))]
    picks: dict[Pick, int] = {}
    for kind, option in options:
        variable = program.variable(high=float(jobs.weight(kind)), whole=True)
        picks[kind, option] = variable
        choose[kind].append((variable, 1.0))
        for i, n in enumerate(option):
            if n:
                needs[i].append((variable, -float(n)))
    for kind, terms in enumerate(choose):
        program.row(terms, low=float(jobs.weight(kind)), high=float(jobs.weight(kind)))
    for terms in (*needs, *mine):
        program.row(terms, low=0.0)
    paid = [(at, cost) for at, cost in zip(machines, steps, strict=True) if cost]
    program.row(paid, low=near(least / step), high=float(floor(target / step)))
    values = program.search(budget, nodes=nodes)
    if values is None:
        return None
    taken = [(kind, option, round(values[at])) for (kind, option), at in picks.items()]
    counts = [0] * len(jobs)
    for kind, _, number in taken:
        counts[kind] += number
    if counts != [jobs.weight(kind) for kind in range(len(jobs))]:
        return None  # there are more of them than floats can count
    bought = zip(machines, region.costs, strict=True)
    cost = sum((round(values[at]) * cost for at, cost in bought), Fraction(0))
    return WholeFleet(choices_of(taken, len(jobs.problem.blocks)), cost)


def of_fleet(
    jobs: Jobs, region: Region, options: Iterable[Pick], budget: Budget, fleet: Mapping[str, int]
) -> WholeFleet | None:
    """Choose for machines of which the number of each type is known."""
    types = jobs.problem.machine_types
    paid = sum((fleet[machine.name] * machine.cost for machine in types), Fraction(0))
    given = jobs, region, options, region.rows, budget
    return whole_fleet(*given, least=paid, target=paid, nodes=_NODES, fleet=fleet)


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
