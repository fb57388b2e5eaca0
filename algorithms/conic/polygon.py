"""The contents of a machine with two block types: a polygon's integer points and their hull.

A polygon may hold 10^10 integer points; the convex hull of these has a few dozen corners, and they
are found in a number of steps that grows with the logarithm of the numbers only.

When a hull is cut by a line, the corners that stay are known. The new ones are found by walking
around, from corner to corner. Each edge is the first direction, turning left, in which a lattice
point of the polygon lies; it is found by Euclid's steps in the tree of Stern and Brocot.

Two facts are used throughout, for a convex K that contains the lattice point p.

* Let d, e be lattice vectors of determinant 1, p + d outside K and p + e in K. If p + d + e is
  outside, it is so by a constraint that p + e keeps; d then moves against this constraint, and no
  p + a d + b (d + e) with a >= 0, b >= 1 is in K. So of all directions between d and e only those
  between d + e and e are left.
* If p and p + c are in K for a lattice vector c, and any lattice point of K lies beside the line
  through them, then K has one on the very next lattice line: the triangle over the segment has a
  width of 1 - 1/h there if the point is on the h-th line, and its ends are multiples of 1/h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.knapsack.pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cms.problem.parts import SizeBoundedConfigurations

#: How many blocks of either type; also a difference of two such vectors.
Point: TypeAlias = tuple[int, int]


class HalfPlane(NamedTuple):
    """All z with ``normal . z <= most``.

    Examples
    --------
    >>> HalfPlane((4, 7), 251).slack((2, 3))
    222
    """

    normal: Point
    most: int

    def slack(self, point: Point) -> int:
        """Return how far inside a point is; negative if it is outside."""
        (a, b), (x, y) = self.normal, point
        return self.most - a * x - b * y


@dataclass(frozen=True, slots=True)
class Polygon:
    """``{z : 0 <= z <= highest, A z <= b}`` with integers A, b >= 0.

    Examples
    --------
    >>> machine = Polygon((HalfPlane((4, 7), 251),), (62, 35))
    >>> machine.fill((2, 3))
    (3, 34)
    """

    rows: tuple[HalfPlane, ...]
    highest: Point

    @property
    def sides(self) -> tuple[HalfPlane, ...]:
        """The rows, then the ranges of both coordinates."""
        x, y = self.highest
        ranges = (((1, 0), x), ((0, 1), y), ((-1, 0), 0), ((0, -1), 0))
        return (*self.rows, *(HalfPlane(*side) for side in ranges))

    def fill(self, point: Point) -> Point:
        """Add blocks until no other fits, large ones (by the first row) first.

        Constraints that ask for enough blocks hold as well with more of them.
        """
        sizes = self.rows[0].normal
        for unit in sorted(((1, 0), (0, 1)), key=lambda unit: -_dot(sizes, unit)):
            rates = ((side, _dot(side.normal, unit)) for side in self.sides)
            more = min(side.slack(point) // rate for side, rate in rates if rate > 0)
            point = point[0] + more * unit[0], point[1] + more * unit[1]
        return point


def read_polygon(
    shape: SizeBoundedConfigurations, blocks: Sequence[str], useful: Sequence[int]
) -> Polygon:
    """Return the polygon of a set's proper contents: no more blocks of a type than are useful.

    ``blocks`` are its two, in the order of the coordinates.

    Examples
    --------
    >>> from cms import SizeBoundedConfigurations
    >>> shares = SizeBoundedConfigurations({"a": "0.4", "b": "0.6"}, capacity=1, max_blocks=2)
    >>> read_polygon(shares, ["a", "b"], [9, 9])
    Polygon(rows=(HalfPlane(normal=(2, 3), most=5), HalfPlane(normal=(1, 1), most=2)), \
highest=(2, 1))
    """
    one, other = blocks
    sizes = [shape.capacity, shape.sizes[one], shape.sizes[other]]
    (capacity, a, b), _ = common_denominator(sizes)
    divisor = gcd(a, b)
    rows = [HalfPlane((a // divisor, b // divisor), capacity // divisor)]
    if shape.max_blocks is not None:
        rows.append(HalfPlane((1, 1), shape.max_blocks))
    x, y = map(min, map(shape.largest_count, blocks), useful)
    return Polygon(tuple(rows), (x, y))


def cut_hull(
    corners: Sequence[Point], sides: Iterable[HalfPlane], new: HalfPlane
) -> tuple[Point, ...]:
    """Cut an integer hull by a half plane.

    Parameters
    ----------
    corners : sequence of Points
        The corners of the convex hull of the integer points of a polygon, counterclockwise; two if
        they lie on a line, one if there is only one point.
    sides : iterable of HalfPlanes
        Half planes whose intersection is that polygon; it must be bounded.
    new : HalfPlane

    Returns
    -------
    tuple of Points
        The corners of the hull of the integer points of the polygon that are in the new half plane;
        empty if there are none.

    Examples
    --------
    >>> square = ((0, 0), (5, 0), (5, 5), (0, 5))
    >>> sides = [HalfPlane(n, m) for n, m in (((-1, 0), 0), ((0, -1), 0), ((1, 0), 5), ((0, 1), 5))]
    >>> cut_hull(square, sides, HalfPlane((4, 7), 29))
    ((0, 4), (0, 0), (5, 0), (5, 1), (2, 3))
    """
    inside = [new.slack(corner) >= 0 for corner in corners]
    if all(inside):
        return tuple(corners)
    if not any(inside):
        return ()
    number = len(corners)
    first = next(at for at in range(number) if inside[at] and not inside[at - 1])
    staying = [corners[(first + at) % number] for at in range(sum(inside))]
    before = corners[first - 1]
    after = corners[(first + len(staying)) % number]
    start, end = _towards(staying[0], before, new), _towards(staying[-1], after, new)
    # Of the old hull's border: what is left, from where it comes in to where it goes out.
    chain = [start] if start != staying[0] else []
    chain += staying
    if end != staying[-1]:
        chain.append(end)
    if number == 2:
        return tuple(dict.fromkeys((staying[0], end)))
    return _Walk([*sides, new]).around(chain, before, after, new)


class _Walk:
    """Walks around the integer points of a bounded polygon, counterclockwise."""

    def __init__(self, sides: Iterable[HalfPlane]) -> None:
        self._sides = [(*side.normal, side.most) for side in sides]

    def around(
        self, chain: list[Point], before: Point, after: Point, new: HalfPlane
    ) -> tuple[Point, ...]:
        """Complete a chain of corners to the whole hull.

        ``before`` and ``after`` are the old hull's corners next to the chain, both cut off.
        """
        corner = chain[-1]
        if len(chain) > 1:
            direction = self._turn(corner, _primitive(chain[-2], corner))
        else:
            ways = _primitive(corner, after), _primitive(corner, before)
            direction = self._lone(corner, *ways, new)
        while direction is not None:
            steps = self._range(corner, direction)[1]
            corner = corner[0] + steps * direction[0], corner[1] + steps * direction[1]
            if corner == chain[0]:
                return tuple(chain)
            chain.append(corner)
            direction = self._turn(corner, direction)
        # Nothing beside the line of the last edge: all points lie on it.
        return tuple(chain) if len(chain) == 1 else (chain[0], chain[-1])

    def _range(self, point: Point, direction: Point) -> tuple[int, int]:
        """From and to how many steps of a direction stay in the polygon; to < from if none do."""
        (x, y), (u, v) = point, direction
        least: list[int] = []
        most: list[int] = []
        for a, b, limit in self._sides:
            rate, slack = a * u + b * v, limit - a * x - b * y
            if rate > 0:
                most.append(slack // rate)
            elif rate < 0:
                least.append(-(slack // -rate))
            elif slack < 0:
                return 1, 0
        return max(least), min(most)

    def _turn(self, point: Point, along: Point) -> Point | None:
        """Find the next edge at a corner that was reached along a direction; None if all is on it.

        The point before, one step back, is in the polygon; the next one is not.
        """
        u, v = along
        s, t = _beside(along)
        _, most = span = self._range((point[0] + s, point[1] + t), along)
        if span[0] > most:
            return None
        return self._first(point, along, (s + most * u, t + most * v))

    def _first(self, point: Point, outside: Point, found: Point) -> Point:
        """Find the first direction after ``outside``, turning left, that leads to a lattice point.

        One step along ``outside`` leaves the polygon, one along ``found`` does not; their
        determinant is 1.
        """
        (x, y), d, e = point, outside, found
        while True:
            steps = self._range((x + e[0], y + e[1]), d)[1]
            e = e[0] + steps * d[0], e[1] + steps * d[1]
            least, most = self._range((x + d[0], y + d[1]), e)
            least = max(least, 1)
            if least > most:
                return e
            d = d[0] + (least - 1) * e[0], d[1] + (least - 1) * e[1]
            e = d[0] + e[0], d[1] + e[1]

    def _lone(self, point: Point, after: Point, before: Point, new: HalfPlane) -> Point | None:
        """Find the first edge at the only corner that stays, if any point stays beside it.

        All lattice points of the old hull lie between the directions ``after`` and ``before``, and
        one step along either is cut off. If any point stays, then one of the corners of the hull of
        the other points does, or a lattice point between two of these: every lattice vector in
        between is a sum of two neighbours, and the sum is cut off where both are.
        """
        room = new.slack(point)

        def cost(vector: Point) -> int:
            return _dot(new.normal, vector)

        d, f = after, _beside(after)
        steps = -(_det(f, before) // _det(d, before))
        e = f[0] + steps * d[0], f[1] + steps * d[1]
        while cost(e) > room:
            width, next_width = _det(d, before), _det(e, before)
            if not next_width:
                return None
            turn = -(-width // next_width)
            if turn > 2:
                d, e = e, (turn * e[0] - d[0], turn * e[1] - d[1])
                continue
            # A run of neighbours on a line: as many steps as the line has, or until one stays.
            u = e[0] - d[0], e[1] - d[1]
            steps = next_width // (width - next_width)
            if cost(u) < 0:
                steps = min(steps, -((cost(e) - room) // cost(u)))
            d = e[0] + (steps - 1) * u[0], e[1] + (steps - 1) * u[1]
            e = d[0] + u[0], d[1] + u[1]
        return self._first(point, d, e)


def _det(one: Point, other: Point) -> int:
    return one[0] * other[1] - one[1] * other[0]


def _primitive(start: Point, end: Point) -> Point:
    """The shortest lattice vector from one point towards another."""
    u, v = end[0] - start[0], end[1] - start[1]
    divisor = gcd(u, v)
    return u // divisor, v // divisor


def _towards(start: Point, end: Point, new: HalfPlane) -> Point:
    """The last lattice point in a half plane on the way from a point in it to one outside."""
    u, v = _primitive(start, end)
    steps = new.slack(start) // _dot(new.normal, (u, v))
    return start[0] + steps * u, start[1] + steps * v


def _beside(along: Point) -> Point:
    """A lattice vector f with det(along, f) = 1, for a primitive vector."""
    u, v = along
    if not v:
        return 0, u
    t = pow(u, -1, abs(v))
    return (u * t - 1) // v, t


def _dot(one: Point, other: Point) -> int:
    return one[0] * other[0] + one[1] * other[1]
