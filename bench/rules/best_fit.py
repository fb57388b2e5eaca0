"""Best fit decreasing, for machines that are cut at will."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem
from cms.problem.parts import Configuration
from cms.schedule.schedule import Schedule

from .rule import refuse_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.problem.parts import SizeBoundedConfigurations
    from cms.problem.problem import Problem


def best_fit_decreasing(problem: Problem) -> Schedule:
    """Each job takes equal blocks that cost it least, packed by best fit in decreasing size.

    A block costs its size's share of the machine; a job takes as many as meet its demand, of the
    size-bounded set where these are cheapest, of equals the first of the smallest size. Each block
    then goes to the fullest machine that has room, or to a new one. For bin packing and cutting
    stock, where a job has one block type, it is the classical rule.

    References
    ----------
    D. S. Johnson et al., Worst-case performance bounds for simple one-dimensional packing
    algorithms, SIAM Journal on Computing 3 (1974).
    """
    refuse_limits(problem)
    sets = problem.size_bounded_configurations
    if problem.listed_configurations or not sets:
        raise UnsupportedProblem("it knows machines that are cut at will, no listed ones")
    # what a block costs, the cheapest of equals first
    offers = sorted(
        (shape.sizes[block] * problem.machine_type(shape.machine).cost / shape.capacity,
         shape.sizes[block], problem.block_index[block], number)
        for number, shape in enumerate(sets)
        for block in shape.sizes
        if shape.largest_count(block)
    )  # fmt: skip
    given: dict[tuple[str, str], int] = {}
    wanted: list[Counter[str]] = [Counter() for _ in sets]
    known: dict[tuple[int, ...], tuple[int, int]] = {}  # of equal jobs, the choice of the first
    for j, name in enumerate(problem.job_names):
        row = problem.rows.row(j)
        if not row.demand:
            continue
        job = (row.demand, *row.supply)
        if job not in known:
            ways = [
                (-(-row.demand // row.supply[i]) * cost, size, at)
                for at, (cost, size, i, _) in enumerate(offers)
                if row.supply[i]
            ]
            if not ways:
                raise UnsupportedProblem(f"no block serves job {name!r}")
            at = min(ways)[-1]
            known[job] = at, -(-row.demand // row.supply[offers[at][2]])
        at, count = known[job]
        _, _, i, number = offers[at]
        block = problem.blocks[i]
        given[block, name] = count
        wanted[number][block] += count
    machines: Counter[Configuration] = Counter()
    for shape, blocks in zip(sets, wanted, strict=True):
        for content, number in _packed(shape, blocks):
            machines[Configuration(content, shape.machine)] += number
    return Schedule.from_counts(problem, machines, given)


def _packed(
    shape: SizeBoundedConfigurations, blocks: Counter[str]
) -> Iterator[tuple[Counter[str], int]]:
    """Pack blocks, and return what machines have, and how many have it.

    Machines with equal contents are filled together: the fullest with room for a block stays the
    fullest until it has no more room for one of this size.
    """
    contents: list[tuple[Counter[str], int]] = []
    room: list[tuple[Fraction, int]] = []  # what is free, and the contents' place

    def add(content: Counter[str], machines: int) -> None:
        taken = sum((shape.sizes[block] * count for block, count in content.items()), Fraction(0))
        if shape.max_blocks is None or content.total() < shape.max_blocks:
            insort(room, (shape.capacity - taken, len(contents)))
        contents.append((content, machines))

    for block in sorted(blocks, key=lambda name: (-shape.sizes[name], name)):
        size, left = shape.sizes[block], blocks[block]
        while left:
            at = bisect_left(room, (size, 0))
            if at < len(room):
                free, place = room.pop(at)
            else:  # as many empty machines as there can be a use for
                free, place = shape.capacity, len(contents)
                contents.append((Counter(), left))
            content, machines = contents[place]
            most = int(free // size)
            if shape.max_blocks is not None:
                most = min(most, shape.max_blocks - content.total())
            each = min(most, left)
            filled = min(machines, left // each)
            left -= each * filled
            contents[place] = content, machines - filled
            if content and machines > filled:
                insort(room, (free, place))
            add(content + Counter({block: each}), filled)
    return ((content, machines) for content, machines in contents if content and machines)
