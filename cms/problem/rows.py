"""Every job's numbers as exact integers, one row a job.

Comparisons never cross jobs, so a job's demand and supply are scaled together by the smallest
positive integer that makes all of them whole: its *denominator*. Rows live in int64 arrays; the
few rows that need more than 63 bits live beside them as Python integers (``Rows.wide``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from ..running.stopping import look, never
from ..values.arrays import described, frozen_array, number_array, refuse_bad_numbers
from ..values.decimals import decimal_rows
from ..values.frozen import FrozenMap
from ..values.numbers import exact
from .images import Image, Images, images_of
from .row import Row as Row
from .row import fits_int64, reduced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Rows handled between two looks at the budget, and wide ones.
_ROWS, _WIDE_ROWS = 2**17, 2**10


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

    __slots__ = ("_images", "demands", "supplies", "denominators", "wide")
    demands: NDArray[np.int64]
    supplies: NDArray[np.int64]
    denominators: NDArray[np.int64]
    wide: Mapping[int, Row]
    _images: list[Images]

    def __init__(
        self,
        demands: NDArray[np.int64],
        supplies: NDArray[np.int64],
        denominators: NDArray[np.int64],
        wide: Mapping[int, Row],
    ) -> None:
        self._fill(*map(frozen_array, (demands, supplies, denominators)), wide)

    def _fill(self, *columns: Any) -> None:
        *arrays, wide = columns
        for name, values in zip(self.__slots__, [[], *arrays, FrozenMap(wide)], strict=True):
            object.__setattr__(self, name, values)

    @classmethod
    def owned(
        cls,
        demands: NDArray[np.int64],
        supplies: NDArray[np.int64],
        denominators: NDArray[np.int64],
        wide: Mapping[int, Row],
    ) -> Rows:
        """Build from arrays that nobody else holds, or can write to, without a copy."""
        rows, views = cls.__new__(cls), [each.view() for each in (demands, supplies, denominators)]
        for view in views:
            view.flags.writeable = False
        rows._fill(*views, wide)
        return rows

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

    @property
    def is_wide(self) -> NDArray[np.bool_]:
        """Which rows are wide: their numbers are not in the arrays."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[list(self.wide)] = True
        return found

    @property
    def wants(self) -> NDArray[np.bool_]:
        """Which jobs want anything."""
        found = np.asarray(self.demands > 0)
        for j, row in self.wide.items():
            found[j] = row.demand > 0
        return found

    def servable(self, blocks: Sequence[int]) -> NDArray[np.bool_]:
        """Tell which jobs want nothing, or get something from one of these blocks.

        Examples
        --------
        >>> Rows.from_arrays([6, 5, 0], [[4, 0], [0, 9], [0, 0]], "abc", "xy").servable([0])
        array([ True, False,  True])
        """
        found = np.asarray((self.supplies[:, list(blocks)] > 0).any(axis=1))
        for j, row in self.wide.items():
            found[j] = any(row.supply[i] for i in blocks)
        found |= ~self.wants
        return found

    def row(self, job: int) -> Row:
        """Return one job's integers, in the order of the problem's blocks."""
        wide = self.wide.get(job)
        if wide is not None:
            return wide
        supply = tuple(self.supplies[job].tolist())
        return Row(int(self.demands[job]), supply, int(self.denominators[job]))

    def demand(self, job: int) -> Fraction:
        """Return one job's demand in the user's units."""
        row = self.wide.get(job)
        if row is not None:
            return Fraction(row.demand, row.denominator)
        return Fraction(int(self.demands[job]), int(self.denominators[job]))

    def supply(self, job: int, block: int) -> Fraction:
        """Return what one block gives a job, in the user's units."""
        row = self.wide.get(job)
        if row is not None:
            return Fraction(row.supply[block], row.denominator)
        return Fraction(int(self.supplies[job, block]), int(self.denominators[job]))

    def select(
        self,
        jobs: NDArray[np.int64],
        blocks: Sequence[int],
        *,
        cut: bool = False,
        stopped: Callable[[], bool] = never,
    ) -> Rows:
        """Return the rows of some jobs with the columns of some blocks.

        Parameters
        ----------
        jobs : ndarray of int
            Indices, in the order wanted.
        blocks : sequence of int
            Columns, in the order wanted.
        cut : bool, default False
            Whether to cut supply at the demand.
        stopped : callable, optional
            Asked a few times a second; Stopped is raised if it says so.

        Examples
        --------
        >>> rows = Rows.from_arrays([6], [[4, 9]], ["a"], ["x", "y"])
        >>> rows.select(np.array([0]), [1], cut=True).row(0)
        Row(demand=6, supply=(6,), denominator=1)
        """
        columns = list(blocks)
        everything = len(jobs) == len(self) and bool((jobs == np.arange(len(self))).all())
        whole = columns == list(range(self.n_blocks))
        if everything and whole and not self.wide:
            look(stopped)
            if not cut or not any((f > self.demands).any() for f in self.supplies.T):
                return self
        demands, denominators = np.empty((2, len(jobs)), dtype=np.int64)
        supplies = np.empty((len(jobs), len(columns)), dtype=np.int64)
        for start in range(0, len(jobs), _ROWS):
            look(stopped)
            part = slice(start, start + _ROWS)
            mine = part if everything else jobs[part]
            demand, denominator = self.demands[mine].copy(), self.denominators[mine].copy()
            supply = self.supplies[mine] if whole else self.supplies[mine][:, columns]
            if cut:
                supply = np.minimum(supply, demand[:, None], out=supplies[part])
            # What is left may have a divisor in common with its denominator.
            at = np.flatnonzero(denominator > 1)
            common = np.gcd(demand[at], denominator[at])
            for column in supply.T:
                np.gcd(common, column[at], out=common)
            at, common = at[common > 1], common[common > 1]
            demand[at] //= common
            denominator[at] //= common
            demands[part], supplies[part], denominators[part] = demand, supply, denominator
            supplies[part][at] //= common[:, None]
        wide = {}
        for to, j in enumerate(jobs.tolist() if self.wide else []):
            if not to % _WIDE_ROWS:
                look(stopped)
            if j not in self.wide:
                continue
            row = self.wide[j]
            chosen = (row.supply[i] for i in columns)
            wide[to] = reduced(
                Fraction(row.demand, row.denominator),
                [Fraction(min(f, row.demand) if cut else f, row.denominator) for f in chosen],
                f"job number {to}",
            )
        return Rows.owned(demands, supplies, denominators, {}).with_rows(wide)

    def with_rows(self, rows: Mapping[int, Row]) -> Rows:
        """Return the rows with some exchanged, whether or not these are wide."""
        if not rows:
            return self
        demands, supplies = self.demands.copy(), self.supplies.copy()
        denominators, wide = self.denominators.copy(), {**self.wide}
        for j, row in rows.items():
            wide.pop(j, None)
            if fits_int64(row):
                demands[j], supplies[j], denominators[j] = row
            else:
                wide[j] = row
        return Rows(demands, supplies, denominators, wide)

    def take(self, jobs: NDArray[np.int64]) -> Rows:
        """Return the rows of some jobs as they are, in the order wanted.

        Examples
        --------
        >>> rows = Rows.from_arrays([6, 5], [[4], [9]], "ab", ["x"])
        >>> rows.take(np.array([1])).row(0)
        Row(demand=5, supply=(9,), denominator=1)
        """
        wide = {}
        if self.wide:
            wide = {at: self.wide[j] for at, j in enumerate(jobs.tolist()) if j in self.wide}
        return Rows(self.demands[jobs], self.supplies[jobs], self.denominators[jobs], wide)

    def part(self, start: int, stop: int) -> Rows:
        """Return consecutive rows, without a copy of their numbers.

        Examples
        --------
        >>> Rows.from_arrays([6, 5], [[4], [9]], "ab", ["x"]).part(1, 2).row(0)
        Row(demand=5, supply=(9,), denominator=1)
        """
        wide = {j - start: row for j, row in self.wide.items() if start <= j < stop}
        part = slice(start, stop)
        columns = self.demands[part], self.supplies[part], self.denominators[part]
        return Rows.owned(*columns, wide)

    @classmethod
    def joined(cls, parts: Sequence[Rows], n_blocks: int) -> Rows:
        """Put rows one after the other.

        Examples
        --------
        >>> rows = Rows.from_arrays([6, 5], [[4], [9]], "ab", ["x"])
        >>> Rows.joined([rows, rows.part(0, 1)], 1).demands.tolist()
        [6, 5, 6]
        """
        wide: dict[int, Row] = {}
        first = 0
        for part in parts:
            wide |= {first + j: row for j, row in part.wide.items()}
            first += len(part)
        none = np.zeros(0, dtype=np.int64)
        return cls.owned(
            np.concatenate([none, *(part.demands for part in parts)]),
            np.concatenate([none.reshape(0, n_blocks), *(part.supplies for part in parts)]),
            np.concatenate([none, *(part.denominators for part in parts)]),
            wide,
        )

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

    def _all_images(self) -> Images:
        if not self._images:
            self._images.append(images_of(self.demands, self.supplies, self.wide))
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
                reduced(demand, supply, _job(job_names, j))
                for j, (demand, supply) in enumerate(rows)
            ],
            n_blocks,
        )

    @classmethod
    def _from_rows(cls, rows: Sequence[Row], n_blocks: int) -> Rows:
        fits = [fits_int64(row) for row in rows]
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
            longest = [part.max(initial=0) for part in (left, right) if part.dtype.kind == "u"]
            plain = max(longest, default=0) < 2**63
        if plain and "f" in left.dtype.kind + right.dtype.kind:
            return cls._from_decimals(left, right, job_names)
        if plain:
            return cls(
                left.astype(np.int64, copy=False),
                right.astype(np.int64, copy=False),
                np.ones(n, dtype=np.int64),
                {},
            )
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
        found = decimal_rows(demands, supply)
        wide = {}
        for j in found.hard:
            fractions = [Fraction(str(value)) for value in (demands[j], *supply[j])]
            row = reduced(fractions[0], fractions[1:], _job(job_names, j))
            if fits_int64(row):
                found.demands[j], found.supplies[j] = row.demand, row.supply
                found.denominators[j] = row.denominator
            else:
                wide[j] = row
        return cls(found.demands, found.supplies, found.denominators, wide)


def _job(job_names: Sequence[str] | None, j: int) -> str:
    """Word which job a row is, for an error."""
    return f"job number {j}" if job_names is None else f"job {job_names[j]!r}"
