"""The integer programs of the reference, and the way back from their solutions to schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cached_property
from math import floor, gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack import cheapest_option, common_denominator
from cms.rows import Row
from cms.schedule import Schedule

from .options import minimal_options
from .program import Program, TooLarge, terms_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.algorithm import Budget
    from cms.model import Configuration
    from cms.problem import Problem

    from .prices import PricePoint

#: Variables of an options model beyond which it is not built.
_MOST_OPTIONS = 60_000
#: A job may have this many options in any case, and more where there are few jobs.
_MOST_OPTIONS_A_JOB = 1_500
#: Half the width of a box around the fractional solution, in blocks and in machines.
_BOX = 12

#: Rounded rows have a demand of at most this: products stay far from the solver's limit.
_SHORT = 2**30

Decode = Callable[[Sequence[int]], Schedule]


class Rounding(Enum):
    """What is done to rows of many digits.

    With ``INNER`` rows (supply down, demand up) every solution is a schedule; with ``OUTER`` ones
    (supply up, demand down) every schedule is a solution, so that what is proved of the program
    holds for the problem.
    """

    NONE = "none"
    INNER = "inner"
    OUTER = "outer"


class Model(NamedTuple):
    """A program, how to read its solutions, and whether it is exact.

    Exact means: every schedule of a cost up to the target has a counterpart in the program.
    """

    program: Program
    decode: Decode
    exact: bool


class Kind(NamedTuple):
    """Jobs with the same row (up to a factor): they share their options."""

    demand: int
    supply: tuple[int, ...]
    jobs: tuple[int, ...]


class Instance:
    """A reduced problem with its configurations listed, ready for integer programs."""

    def __init__(self, problem: Problem, shapes: Sequence[Configuration]) -> None:
        self.problem, self.shapes = problem, tuple(shapes)
        self.counts = [[shape.blocks.get(block, 0) for block in problem.blocks] for shape in shapes]
        types = [problem.machine_type(shape.machine) for shape in shapes]
        self.costs = [machine.cost for machine in types]
        self.step = problem.cost_step or Fraction(1)
        self.steps = [int(cost / self.step) for cost in self.costs]

    @cached_property
    def kinds(self) -> list[Kind]:
        """The jobs, equal rows together."""
        return _kinds(self.problem)

    def schedule(
        self,
        machines: Mapping[int, int],
        given: Mapping[tuple[int, int], int] | tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    ) -> Schedule:
        """Build a schedule from machines a configuration and blocks a job, by index."""
        if isinstance(given, Mapping):
            pairs = sorted(given)
            amounts = np.array([given[pair] for pair in pairs], dtype=object)
            if not pairs or max(amounts) < 2**62:
                amounts = amounts.astype(np.int64)
            given = (
                np.array([j for j, _ in pairs], dtype=np.int64),
                np.array([i for _, i in pairs], dtype=np.int64),
                amounts,
            )
        totals = {self.shapes[c]: count for c, count in machines.items() if count}
        return Schedule.from_counts(self.problem, totals, given).without_idle_machines()

    def machine_variables(
        self, program: Program, lows: Sequence[int], highs: Sequence[int], spent: int = 0
    ) -> list[int]:
        """Add the machines with their limits and the objective, in steps of cost above ``spent``.

        The variables count machines above ``lows``.
        """
        x = [program.variable(max(0, high - low)) for low, high in zip(lows, highs, strict=True)]
        for machine in self.problem.machine_types:
            mine = [c for c, s in enumerate(self.shapes) if s.machine == machine.name]
            if machine.limit is not None and mine:
                room = machine.limit - sum(lows[c] for c in mine)
                if room < sum(highs[c] - lows[c] for c in mine):
                    program.at_most({x[c]: 1 for c in mine}, room)
        program.minimise({x[c]: steps for c, steps in enumerate(self.steps) if steps})
        return x

    def cost_between(
        self,
        program: Program,
        x: Sequence[int],
        least: Fraction,
        most: Fraction | None,
        lows: Sequence[int],
    ) -> None:
        """Bound the cost of all machines."""
        terms = {x[c]: steps for c, steps in enumerate(self.steps) if steps}
        base = sum(steps * low for steps, low in zip(self.steps, lows, strict=True))
        if terms and least > 0:
            program.at_least(terms, -(-least // self.step) - base)
        if terms and most is not None:
            program.at_most(terms, floor(most / self.step) - base)


def options_model(
    instance: Instance,
    point: PricePoint,
    least: Fraction,
    target: Fraction | None,
    budget: Budget,
) -> Model | None:
    """Build the program that picks an option for every job; None if there are too many options.

    Like :func:`compact_model` it raises TooLarge where numbers leave the solver's range.

    Only options and machines that a schedule of cost up to the target can use are in it (reduced
    cost fixing, theory 6.7); with ``target=None`` all minimal options are.

    Parameters
    ----------
    instance : Instance
    point : PricePoint
        Valid prices.
    least : Fraction
        A lower bound on the cost, to be added as a constraint.
    target : Fraction or None
        The highest cost of interest.
    budget : Budget
        Once it is stopped, building ends (with None).
    """
    problem = instance.problem
    prices, denominator = common_denominator(point.prices)
    slack = None if target is None else target - point.bound
    choices: list[list[tuple[int, ...]]] = []
    most = max(_MOST_OPTIONS_A_JOB, _MOST_OPTIONS // max(1, len(instance.kinds)))
    total = 0
    for kind in instance.kinds:
        found = _choices(kind, prices, denominator, slack, most)
        if found is None or budget.stopped:
            return None
        choices.append(found)
        total += len(found)
        if total > _MOST_OPTIONS:
            return None
    most_blocks = sum(
        len(kind.jobs) * max((sum(o) for o in found), default=0)
        for kind, found in zip(instance.kinds, choices, strict=True)
    )
    highs = _most_machines(instance, point, slack, target, most_blocks)
    program = Program()
    lows = [0] * len(highs)
    x = instance.machine_variables(program, lows, highs)
    instance.cost_between(program, x, least, target, lows)
    loads: list[list[tuple[int, int]]] = [[] for _ in problem.blocks]
    picks: list[list[int]] = []
    for kind, found in zip(instance.kinds, choices, strict=True):
        z = [program.variable(len(kind.jobs)) for _ in found]
        program.equals(dict.fromkeys(z, 1), len(kind.jobs))
        picks.append(z)
        for variable, option in zip(z, found, strict=True):
            for i, blocks in enumerate(option):
                if blocks:
                    loads[i].append((variable, -blocks))
    for i, load in enumerate(loads):
        supply = [(x[c], counts[i]) for c, counts in enumerate(instance.counts)]
        program.at_least(terms_of([*supply, *load]), 0)

    def decode(values: Sequence[int]) -> Schedule:
        given: dict[tuple[int, int], int] = {}
        for kind, found, z in zip(instance.kinds, choices, picks, strict=True):
            waiting = iter(kind.jobs)
            for variable, option in zip(z, found, strict=True):
                for _ in range(values[variable]):
                    j = next(waiting)
                    given |= {(j, i): blocks for i, blocks in enumerate(option) if blocks}
        return instance.schedule({c: values[v] for c, v in enumerate(x)}, given)

    return Model(program, decode, exact=True)


def _choices(
    kind: Kind, prices: Sequence[int], denominator: int, slack: Fraction | None, most: int
) -> list[tuple[int, ...]] | None:
    if slack is None:
        # Every minimal option: any price within this reach.
        reach = sum(prices) * max(-(-kind.demand // f) for f in kind.supply if f)
        return minimal_options(prices, kind.supply, kind.demand, reach, most)
    best = cheapest_option(prices, kind.supply, kind.demand)
    if best is None:
        return []
    if not best.exact:
        return None
    reach = best.value + floor(slack * denominator)
    return minimal_options(prices, kind.supply, kind.demand, reach, most)


def _most_machines(
    instance: Instance,
    point: PricePoint,
    slack: Fraction | None,
    target: Fraction | None,
    most_blocks: int,
) -> list[int]:
    """Bound the machines of each configuration; more blocks than jobs can use are never needed."""
    names = [machine.name for machine in instance.problem.machine_types]
    highs = []
    for counts, cost, shape in zip(instance.counts, instance.costs, instance.shapes, strict=True):
        high = most_blocks
        if target is not None and cost > 0:
            high = min(high, floor(target / cost))
        if slack is not None:
            worth = sum((p * n for p, n in zip(point.prices, counts, strict=True)), Fraction(0))
            reduced = cost + point.limit_prices[names.index(shape.machine or "")] - worth
            if reduced > 0:
                high = min(high, floor(slack / reduced))
        highs.append(max(0, high))
    return highs


def compact_model(
    instance: Instance,
    least: Fraction,
    target: Fraction | None,
    budget: Budget,
    around: PricePoint | None = None,
    rounding: Rounding = Rounding.NONE,
) -> Model | None:
    """Build the program over blocks a job; None if it was stopped or has no box to look into.

    Parameters
    ----------
    instance : Instance
    least, target : Fraction
        Bounds on the cost.
    budget : Budget
        Once it is stopped, building ends (with None).
    around : PricePoint, optional
        Look only into a box around this point's fractional solution; what remains to be decided
        is then small however large the demands are.
    rounding : Rounding
        How rows of many digits are made shorter, for programs that would be too large otherwise.
    """
    problem = instance.problem
    blocks = range(len(problem.blocks))
    fractional = None if around is None else _fractional(instance, around)
    if around is not None and fractional is None:
        return None
    rows = [_rounded(problem.rows.row(j), rounding) for j in range(problem.n_jobs)]
    lows: list[list[int]] = []
    highs: list[list[int]] = []
    for j, (demand, supply, _) in enumerate(rows):
        full = [-(-demand // f) if f else 0 for f in supply]
        if fractional is None:
            lows.append([0 for _ in blocks])
            highs.append(full)
        else:
            share = fractional[0][j]
            low = [max(0, share[i] - _BOX) if full[i] else 0 for i in blocks]
            lows.append(low)
            highs.append([min(full[i], low[i] + 2 * _BOX) for i in blocks])
    machine_lows = [0] * len(instance.shapes)
    needed = sum(map(sum, highs))
    machine_highs = [
        needed if target is None or not cost else min(needed, floor(target / cost))
        for cost in instance.costs
    ]
    if fractional is not None:
        reach = _BOX + 2 * _BOX * len(rows)
        machine_lows = [max(0, x - reach) for x in fractional[1]]
        machine_highs = [
            min(high, low + 2 * reach)
            for low, high in zip(machine_lows, machine_highs, strict=True)
        ]
    program = Program()
    x = instance.machine_variables(program, machine_lows, machine_highs)
    instance.cost_between(program, x, least, target, machine_lows)
    base = [sum(instance.counts[c][i] * low for c, low in enumerate(machine_lows)) for i in blocks]
    y: list[list[int | None]] = []
    loads: list[list[tuple[int, int]]] = [[] for _ in blocks]
    for (demand, supply, _), low, high in zip(rows, lows, highs, strict=True):
        left = demand - sum(f * n for f, n in zip(supply, low, strict=True))
        mine = [program.variable(h - n) if h > n else None for h, n in zip(high, low, strict=True)]
        y.append(mine)
        terms = {v: min(f, left) for v, f in zip(mine, supply, strict=True) if v is not None and f}
        if budget.stopped:
            return None
        if left > 0:
            program.at_least(terms, left)
        for i, variable in enumerate(mine):
            if variable is not None:
                loads[i].append((variable, -1))
    for i in blocks:
        already = sum(low[i] for low in lows)
        supply_terms = [(x[c], counts[i]) for c, counts in enumerate(instance.counts)]
        program.at_least(terms_of([*supply_terms, *loads[i]]), already - base[i])

    def decode(values: Sequence[int]) -> Schedule:
        given = {
            (j, i): lows[j][i] + (values[variable] if variable is not None else 0)
            for j, mine in enumerate(y)
            for i, variable in enumerate(mine)
        }
        machines = {c: machine_lows[c] + values[v] for c, v in enumerate(x)}
        return instance.schedule(machines, given)

    return Model(program, decode, exact=around is None and rounding is Rounding.NONE)


def cover(
    instance: Instance,
    load: Sequence[int],
    base: Sequence[int],
    solve: Callable[[Program], tuple[int, ...] | None],
) -> list[int] | None:
    """Find few machines, at least ``base`` of each configuration, with ``load`` blocks together.

    Returns the machines of each configuration: the program's best, or else those that are filled
    up block by block; None if the limits do not allow these.
    """
    left = [
        need - sum(counts[i] * low for counts, low in zip(instance.counts, base, strict=True))
        for i, need in enumerate(load)
    ]
    try:
        program = Program()
        highs = [
            low
            + max((-(-left[i] // n) for i, n in enumerate(counts) if n and left[i] > 0), default=0)
            for low, counts in zip(base, instance.counts, strict=True)
        ]
        x = instance.machine_variables(program, base, highs)
        for i, need in enumerate(left):
            if need > 0:
                pairs = [(x[c], counts[i]) for c, counts in enumerate(instance.counts)]
                program.at_least(terms_of(pairs), need)
        values = solve(program)
    except TooLarge:
        values = None
    if values is not None:
        return [low + values[v] for low, v in zip(base, x, strict=True)]
    machines = list(base)
    for i in range(len(load)):
        more = max(0, left[i])
        options = [c for c, counts in enumerate(instance.counts) if counts[i]]
        if more and options:
            c = min(options, key=lambda c: instance.costs[c] * -(-more // instance.counts[c][i]))
            number = -(-more // instance.counts[c][i])
            machines[c] += number
            left = [
                need - number * count for need, count in zip(left, instance.counts[c], strict=True)
            ]
    return machines if _within_limits(instance, machines) and max(left, default=0) <= 0 else None


def _within_limits(instance: Instance, machines: Sequence[int]) -> bool:
    for machine in instance.problem.machine_types:
        number = sum(
            count
            for count, shape in zip(machines, instance.shapes, strict=True)
            if shape.machine == machine.name
        )
        if machine.limit is not None and number > machine.limit:
            return False
    return True


def _kinds(problem: Problem) -> list[Kind]:
    same: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for j in range(problem.n_jobs):
        row = problem.rows.row(j)
        factor = gcd(row.demand, *row.supply) or 1
        key = row.demand // factor, tuple(f // factor for f in row.supply)
        same.setdefault(key, []).append(j)
    return [Kind(demand, supply, tuple(jobs)) for (demand, supply), jobs in same.items()]


def _rounded(row: Row, rounding: Rounding) -> Row:
    if rounding is Rounding.NONE or row.demand <= _SHORT:
        return row
    inner = rounding is Rounding.INNER
    supply = [min(f, row.demand) * _SHORT for f in row.supply]
    short = tuple(f // row.demand if inner else -(-f // row.demand) for f in supply)
    return Row(_SHORT, short, row.denominator)


def _fractional(instance: Instance, point: PricePoint) -> tuple[list[list[int]], list[int]] | None:
    """Mix the passes' options into blocks a job, the rows into configurations; rounded down."""
    total = sum((weight for weight, _ in point.mix), Fraction(0))
    if total <= 0:
        return None
    shares, denominator = common_denominator([weight / total for weight, _ in point.mix])
    blocks = sum(
        share * options.astype(object)
        for share, (_, options) in zip(shares, point.mix, strict=True)
    )
    where = {
        (tuple(counts), shape.machine): c
        for c, (counts, shape) in enumerate(zip(instance.counts, instance.shapes, strict=True))
    }
    machines = [Fraction(0)] * len(instance.shapes)
    names = [machine.name for machine in instance.problem.machine_types]
    for amount, counts, machine in point.machines:
        c = where.get((counts, names[machine]))
        if c is not None:
            machines[c] += amount
    return (np.asarray(blocks) // denominator).tolist(), [floor(amount) for amount in machines]
