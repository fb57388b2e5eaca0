"""All ways to hand out the blocks of a machine to a handful of jobs.

They depend on the configurations alone, so they are listed once, and whichever jobs are looked at
take the places. A table over all jobs is never made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Patterns(NamedTuple):
    """Ways to hand out the blocks of configurations to numbered places.

    Attributes
    ----------
    shapes : ndarray of int64, shape (rows,)
        The configuration of each row.
    counts : ndarray of float64, shape (rows, places, k)
        How many blocks of each type each place gets: floats, for products, of small whole numbers.
    """

    shapes: NDArray[np.int64]
    counts: NDArray[np.float64]


def number(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> int:
    """Count the rows of :func:`patterns` without listing them.

    Examples
    --------
    >>> number([[7], [3]], places=5, mixed=3)  # 7 blocks: 5 + 10 * 6 + 10 * 15; 3: 5 + 10 * 2 + 10
    250
    """
    total = 0
    for shape in shapes:
        for used in range(1, min(mixed, places) + 1):
            # Inclusion and exclusion: nobody of those chosen goes without.
            onto = 0
            for out in range(used):
                ways = 1
                for count in filter(None, shape):
                    ways *= comb(count + used - out - 1, count)
                onto += (-1) ** out * comb(used, out) * ways
            total += comb(places, used) * onto
    return total


def patterns(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> Patterns:
    """List the ways to hand out all blocks of each configuration.

    Parameters
    ----------
    shapes : sequence of c sequences of k ints
        Numbers of blocks.
    places : int
        Jobs that may get blocks.
    mixed : int
        How many of them get any on one machine, at most.

    Examples
    --------
    >>> patterns([[2]], places=2, mixed=2).counts[:, :, 0].tolist()
    [[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]
    """
    rows: list[tuple[int, list[list[int]]]] = []
    for at, shape in enumerate(shapes):
        for used in range(1, min(mixed, places) + 1):
            ways = list(_onto(shape, used))
            for chosen in combinations(range(places), used):
                for way in ways:
                    table = [[0] * len(shape) for _ in range(places)]
                    for place, mine in zip(chosen, way, strict=True):
                        table[place] = list(mine)
                    rows.append((at, table))
    k = len(shapes[0]) if shapes else 0
    counts = np.array([table for _, table in rows], dtype=np.float64).reshape(-1, places, k)
    return Patterns(np.array([at for at, _ in rows], dtype=np.int64), counts)


def _onto(shape: Sequence[int], used: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the ways to divide a configuration's blocks so that none of the takers has nothing."""
    ways: list[list[tuple[int, ...]]] = [[()] * used]
    for count in shape:
        ways = [
            [(*mine, more) for mine, more in zip(way, share, strict=True)]
            for way in ways
            for share in _shares(count, used)
        ]
    for way in ways:
        if all(any(mine) for mine in way):
            yield tuple(way)


def _shares(count: int, used: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide equal blocks among so many takers, most for the first first."""
    if used == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for rest in _shares(count - first, used - 1):
            yield (first, *rest)
