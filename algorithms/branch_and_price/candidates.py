"""What to branch on: the integers of a schedule that a fractional one leaves fractional.

Coverage is linear in what a job gets, so a fractional solution whose machines and *mean* blocks of
every job are integers is a schedule. Until then some number of machines, of blocks or of one job's
blocks is no integer, or some of machines with some content, of a size-bounded set.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, islice
from math import ceil, floor, gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.certificate.conditions import MOST_NAMED
from cms.certificate.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    MachinesWith,
)
from cms.problem.parts import Configuration
from cms.referee.check import check
from cms.schedule.schedule import Schedule

from ..prices.fraction import exactly
from ..prices.region import configuration_of
from ..prices.sharded_jobs import listed
from ..solvers.floats import near
from .diver import Diver
from .undecided import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from cms.certificate.quantity import Quantity
    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem

    from ..prices.points import Share
    from ..prices.region import Row
    from ..prices.search import PriceSearch

#: Nearer to an integer than this counts as one where branches are chosen; nothing is proved by it.
_NEAR = 1e-5
#: Numbers from here on are worked out in rationals: floats would not tell them from integers.
_LARGE = 1_000

#: Ranks of splits: totals of machine types, weighted sums of these, totals of blocks,
#: configurations, machines with some content, single jobs.
TYPES, SUMS, BLOCKS, SHAPES, CONTENTS, JOBS = range(6)
#: The weights of machine types are their costs in so many parts of the dearest one, at most.
_FINEST = 100
#: Of larger numbers of blocks of a type only those are branched on that tell machines apart; and so
#: many numbers are looked at, times machines.
_FEW_OF_A_TYPE, _MOST_LOOKS = 64, 1_000_000
#: Dives for the machines that a node's schedule lacks.
_DIVES = slice(6)


class Split(NamedTuple):
    """A branch that cuts a fractional solution off: a quantity is ``at_most`` this, or more.

    ``weight`` says how much may depend on it: how far the value is from an integer, times what one
    unit is worth.
    """

    quantity: Quantity
    at_most: int
    rank: int
    weight: float


class Mixture(NamedTuple):
    """The fractional solution at a node."""

    machines: list[tuple[Row, Any]]
    means: NDArray[Any]
    own: dict[int, NDArray[Any]]


def mixture(search: PriceSearch) -> Mixture:
    """Read the fractional solution off a search at its end."""
    shares, machines = search.shares, search.machines
    weights = [share.weight for share in shares]
    rows = [(row, near(x)) for row, x in machines]
    found = _mixed(search, shares, weights, rows, list(search.extra.values()))
    numbers = [x for _, x in found.machines]
    largest = max([0.0, *numbers, float(found.means.max(initial=0))])
    if max([largest, *(float(blocks.max()) for blocks in found.own.values())]) <= _LARGE:
        return found
    exact = exactly(search)
    return found if exact is None else _mixed(search, shares, *exact)


def splits(search: PriceSearch, found: Mixture, gap: Fraction | None = None) -> list[Split]:
    """List the fractional quantities; ``gap`` is what a bound has to rise by."""
    region, jobs = search.region, listed(search.jobs)
    problem = jobs.problem
    prices = search.best.vector.prices if search.best is not None else ()
    result: list[Split] = []

    def add(quantity: Quantity, value: Any, rank: int, worth: Fraction) -> None:
        away = abs(value - round(value))
        if away > _NEAR:
            result.append(Split(quantity, floor(value), rank, near(Fraction(away)) * near(worth)))

    of_type: list[Any] = [0] * len(region.costs)
    of_block: list[Any] = [0] * len(region.blocks)
    for row, amount in found.machines:
        of_type[row.machine] += amount
        of_block = [total + n * amount for total, n in zip(of_block, row.counts, strict=True)]
    # Machines that cost nothing can be rounded up, and their blocks with them.
    free_types, free_blocks = _free_types(search), region.free()[0]
    for m, value in enumerate(of_type):
        if m not in free_types:
            add(MachinesOfType(problem.machine_types[m].name), value, TYPES, region.costs[m])
    paid = {m: c for m, c in enumerate(region.costs) if c and m not in free_types}
    for weights in rough_costs(paid, gap or region.unit):
        value = sum(times * of_type[m] for m, times in weights.items())
        if abs(value - round(value)) > _NEAR:
            named = {problem.machine_types[m].name: times for m, times in weights.items()}
            # The side below is often empty; on the other one what is missing up to a whole number
            # costs so much. More than the gap is no better: then the finest sum is.
            unit = min(paid[m] / times for m, times in weights.items())
            rise = near(unit) * near(ceil(value) - Fraction(value))
            weight = rise if gap is None else min(rise, near(gap))
            result.append(Split(MachinesOfType(named), floor(value), SUMS, weight))
    for i, value in enumerate(of_block):
        if i not in free_blocks:
            add(BlocksOf(region.blocks[i]), value, BLOCKS, prices[i])
    for row, amount in found.machines:
        if row.shape is not None and row.machine not in free_types and _countable(search, row):
            add(MachinesOf(row.shape), amount, SHAPES, region.costs[row.machine])
    for quantity, value, m in _contents(search, found):
        add(quantity, value, CONTENTS, region.costs[m])
    for job, blocks in found.own.items():
        for i, value in enumerate(blocks.tolist()):
            add(BlocksOfJob(region.blocks[i], problem.job_names[job]), value, JOBS, prices[i])
    broken = (found.means % 1 != 0).any(axis=1) & (search.weights > 0)
    for kind in np.flatnonzero(broken).tolist():
        # Equal jobs share a mean; a branch is on one of them.
        name = problem.job_names[_first_without(jobs.members(kind), found.own)]
        for i, value in enumerate(found.means[kind].tolist()):
            add(BlocksOfJob(region.blocks[i], name), value, JOBS, prices[i])
    return result


def rough_costs(costs: Mapping[int, Fraction], finest: Fraction) -> list[dict[int, int]]:
    """List machine types' costs in rough units, the finest first but none below ``finest``.

    Near the best fractional fleet what fleets cost is nearly the same, and so is such a sum. Of a
    branch on it one side is often empty, and the other dearer by nearly a unit.
    """
    dearest = max(costs.values(), default=Fraction(0))
    most = min(_FINEST, floor(dearest / finest)) if finest else _FINEST
    found: dict[tuple[tuple[int, int], ...], None] = {}
    for largest in range(most, 0, -1):
        times = {m: round(cost * largest / dearest) for m, cost in costs.items()}
        kept = tuple((m, n) for m, n in times.items() if n)
        if len(kept) > 1 and gcd(*times.values()) == 1:
            found[kept] = None
    return [dict(weights) for weights in found]


def schedule_of(
    search: PriceSearch,
    found: Mixture,
    original: Problem,
    budget: Budget,
    below: Fraction | None = None,
) -> Schedule | None:
    """Build the schedule that a fractional solution without splits is; None if it is none."""
    region, jobs = search.region, listed(search.jobs)
    problem = jobs.problem
    free = _free_types(search)
    kept: dict[Row, int] = {}
    held = [0] * len(region.blocks)
    for row, amount in found.machines:
        number = ceil(amount - Fraction(_NEAR)) if row.machine in free else _whole(row, amount)
        if number and any(row.counts):  # an empty machine only meets a branch
            kept[row] = kept.get(row, 0) + number
            held = [total + n * number for total, n in zip(held, row.counts, strict=True)]
    given: dict[tuple[str, str], int] = {}
    for job, name in enumerate(problem.job_names):
        taken = found.own.get(job)
        if taken is None:
            taken = found.means[jobs.kind_of[job]]
        option = [round(value) for value in taken.tolist()]
        given |= {(b, name): n for b, n in zip(region.blocks, option, strict=True) if n}
        held = [total - n for total, n in zip(held, option, strict=True)]
    for i in region.free()[0]:
        _buy(search, kept, held, i)
    if min(held, default=0) < 0:
        more = _dived(search, kept, held, budget, below)
        if more is None:
            return None
        for row, number in more.items():
            kept[row] = kept.get(row, 0) + number
    machines: dict[Configuration, int] = {}
    for row, number in kept.items():
        shape = configuration_of(problem, row)
        machines[shape] = machines.get(shape, 0) + number
    schedule = Schedule.from_counts(original, machines, given)
    return None if check(original, schedule) else schedule


def _whole(row: Row, amount: Any) -> int:
    """Return how many machines there are; of a size-bounded set as many as are whole."""
    whole: int = round(amount) if row.shape is not None else floor(amount + Fraction(_NEAR))
    return whole


def _dived(
    search: PriceSearch,
    kept: Mapping[Row, int],
    held: Sequence[int],
    budget: Budget,
    below: Fraction | None,
) -> Mapping[Row, int] | None:
    """Dive for machines that hold what those kept do not."""
    region = search.region
    if not region.bounded or search.best is None:
        return None
    short = [max(0, -number) for number in held]
    spent = sum((n * region.costs[row.machine] for row, n in kept.items()), Fraction(0))
    room = None if below is None else below - spent
    diver, target = Diver(search.jobs, region, budget), search.best.bound - spent
    found = [*diver.dives(Undecided.of_blocks(short), target, room, _DIVES)]
    return found[-1].machines if found else None


def _buy(search: PriceSearch, kept: dict[Row, int], held: list[int], i: int) -> None:
    """Add machines that cost nothing, which the fractional solution leaves out, for a block."""
    free = _free_types(search)
    row = max(
        (row for row in search.region.rows if row.machine in free), key=lambda row: row.counts[i]
    )
    number = -(held[i] // row.counts[i])
    if number > 0:
        kept[row] = kept.get(row, 0) + number
        held[:] = [total + n * number for total, n in zip(held, row.counts, strict=True)]


def _mixed(
    search: PriceSearch,
    shares: Sequence[Share],
    weights: Sequence[Any],
    machines: list[tuple[Row, Any]],
    extra: Sequence[Any],
) -> Mixture:
    """Mix the options of the passes; floats or Fractions, as the weights are."""
    k, jobs = len(search.region.blocks), search.region.own_priced
    kind: Any = object if any(isinstance(w, Fraction) for w in weights) else np.float64
    totals: dict[int, Any] = {}
    for share, weight in zip(shares, weights, strict=True):
        totals[share.group] = totals.get(share.group, 0) + weight
    means = np.zeros((len(search.jobs), k), dtype=kind)
    own = {job: np.zeros(k, dtype=kind) for job in jobs}
    for share, amount in zip(shares, weights, strict=True):
        weight = amount / totals[share.group]
        if share.group < search.n_groups:
            part = search.kinds_of_group(share.group)
            means[part] += weight * search.options[share.number][part].astype(kind)
        else:
            at = share.group - search.n_groups
            own[jobs[at]] += weight * np.array(search.own_options[share.number][at], dtype=kind)
    for (i, job), amount in zip(search.extra, extra, strict=True):
        own[job][i] += amount
    return Mixture(machines, means, own)


def _contents(search: PriceSearch, found: Mixture) -> Iterator[tuple[MachinesWith, Any, int]]:
    """Yield how many machines of size-bounded sets have so many blocks of a type, or of two.

    With the machine type. Of two types only where single ones tell nothing.
    """
    region = search.region
    mixed = [(row, x) for row, x in found.machines if row.shape is None]
    mixed = [(row, x) for row, x in mixed if abs(x - round(x)) > _NEAR]
    named = sum(
        len(condition.quantity.content.blocks)
        for condition in region.path
        if isinstance(condition.quantity, MachinesWith)
    )
    for several in (1, 2):
        if named + several > MOST_NAMED:
            return
        pairs = ((row.machine, least) for row, _ in mixed for least in _parts(row, mixed, several))
        totals = dict.fromkeys(islice(pairs, _MOST_LOOKS // max(1, len(found.machines))))
        for m, least in totals:
            value = sum(
                x
                for row, x in found.machines
                if row.machine == m and all(row.counts[i] >= n for i, n in least)
            )
            if abs(value - round(value)) > _NEAR:
                content = {region.blocks[i]: n for i, n in least}
                several = 0
                yield MachinesWith(Configuration(content, region.names[m])), value, m
        if not several:
            return


def _parts(
    row: Row, mixed: Sequence[tuple[Row, Any]], several: int
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield numbers of blocks of so many types that a machine has, as (type, at least)."""
    held: list[tuple[int, int]] = []
    for i, count in enumerate(row.counts):
        numbers: Iterable[int] = range(1, count + 1)
        if count > _FEW_OF_A_TYPE:
            others = {other.counts[i] for other, _ in mixed if other.machine == row.machine}
            ends = {n for other in {0, *others} for n in (other, other + 1)}
            numbers = sorted(n for n in ends if 0 < n <= count)
        held += [(i, n) for n in numbers]
    for least in combinations(held, several):
        if len({i for i, _ in least}) == several:
            yield least


def _free_types(search: PriceSearch) -> set[int]:
    """Machine types of which there may be any number for nothing."""
    pairs = zip(search.region.costs, search.region.limits, strict=True)
    return {m for m, (cost, limit) in enumerate(pairs) if cost == 0 and limit is None}


def _first_without(members: NDArray[np.int64], own: Mapping[int, object]) -> int:
    found: int = next(job for job in members.tolist() if job not in own)
    return found


def _countable(search: PriceSearch, row: Row) -> bool:
    """Whether a certificate may branch on a listed configuration."""
    shape = row.shape
    return shape is not None and not any(
        bounded.machine == shape.machine and bounded.allows(shape.blocks)
        for bounded in search.jobs.problem.size_bounded_configurations
    )
