"""Random sub-clusters: GPUs and workloads are drawn one by one into parts of equal size."""

from __future__ import annotations

from random import Random

import numpy as np

#: GPUs, or workloads, that are drawn one by one.
MOST_UNITS = 2_000_000


def parted(
    rows: list[int], columns: list[int], parts: int, seed: int
) -> list[tuple[list[int], list[int]]]:
    """Return how many GPUs and workloads of each class fall into each part.

    Examples
    --------
    >>> halves = parted([3, 1], [2], 2, seed=0)
    >>> [sum(rows) for rows, _ in halves], [sum(columns) for _, columns in halves]
    ([2, 2], [1, 1])
    """
    random = Random(f"parts {seed}")
    sides = [_drawn(counts, parts, random) for counts in (rows, columns)]
    return list(zip(*sides, strict=True))


def _drawn(counts: list[int], parts: int, random: Random) -> list[list[int]]:
    total = sum(counts)
    # Only its random() is called, which is the same in every version of Python.
    order = np.argsort(np.array([random.random() for _ in range(total)]), kind="stable")
    part = np.empty(total, dtype=np.int64)
    part[order] = np.arange(total) * parts // max(total, 1)
    of = np.repeat(np.arange(len(counts)), counts)
    table = np.zeros((parts, len(counts)), dtype=np.int64)
    np.add.at(table, (part, of), 1)
    return [[int(n) for n in row] for row in table]
