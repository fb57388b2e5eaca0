"""Counts: how many blocks of each type every job of a shard gets, exactly.

A schedule of very many jobs is its machines and these counts; nothing else needs to be said, since
every such pair can be realised block by block (theory 1.2). Jobs buy few different multisets of
blocks, so that a small integer a job says which of them it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..errors import InvalidSchedule
from ..problem.images import SAFE
from ..values.numbers import shown
from .shard import narrowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .shard import Loaded, Shard

#: Rows looked at together: what that needs stays in the processor's cache.
_ROWS = 2**15
#: Jobs of a shard whose demand is not met that are told of.
_MOST_TOLD = 1001
#: Odd multipliers of equal rows' equal sums, which may overflow.
_HASHING = np.random.default_rng(0).integers(1, 2**62, 4096) * 2 + 1


class Cut(Protocol):
    """The counts of one shard; picklable."""

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Return the blocks of each type for each job, shape (jobs, k), whole numbers."""
        ...


class Counts(Protocol):
    """Blocks for all jobs, in memory or in files; picklable."""

    @property
    def n_shards(self) -> int:
        """Of how many shards there are counts."""
        ...

    def cut(self, number: int, shard: Shard) -> Cut:
        """Return the part for a shard."""
        ...


class Coded(NamedTuple):
    """Which of a few different options each job of a shard takes."""

    codes: NDArray[Any]
    options: NDArray[Any]

    @classmethod
    def of_table(cls, table: NDArray[Any]) -> Coded:
        """Find the different rows of a table, in the order of the first job of each."""
        k = table.shape[1]
        if table.dtype.kind == "i" and k <= len(_HASHING):
            sums = table.astype(np.int64, copy=False) @ _HASHING[:k]
            _, at, which = np.unique(sums, return_index=True, return_inverse=True)
            order = np.argsort(at)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            codes, options = rank[which.ravel()], table[at[order]]
            if np.array_equal(options[codes], table):  # else different rows have one sum
                return cls(narrowest(codes), options)
        number: dict[tuple[int, ...], int] = {}
        listed = [number.setdefault(tuple(row), len(number)) for row in table.tolist()]
        codes = np.array(listed, dtype=np.int64)
        _, at = np.unique(codes, return_index=True)
        return cls(narrowest(codes), table[at].reshape(len(at), k))

    @classmethod
    def joined(cls, parts: Sequence[Coded], k: int) -> Coded:
        """Put the jobs of several parts after each other."""
        number: dict[tuple[int, ...], int] = {}
        codes = [np.zeros(0, dtype=np.int64)]
        for part in parts:
            rows = map(tuple, part.options.tolist())
            mine = np.array([number.setdefault(row, len(number)) for row in rows], dtype=np.int64)
            codes.append(mine[part.codes])
        largest = max((max(row, default=0) for row in number), default=0)
        kind = np.int64 if largest < 2**63 else object
        options = np.array([*number], dtype=kind).reshape(len(number), k)
        return cls(narrowest(np.concatenate(codes)), options)

    def table(self) -> NDArray[Any]:
        """Return the blocks of each type for each job."""
        options = narrowest(self.options) if self.options.dtype.kind == "i" else self.options
        found: NDArray[Any] = options[self.codes]
        return found

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Return the blocks of each type for each job."""
        del loaded
        return self.table()

    def with_own(self, own: Mapping[int, Sequence[int]]) -> Coded:
        """Let some jobs take other options."""
        more = Coded.joined([self, Coded.of_table(_table([*own.values()]))], self.options.shape[1])
        codes = more.codes[: len(self.codes)].copy()
        codes[[*own]] = more.codes[len(self.codes) :]
        return Coded(codes, more.options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coded) and np.array_equal(self.table(), other.table())

    def __hash__(self) -> int:
        return hash(self.codes.shape)


def _table(rows: list[Sequence[int]]) -> NDArray[Any]:
    largest = max((max(row, default=0) for row in rows), default=0)
    return np.array(rows, dtype=np.int64 if largest < 2**63 else object)


class CountsInMemory(NamedTuple):
    """Counts of all jobs, by shard."""

    parts: tuple[Coded, ...]

    @classmethod
    def of_table(cls, table: NDArray[Any], shards: Sequence[Shard]) -> CountsInMemory:
        """Cut a table of all jobs where the shards are."""
        rows = (table[shard.first : shard.first + shard.n_jobs] for shard in shards)
        return cls(tuple(map(Coded.of_table, rows)))

    @property
    def n_shards(self) -> int:
        """Of how many shards there are counts."""
        return len(self.parts)

    def cut(self, number: int, shard: Shard) -> Coded:
        """Return the part for a shard."""
        del shard
        if number >= len(self.parts):
            raise InvalidSchedule(f"there are no counts for shard {number:06d}")
        return self.parts[number]

    def with_own(self, own: Mapping[int, Sequence[int]], shards: Sequence[Shard]) -> CountsInMemory:
        """Let some jobs take other options."""
        parts = list(self.parts)
        for number, shard in enumerate(shards):
            ends = shard.first + shard.n_jobs
            mine = {job - shard.first: own[job] for job in own if shard.first <= job < ends}
            if mine:
                parts[number] = parts[number].with_own(mine)
        return CountsInMemory(tuple(parts))

    def widened(self, columns: Sequence[int], n_blocks: int) -> CountsInMemory:
        """Return the same for a problem with more blocks, of which these are the columns."""
        parts = []
        for codes, options in self.parts:
            wide = np.zeros((len(options), n_blocks), dtype=options.dtype)
            wide[:, list(columns)] = options
            parts.append(Coded(codes, wide))
        return CountsInMemory(tuple(parts))


class Served(NamedTuple):
    """What counts come to in a shard: plain values."""

    load: list[int]
    faults: list[tuple[str, str, str]]


def served(loaded: Loaded, counts: NDArray[Any]) -> Served:
    """Check the counts of a shard in exact arithmetic."""
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
    """Add up whole numbers >= 0 of each column without overflow."""
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
