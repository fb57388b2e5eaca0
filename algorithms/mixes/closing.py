"""Schedules from the mixes in sight."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import next_below

from ..branch_and_price.shapes import Shapes
from ..solvers.floats import near
from ..solvers.integer import TooLarge
from .program import Found, MixProgram, Rules, schedule_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cms.plugin.algorithm import Budget
    from cms.schedule.schedule import Schedule

    from .columns import Column, Columns
    from .knapsack import Prices
    from .prices import PriceSearch

#: Mixes of a program that looks for schedules, those of the least reduced cost.
_MOST_MIXES = 1_000
#: SCIP's nodes and CP-SAT's deterministic time, for schedules.
_NODES, _EFFORT = 200, 0.5
#: With more jobs a program takes longer by itself: dives come first, and SCIP has fewer nodes.
FEW_JOBS, _FEWER_NODES = 12, 30


def cheaper_schedule(search: PriceSearch, budget: Budget, cost: Fraction | None) -> Schedule | None:
    """Look for a schedule cheaper than ``cost``, of mixes of small reduced cost."""
    columns, step, point = search.columns, search.columns.problem.cost_step, search.point
    if not step and cost is not None:
        return None
    shapes, listed = Shapes(columns.problem, search.region.rows), _cheapest(search)
    target = None if cost is None else next_below(cost, step)
    rules = Rules(search.least, target, () if point is None else tuple(point.steps))
    try:
        program = MixProgram([columns.listed[number] for number in listed], shapes, rules)
    except TooLarge:
        return None
    found = _solution(program, budget, few=len(columns.jobs) <= FEW_JOBS)
    if found is None:
        return None
    counts = tidied(columns, dict(zip(listed, found.mixes, strict=True)))
    mixes = [columns.listed[number] for number in counts]
    return schedule_of(shapes, mixes, found._replace(mixes=tuple(counts.values())))


def _solution(program: MixProgram, budget: Budget, *, few: bool) -> Found | None:
    """Ask SCIP, then CP-SAT: only if SCIP did not come to an end."""
    found, hint = program.search(budget, nodes=_NODES if few else _FEWER_NODES, cuts=few)
    if found is None and not hint.ended and not budget.stopped:
        found = program.solve(budget, effort=_EFFORT)
    return found


def _cheapest(search: PriceSearch) -> list[int]:
    """Return the numbers of mixes whose reduced cost is small."""
    columns, point = search.columns, search.point
    if point is None or len(columns) <= _MOST_MIXES:
        return list(range(len(columns)))
    missing = [
        (point.blocks[column.block] - _worth(point.prices, column), number)
        for number, column in enumerate(columns.listed)
    ]
    return sorted(number for _, number in sorted(missing)[:_MOST_MIXES])


def _worth(prices: Prices, column: Column) -> float:
    worths = (prices.worth(job, np.array([near(share)])) for job, share in column.shares)
    return sum((float(worth[0]) for worth in worths), 0.0)


def tidied(columns: Columns, counts: Mapping[int, int]) -> dict[int, int]:
    """Leave jobs out of mixes, the smallest shares first, as long as all are served.

    A mix without one of its jobs has a shorter frame, which gives the others more. ``counts`` says
    how many of each mix there are; the smaller mixes join the columns.
    """
    index = columns.problem.job_index
    left = Counter({number: count for number, count in counts.items() if count})
    served: dict[int, Fraction] = defaultdict(Fraction)
    for number, count in left.items():
        for job, share in columns.listed[number].shares:
            served[job] += count * share
    pairs = [
        (share, number, job) for number in left for job, share in columns.listed[number].shares
    ]
    for share, number, job in sorted(pairs):
        # Of a mix that lost another job meanwhile its smaller self is looked at.
        without = min(left[number], int((served[job] - 1) // share))
        if without <= 0:
            continue
        left[number] -= without
        served[job] -= without * share
        places = ((index(name), amount) for name, amount in columns.listed[number].mix.items())
        amounts = {j: amount for j, amount in places if j != job}
        if amounts:
            smaller = columns.add(columns.listed[number].block, amounts)
            left[smaller] += without
            old = dict(columns.listed[number].shares)
            for other, more in columns.listed[smaller].shares:
                served[other] += without * (more - old[other])
    return {number: count for number, count in left.items() if count}
