"""Every job's numbers as exact integers, one row a job.

Comparisons never cross jobs, so a job's demand and supply are scaled together by the smallest
positive integer that makes all of them whole: its *denominator*. Rows live in int64 arrays; the
few rows that need more than 63 bits live beside them as Python integers (``Rows.wide``).

Arithmetic on a row (supply x (demand + largest supply)) must fit as well. Rows that are too large
for that get two integer *images*, to be used by compiled code: the inner one (supply rounded down)
for building schedules, the outer one (supply rounded up, demand down) for bounds; what holds for an
image then holds for the row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, isqrt, lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .decimals import decimals
from .errors import InvalidProblem
from .frozen import FrozenMap
from .numbers import exact

#: Compiled code may form products up to this size (exclusive) in int64 without overflow.
SAFE = 2**62


class Row(NamedTuple):
    """One job's integers: its demand is ``demand / denominator``, its supply likewise."""

    demand: int
    supply: tuple[int, ...]
    denominator: int


class Image(NamedTuple):
    """Integer rows that are safe for compiled arithmetic; supply is cut at the demand."""

    demand: NDArray[np.int64]
    supply: NDArray[np.int64]


def frozen_array(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody can make writeable again (it lives in a ``bytes`` object)."""
    packed = np.frombuffer(values.tobytes(), dtype=values.dtype)
    return packed.reshape(values.shape)


class Rows:
    """The exact integer rows of a problem's jobs.

    Build with :meth:`from_fractions` or :meth:`from_arrays`.

    Attributes
    ----------
    demands : ndarray of int64, shape (n,)
    supplies : ndarray of int64, shape (n, k)
    denominators : ndarray of int64, shape (n,)
        Job j's demand is ``demands[j] / denominators[j]``. Zero in all three where the row is wide.
    wide : Mapping[int, Row]
        Rows that need more than 63 bits.

    Examples
    --------
    >>> rows = Rows.from_fractions([(Fraction(1, 2), [Fraction(1, 3), Fraction(0)])], 2)
    >>> rows.row(0)
    Row(demand=3, supply=(2, 0), denominator=6)
    """

    __slots__ = ("_images", "demands", "denominators", "supplies", "wide")
    demands: NDArray[np.int64]
    supplies: NDArray[np.int64]
    denominators: NDArray[np.int64]
    wide: Mapping[int, Row]
    _images: list[tuple[Image, Image]]

    def __init__(
        self,
        demands: NDArray[np.int64],
        supplies: NDArray[np.int64],
        denominators: NDArray[np.int64],
        wide: Mapping[int, Row],
    ) -> None:
        put = object.__setattr__
        put(self, "demands", frozen_array(demands))
        put(self, "supplies", frozen_array(supplies))
        put(self, "denominators", frozen_array(denominators))
        put(self, "wide", FrozenMap(wide))
        put(self, "_images", [])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Rows is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Rows is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.demands, self.supplies, self.denominators, dict(self.wide))

    def __len__(self) -> int:
        return len(self.demands)

    @property
    def n_blocks(self) -> int:
        """Number of block types k."""
        return int(self.supplies.shape[1])

    def row(self, job: int) -> Row:
        """Return one job's integers, in the order of the problem's blocks."""
        wide = self.wide.get(job)
        if wide is not None:
            return wide
        supply = tuple(self.supplies[job].tolist())
        return Row(int(self.demands[job]), supply, int(self.denominators[job]))

    def demand(self, job: int) -> Fraction:
        """Return one job's demand in the user's units."""
        row = self.row(job)
        return Fraction(row.demand, row.denominator)

    def supply(self, job: int, block: int) -> Fraction:
        """Return what one block gives a job, in the user's units."""
        row = self.row(job)
        return Fraction(row.supply[block], row.denominator)

    def select(self, jobs: NDArray[np.int64], blocks: Sequence[int], *, cut: bool = False) -> Rows:
        """Return the rows of some jobs with the columns of some blocks.

        Parameters
        ----------
        jobs : ndarray of int
            Indices, in the order wanted.
        blocks : sequence of int
            Columns, in the order wanted.
        cut : bool, default False
            Whether to cut supply at the demand.

        Examples
        --------
        >>> rows = Rows.from_arrays([6], [[4, 9]], ["a"], ["x", "y"])
        >>> rows.select(np.array([0]), [1], cut=True).row(0)
        Row(demand=6, supply=(6,), denominator=1)
        """
        wide_jobs = [at for at, j in enumerate(jobs.tolist()) if j in self.wide]
        demands = self.demands[jobs]
        supplies = self.supplies[np.ix_(jobs, np.array(blocks, dtype=np.int64))]
        denominators = self.denominators[jobs]
        if cut:
            supplies = np.minimum(supplies, demands[:, None])
        common = np.gcd(np.gcd.reduce(supplies, axis=1, initial=0), np.gcd(demands, denominators))
        common = np.maximum(common, 1)
        wide = {}
        for at in wide_jobs:
            row = self.wide[int(jobs[at])]
            supply = [row.supply[i] for i in blocks]
            if cut:
                supply = [min(f, row.demand) for f in supply]
            wide[at] = _reduced(
                Fraction(row.demand, row.denominator),
                [Fraction(f, row.denominator) for f in supply],
            )
        if not wide:
            return Rows(demands // common, supplies // common[:, None], denominators // common, {})
        whole = [
            wide.get(at)
            or Row(
                int(demands[at] // common[at]),
                tuple((supplies[at] // common[at]).tolist()),
                int(denominators[at] // common[at]),
            )
            for at in range(len(jobs))
        ]
        return Rows._from_rows(whole, len(blocks))

    @property
    def inner(self) -> Image:
        """Rows on which schedules may be built: supply rounded down where a row had to shrink."""
        return self._both_images()[0]

    @property
    def outer(self) -> Image:
        """Rows on which bounds may be computed: supply rounded up, demand down."""
        return self._both_images()[1]

    def _both_images(self) -> tuple[Image, Image]:
        if not self._images:
            self._images.append(_images(self))
        return self._images[0]

    @classmethod
    def from_fractions(
        cls, rows: Iterable[tuple[Fraction, Sequence[Fraction]]], n_blocks: int
    ) -> Rows:
        """Build from one ``(demand, supply of every block)`` pair a job."""
        return cls._from_rows([_reduced(demand, supply) for demand, supply in rows], n_blocks)

    @classmethod
    def _from_rows(cls, rows: Sequence[Row], n_blocks: int) -> Rows:
        fits = [max(row.demand, row.denominator, *row.supply, 0) < 2**63 for row in rows]
        empty = Row(0, (0,) * n_blocks, 0)
        stored = [row if fit else empty for row, fit in zip(rows, fits, strict=True)]
        n = len(rows)
        return cls(
            np.array([row.demand for row in stored], dtype=np.int64).reshape(n),
            np.array([row.supply for row in stored], dtype=np.int64).reshape(n, n_blocks),
            np.array([row.denominator for row in stored], dtype=np.int64).reshape(n),
            {j: row for j, (row, fit) in enumerate(zip(rows, fits, strict=True)) if not fit},
        )

    @classmethod
    def from_arrays(
        cls,
        demands: ArrayLike,
        supply: ArrayLike,
        job_names: Sequence[str],
        blocks: Sequence[str],
    ) -> Rows:
        """Build from arrays of ints, floats or exact numbers; see ``Problem.from_arrays``.

        Parameters
        ----------
        demands : array_like, shape (n,)
        supply : array_like, shape (n, k)
        job_names, blocks : sequences of str
            For the errors.

        Raises
        ------
        InvalidProblem
            If a value is NaN, infinite, negative or not a number; it names the job and the block.
        """
        table = _one_table(demands, supply, len(blocks))
        if table.dtype.kind in "iuf":
            _refuse_bad_values(table, job_names, blocks)
        if table.dtype.kind in "iu" and not (table.size and int(table.max()) >= 2**63):
            integers = table.astype(np.int64)
            ones = np.ones(len(table), dtype=np.int64)
            return cls(integers[:, 0], integers[:, 1:], ones, {})
        if table.dtype.kind == "f" and table.dtype.itemsize <= 8:
            return cls._from_floats(table)

        def value(j: int, i: int) -> Fraction:
            what = f"demand of job {job_names[j]!r}"
            if i:
                what = f"supply of block {blocks[i - 1]!r} to job {job_names[j]!r}"
            return exact(table[j, i], what)

        n, width = table.shape
        whole = ([value(j, i) for i in range(width)] for j in range(n))
        return cls.from_fractions(((row[0], row[1:]) for row in whole), width - 1)

    @classmethod
    def _from_floats(cls, table: NDArray[Any]) -> Rows:
        numerators, places = decimals(table)
        most = places.max(axis=1, initial=0).astype(np.int64)
        # A row is easy if every value fits and stays below 2**63 over the common denominator.
        shift = most[:, None] - places
        size = numerators * 10.0**shift
        easy = (places >= 0).all(axis=1) & (size < 2.0**62).all(axis=1)
        easy &= most <= 18
        hard = np.flatnonzero(~easy)
        shift[hard] = 0
        integers = numerators * 10**shift
        denominators = np.power(10, np.where(easy, most, 0))
        common = np.gcd(np.gcd.reduce(integers, axis=1), denominators)
        integers //= common[:, None]
        denominators //= common
        integers[hard] = 0
        denominators[hard] = 0
        wide = {}
        for j in hard.tolist():
            fractions = [Fraction(str(value)) for value in table[j]]
            row = _reduced(fractions[0], fractions[1:])
            if max(row.demand, row.denominator, *row.supply, 0) < 2**63:
                integers[j] = (row.demand, *row.supply)
                denominators[j] = row.denominator
            else:
                wide[j] = row
        return cls(integers[:, 0], integers[:, 1:], denominators, wide)


def _one_table(demands: ArrayLike, supply: ArrayLike, n_blocks: int) -> NDArray[Any]:
    """Demand and supply side by side, (n, 1 + k), without a value changing its meaning."""
    left, right = np.asarray(demands), np.asarray(supply)
    if left.ndim != 1:
        raise InvalidProblem(f"demands has shape {left.shape}; expected (n,)")
    n = len(left)
    if right.ndim != 2 or right.shape != (n, n_blocks):
        raise InvalidProblem(
            f"supply has shape {right.shape}; expected ({n}, {n_blocks}): a row a job of "
            "demands and a column a block"
        )
    kinds = {left.dtype.kind, right.dtype.kind}
    same = left.dtype == right.dtype
    if not (kinds <= set("iu") or (kinds == {"f"} and same)):
        if kinds <= set("iuf") and kinds & set("iu"):
            # ints below 2**53 are themselves as float64, and print as themselves
            ints = left if left.dtype.kind in "iu" else right
            floats = right if ints is left else left
            if floats.dtype == np.float64 and (not ints.size or int(ints.max()) < 2**53):
                return np.column_stack([left.astype(np.float64), right.astype(np.float64)])
        left, right = left.astype(object), right.astype(object)
    if left.dtype.kind != right.dtype.kind or left.dtype.itemsize != right.dtype.itemsize:
        if kinds <= set("iu") and all(
            not part.size or (int(part.max()) < 2**63 and int(part.min()) >= -(2**63))
            for part in (left, right)
        ):
            left, right = left.astype(np.int64), right.astype(np.int64)
        else:
            left, right = left.astype(object), right.astype(object)
    return np.column_stack([left[:, None], right])


def _refuse_bad_values(
    table: NDArray[Any], job_names: Sequence[str], blocks: Sequence[str]
) -> None:
    bad = table < 0
    if table.dtype.kind == "f":
        bad |= ~np.isfinite(table)
    if not bad.any():
        return
    j, i = (int(index) for index in np.argwhere(bad)[0])
    what = f"demand of job {job_names[j]!r}"
    if i:
        what = f"supply of block {blocks[i - 1]!r} to job {job_names[j]!r}"
    exact(table[j, i], what)


def _reduced(demand: Fraction, supply: Sequence[Fraction]) -> Row:
    denominator = lcm(demand.denominator, *(f.denominator for f in supply))
    integers = [int(f * denominator) for f in (demand, *supply)]
    return Row(integers[0], tuple(integers[1:]), denominator)


def _images(rows: Rows) -> tuple[Image, Image]:
    demand = rows.demands
    supply = np.minimum(rows.supplies, demand[:, None])
    largest = supply.max(axis=1, initial=0)
    # The estimate in floats is compared with half the limit, so its own error does not matter.
    risky = largest.astype(np.float64) * (demand.astype(np.float64) + largest) >= SAFE / 2
    shrink = sorted(set(np.flatnonzero(risky).tolist()) | set(rows.wide))
    if not shrink:
        image = Image(demand, frozen_array(supply))
        return image, image
    inner_demand, inner_supply = demand.copy(), supply.copy()
    outer_demand, outer_supply = demand.copy(), supply.copy()
    for j in shrink:
        row = rows.row(j)
        cut = [min(f, row.demand) for f in row.supply]
        up, down = 2**30, isqrt(max(cut, default=0) * (row.demand + max(cut, default=0))) + 1
        inner_demand[j] = -(-row.demand * up // down)
        inner_supply[j] = [f * up // down for f in cut]
        outer_demand[j] = row.demand * up // down
        outer_supply[j] = [-(-f * up // down) for f in cut]
    inner = Image(frozen_array(inner_demand), frozen_array(inner_supply))
    return inner, Image(frozen_array(outer_demand), frozen_array(outer_supply))


def common_step(values: Iterable[Fraction]) -> Fraction:
    """Return the largest rational of which all values are whole multiples; 0 if all are 0.

    Examples
    --------
    >>> common_step([Fraction(3, 2), Fraction(1)])
    Fraction(1, 2)
    """
    step = Fraction(0)
    for value in values:
        denominator = lcm(step.denominator, value.denominator)
        step = Fraction(gcd(int(step * denominator), int(value * denominator)), denominator)
    return step
