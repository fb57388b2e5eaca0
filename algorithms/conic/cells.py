"""Covers of a polygon's integer points by integral parallelograms (theory 5.1, adaptively).

A *cell* is a set of integer points given by a range of every slack. Around its points lies a
parallelogram; if that leaves the polygon, the cell is split in two at the geometric mean of the
slacks of a side that is broken.

This ends. Let the slacks of a side in a cell be between ``low`` and ``low + width``. The points
have coordinates between -2 and 2 in the parallelogram, so that a slack differs from the origin's by
at most ``4 width``; a side is never broken once ``4 width <= low``, i.e. once the cell lies
within a class of slacks ``{0}`` or ``[t, 5/4 t]``. A side that is broken has two different slacks,
and both parts of a cell that is split have points.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor, isqrt
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from .polygon import HalfPlane, Point, Polygon, cut_hull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Parallelogram(NamedTuple):
    """``{origin + sum_t mu_t edge_t : low_t <= mu_t <= high_t}`` with integers throughout.

    It may be flat: a point without edges, or a segment with one.
    """

    origin: Point
    edges: tuple[Point, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def list_vertices(self) -> list[Point]:
        """Return the vertices.

        Examples
        --------
        >>> Parallelogram((0, 0), ((2, 1), (0, 3)), (0, -1), (1, 1)).list_vertices()
        [(0, -3), (0, 3), (2, -2), (2, 4)]
        """
        x, y = self.origin
        vertices = []
        for steps in product(*zip(self.low, self.high, strict=True)):
            moves = list(zip(steps, self.edges, strict=True))
            vertices.append(
                (x + sum(s * u for s, (u, _) in moves), y + sum(s * v for s, (_, v) in moves))
            )
        return vertices

    def least_slack(self, side: HalfPlane) -> int:
        """Return the least slack of a half plane over the whole body."""
        return min(map(side.slack, self.list_vertices()))


@dataclass(frozen=True)
class Cell:
    """The integer points within half planes ``normal . z <= most``, which are given by normal.

    ``corners`` are those of the convex hull of these points, counterclockwise.
    """

    corners: tuple[Point, ...]
    sides: Mapping[Point, int]

    @classmethod
    def of(cls, polygon: Polygon) -> Cell:
        """Return the cell of all integer points of a polygon."""
        x, y = polygon.highest
        box = dict.fromkeys(((0, 0), (x, 0), (x, y), (0, y)))
        cell = cls(tuple(box), dict(polygon.sides[len(polygon.rows) :]))
        for row in polygon.rows:
            cell = cell.cut(row)
        return cell

    def cut(self, half: HalfPlane) -> Cell:
        """Return the part of the cell in a half plane.

        Examples
        --------
        >>> cell = Cell.of(Polygon((HalfPlane((4, 7), 251),), (62, 35)))
        >>> cell.cut(HalfPlane((-1, -1), -60)).corners
        ((60, 0), (62, 0), (61, 1), (57, 3))
        """
        most = min(half.most, self.sides.get(half.normal, half.most))
        sides = {**self.sides, half.normal: most}
        return Cell(
            cut_hull(self.corners, (HalfPlane(*side) for side in sides.items()), half), sides
        )

    def split(self, side: HalfPlane) -> tuple[Cell, Cell]:
        """Split at the geometric mean of a side's slacks, of which there are at least two."""
        low, high = self.slacks(side)
        at = isqrt((low + 1) * (high + 1)) - 1  # low <= at < high
        (a, b), most = side
        return self.cut(HalfPlane((-a, -b), at - most)), self.cut(HalfPlane((a, b), most - at - 1))

    def slacks(self, side: HalfPlane) -> tuple[int, int]:
        """Return the least and the largest slack of a side."""
        values = [side.slack(corner) for corner in self.corners]
        return min(values), max(values)


def cover(polygon: Polygon, stopped: Callable[[], bool] = lambda: False) -> Iterator[Parallelogram]:
    """Cover the integer points of a polygon by integral parallelograms inside it.

    ``stopped`` is asked once a cell; the cover is incomplete if it ever answers yes.

    Examples
    --------
    >>> bodies = list(cover(Polygon((HalfPlane((4, 7), 29),), (7, 4))))
    >>> len(bodies), len({vertex for body in bodies for vertex in body.list_vertices()})
    (5, 15)
    """
    waiting = [Cell.of(polygon)]
    while waiting and not stopped():
        cell = waiting.pop()
        tried = [
            (body, [side for side in polygon.sides if body.least_slack(side) < 0])
            for body in enclose(cell.corners)
        ]
        body, broken = min(tried, key=lambda pair: len(pair[1]))
        if broken:
            waiting += cell.split(max(broken, key=lambda side: _ratio(cell, side)))
        else:
            yield body


def _ratio(cell: Cell, side: HalfPlane) -> Fraction:
    low, high = cell.slacks(side)
    return Fraction(high + 1, low + 1)


def enclose(corners: Sequence[Point]) -> Iterator[Parallelogram]:
    """Yield integral parallelograms around a hull: one for each corner of a large triangle.

    No other corner makes the triangle twice as large; so by Cramer's rule the points have
    coordinates between -2 and 2, mostly -1 and 1.

    Examples
    --------
    >>> for body in enclose([(0, 0), (4, 0), (1, 1), (0, 3)]):
    ...     print(body.origin, body.edges, body.low, body.high)
    (0, 0) ((4, 0), (0, 3)) (0, 0) (1, 1)
    (4, 0) ((-4, 0), (-4, 3)) (0, 0) (1, 1)
    (0, 3) ((0, -3), (4, -3)) (0, 0) (1, 1)
    """
    if len(corners) < 3:  # a point or a segment, which stay inside
        edges = tuple(_step(corners[0], end) for end in corners[1:])
        yield Parallelogram(corners[0], edges, (0,) * len(edges), (1,) * len(edges))
        return
    triangle = list(corners[:3])
    while True:
        area = _area(triangle)
        # The t-th barycentric coordinates of all corners, times the area: the area with each of
        # them in place of the t-th.
        shares = [[_area(_swap(triangle, t, z)) for z in corners] for t in range(3)]
        swaps = ((abs(s), t, z) for t in range(3) for s, z in zip(shares[t], corners, strict=True))
        largest, t, corner = max(swaps, key=itemgetter(0))
        if largest < 2 * abs(area):
            break
        triangle = _swap(triangle, t, corner)
    ends = [sorted(Fraction(end(row), area) for end in (min, max)) for row in shares]
    for t, origin in enumerate(triangle):
        others = [other for other in range(3) if other != t]
        edges = tuple(_step(origin, triangle[other]) for other in others)
        low = tuple(floor(ends[other][0]) for other in others)
        yield Parallelogram(origin, edges, low, tuple(ceil(ends[other][1]) for other in others))


def _swap(triangle: Sequence[Point], t: int, corner: Point) -> list[Point]:
    return [*triangle[:t], corner, *triangle[t + 1 :]]


def _step(start: Point, end: Point) -> Point:
    return end[0] - start[0], end[1] - start[1]


def _area(triangle: Sequence[Point]) -> int:
    """Twice the area, > 0 if the corners are counterclockwise."""
    (a, b), (c, d), (e, f) = triangle
    return (c - a) * (f - b) - (d - b) * (e - a)
