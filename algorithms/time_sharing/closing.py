"""Schedules from the mixes in sight: how many of each, and of machines, serve all jobs.

An integer program says so. Shares of demands are rounded down to whole parts, so that every
solution is a schedule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from math import ceil, floor, lcm
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.certificate.certificate import next_below
from cms.schedule.schedule import Schedule

from ..branch_and_price.program import MachineVariables, within_limits
from ..branch_and_price.shapes import Shapes
from ..solvers.floats import near
from ..solvers.integer import LARGEST, Hint, Program, TooLarge, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration

    from .columns import Column, Columns, Step
    from .prices import PriceSearch

#: Mixes of a program that looks for schedules, those of the least reduced cost.
_MOST_MIXES = 1_000
#: SCIP's nodes and CP-SAT's deterministic time, for schedules.
_NODES, _EFFORT = 200, 0.5
#: With more jobs a program takes longer by itself: dives come first, and SCIP has fewer nodes.
FEW_JOBS, _FEWER_NODES = 12, 30
#: Parts of a demand: a multiple of all numbers to 20, as equal shares are the usual tie.
_PARTS = 232_792_560
#: Common denominators up to here are taken as they are, so that nothing is rounded.
_SHORT = 2**28
#: The largest share of a demand has at least this many parts.
_FINE = 10**6


def cheaper_schedule(search: PriceSearch, budget: Budget, cost: Fraction | None) -> Schedule | None:
    """Look for a schedule cheaper than ``cost``, of mixes of small reduced cost."""
    columns, step, point = search.columns, search.columns.problem.cost_step, search.point
    if not step and cost is not None:
        return None
    shapes, listed = Shapes(columns.problem, search.region.rows), _cheapest(search)
    target = None if cost is None else next_below(cost, step)
    steps = () if point is None else tuple(point.steps)
    mixes = [columns.listed[number] for number in listed]
    try:
        program = MixProgram(mixes, shapes, search.least, target, steps)
    except TooLarge:
        return None
    few = len(columns.jobs) <= FEW_JOBS
    found, hint = program.search(budget, nodes=_NODES if few else _FEWER_NODES, cuts=few)
    if found is None and not hint.ended and not budget.stopped:
        found = program.solve(budget, effort=_EFFORT)
    if found is None:
        return None
    machines = {shapes.shapes[c]: number for c, number in enumerate(found.machines) if number}
    return schedule_of(columns, machines, dict(zip(listed, found.mixes, strict=True)))


def _cheapest(search: PriceSearch) -> list[int]:
    """Return the numbers of mixes whose reduced cost is small."""
    columns, point = search.columns, search.point
    if point is None or len(columns) <= _MOST_MIXES:
        return list(range(len(columns)))
    missing: list[tuple[float, int]] = []
    for number, column in enumerate(columns.listed):
        shares = ((job, np.array([near(share)])) for job, share in column.shares)
        worth = sum((float(point.prices.worth(*share)[0]) for share in shares), 0.0)
        missing.append((point.blocks[column.block] - worth, number))
    return sorted(number for _, number in sorted(missing)[:_MOST_MIXES])


def tidied(columns: Columns, counts: Mapping[int, int]) -> dict[int, int]:
    """Leave jobs out of mixes, the smallest shares first, as long as all are served.

    A mix without one of its jobs has a shorter cycle, which gives the others more. ``counts`` says
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


def schedule_of(
    columns: Columns, machines: Mapping[Configuration, int], mixes: Mapping[int, int]
) -> Schedule:
    """Line up machines and mixes, by their numbers among the columns, without crumbs."""
    given = {
        (columns.problem.blocks[column.block], column.mix): count
        for number, count in tidied(columns, mixes).items()
        for column in [columns.listed[number]]
    }
    return Schedule.from_counts(columns.problem, machines, given)


class Found(NamedTuple):
    """A solution: how many machines of each configuration, and of each mix."""

    cost: Fraction
    machines: tuple[int, ...]
    mixes: tuple[int, ...]


class MixProgram:
    """An integer program over some mixes; TooLarge if the numbers leave the solver's range.

    ``least`` is a lower bound on the cost, ``target`` the highest cost of interest; ``steps`` are
    cuts of the jobs' rows.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        shapes: Shapes,
        least: Fraction,
        target: Fraction | None,
        steps: Iterable[Step] = (),
    ) -> None:
        self._columns, self._shapes, self._program = columns, shapes, Program()
        self._mixes = [self._program.variable(column.most) for column in columns]
        jobs: dict[int, list[tuple[int, Fraction]]] = {}
        for number, column in enumerate(columns):
            for job, share in column.shares:
                jobs.setdefault(job, []).append((number, share))
        for listed in jobs.values():
            self._serve_job(listed)
        for step in steps:
            terms = {self._mixes[n]: step.count(share) for n, share in jobs.get(step.job, ())}
            self._program.at_least(terms, ceil(step.times))
        self._add_machines(least, target)

    def _serve_job(self, listed: Sequence[tuple[int, Fraction]]) -> None:
        parts = lcm(*(share.denominator for _, share in listed))
        if parts > _SHORT:
            parts = _PARTS
            while parts * max(share for _, share in listed) < _FINE:
                parts *= 2
        terms = {self._mixes[number]: floor(share * parts) for number, share in listed}
        self._program.at_least({v: n for v, n in terms.items() if n}, parts)

    def _add_machines(self, least: Fraction, target: Fraction | None) -> None:
        """Add the machines that hold the mixes, and the cost."""
        shapes, program = self._shapes, self._program
        lows = [0] * len(shapes)
        most = sum(map(program.high, self._mixes))
        highs = [
            min(most, floor(target / cost)) if target is not None and cost else most
            for cost in shapes.costs
        ]
        within_limits(shapes, lows, highs, LARGEST)
        self._machines = machines = MachineVariables(shapes, program, lows, highs)
        terms = machines.keep_cost(least, target)
        if terms and (target is None or target > least):
            program.minimise(terms)
        for i in range(len(shapes.problem.blocks)):
            mine = [v for v, c in zip(self._mixes, self._columns, strict=True) if c.block == i]
            held = machines.held(i, enough=max(1, sum(map(program.high, mine))))
            program.at_least(terms_of([*held, *((v, -1) for v in mine)]), 0)

    def search(self, budget: Budget, *, nodes: int, cuts: bool = True) -> tuple[Found | None, Hint]:
        """Look for a good solution with SCIP; there may be none, and that proves nothing."""
        hint = self._program.search(budget, nodes=nodes, cuts=cuts)
        return self.read(hint.values), hint

    def solve(self, budget: Budget, *, effort: float) -> Found | None:
        """Ask CP-SAT, within deterministic time (about seconds)."""
        return self.read(self._program.solve(budget, effort=effort).values)

    def read(self, values: Sequence[int] | None) -> Found | None:
        """Turn the variables' values into machines and mixes, if these serve the jobs."""
        if values is None:
            return None
        machines = self._machines.numbers(values)
        mixes = tuple(values[v] for v in self._mixes)
        return Found(self._shapes.cost(machines), machines, mixes)
