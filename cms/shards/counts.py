"""Counts: how many blocks of each type every job of a shard gets, exactly.

A schedule of very many jobs is its machines and these counts; nothing else needs to be said, since
every such pair can be realised block by block (theory 1.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..problem.images import SAFE
from ..values.numbers import shown
from .shard import Narrowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .shard import Loaded, Shard

#: Rows looked at together: what that needs stays in the processor's cache.
_ROWS = 2**15
#: Jobs of a shard whose demand is not met that are told of.
_MOST_TOLD = 1001


class Cut(Protocol):
    """What a shard needs to know of counts; picklable."""

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Return the blocks of each type for each job, shape (jobs, k), whole numbers."""
        ...


class Counts(Protocol):
    """Blocks for all jobs, as a rule, in files or in memory; picklable."""

    def cut(self, number: int, shard: Shard) -> Cut:
        """Return the part for a shard."""
        ...


class CountsInMemory(NamedTuple):
    """Counts of all jobs in one array.

    Attributes
    ----------
    table : ndarray of whole numbers, shape (n, k)
    """

    table: NDArray[Any]

    def cut(self, number: int, shard: Shard) -> CountsInMemory:
        """Return the rows of a shard."""
        del number
        return CountsInMemory(self.table[shard.first : shard.first + shard.n_jobs])

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Return the rows, of a shard's part."""
        del loaded
        return self.table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountsInMemory) and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self.table.shape)


class Nothing:
    """Counts of jobs that get no block.

    Parameters
    ----------
    n_blocks : int
    """

    def __init__(self, n_blocks: int) -> None:
        self._n_blocks = n_blocks

    def cut(self, number: int, shard: Shard) -> Nothing:
        """Return the part for a shard."""
        del number, shard
        return self

    def of(self, loaded: Loaded) -> Any:
        """Return zeros."""
        return np.zeros((len(loaded.rows), self._n_blocks), dtype=np.int8)


class Widened(NamedTuple):
    """Counts of a problem with fewer blocks, for one with all of them.

    Attributes
    ----------
    counts : Counts or Cut
    columns : tuple of int
        The blocks that are left, among all.
    n_blocks : int
        Of the problem with all of them.
    """

    counts: Any
    columns: tuple[int, ...]
    n_blocks: int

    def cut(self, number: int, shard: Shard) -> Widened:
        """Return the part for a shard."""
        return self._replace(counts=self.counts.cut(number, Narrowed(shard, self.columns)))

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Return the counts of all blocks: 0 of those that were left out."""
        rows = loaded.rows.select(np.arange(len(loaded.rows)), self.columns, cut=True)
        found = self.counts.of(loaded._replace(rows=rows))
        if self.columns == tuple(range(self.n_blocks)):
            return found  # type: ignore[no-any-return]
        wide = np.zeros((len(found), self.n_blocks), dtype=found.dtype)
        wide[:, list(self.columns)] = found
        return wide


class Served(NamedTuple):
    """What counts come to in a shard: plain values.

    Attributes
    ----------
    load : list of int
        Blocks of each type in all.
    faults : list of (str, str, str)
        Counts that are none, or the first jobs that do not get what they need: where, what is
        there, what is needed.
    """

    load: list[int]
    faults: list[tuple[str, str, str]]


def served(loaded: Loaded, counts: NDArray[Any]) -> Served:
    """Check the counts of a shard in exact arithmetic.

    Examples
    --------
    >>> from cms.problem.rows import Rows
    >>> from cms.shards.shard import Loaded
    >>> loaded = Loaded(0, 70, Rows.from_arrays([7, 5], [[4, 2], [1, 3]], "ab", "xy"))
    >>> served(loaded, np.array([[1, 2], [0, 1]]))
    Served(load=[1, 3], faults=[("job 'j71'", '3 of its demand served', '5')])
    """
    rows = loaded.rows
    n, k = len(rows), rows.n_blocks
    refused = _refused(counts, (n, k))
    if refused is not None:
        where = f"shard {loaded.number}"
        return Served([0] * k, [(where, refused, f"whole numbers >= 0 of shape ({n}, {k})")])
    short: list[int] = []
    limit = SAFE // (2 * max(k, 1))
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        demands, supplies = rows.demands[part], rows.supplies[part]
        taken = counts[part]
        large = (demands >= limit) | (supplies >= limit).any(axis=1)
        # d // f + 1 blocks of one type suffice by themselves: no more are counted.
        enough = demands[:, None] // np.maximum(supplies, 1) + 1
        given = (np.minimum(taken, enough).astype(np.int64) * supplies).sum(axis=1)
        short += (start + np.flatnonzero((given < demands) & ~large)).tolist()
        short += [
            j
            for j in (start + np.flatnonzero(large)).tolist()
            if _given(rows.row(j).supply, counts[j]) < rows.row(j).demand
        ]
    short += [j for j, row in rows.wide.items() if _given(row.supply, counts[j]) < row.demand]
    told = []
    for j in sorted(set(short))[:_MOST_TOLD]:
        row = rows.row(j)
        has = Fraction(_given(row.supply, counts[j]), row.denominator)
        needs = Fraction(row.demand, row.denominator)
        job = f"job 'j{loaded.first + j}'"
        told.append((job, f"{shown(has)} of its demand served", shown(needs)))
    return Served(column_sums(counts), told)


def _refused(counts: NDArray[Any], shape: tuple[int, int]) -> str | None:
    """Say what is there in the place of one whole number >= 0 for each job and block."""
    if counts.shape != shape or counts.dtype.kind not in "iO":
        return f"counts that are {counts.dtype} of shape {counts.shape}"
    if counts.dtype.kind == "O":
        bad = next((repr(number) for number in counts.flat if type(number) is not int), None)
        if bad is not None:
            return f"the count {bad}"
    if counts.size and counts.min() < 0:
        return f"the count {counts.min()}"
    return None


def column_sums(counts: NDArray[Any]) -> list[int]:
    """Add up whole numbers >= 0 of each column without overflow.

    Examples
    --------
    >>> column_sums(np.array([[2**62, 1], [2**62, 2]]))
    [9223372036854775808, 3]
    """
    if counts.dtype.kind == "O":
        return [sum(int(number) for number in column) for column in counts.T]
    if counts.dtype.itemsize < 8 or int(counts.max(initial=0)) < 2**31:
        return list(counts.sum(axis=0, dtype=np.int64).tolist())
    # In halves: so many numbers of 63 bits would not fit.
    low = (counts & (2**31 - 1)).sum(axis=0, dtype=np.int64).tolist()
    high = (counts >> 31).sum(axis=0, dtype=np.int64).tolist()
    return [(h << 31) + part for h, part in zip(high, low, strict=True)]


def _given(supply: Sequence[int], counts: NDArray[Any]) -> int:
    return sum(f * int(number) for f, number in zip(supply, counts, strict=True))
