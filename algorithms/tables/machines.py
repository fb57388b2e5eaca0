"""The configurations an integer program may use, listed one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack.pricing import common_denominator
from cms.problem.parts import Configuration, SizeBoundedConfigurations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cms.problem.machine_problem import MachineProblem

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
    numbers, _ = common_denominator([shape.capacity, *(shape.sizes[block] for block in blocks)])
    capacity, *sizes = numbers
    highs = [highest[block] for block in blocks]
    # What the types after each one take at most: room and slots.
    after = [(0, 0)]
    for size, high in zip(reversed(sizes[1:]), reversed(highs[1:]), strict=True):
        after.insert(0, (after[0][0] + size * high, after[0][1] + high))
    slots = shape.max_blocks
    if after[0][0] + sizes[0] * highs[0] <= capacity and (slots is None or sum(highs) <= slots):
        return [dict(zip(blocks, highs, strict=True))] if most > 0 else None
    found: list[dict[str, int]] = []
    counts: dict[str, int] = {}
    steps = 0

    def takes_more(here: int, number: int, room: int, slots: int | None) -> bool:
        """Whether one more of a type fits, whatever the types after it take."""
        left = room - number * sizes[here] - after[here][0]
        free = slots is None or slots - number - after[here][1] >= 1
        return number < highs[here] and left >= sizes[here] and free

    def descend(at: int, room: int, slots: int | None) -> bool:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal steps
        if len(counts) > _MOST_TYPES:
            return False
        for here in range(at, len(blocks)):
            steps += 1
            if steps > _STEPS_A_CONTENT * most:
                return False
            fits = min(highs[here], room // sizes[here])
            fits = fits if slots is None else min(fits, slots)
            if here + 1 == len(blocks):
                # The last type is the smallest: filled up with it, the machine takes no more.
                content = {**counts, blocks[here]: fits} if fits else dict(counts)
                if is_full(content, room - fits * sizes[here], slots and slots - fits):
                    found.append(content)
                return len(found) <= most
            for number in range(fits, 0, -1):
                if takes_more(here, number, room, slots):
                    counts.pop(blocks[here], None)
                    return True
                counts[blocks[here]] = number
                left = None if slots is None else slots - number
                if not descend(here + 1, room - number * sizes[here], left):
                    return False
            counts.pop(blocks[here], None)
            if takes_more(here, 0, room, slots):
                return True
        return True

    def is_full(content: Mapping[str, int], left: int, slots: int | None) -> bool:
        """Whether there is use and room for no other block: types may be used up."""
        if left < sizes[-1] or slots == 0:
            return True
        types = zip(blocks, sizes, highs, strict=True)
        return all(size > left or content.get(block, 0) == high for block, size, high in types)

    return found if descend(0, capacity, shape.max_blocks) else None


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
