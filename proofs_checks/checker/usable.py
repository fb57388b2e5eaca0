"""What a cheapest schedule can cost: a sum of costs of the machine types that are any use."""

from __future__ import annotations

from fractions import Fraction

from .problem import Bounded, Listed, Problem
from .reading import common_step


def _alone(c: Listed | Bounded, wanted: set[str]) -> dict[str, int]:
    """How many blocks of each wanted type one machine has if it has no others; without zeros."""
    if isinstance(c, Listed):
        counts = c.blocks
    else:
        counts = {i: c.capacity // size for i, size in c.sizes.items()}
        if c.max_blocks is not None:
            counts = {i: min(n, c.max_blocks) for i, n in counts.items()}
    return {i: n for i, n in counts.items() if n > 0 and i in wanted}


def _holds(rival: Listed | Bounded, c: Listed | Bounded, wanted: set[str]) -> bool:
    """Whether the wanted blocks of any machine cut up as ``c`` are on one cut up as ``rival``."""
    mine, others = _alone(c, wanted), _alone(rival, wanted)
    if isinstance(rival, Listed):
        return all(n <= others.get(i, 0) for i, n in mine.items())
    if isinstance(c, Listed):
        return rival.allows(mine)
    # Each block takes up no larger part of the rival's capacity: what fits there fits here.
    parts = all(
        i in others and rival.sizes[i] / rival.capacity <= c.sizes[i] / c.capacity for i in mine
    )
    room = rival.max_blocks
    return parts and (room is None or (c.max_blocks is not None and c.max_blocks <= room))


def usable(problem: Problem) -> list[str]:
    """Name the machine types that a cheapest schedule can have machines of.

    Take a machine whose wanted blocks are all on one of a cheaper type, of which there is no end:
    the schedule with that one in its place is cheaper. So no cheapest schedule has such a machine,
    nor one without any wanted block, unless that is for nothing and adds nothing to the cost.
    """
    types = problem.machine_types
    wanted = {i for job in problem.jobs.values() if job.demand for i, f in job.supply.items() if f}
    shapes = [c for c in problem.configurations if _alone(c, wanted)]
    found = []
    for name, machine in types.items():
        rivals = [
            c
            for c in shapes
            if types[c.machine].limit is None and types[c.machine].cost < machine.cost
        ]
        # Most that are held have an equal among the rivals.
        equal = {frozenset(_alone(c, wanted).items()) for c in rivals if isinstance(c, Listed)}
        own = [c for c in shapes if c.machine == name]
        new = [c for c in own if frozenset(_alone(c, wanted).items()) not in equal]
        if machine.limit != 0 and any(
            not any(_holds(rival, c, wanted) for rival in rivals) for c in new
        ):
            found.append(name)
    return found


def round_up(problem: Problem, bound: Fraction) -> Fraction:
    """Round up to what an optimum can be: a multiple of the common step of the usable costs."""
    names = usable(problem) or list(problem.machine_types)
    step = common_step([problem.machine_types[name].cost for name in names])
    return -(-bound // step) * step if step > 0 else bound
