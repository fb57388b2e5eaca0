"""The contents a machine can have: the integer points of a polytope, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.knapsack.pricing import common_denominator

if TYPE_CHECKING:
    from cms.problem.parts import SizeBoundedConfigurations

#: How many blocks of each type; also a difference of two such vectors.
Point: TypeAlias = tuple[int, ...]


def dot(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the inner product of two integer vectors.

    Examples
    --------
    >>> dot((1, 2), (3, 4))
    11
    """
    return sum(map(mul, one, other))


class HalfSpace(NamedTuple):
    """All z with ``normal . z <= most``.

    Examples
    --------
    >>> HalfSpace((4, 7), 251).slack((2, 3))
    222
    """

    normal: Point
    most: int

    def slack(self, point: Point) -> int:
        """Return how far inside a point is; negative if it is outside."""
        return self.most - dot(self.normal, point)


@dataclass(frozen=True, slots=True)
class Polytope:
    """``{z >= 0 : A z <= b}`` with integers A, b >= 0, in which every column of A has an entry > 0.

    Parameters
    ----------
    rows : tuple of Points
        The rows of A.
    right : tuple of int
        b, one number a row.

    Examples
    --------
    >>> machine = Polytope(((4, 7),), (251,))
    >>> machine.highest, machine.filled((2, 3))
    ((62, 35), (3, 34))
    """

    rows: tuple[Point, ...]
    right: tuple[int, ...]

    def __post_init__(self) -> None:
        columns = list(zip(*self.rows, strict=True))
        if not columns or not all(any(column) for column in columns):
            raise ValueError("a polytope is unbounded; every column needs an entry > 0")
        if min(self.right) < 0 or min(map(min, self.rows)) < 0:
            raise ValueError("a polytope has a negative entry; expected integers >= 0")

    @property
    def dimension(self) -> int:
        """Number of block types k."""
        return len(self.rows[0])

    @property
    def highest(self) -> Point:
        """The largest value of each coordinate."""
        return self._room((0,) * self.dimension)

    @property
    def half_spaces(self) -> tuple[HalfSpace, ...]:
        """The rows and the signs: ``A z <= b``, then ``-z_i <= 0``."""
        k = self.dimension
        signs = (HalfSpace(tuple(-(i == at) for i in range(k)), 0) for at in range(k))
        return (*map(HalfSpace, self.rows, self.right), *signs)

    def filled(self, point: Point) -> Point:
        """Add blocks until no other fits, large ones (by the first row) first.

        Constraints that ask for enough blocks hold as well with more of them.
        """
        for i in sorted(range(self.dimension), key=lambda i: -self.rows[0][i]):
            more = self._room(point)[i]
            point = (*point[:i], point[i] + more, *point[i + 1 :])
        return point

    def points(self, most: int, within: Sequence[HalfSpace] = ()) -> tuple[Point, ...] | None:
        """List all integer points, in lexicographic order.

        Parameters
        ----------
        most : int
            Give up beyond this many points of the polytope.
        within : sequence of HalfSpaces
            Return only the points in these; the others still count.

        Returns
        -------
        tuple of Points, or None if there are too many

        Examples
        --------
        >>> Polytope(((2, 3),), (4,)).points(10)
        ((0, 0), (0, 1), (1, 0), (2, 0))
        """
        found: list[Point] = []
        for number, point in enumerate(self._descend((), self.right)):
            if number >= most:
                return None
            if all(half.slack(point) >= 0 for half in within):
                found.append(point)
        return tuple(found)

    def _descend(self, start: Point, room: tuple[int, ...]) -> Iterator[Point]:
        at = len(start)
        if at == self.dimension:
            yield start
            return
        column = [row[at] for row in self.rows]
        most = min(r // a for r, a in zip(room, column, strict=True) if a)
        for count in range(most + 1):
            left = tuple(r - count * a for r, a in zip(room, column, strict=True))
            yield from self._descend((*start, count), left)

    def _room(self, point: Point) -> Point:
        """How many more of each type fit by themselves."""
        left = [most - dot(row, point) for row, most in zip(self.rows, self.right, strict=True)]
        return tuple(
            min(r // row[i] for r, row in zip(left, self.rows, strict=True) if row[i])
            for i in range(self.dimension)
        )


def contents(shape: SizeBoundedConfigurations, blocks: Sequence[str]) -> Polytope:
    """Return the polytope of what one machine can hold.

    Parameters
    ----------
    shape : SizeBoundedConfigurations
    blocks : sequence of str
        Its blocks, in the order of the coordinates.

    Examples
    --------
    >>> from cms import SizeBoundedConfigurations
    >>> shares = SizeBoundedConfigurations({"a": "0.4", "b": "0.6"}, capacity=1, max_blocks=2)
    >>> contents(shares, ["a", "b"])
    Polytope(rows=((2, 3), (1, 1)), right=(5, 2))
    """
    sizes = [shape.sizes[block] for block in blocks]
    (capacity, *whole), _ = common_denominator([shape.capacity, *sizes])
    divisor = gcd(*whole)
    rows, right = [tuple(size // divisor for size in whole)], [capacity // divisor]
    if shape.max_blocks is not None:
        rows.append((1,) * len(whole))
        right.append(shape.max_blocks)
    return Polytope(tuple(rows), tuple(right))
