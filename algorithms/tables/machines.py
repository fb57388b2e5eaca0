"""The configurations an integer program may use, listed one by one."""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator
from cms.problem.parts import Configuration, SizeBoundedConfigurations
from cms.schedule.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cms.problem.machine_problem import MachineProblem
    from cms.problem.problem import Problem

#: Steps of the enumeration for each content allowed, before it gives up.
_STEPS_A_CONTENT = 10
#: It also gives up where a machine has more types, each a level of recursion, and not all of them.
_MOST_TYPES = 500


def maximal_contents(
    shape: SizeBoundedConfigurations, most: int, useful: Mapping[str, int] | None = None
) -> list[dict[str, int]] | None:
    """List a set's multisets to which no useful block can be added; None if more than ``most``."""
    highest = {block: shape.largest_count(block) for block in shape.sizes}
    if useful is not None:
        highest = {block: min(count, useful.get(block, 0)) for block, count in highest.items()}
    blocks = sorted(
        (block for block in shape.sizes if highest[block]),
        key=lambda block: -shape.sizes[block],
    )
    if not blocks:
        return []
    capacity, *sizes = common_denominator(
        [shape.capacity, *(shape.sizes[block] for block in blocks)]
    )[0]
    highs = [highest[block] for block in blocks]
    # What the types from each one on take at most: room and slots.
    rooms = [*accumulate(map(mul, reversed(sizes), reversed(highs)), initial=0)][::-1]
    slots = [*accumulate(reversed(highs), initial=0)][::-1]
    most_blocks = slots[0] if shape.max_blocks is None else shape.max_blocks
    if rooms[0] <= capacity and slots[0] <= most_blocks:
        return [dict(zip(blocks, highs, strict=True))] if most > 0 else None
    found: list[dict[str, int]] = []
    counts: dict[str, int] = {}
    steps = 0

    def descend(at: int, room: int, free: int) -> bool:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal steps
        for here in range(at, len(blocks)):
            if room < sizes[-1] or not free:
                break
            steps += 1
            if steps > _STEPS_A_CONTENT * most or len(counts) > _MOST_TYPES:
                return False
            block, size, high = blocks[here], sizes[here], highs[here]
            for number in range(min(high, room // size, free), -1, -1):
                left, still = room - number * size, free - number
                if number < high and left - rooms[here + 1] >= size and still > slots[here + 1]:
                    # One more fits, whatever the types after it take.
                    counts.pop(block, None)
                    return True
                if number:
                    counts[block] = number
                    if not descend(here + 1, left, still):
                        return False
            counts.pop(block, None)
        # It is maximal: were there room for one more, the last such type had returned above.
        found.append(dict(counts))
        return len(found) <= most

    return found if descend(0, capacity, most_blocks) else None


class Listing(NamedTuple):
    """Configurations one by one, and the machine types of sets too large to be listed."""

    shapes: tuple[Configuration, ...]
    left_out: frozenset[str]


def listed(problem: MachineProblem, most: int) -> Listing:
    """List the configurations that a best schedule may need, and sets left out as too large."""
    shapes: dict[Configuration, None] = {}
    left_out: set[str] = set()
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            shapes[shape] = None
            continue
        contents = maximal_contents(shape, most)
        if contents is None:
            useful = dict(zip(problem.blocks, problem.useful_blocks(), strict=True))
            contents = maximal_contents(shape, most, useful)
        if contents is None:
            left_out.add(shape.machine or "")
        for content in contents or ():
            shapes[Configuration(content, shape.machine)] = None
    return Listing(tuple(shapes), frozenset(left_out))


def full_of_one(problem: MachineProblem, machines: Collection[str]) -> Iterator[Configuration]:
    """Yield machines of size-bounded sets full of one block type."""
    for shape in problem.configurations:
        if isinstance(shape, SizeBoundedConfigurations) and shape.machine in machines:
            for block in shape.sizes:
                count = shape.largest_count(block)
                if count:
                    yield Configuration({block: count}, shape.machine)


def schedule_of(problem: Problem, machines: Mapping[Configuration, int], given: Any) -> Schedule:
    """Build a schedule from machines by configuration, and blocks of each type for each job."""
    opened = {shape: number for shape, number in machines.items() if number}
    numbers = np.asarray(given)
    jobs, blocks = np.nonzero(numbers)
    return Schedule.from_counts(problem, opened, (jobs, blocks, numbers[jobs, blocks]))
