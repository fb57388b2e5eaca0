"""Every job's numbers as exact integers, one row a job.

Comparisons never cross jobs, so a job's demand and supply are scaled together by the smallest
positive integer that makes all of them whole: its *denominator*. Rows live in int64 arrays; the
few rows that need more than 63 bits live beside them as Python integers (``Rows.wide``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidProblem
from ..running.stopping import look, never
from ..values.arrays import decimal_rows, described, number_array, read_only, refuse_bad_numbers
from ..values.frozen import FrozenMap, Immutable
from ..values.numbers import LARGEST_DIGITS, exact, has_too_many_digits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Rows, and wide rows, handled between two looks at the budget; most columns copied one by one.
_ROWS, _WIDE_ROWS, _FEW_COLUMNS = 2**17, 2**10, 6

#: Compiled code may form products up to this size (exclusive) in int64 without overflow.
SAFE = 2**62
# Beyond this ratio of demand to supply an image has less than 20 bits for the best block's supply;
# and while only few rows had to shrink at all, they may as well be priced exactly.
_FAR, FEW = 2**20, 4_000
# An image's supply x (demand + largest supply) has this many bits, rounding included one more.
_IMAGE_BITS = 61


class Row(NamedTuple):
    """One job's integers: its demand is ``demand / denominator``, its supply likewise."""

    demand: int
    supply: tuple[int, ...]
    denominator: int


class Image(NamedTuple):
    """Integer rows that are safe for compiled arithmetic; supply is cut at the demand."""

    demand: NDArray[np.int64]
    supply: NDArray[np.int64]


class Images(NamedTuple):
    """Rows to build schedules on, rows to compute bounds on, and the jobs to work out by hand."""

    inner: Image
    outer: Image
    far: frozenset[int]


def reduced(demand: Fraction, supply: Sequence[Fraction], job: str) -> Row:
    """Scale a job's numbers by the smallest integer that makes all of them whole."""
    denominator = 1
    for f in (demand, *supply):
        denominator = lcm(denominator, f.denominator)
        # not only at the end: what is refused must not first grow as long as the whole row
        if has_too_many_digits(denominator):
            break
    else:
        wanted, *given = (f.numerator * (denominator // f.denominator) for f in (demand, *supply))
        if not has_too_many_digits(max(wanted, *given, 0)):
            return Row(wanted, tuple(given), denominator)
    raise InvalidProblem(
        f"the numbers of {job} have more than {LARGEST_DIGITS} digits over their common "
        "denominator; round them"
    )


class Rows(Immutable):
    """The exact integer rows of a problem's jobs.

    Job j's demand is ``demands[j] / denominators[j]``. A row that needs more than 63 bits is among
    ``wide``, and zero in all three arrays.
    """

    __slots__ = ("demands", "supplies", "denominators", "wide", "__dict__")
    demands: NDArray[np.int64]  # shape (n,)
    supplies: NDArray[np.int64]  # shape (n, k)
    denominators: NDArray[np.int64]  # shape (n,)
    wide: Mapping[int, Row]

    def __init__(
        self,
        demands: NDArray[np.int64],
        supplies: NDArray[np.int64],
        denominators: NDArray[np.int64],
        wide: Mapping[int, Row],
    ) -> None:
        """Take arrays over: they become read-only."""
        columns = map(read_only, (demands, supplies, denominators))
        for name, values in zip(self.__slots__, (*columns, FrozenMap(wide)), strict=False):
            object.__setattr__(self, name, values)

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
        """Tell which jobs want nothing, or get something from one of these blocks."""
        found = np.asarray((self.supplies[:, list(blocks)] > 0).any(axis=1))
        for j, row in self.wide.items():
            found[j] = any(row.supply[i] for i in blocks)
        found |= ~self.wants
        return found

    def tables(self, size: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Iterate over demands and supplies of `size` jobs each, wide ones last."""
        for start in range(0, len(self), size):
            yield self.demands[start : start + size], self.supplies[start : start + size]
        wide = list(self.wide.values())
        for start in range(0, len(wide), size):
            demands, supplies, _ = zip(*wide[start : start + size], strict=True)
            yield np.array(demands, dtype=object), np.array(supplies, dtype=object)

    def row(self, job: int) -> Row:
        """Return one job's integers, in the order of the problem's blocks."""
        if job in self.wide:
            return self.wide[job]
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

    def select(
        self,
        jobs: NDArray[np.int64],
        blocks: Sequence[int],
        *,
        cut: bool = False,
        stopped: Callable[[], bool] = never,
    ) -> Rows:
        """Return the rows of some jobs with the columns of some blocks.

        With ``cut``, supply is at most the demand. Raises Stopped once ``stopped`` says so.
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
            demand, supply, denominator = demands[part], supplies[part], denominators[part]
            demand[:], denominator[:] = self.demands[mine], self.denominators[mine]
            source = self.supplies[mine]
            if len(columns) > _FEW_COLUMNS:
                np.take(source, columns, axis=1, out=supply, mode="wrap")  # "raise" copies twice
                if cut:
                    np.minimum(supply, demand[:, None], out=supply)
            else:
                for to, i in enumerate(columns):
                    supply[:, to] = np.minimum(source[:, i], demand) if cut else source[:, i]
            # What is left may have a divisor in common with its denominator.
            at = np.flatnonzero(denominator > 1)
            common = np.gcd(demand[at], denominator[at])
            for column in supply.T:
                common = np.gcd(common, column[at])
            demand[at] //= common
            denominator[at] //= common
            supply[at] //= common[:, None]
        wide = {}
        for to, j in enumerate(jobs.tolist() if self.wide else []):
            if not to % _WIDE_ROWS:
                look(stopped)
            if j in self.wide:
                demanded, given, q = self.wide[j]
                chosen = (min(given[i], demanded) if cut else given[i] for i in columns)
                wide[to] = reduced(
                    Fraction(demanded, q), [Fraction(f, q) for f in chosen], f"job number {to}"
                )
        return Rows(demands, supplies, denominators, {}).with_rows(wide)

    def with_rows(self, rows: Mapping[int, Row]) -> Rows:
        """Return the rows with some exchanged, whether or not these are wide."""
        if not rows:
            return self
        long = {j: row for j, row in rows.items() if max(row.demand, *row.supply, row[2]) >= 2**63}
        nothing = Row(0, (0,) * self.n_blocks, 0)
        stored = [nothing if j in long else row for j, row in rows.items()]
        columns = self.demands.copy(), self.supplies.copy(), self.denominators.copy()
        for column, values in zip(columns, zip(*stored, strict=True), strict=True):
            column[[*rows]] = values
        kept = {j: row for j, row in self.wide.items() if j not in rows}
        return Rows(*columns, kept | long)

    def take(self, jobs: NDArray[np.int64]) -> Rows:
        """Return the rows of some jobs as they are, in the order wanted."""
        wide = {}
        if self.wide:
            wide = {at: self.wide[j] for at, j in enumerate(jobs.tolist()) if j in self.wide}
        return Rows(self.demands[jobs], self.supplies[jobs], self.denominators[jobs], wide)

    def part(self, start: int, stop: int) -> Rows:
        """Return consecutive rows, without a copy of their numbers."""
        wide = {j - start: row for j, row in self.wide.items() if start <= j < stop}
        part = slice(start, stop)
        columns = self.demands[part], self.supplies[part], self.denominators[part]
        return Rows(*columns, wide)

    @classmethod
    def joined(cls, parts: Sequence[Rows], n_blocks: int) -> Rows:
        """Put rows one after the other."""
        wide: dict[int, Row] = {}
        first = 0
        for part in parts:
            wide |= {first + j: row for j, row in part.wide.items()}
            first += len(part)
        none = np.zeros((0, n_blocks + 2), dtype=np.int64)
        each = [(p.demands, p.supplies, p.denominators) for p in parts]
        columns = zip((none[:, 0], none[:, 2:], none[:, 1]), *each, strict=True)
        demands, supplies, denominators = map(np.concatenate, columns)
        return cls(demands, supplies, denominators, wide)

    @property
    def inner(self) -> Image:
        """Rows on which schedules may be built: supply rounded down where a row had to shrink."""
        return self._images.inner

    @property
    def outer(self) -> Image:
        """Rows on which bounds may be computed: supply rounded up, demand down."""
        return self._images.outer

    @property
    def far(self) -> frozenset[int]:
        """Jobs to be worked out by hand: their images are too coarse to be of use, or few."""
        return self._images.far

    @cached_property
    def _images(self) -> Images:
        return _images_of(self.demands, self.supplies, self.wide)

    @classmethod
    def from_fractions(
        cls,
        rows: Iterable[tuple[Fraction, Sequence[Fraction]]],
        n_blocks: int,
        job_names: Sequence[str] | None = None,
    ) -> Rows:
        """Build from one ``(demand, supply of every block)`` pair a job."""
        found = {j: reduced(*pair, _job(job_names, j)) for j, pair in enumerate(rows)}
        nothing = np.zeros((len(found), n_blocks + 2), dtype=np.int64)
        return cls(nothing[:, 0], nothing[:, 2:], nothing[:, 1], {}).with_rows(found)

    @classmethod
    def from_arrays(
        cls, demands: ArrayLike, supply: ArrayLike, job_names: Sequence[str], blocks: Sequence[str]
    ) -> Rows:
        """Build from arrays of ints, floats or exact numbers; see ``Problem.from_arrays``."""
        left, right = number_array(demands, "demands"), number_array(supply, "supply")
        n, k = left.size, len(blocks)
        if left.ndim != 1 or right.shape != (n, k):
            raise InvalidProblem(
                f"demands and supply have shapes {left.shape} and {right.shape}; expected (n,) and "
                f"({n}, {k}): a row a job of demands and a column a block"
            )
        plain = all(part.dtype.kind in "iuf" and part.dtype.itemsize <= 8 for part in (left, right))
        if plain:
            refuse_bad_numbers(left, right, job_names, blocks)
            longest = [part.max(initial=0) for part in (left, right) if part.dtype.kind == "u"]
            plain = max(longest, default=0) < 2**63
        if not plain:
            rows = (
                (
                    exact(left[j], described(job_names[j])),
                    [exact(right[j, i], described(job_names[j], blocks[i])) for i in range(k)],
                )
                for j in range(n)
            )
            return cls.from_fractions(rows, k, job_names)
        if "f" not in left.dtype.kind + right.dtype.kind:
            integers = left.astype(np.int64), right.astype(np.int64)
            return cls(*integers, np.ones(n, dtype=np.int64), {})
        found, hard = decimal_rows(left, right), {}
        for j in found.hard:
            wanted, *given = (Fraction(str(value)) for value in (left[j], *right[j]))
            hard[j] = reduced(wanted, given, _job(job_names, j))
        return cls(*found[:3], {}).with_rows(hard)


def _job(job_names: Sequence[str] | None, j: int) -> str:
    return f"job number {j}" if job_names is None else f"job {job_names[j]!r}"


def _images_of(
    demand: NDArray[np.int64], supply: NDArray[np.int64], wide: Mapping[int, Row]
) -> Images:
    """Shrink what is too large for compiled code.

    It multiplies within a row, and supply x (demand + largest supply) has to fit into 63 bits. Rows
    that are too large even without common divisors get an inner image, supply rounded down, and an
    outer one, supply rounded up and demand down. A job that needs more than 2^20 of its best block
    has only a coarse image, or none (*far* rows): it is worked out by hand, on its exact row, as
    all are that had to shrink if they are few.
    """
    if any((column > demand).any() for column in supply.T):
        supply = np.minimum(supply, demand[:, None])
    shrink = largest = np.zeros(0, dtype=np.int64)
    if _is_long(demand.max(initial=0), supply.max(initial=0)):
        largest = supply.max(axis=1, initial=0)
        shrink = np.flatnonzero(_is_long(demand, largest))
    if len(shrink):
        # Without a common divisor some are short.
        common = np.gcd(np.gcd.reduce(supply[shrink], axis=1, initial=0), demand[shrink])
        demand, supply = demand.copy(), supply.copy()
        demand[shrink] //= common
        supply[shrink] //= common[:, None]
        largest[shrink] //= common
        shrink = shrink[_is_long(demand[shrink], largest[shrink])]
    if not len(shrink) and not wide:
        image = Image(read_only(demand), read_only(supply))
        return Images(image, image, frozenset())
    everything = len(shrink) + len(wide) <= FEW
    far = shrink if everything else shrink[demand[shrink] // _FAR > largest[shrink]]
    by_hand = set(far.tolist())
    inner, outer = ((demand.copy(), supply.copy()) for _ in range(2))
    # frexp's exponents are bit lengths, or one more where a float was rounded up.
    reach = demand[shrink].astype(np.float64) + largest[shrink]
    bits = np.frexp(largest[shrink])[1] + np.frexp(reach)[1]
    shift = np.maximum(0, (bits.astype(np.int64) - _IMAGE_BITS + 1) // 2)
    inner[0][shrink] = -(-demand[shrink] >> shift)
    inner[1][shrink] = supply[shrink] >> shift[:, None]
    outer[0][shrink] = demand[shrink] >> shift
    outer[1][shrink] = -(-supply[shrink] >> shift[:, None])
    for j, row in wide.items():
        cut = [min(f, row.demand) for f in row.supply]
        divisor = gcd(row.demand, *cut) or 1
        wanted, cut = row.demand // divisor, [f // divisor for f in cut]
        most = max(cut, default=0)
        down = max(0, (most.bit_length() + (wanted + most).bit_length() - _IMAGE_BITS + 1) // 2)
        inner[0][j], inner[1][j] = _safe_inner(-(-wanted >> down), [f >> down for f in cut])
        outer[0][j], outer[1][j] = _safe_outer(wanted >> down, [-(-f >> down) for f in cut])
        if down and (everything or wanted > most * _FAR):
            by_hand.add(j)
    images = [Image(read_only(d), read_only(f)) for d, f in (inner, outer)]
    return Images(images[0], images[1], frozenset(by_hand))


def _is_long(demand: NDArray[np.int64], largest: NDArray[np.int64]) -> NDArray[np.bool_]:
    # In floats, which are at most a little too large or too small: so the limit is half of SAFE.
    return np.asarray(largest * (demand.astype(np.float64) + largest) >= SAFE / 2)


def _safe_inner(demand: int, supply: list[int]) -> tuple[int, list[int]]:
    """Leave the supply of a row out that does not fit even so: no schedule then relies on it."""
    most = max(supply, default=0)
    if most and most * (demand + most) < SAFE:
        return demand, supply
    return min(demand, 1), [0] * len(supply)


def _safe_outer(demand: int, supply: list[int]) -> tuple[int, list[int]]:
    """Cut the demand of a row that does not fit even so: a bound only gets lower."""
    return min(demand, SAFE // 2 // max([*supply, 1])), supply
