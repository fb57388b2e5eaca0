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


def _in_set(rival: Bounded, c: Listed | Bounded, wanted: set[str]) -> bool:
    """Whether the wanted blocks of any machine cut up as ``c`` fit on one of the rival set."""
    mine, others = _alone(c, wanted), _alone(rival, wanted)
    if isinstance(c, Listed):
        return rival.allows(mine)
    # Each block takes up no larger part of the rival's capacity: what fits there fits here.
    parts = all(
        i in others and rival.sizes[i] / rival.capacity <= c.sizes[i] / c.capacity for i in mine
    )
    room = rival.max_blocks
    return parts and (room is None or (c.max_blocks is not None and c.max_blocks <= room))


def _one_held_by_none(rows: list[dict[str, int]], rivals: list[dict[str, int]]) -> bool:
    """Whether there is a row that no rival holds: each has fewer of some block.

    Bit r of a row's number says that rival r has no fewer of the blocks so far. Block by block, the
    rows come by falling counts, and rivals join as theirs are reached: so there are as many steps
    as rows and rivals, not as pairs of them.
    """
    held = [(1 << len(rivals)) - 1] * len(rows)
    for i in {i for row in rows for i in row}:
        joining = sorted(range(len(rivals)), key=lambda r: rivals[r].get(i, 0))
        enough = 0
        for at in sorted(range(len(rows)), key=lambda at: -rows[at].get(i, 0)):
            while joining and rivals[joining[-1]].get(i, 0) >= rows[at].get(i, 0):
                enough |= 1 << joining.pop()
            held[at] &= enough
    return not all(held)


def wanted_blocks(problem: Problem) -> set[str]:
    """Name the blocks that serve a job with a demand."""
    rows = [job.row.supply for job in problem.jobs.values() if job.demand]
    columns = zip(problem.blocks, zip(*rows, strict=True), strict=False)
    return {i for i, column in columns if any(column)}


def usable(problem: Problem, wanted: set[str] | None = None) -> list[str]:
    """Name the machine types that a cheapest schedule can have machines of.

    Take a machine whose wanted blocks are all on one of a cheaper type that counts no more in any
    limit: the schedule with that one in its place is cheaper. So no cheapest schedule has such a
    machine, nor one without any wanted block, unless that is for nothing and adds nothing to it.
    Which blocks are wanted may be known already.
    """
    types = problem.machine_types
    if wanted is None:
        wanted = wanted_blocks(problem)
    shapes = [c for c in problem.configurations if _alone(c, wanted)]
    limits = problem.limits.values()

    def counts_no_more(rival: str, name: str) -> bool:
        return all(it.weights.get(rival, 0) <= it.weights.get(name, 0) for it in limits)

    found = []
    for name, machine in types.items():
        cheaper = {m for m, t in types.items() if t.cost < machine.cost and counts_no_more(m, name)}
        rivals = [c for c in shapes if c.machine in cheaper]
        own = [c for c in shapes if c.machine == name]
        sets = [c for c in rivals if isinstance(c, Bounded)]
        left = [_alone(c, wanted) for c in own if not any(_in_set(s, c, wanted) for s in sets)]
        listed = [_alone(c, wanted) for c in rivals if isinstance(c, Listed)]
        possible = all(it.weights.get(name, 0) <= it.at_most for it in limits)
        if possible and _one_held_by_none(left, listed):
            found.append(name)
    return found


def round_up(problem: Problem, bound: Fraction, wanted: set[str] | None = None) -> Fraction:
    """Round up to what an optimum can be: a multiple of the common step of the usable costs."""
    names = usable(problem, wanted) or list(problem.machine_types)
    step = common_step([problem.machine_types[name].cost for name in names])
    return -(-bound // step) * step if step > 0 else bound
