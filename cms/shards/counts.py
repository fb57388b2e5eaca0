"""Counts: how many blocks of each type every job of a shard gets, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..problem.rows import SAFE
from ..values.arrays import narrowest
from ..values.numbers import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .engine import Loaded, Shard

#: Rows looked at together: what that needs stays in the processor's cache.
_ROWS = 2**15
#: Rows of so few possible kinds and columns are told apart by a number, without sorting.
_LISTED, _MOST_COLUMNS = 2**18, 32
#: Jobs of a shard whose demand is not met that are told of.
_MOST_TOLD = 1001


class Cut(Protocol):
    """The counts of one shard, in memory or in files; picklable."""

    def table(self, loaded: Loaded) -> NDArray[Any]:
        """Return the blocks of each type for each job, shape (jobs, k), whole numbers."""
        ...


#: Of every shard; none where nothing is given to any job.
Counts: TypeAlias = tuple[Cut, ...]


class Coded(NamedTuple):
    """Which of a few options each job of a shard takes: a code a job, an option a row."""

    codes: NDArray[Any]
    options: NDArray[Any]

    @classmethod
    def of_table(cls, table: NDArray[Any]) -> Coded:
        """Find the different rows of a table, in their order but where numbers are very long."""
        k = table.shape[1]
        if table.dtype.kind == "i":
            sizes = [most + 1 for most in table.max(axis=0, initial=0).tolist()]
            few = table.size and k <= _MOST_COLUMNS and prod(sizes) <= _LISTED
            if few and int(table.min()) >= 0:
                keys = np.ravel_multi_index(tuple(table.T), sizes)
                there = np.bincount(keys, minlength=prod(sizes)) > 0
                options = np.unravel_index(np.flatnonzero(there), sizes)
                return cls(narrowest(np.cumsum(there)[keys] - 1), np.stack(options, axis=1))
            # Odd multipliers, so that equal rows have equal sums, which may overflow.
            odd = np.random.default_rng(0).integers(1, 2**62, k) * 2 + 1
            sums = table.astype(np.int64, copy=False) @ odd
            _, first, which = np.unique(sums, return_index=True, return_inverse=True)
            if np.array_equal(table[first][which.ravel()], table):  # else rows have one sum
                order = np.lexsort(table[first].T[::-1]) if k else first
                return cls(narrowest(np.argsort(order)[which.ravel()]), table[first][order])
        numbers: dict[tuple[int, ...], int] = {}
        listed = [numbers.setdefault(tuple(row), len(numbers)) for row in table.tolist()]
        codes = np.array(listed, dtype=np.int64)
        return cls(narrowest(codes), table[np.unique(codes, return_index=True)[1]])

    @classmethod
    def joined(cls, parts: Sequence[Coded], k: int) -> Coded:
        """Put the jobs of several parts after each other."""
        number: dict[tuple[int, ...], int] = {}
        codes = [np.zeros(0, dtype=np.int8)]
        for part in parts:
            rows = map(tuple, part.options.tolist())
            mine = np.array([number.setdefault(row, len(number)) for row in rows], dtype=np.int64)
            codes.append(narrowest(mine)[part.codes])
        return cls(narrowest(np.concatenate(codes)), table_of([*number], k))

    def table(self, loaded: Loaded | None = None) -> NDArray[Any]:
        """Return the blocks of each type for each job."""
        options = narrowest(self.options) if self.options.dtype.kind == "i" else self.options
        found: NDArray[Any] = options[self.codes]
        return found

    def widened(self, columns: Sequence[int], n_blocks: int) -> Coded:
        """Return the same for a problem with more blocks, of which these are the columns."""
        wide = np.zeros((len(self.options), n_blocks), dtype=self.options.dtype)
        wide[:, list(columns)] = self.options
        return Coded(self.codes, wide)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coded) and np.array_equal(self.table(), other.table())

    def __hash__(self) -> int:
        return hash(self.codes.shape)


def table_of(rows: Sequence[Sequence[int]], k: int) -> NDArray[Any]:
    """Return rows of k whole numbers as one array, however long they are."""
    largest = max((max(row, default=0) for row in rows), default=0)
    kind = np.int64 if largest < 2**63 else object
    return np.array(rows, dtype=kind).reshape(len(rows), k)


def with_own(
    counts: Iterable[Coded], own: Mapping[int, Sequence[int]], shards: Sequence[Shard]
) -> tuple[Coded, ...]:
    """Let some jobs of all shards take other options."""
    parts = []
    for part, shard in zip(counts, shards, strict=True):
        mine = {j - shard.first: own[j] for j in own if 0 <= j - shard.first < shard.n_jobs}
        if mine:
            n, k = len(part.codes), part.options.shape[1]
            codes, options = Coded.joined([part, Coded.of_table(table_of([*mine.values()], k))], k)
            codes[[*mine]] = codes[n:]
            part = Coded(codes[:n], options)
        parts.append(part)
    return tuple(parts)


def served(loaded: Loaded, cut: Cut) -> tuple[list[int], list[tuple[str, str, str]]]:
    """Return a shard's blocks of each type, and the faults of its counts: where, has, needs."""
    rows, counts = loaded.rows, cut.table(loaded)
    n, k = len(rows), rows.n_blocks
    kind = counts.dtype.kind
    whole = kind == "i" or (kind == "O" and all(type(number) is int for number in counts.flat))
    if counts.shape != (n, k) or not whole or (counts.size and counts.min() < 0):
        told = f"other counts of {counts.dtype} and shape {counts.shape}"
        expected = f"whole numbers >= 0 of shape ({n}, {k})"
        return [0] * k, [(f"shard {loaded.number}", told, expected)]
    by_hand = set(rows.wide)
    short: list[int] = []
    limit = SAFE // (2 * max(k, 1))
    for start in range(0, n, _ROWS):
        demands, supplies, taken = (
            each[start : start + _ROWS] for each in (rows.demands, rows.supplies, counts)
        )
        large = (demands >= limit) | (supplies >= limit).any(axis=1)
        if int(taken.max(initial=0)) * int(supplies.max(initial=1)) >= limit:
            # d // f + 1 blocks of one type suffice by themselves: no more are counted.
            taken = np.minimum(taken, demands[:, None] // np.maximum(supplies, 1) + 1)
        given = (taken.astype(np.int64) * supplies).sum(axis=1)
        short += (start + np.flatnonzero((given < demands) & ~large)).tolist()
        by_hand.update((start + np.flatnonzero(large)).tolist())
    short += [j for j in by_hand if _given(rows.row(j).supply, counts[j]) < rows.row(j).demand]
    faults = []
    for j in sorted(short)[:_MOST_TOLD]:
        row = rows.row(j)
        has = Fraction(_given(row.supply, counts[j]), row.denominator)
        needs = Fraction(row.demand, row.denominator)
        job = f"job 'j{loaded.first + j}'"
        faults.append((job, f"{shown(has)} of its demand served", shown(needs)))
    return column_sums(counts), faults


def column_sums(counts: NDArray[Any]) -> list[int]:
    """Add up whole numbers >= 0 of each column without overflow."""
    fits = int(counts.max(initial=0)) * len(counts) < 2**63
    return list(counts.sum(axis=0, dtype=np.int64 if fits else object).tolist())


def _given(supply: Sequence[int], counts: NDArray[Any]) -> int:
    return sum(f * int(number) for f, number in zip(supply, counts, strict=True))
