"""Integral parallelepipeds: a large one around given points, and its vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from operator import itemgetter

from .polytope import HalfSpace, Point, dot

#: Swaps that improve a simplex by less than a factor 2, for each of its corners: they make boxes
#: tighter, and without a limit nobody has proved that there are few of them.
_POLISHING = 8


@dataclass(frozen=True)
class Parallelepiped:
    """``{origin + sum_t mu_t edge_t : low_t <= mu_t <= high_t}`` with integers throughout.

    Its vertices are integer points. It may be flat: there are at most as many edges as coordinates,
    and they are linearly independent.

    Parameters
    ----------
    origin : Point
    edges : tuple of Points
    low, high : tuple of int
        One number an edge.

    Examples
    --------
    >>> body = Parallelepiped((0, 0), ((2, 1), (0, 3)), (0, -1), (1, 1))
    >>> body.vertices()
    ((0, -3), (0, 3), (2, -2), (2, 4))
    """

    origin: Point
    edges: tuple[Point, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def vertices(self) -> tuple[Point, ...]:
        """Return the vertices, each once."""
        ends = [sorted({low, high}) for low, high in zip(self.low, self.high, strict=True)]
        return tuple(self.point(corner) for corner in product(*ends))

    def point(self, steps: Sequence[int]) -> Point:
        """Return the integer point with these coordinates.

        Examples
        --------
        >>> Parallelepiped((1, 1), ((2, 1),), (0,), (3,)).point([2])
        (5, 3)
        """
        return tuple(
            start + sum(step * edge[i] for step, edge in zip(steps, self.edges, strict=True))
            for i, start in enumerate(self.origin)
        )

    def least_slack(self, half: HalfSpace) -> int:
        """Return the least slack of a half space over the whole body.

        Examples
        --------
        >>> Parallelepiped((0, 0), ((2, 1), (0, 3)), (0, -1), (1, 1)).least_slack(
        ...     HalfSpace((1, 1), 6)
        ... )
        0
        """
        slack = half.slack(self.origin)
        for edge, low, high in zip(self.edges, self.low, self.high, strict=True):
            rate = dot(half.normal, edge)
            slack -= max(low * rate, high * rate)
        return slack


class Frame:
    """Coordinates with respect to a simplex, over a common denominator.

    ``axes`` are as many of the space's coordinates as the simplex has dimensions, in which it is
    not flat.
    """

    def __init__(self, simplex: Sequence[Point], axes: Sequence[int]) -> None:
        self._origin, self._axes = simplex[0], axes
        edges = [[point[i] - simplex[0][i] for i in axes] for point in simplex[1:]]
        self._rows, self.volume = _adjugate(edges)

    def numerators(self, point: Point) -> list[int]:
        """Return the coordinates times ``volume``, which is > 0."""
        moved = [point[i] - self._origin[i] for i in self._axes]
        return [dot(moved, column) for column in self._rows]


def around(points: Sequence[Point]) -> list[Parallelepiped]:
    """Return integral parallelepipeds around points: one for each corner of a large simplex.

    The simplex is spanned by some of the points, and no other point makes it twice as large; so by
    Cramer's rule the points have coordinates between -2 and 2, mostly -1 and 1. The boxes are tight
    but for rounding to integers.

    Parameters
    ----------
    points : sequence of Points
        Not empty.

    Examples
    --------
    >>> for body in around([(0, 0), (4, 0), (0, 3), (1, 1)]):
    ...     print(body.origin, body.edges, body.low, body.high)
    (0, 0) ((4, 0), (0, 3)) (0, 0) (1, 1)
    (4, 0) ((-4, 0), (-4, 3)) (0, 0) (1, 1)
    (0, 3) ((0, -3), (4, -3)) (0, 0) (1, 1)
    """
    simplex, axes = _large_simplex(points)
    bodies = []
    for at, origin in enumerate(simplex):
        others = [*simplex[:at], *simplex[at + 1 :]]
        frame = Frame([origin, *others], axes)
        columns = list(zip(*(frame.numerators(point) for point in points), strict=True))
        edges = (tuple(a - b for a, b in zip(other, origin, strict=True)) for other in others)
        bodies.append(
            Parallelepiped(
                origin,
                tuple(edges),
                tuple(min(column) // frame.volume for column in columns),
                tuple(-(-max(column) // frame.volume) for column in columns),
            )
        )
    return bodies


def _large_simplex(points: Sequence[Point]) -> tuple[list[Point], list[int]]:
    """Find a simplex of the highest dimension that no other point makes twice as large."""
    simplex, axes = spanning(points)
    patience = _POLISHING * len(simplex)
    while True:
        frame = Frame(simplex, axes)
        # In place of corner t a point changes the volume by its coordinate, in place of the origin
        # by 1 less all of them.
        largest, corner, best = frame.volume, 0, simplex[0]
        for point in points:
            numbers = frame.numerators(point)
            for at, number in enumerate([frame.volume - sum(numbers), *numbers]):
                if abs(number) > largest:
                    largest, corner, best = abs(number), at, point
        if largest < 2 * frame.volume:
            patience -= 1
        if largest == frame.volume or patience < 0:
            return simplex, axes
        simplex[corner] = best


def spanning(points: Sequence[Point]) -> tuple[list[Point], list[int]]:
    """Choose affinely independent points, as many as there are, and axes in which they are so.

    Elimination with complete pivoting; all numbers are minors, so that the divisions are exact.
    """
    origin = points[0]
    rows = [[a - b for a, b in zip(point, origin, strict=True)] for point in points]
    chosen, axes, previous = [origin], list[int](), 1
    while True:
        size, row, axis = max(
            (
                (abs(entry), row, axis)
                for row, entries in enumerate(rows)
                for axis, entry in enumerate(entries)
            ),
            key=itemgetter(0),
        )
        if not size:
            return chosen, axes
        chosen.append(points[row])
        axes.append(axis)
        top, pivot = rows[row], rows[row][axis]
        rows = [
            [
                (pivot * entry - entries[axis] * other) // previous
                for entry, other in zip(entries, top, strict=True)
            ]
            for entries in rows
        ]
        previous = pivot


def _adjugate(edges: list[list[int]]) -> tuple[list[tuple[int, ...]], int]:
    """Return the columns of the inverse of a regular matrix times its determinant, and that, > 0.

    Examples
    --------
    >>> _adjugate([[0, 2], [3, 0]])
    ([(0, 3), (2, 0)], 6)
    """
    size = len(edges)
    rows = [
        [*map(Fraction, edge), *(Fraction(int(i == at)) for i in range(size))]
        for at, edge in enumerate(edges)
    ]
    volume = Fraction(1)
    for at in range(size):
        pivot = next(row for row in range(at, size) if rows[row][at])
        rows[at], rows[pivot] = rows[pivot], rows[at]
        volume *= rows[at][at]
        scale = rows[at][at]
        rows[at] = [entry / scale for entry in rows[at]]
        for row in range(size):
            if row != at and rows[row][at]:
                factor = rows[row][at]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[at], strict=True)]
    # The sign is that of neither: the inverse and its multiple are scaled by the same number.
    volume = abs(volume)
    columns = zip(*(row[size:] for row in rows), strict=True)
    return [tuple(int(entry * volume) for entry in column) for column in columns], int(volume)
