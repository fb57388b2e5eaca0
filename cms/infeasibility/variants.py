"""Problems beside the user's: without some jobs, on more machines, with less demand.

They answer what an infeasible problem lacks. Blocks, and jobs that stay, keep their names, so that
certificates can be tried on all of them; no cost of the user's matters in any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..certificate.certificate import first_certificate
from ..problem.parts import Block, GroupLimit, MachineType
from ..problem.problem import Problem
from ..problem.row import Row
from ..problem.rows import Rows
from ..schedule.schedule import Schedule
from ..values.frozen import FrozenMap

#: Shares of the demands are whole multiples of one part in this number.
PARTS = 1000


def without_unservable_jobs(problem: Problem) -> tuple[Problem, FrozenMap[str, tuple[Block, ...]]]:
    """Leave out the jobs that no machine can serve, and return them with the blocks that would."""
    names, blocks, rows = problem.job_names, problem.blocks, problem.rows
    nowhere = first_certificate(problem).prices
    servable = rows.servable([i for i, block in enumerate(blocks) if block not in nowhere])
    if servable.all():
        return problem, FrozenMap()
    lost = np.flatnonzero(~servable).tolist()
    would = {names[j]: tuple(blocks[i] for i in rows.row(j).carriers) for j in lost}
    kept = np.flatnonzero(servable)
    left = tuple(names[j] for j in kept.tolist())
    rest = problem.replace(rows=rows.select(kept, range(len(blocks))), job_names=left)
    return rest, FrozenMap(would)


def at_share(problem: Problem, parts: int) -> Problem:
    """Take a number of its :data:`PARTS` parts of every demand, fewer or more.

    A job's supply is whole in the unit of its row, so the demand may be rounded up to that unit:
    exactly the same schedules are valid, but for rules: these rows count in smaller units instead.
    (Rows that could now be reduced are left as they are.)
    """
    rows = problem.rows
    # what would not fit any more becomes a wide row
    fits = 2**62 // max(parts, PARTS) * PARTS if parts * PARTS <= 2**62 else 0
    large = np.flatnonzero(rows.demands > fits)
    by_hand = {j: rows.row(j) for j in (*large.tolist(), *rows.wide)}
    demands = rows.demands.copy()
    demands[large] = 0
    whole, rest = np.divmod(demands, PARTS)  # 63 bits leave no room for demands x parts
    times = min(parts, 2**62)  # more parts only find demands of 0 here
    changed = Rows(
        whole * times - (-(rest * times) // PARTS), rows.supplies, rows.denominators, rows.wide
    ).with_rows({j: _at_share(row, parts) for j, row in by_hand.items()})
    return problem.replace(rows=changed)


def _at_share(row: Row, parts: int) -> Row:
    if row.rule is None:
        return row._replace(demand=-(-row.demand * parts // PARTS))
    supply = tuple(f * PARTS for f in row.supply)
    return Row(row.demand * parts, supply, row.denominator * PARTS, row.rule)


def with_types(problem: Problem, change: Callable[[MachineType], MachineType]) -> Problem:
    """Change the machine types of a problem one by one."""
    return problem.replace(machine_types=[change(machine) for machine in problem.machine_types])


def for_nothing(problem: Problem) -> Problem:
    """Let no machine cost anything: a positive bound then proves that there is no schedule."""
    return with_types(problem, lambda it: MachineType(it.name, 0, it.limit))


def within_limits(problem: Problem) -> tuple[Problem, Fraction]:
    """Ask only for a schedule, and return the most that one within the limits can cost.

    A machine costs what it counts in all limits. Costs of 0 throughout would ask the same, but
    would tell an algorithm nothing about what is scarce.
    """
    asked = with_types(
        problem,
        lambda it: MachineType(it.name, sum(problem.weights[it.name].values()), it.limit),
    )
    return asked, sum((limit.reach for limit in problem.limits), Fraction(0))


class Extended(NamedTuple):
    """A problem whose cost is the number of machines beyond the limits of another one.

    Every machine type that a limit counts has a twin of the same configurations, which none counts
    and of which a machine costs 1; all others cost nothing. `origin` is the type behind each twin.
    """

    problem: Problem
    origin: Mapping[str, str]

    def restore(self, schedule: Schedule) -> Schedule:
        """Translate a schedule: a twin's machines are machines of the type behind it."""
        columns = schedule.columns
        shapes = tuple(
            replace(shape, machine=self.origin.get(shape.machine or "", shape.machine))
            for shape in columns.configurations
        )
        return Schedule.from_columns(columns._replace(configurations=shapes))


def extended(problem: Problem) -> Extended:
    """Let every machine type have more machines than there are, at a cost of 1 each."""
    types = [MachineType(machine.name, 0, machine.limit) for machine in problem.machine_types]
    groups = [group.name for group in problem.group_limits]
    shapes = list(problem.configurations)
    origin: dict[str, str] = {}
    for machine in problem.machine_types:
        if not problem.weights[machine.name]:
            continue
        twin = f"more {machine.name}"
        while any(twin == name for name in (*origin, *problem.weights, *groups)):
            twin += "'"
        origin[twin] = machine.name
        types.append(MachineType(twin))
        shapes += [
            replace(shape, machine=twin)
            for shape in problem.configurations
            if shape.machine == machine.name
        ]
    return Extended(problem.replace(configurations=shapes, machine_types=types), origin)


def machines_used(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """Count the machines of each type."""
    used = {machine.name: 0 for machine in problem.machine_types}
    for shape, count in schedule.machines.items():
        used[problem.machine_type(shape.machine).name] += count
    return used


def beyond_limits(problem: Problem, schedule: Schedule, more: Mapping[str, int]) -> dict[str, int]:
    """Count the machines of each type beyond all limits that count it: `more` at most.

    Those that limits leave room for are within them, where more of several types may have it those
    of the first.
    """
    used = machines_used(problem, schedule)
    within = {name: number - more.get(name, 0) for name, number in used.items()}
    for name, number in more.items():
        room = problem.room_for(name, within)
        within[name] += number if room is None else min(number, room)
    return {name: n for name, number in used.items() if (n := number - within[name])}


def with_more(problem: Problem, more: Mapping[str, int]) -> Problem:
    """Raise all limits by so many machines of each type."""

    def raised(it: MachineType) -> MachineType:
        return it if it.limit is None else replace(it, limit=it.limit + more.get(it.name, 0))

    groups = []
    for it in problem.group_limits:
        beyond = sum(n * more.get(name, 0) for name, n in it.weights.items())
        groups.append(GroupLimit(it.name, it.weights, it.at_most + beyond))
    return with_types(problem, raised).replace(group_limits=groups)
