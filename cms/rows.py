"""Every job's numbers as exact integers, one row a job.

Comparisons never cross jobs, so a job's demand and supply are scaled together by the smallest
positive integer that makes all of them whole: its *denominator*. Rows live in int64 arrays; the
few rows that need more than 63 bits live beside them as Python integers (``Rows.wide``).

Arithmetic on a row (supply x (demand + largest supply)) must fit as well. Rows that are too large
for that get two integer *images*, to be used by compiled code: the inner one (supply rounded down)
for building schedules, the outer one (supply rounded up, demand down) for bounds; what holds for an
image then holds for the row itself. A job that needs more than 2^20 of its best block has only a
coarse image, or none (*far* rows): it is worked out by hand, on its exact row, as all are that had
to shrink if they are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import isqrt, lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import described, frozen_array, number_array, refuse_bad_numbers
from .decimals import decimals
from .errors import InvalidProblem
from .frozen import FrozenMap
from .numbers import LARGEST_DIGITS, exact, has_too_many_digits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Compiled code may form products up to this size (exclusive) in int64 without overflow.
SAFE = 2**62
# Beyond this ratio of demand to supply an image has less than 20 bits for the best block's supply;
# and while only few rows had to shrink at all, they may as well be priced exactly.
_FAR, _FEW = 2**20, 1_000


class Row(NamedTuple):
    """One job's integers: its demand is ``demand / denominator``, its supply likewise."""

    demand: int
    supply: tuple[int, ...]
    denominator: int


class Image(NamedTuple):
    """Integer rows that are safe for compiled arithmetic; supply is cut at the demand."""

    demand: NDArray[np.int64]
    supply: NDArray[np.int64]


class _Images(NamedTuple):
    inner: Image
    outer: Image
    far: frozenset[int]


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
    _images: list[_Images]

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
                f"job number {at}",
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
        return self._all_images().inner

    @property
    def outer(self) -> Image:
        """Rows on which bounds may be computed: supply rounded up, demand down."""
        return self._all_images().outer

    @property
    def far(self) -> frozenset[int]:
        """Jobs to be worked out by hand: their images are too coarse to be of use, or few.

        Examples
        --------
        >>> sorted(Rows.from_arrays([10**30, 10], [[1], [3]], "ab", ["x"]).far)
        [0]
        """
        return self._all_images().far

    def _all_images(self) -> _Images:
        if not self._images:
            self._images.append(_images(self))
        return self._images[0]

    @classmethod
    def from_fractions(
        cls,
        rows: Iterable[tuple[Fraction, Sequence[Fraction]]],
        n_blocks: int,
        job_names: Sequence[str] | None = None,
    ) -> Rows:
        """Build from one ``(demand, supply of every block)`` pair a job.

        Raises
        ------
        InvalidProblem
            If a job's numbers have no common denominator that can be written down.
        """
        return cls._from_rows(
            [
                _reduced(demand, supply, _job(job_names, j))
                for j, (demand, supply) in enumerate(rows)
            ],
            n_blocks,
        )

    @classmethod
    def _from_rows(cls, rows: Sequence[Row], n_blocks: int) -> Rows:
        fits = [_fits(row) for row in rows]
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
        left, right = number_array(demands, "demands"), number_array(supply, "supply")
        if left.ndim != 1:
            raise InvalidProblem(f"demands has shape {left.shape}; expected (n,)")
        n, k = len(left), len(blocks)
        if right.shape != (n, k):
            raise InvalidProblem(
                f"supply has shape {right.shape}; expected ({n}, {k}): a row a job of demands and "
                "a column a block"
            )
        plain = all(part.dtype.kind in "iuf" and part.dtype.itemsize <= 8 for part in (left, right))
        if plain:
            refuse_bad_numbers(left, right, job_names, blocks)
            plain = all(
                part.dtype.kind != "u" or not part.size or int(part.max()) < 2**63
                for part in (left, right)
            )
        if plain and left.dtype.kind in "iu" and right.dtype.kind in "iu":
            return cls(left.astype(np.int64), right.astype(np.int64), np.ones(n, np.int64), {})
        if plain:
            return cls._from_decimals(left, right, job_names)
        rows = (
            (
                exact(left[j], described(job_names[j])),
                [exact(right[j, i], described(job_names[j], blocks[i])) for i in range(k)],
            )
            for j in range(n)
        )
        return cls.from_fractions(rows, k, job_names)

    @classmethod
    def _from_decimals(
        cls, demands: NDArray[Any], supply: NDArray[Any], job_names: Sequence[str]
    ) -> Rows:
        """Build from finite values >= 0, ints or floats of at most 64 bits."""
        parts = [decimals(part) for part in (demands[:, None], supply)]
        numerators = np.column_stack([numerator for numerator, _ in parts])
        places = np.column_stack([place for _, place in parts])
        most = places.max(axis=1, initial=0).astype(np.int64)
        # A row is easy if every value fits and stays below 2**63 over the common denominator.
        shift = most[:, None] - places
        size = numerators * 10.0**shift
        easy = (places >= 0).all(axis=1) & (size < 2.0**62).all(axis=1)
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
            fractions = [Fraction(str(value)) for value in (demands[j], *supply[j])]
            row = _reduced(fractions[0], fractions[1:], _job(job_names, j))
            if _fits(row):
                integers[j] = (row.demand, *row.supply)
                denominators[j] = row.denominator
            else:
                wide[j] = row
        return cls(integers[:, 0], integers[:, 1:], denominators, wide)


def _fits(row: Row) -> bool:
    """Whether a row's integers are int64."""
    return max(row.demand, row.denominator, *row.supply, 0) < 2**63


def _job(job_names: Sequence[str] | None, j: int) -> str:
    """Word which job a row is, for an error."""
    return f"job number {j}" if job_names is None else f"job {job_names[j]!r}"


def _reduced(demand: Fraction, supply: Sequence[Fraction], job: str) -> Row:
    denominator = lcm(demand.denominator, *(f.denominator for f in supply))
    integers = [int(f * denominator) for f in (demand, *supply)]
    if has_too_many_digits(max(denominator, *integers)):
        raise InvalidProblem(
            f"the numbers of {job} have more than {LARGEST_DIGITS} digits over their common "
            "denominator; round them"
        )
    return Row(integers[0], tuple(integers[1:]), denominator)


def _images(rows: Rows) -> _Images:
    demand = rows.demands
    supply = np.minimum(rows.supplies, demand[:, None])
    largest = supply.max(axis=1, initial=0)
    # The estimate in floats is compared with half the limit, so its own error does not matter.
    risky = largest.astype(np.float64) * (demand.astype(np.float64) + largest) >= SAFE / 2
    shrink = sorted(set(np.flatnonzero(risky).tolist()) | set(rows.wide))
    if not shrink:
        image = Image(demand, frozen_array(supply))
        return _Images(image, image, frozenset())
    arrays = [demand.copy(), supply.copy(), demand.copy(), supply.copy()]
    inner_demand, inner_supply, outer_demand, outer_supply = arrays
    far = set()
    for j in shrink:
        row = rows.row(j)
        cut = [min(f, row.demand) for f in row.supply]
        most = max(cut, default=0)
        up, down = 2**30, isqrt(most * (row.demand + most)) + 1
        inner_demand[j], inner_supply[j] = _safe_inner(
            -(-row.demand * up // down), [f * up // down for f in cut]
        )
        outer_demand[j], outer_supply[j] = _safe_outer(
            row.demand * up // down, [-(-f * up // down) for f in cut]
        )
        if len(shrink) <= _FEW or row.demand > most * _FAR:
            far.add(j)
    images = [frozen_array(array) for array in arrays]
    return _Images(Image(*images[:2]), Image(*images[2:]), frozenset(far))


def _safe_inner(demand: int, supply: list[int]) -> tuple[int, list[int]]:
    """Leave the supply of a row out that does not fit even so: no schedule then relies on it."""
    most = max(supply, default=0)
    if most and most * (demand + most) < SAFE:
        return demand, supply
    return min(demand, 1), [0] * len(supply)


def _safe_outer(demand: int, supply: list[int]) -> tuple[int, list[int]]:
    """Cut the demand of a row that does not fit even so: a bound only gets lower."""
    return min(demand, SAFE // 2 // max([*supply, 1])), supply
