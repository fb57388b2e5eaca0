"""Which blocks of size-bounded sets smaller ones replace, for every job.

Where a share of a GPU gives no more than smaller shares of the same size together, as shares with a
supply in proportion to their size do, a machine with the smaller ones serves whom it served. Of a
hundred shares one may be left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..problem.parts import SizeBoundedConfigurations
from ..running.stopping import look
from ..values.arrays import integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.problem import Problem

#: What a block can be cut into: blocks of one type, by its column, and how many.
Way: TypeAlias = "tuple[int, int]"
#: Numbers of a table of supply that are compared at once.
_AT_ONCE = 2**18
#: Numbers that are compared in all, some tenths of a second's work: beyond that all blocks stay.
_IN_ALL = 2**26
#: Of this number of blocks in the place of one there are never too few.
_MANY = 2**40


class Replacement(NamedTuple):
    """Blocks that go, and what they and others are worth at least."""

    gone: frozenset[int]  # columns of blocks that no schedule needs
    # What some job takes in the place of a block, which fits wherever the block does. Each block
    # comes after those that it can be cut into.
    ways: tuple[tuple[int, tuple[Way, ...]], ...]


NOTHING_REPLACED = Replacement(frozenset(), ())


def replaced(problem: Problem, kept: Sequence[int], stopped: Callable[[], bool]) -> Replacement:
    """Find the blocks that others replace: for each job some that give it no less.

    The others fit into the place of the block in all sets that have it; a block of a listed
    configuration stays. Several blocks take the place of one only where the number of blocks on a
    machine is no limit. All blocks stay where a job has a rule for its bundles, which counts them.
    """
    groups = [] if problem.rows.ruled else [*_groups(problem, kept)]
    if sum(len(group) ** 2 for group, *_ in groups) * problem.n_jobs > _IN_ALL:
        return NOTHING_REPLACED
    cuts = [cut for group in groups for cut in _cuts(*group)]
    gone = {cut.block for cut in cuts}
    ways: list[set[int]] = [set() for _ in cuts]
    for demands, supplies in problem.rows.tables(max(1, _AT_ONCE // max(1, len(problem.blocks)))):
        best = np.minimum(supplies, demands[:, None])
        for cut, mine in zip(cuts, ways, strict=True):
            if not gone:
                return NOTHING_REPLACED
            look(stopped)
            _compare(cut, best, demands, gone, mine)
    found = (
        (cut.block, tuple((int(cut.parts[at]), int(cut.numbers[at])) for at in sorted(mine)))
        for cut, mine in zip(cuts, ways, strict=True)
        if mine
    )
    return Replacement(frozenset(gone), tuple(found)) if gone else NOTHING_REPLACED


class _Cut(NamedTuple):
    block: int
    parts: NDArray[np.int64]
    numbers: NDArray[np.int64]


def _compare(
    cut: _Cut, best: NDArray[Any], demands: NDArray[Any], gone: set[int], ways: set[int]
) -> None:
    """Put what jobs get from a block cut up, where that is more, into its column."""
    each, wanted = best[:, cut.parts], demands[:, None]
    # No products beyond the demand: they might be too long.
    gained = np.where(each > (wanted - 1) // cut.numbers, wanted, each * cut.numbers)
    which = gained.argmax(axis=1)
    most, own = gained[np.arange(len(gained)), which], best[:, cut.block]
    if (most < own).any():
        gone.discard(cut.block)
    ways.update(which[(most >= own) & (most > 0)].tolist())
    best[:, cut.block] = np.maximum(most, own)


def _groups(
    problem: Problem, kept: Sequence[int]
) -> Iterator[tuple[list[int], list[NDArray[Any]], bool]]:
    """Yield blocks that are in the same sets and nowhere else, by their size.

    With their sizes, as integers, in each of these sets, and whether a machine may have any number
    of blocks that fits.
    """
    index, wanted = problem.block_index, set(kept)
    places: dict[int, list[int]] = {}
    sizes: list[dict[int, int]] = []
    limited: list[bool] = []
    for shape in problem.configurations:
        if isinstance(shape, SizeBoundedConfigurations):
            mine = {index[b]: s for b, s in shape.sizes.items() if s <= shape.capacity}
            mine = {i: size for i, size in mine.items() if i in wanted}
            scale = lcm(*(size.denominator for size in mine.values()))
            for i in mine:
                places.setdefault(i, []).append(len(sizes))
            fits = shape.capacity // min(mine.values(), default=shape.capacity + 1)
            limited.append(shape.max_blocks is not None and shape.max_blocks < fits)
            sizes.append({i: int(size * scale) for i, size in mine.items()})
        else:
            wanted.difference_update(map(index.__getitem__, shape.blocks))
    groups: dict[tuple[int, ...], list[int]] = {}
    for i in sorted(wanted):
        groups.setdefault(tuple(places[i]), []).append(i)
    for sets, group in groups.items():
        group.sort(key=lambda i: [sizes[at][i] for at in sets])
        columns = [integers([sizes[at][i] for i in group]) for at in sets]
        yield group, columns, not any(limited[at] for at in sets)


def _cuts(group: list[int], sizes: list[NDArray[Any]], several: bool) -> Iterator[_Cut]:
    """Yield what each block of a group can be cut into, after what its parts can be."""
    blocks = np.array(group)
    for at in range(1, len(group)):
        most = np.array([size[at] // size[:at] for size in sizes]).min(axis=0)
        numbers = np.minimum(most, _MANY if several else 1).astype(np.int64)
        fit = np.flatnonzero(numbers)
        if len(fit):
            yield _Cut(group[at], blocks[fit], numbers[fit])
