"""The configurations an integer program may use, listed one by one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cms.model import Configuration, SizeBoundedConfigurations

if TYPE_CHECKING:
    from cms.problem import Problem


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
    found: list[dict[str, int]] = []
    counts: dict[str, int] = {}
    steps = 0

    def descend(at: int, room: Fraction, slots: int | None) -> bool:
        nonlocal steps
        steps += 1
        if steps > 20 * most:
            return False
        block = blocks[at]
        size = shape.sizes[block]
        fits = int(room // size) if slots is None else min(int(room // size), slots)
        if at + 1 == len(blocks):
            # The last type is the smallest: what is left must not hold one more block.
            content = {**counts, block: fits} if fits else dict(counts)
            if content and _maximal(shape, content):
                found.append(content)
            return len(found) <= most
        for number in range(fits, -1, -1):
            if number:
                counts[block] = number
            else:
                counts.pop(block, None)
            left = None if slots is None else slots - number
            if not descend(at + 1, room - number * size, left):
                return False
        return True

    return found if descend(0, shape.capacity, shape.max_blocks) else None


def _maximal(shape: SizeBoundedConfigurations, content: dict[str, int]) -> bool:
    return not any(
        shape.allows({**content, block: content.get(block, 0) + 1}) for block in shape.sizes
    )


def listed(problem: Problem, most: int) -> tuple[Configuration, ...] | None:
    """List every configuration that a best schedule may need; None if there are too many."""
    shapes: dict[Configuration, None] = {}
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            shapes[shape] = None
            continue
        contents = maximal_contents(shape, most)
        if contents is None:
            return None
        for content in contents:
            shapes[Configuration(content, shape.machine)] = None
    return tuple(shapes)
