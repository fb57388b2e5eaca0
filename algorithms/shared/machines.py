"""The configurations an integer program may use, listed one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack import common_denominator
from cms.model import Configuration, SizeBoundedConfigurations

if TYPE_CHECKING:
    from cms.problem import Problem

#: Steps of the enumeration for each content allowed, before it gives up.
_STEPS_A_CONTENT = 10


def maximal_contents(shape: SizeBoundedConfigurations, most: int) -> list[dict[str, int]] | None:
    """List the multisets of a size-bounded set to which no block can be added.

    They suffice in an integer program, since idle blocks are free.

    Parameters
    ----------
    shape : SizeBoundedConfigurations
    most : int
        Give up beyond this many.

    Returns
    -------
    list of dict, or None if there are too many

    Examples
    --------
    >>> maximal_contents(SizeBoundedConfigurations({"a": 44, "b": 33}, 100), most=10)
    [{'a': 2}, {'a': 1, 'b': 1}, {'b': 3}]
    """
    blocks = sorted(
        (block for block in shape.sizes if shape.largest_count(block)),
        key=lambda block: -shape.sizes[block],
    )
    if not blocks:
        return []
    numbers, _ = common_denominator([shape.capacity, *(shape.sizes[block] for block in blocks)])
    capacity, *sizes = numbers
    found: list[dict[str, int]] = []
    counts: dict[str, int] = {}
    steps = 0

    def descend(at: int, room: int, slots: int | None) -> bool:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal steps
        for here in range(at, len(blocks)):
            steps += 1
            if steps > _STEPS_A_CONTENT * most:
                return False
            fits = room // sizes[here] if slots is None else min(room // sizes[here], slots)
            if here + 1 == len(blocks):
                # The last type is the smallest: filled up with it, the machine takes no more.
                content = {**counts, blocks[here]: fits} if fits else dict(counts)
                found.append(content)
                return len(found) <= most
            for number in range(fits, 0, -1):
                counts[blocks[here]] = number
                left = None if slots is None else slots - number
                if not descend(here + 1, room - number * sizes[here], left):
                    return False
            counts.pop(blocks[here], None)
        return True

    return found if descend(0, capacity, shape.max_blocks) else None


class Listing(NamedTuple):
    """Configurations one by one, and the machine types of sets too large to be listed."""

    shapes: tuple[Configuration, ...]
    left_out: frozenset[str]


def listed(problem: Problem, most: int) -> Listing:
    """List the configurations that a best schedule may need.

    Size-bounded sets with more than ``most`` maximal multisets are left out.
    """
    shapes: dict[Configuration, None] = {}
    left_out: set[str] = set()
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            shapes[shape] = None
            continue
        contents = maximal_contents(shape, most)
        if contents is None:
            left_out.add(shape.machine or "")
        for content in contents or ():
            shapes[Configuration(content, shape.machine)] = None
    return Listing(tuple(shapes), frozenset(left_out))
