"""Problems beside the user's: without some jobs, on more machines, with less demand.

They answer what an infeasible problem lacks. Blocks, and jobs that stay, keep their names, so that
certificates can be tried on all of them; no cost of the user's matters in any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..certificate.certificate import first_certificate
from ..problem.parts import Block, MachineType
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


def within_limits(problem: Problem) -> tuple[Problem, int]:
    """Ask only for a schedule, and return the most that one within the limits can cost.

    A machine costs 1 if its type is limited, otherwise nothing. Costs of 0 throughout would ask the
    same, but would tell an algorithm nothing about what is scarce.
    """
    asked = with_types(
        problem, lambda it: MachineType(it.name, int(it.limit is not None), it.limit)
    )
    return asked, sum(machine.limit or 0 for machine in problem.machine_types)


class Extended(NamedTuple):
    """A problem whose cost is the number of machines beyond the limits of another one.

    Every limited machine type has a twin of the same configurations, without a limit, of which a
    machine costs 1; all others cost nothing. `origin` is the machine type behind each twin.
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
    shapes = list(problem.configurations)
    origin: dict[str, str] = {}
    for machine in problem.machine_types:
        if machine.limit is None:
            continue
        twin = f"more {machine.name}"
        while any(twin == other.name for other in types):
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


def beyond_limits(problem: Problem, schedule: Schedule) -> FrozenMap[str, int]:
    """Count the machines of each type that a schedule has beyond the type's limit."""
    used = machines_used(problem, schedule)
    limits = {it.name: it.limit for it in problem.machine_types if it.limit is not None}
    more = {name: used[name] - limit for name, limit in limits.items() if used[name] > limit}
    return FrozenMap(more)
