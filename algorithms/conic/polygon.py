"""The contents of a machine with two block types: the hull of a polygon's integer points.

Its few dozen corners are found by walking around, in a number of steps that grows with the
logarithm of the numbers. Each edge is the first direction, turning left, in which a lattice point
of the polygon K lies, by Euclid's steps in the tree of Stern and Brocot. For p in K:

* Let d, e be lattice vectors of determinant 1, p + d outside K and p + e in K. If p + d + e is
  outside, it is so by a constraint that p + e keeps, and d moves against it: of all directions
  between d and e only those between d + e and e are left.
* If p and p + c are in K and any lattice point of K lies beside the line through them, then K has
  one on the very next lattice line: on the h-th line, the triangle over the segment has a width of
  1 - 1/h there, and its ends are multiples of 1/h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.knapsack.pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem.parts import SizeBoundedConfigurations

#: How many blocks of either type; also a difference of two such vectors.
Point: TypeAlias = tuple[int, int]


class HalfPlane(NamedTuple):
    """All z with ``normal . z <= most``."""

    normal: Point
    most: int


@dataclass(frozen=True, slots=True)
class Polygon:
    """``{z : 0 <= z <= highest, A z <= b}`` with integers A, b >= 0; both ranges are tight."""

    rows: tuple[HalfPlane, ...]
    highest: Point

    @property
    def sides(self) -> tuple[HalfPlane, ...]:
        """The rows, then the ranges of both coordinates."""
        x, y = self.highest
        ranges = (((1, 0), x), ((0, 1), y), ((-1, 0), 0), ((0, -1), 0))
        return (*self.rows, *(HalfPlane(*side) for side in ranges))

    def list_corners(self) -> list[Point]:
        """Return the corners of the hull of the integer points, counterclockwise from (0, 0)."""
        corner, direction = (self.highest[0], 0), (1, 0)
        corners = [(0, 0), corner]
        while corner[0]:
            direction = self._turn(corner, direction)
            steps = self._range(corner, direction)[1]
            corner = corner[0] + steps * direction[0], corner[1] + steps * direction[1]
            corners.append(corner)
        return corners

    def _range(self, point: Point, direction: Point) -> tuple[int, int]:
        """From and to how many steps of a direction stay in the polygon; to < from if none do."""
        (x, y), (u, v) = point, direction
        least: list[int] = []
        most: list[int] = []
        for (a, b), limit in self.sides:
            rate, slack = a * u + b * v, limit - a * x - b * y
            if rate > 0:
                most.append(slack // rate)
            elif rate < 0:
                least.append(-(slack // -rate))
            elif slack < 0:
                return 1, 0
        return max(least), min(most)

    def _turn(self, point: Point, along: Point) -> Point:
        """Find the next edge at a corner that was reached along a direction, and ends it."""
        (x, y), d = point, along
        s, t = _beside(along)
        most = self._range((x + s, y + t), d)[1]
        e = s + most * d[0], t + most * d[1]
        # One step along d leaves the polygon, one along e does not; their determinant is 1.
        while True:
            steps = self._range((x + e[0], y + e[1]), d)[1]
            e = e[0] + steps * d[0], e[1] + steps * d[1]
            least, most = self._range((x + d[0], y + d[1]), e)
            least = max(least, 1)
            if least > most:
                return e
            d = d[0] + (least - 1) * e[0], d[1] + (least - 1) * e[1]
            e = d[0] + e[0], d[1] + e[1]


def read_polygon(
    shape: SizeBoundedConfigurations, blocks: Sequence[str], useful: Sequence[int]
) -> Polygon:
    """Return the polygon of a set's proper contents: of both types no more than are useful."""
    one, other = blocks
    sizes = [shape.capacity, shape.sizes[one], shape.sizes[other]]
    (capacity, a, b), _ = common_denominator(sizes)
    divisor = gcd(a, b)
    rows = [HalfPlane((a // divisor, b // divisor), capacity // divisor)]
    if shape.max_blocks is not None:
        rows.append(HalfPlane((1, 1), shape.max_blocks))
    x, y = map(min, map(shape.largest_count, blocks), useful)
    return Polygon(tuple(rows), (x, y))


def _beside(along: Point) -> Point:
    """A lattice vector f with det(along, f) = 1, for a primitive vector."""
    u, v = along
    if not v:
        return 0, u
    t = pow(u, -1, abs(v))
    return (u * t - 1) // v, t
