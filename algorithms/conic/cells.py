"""Covers of a polytope's integer points by integral parallelepipeds (theory 5.1, adaptively).

A *cell* is a set of integer points given by a range of every slack. Around its points lies a
parallelepiped; if that leaves the polytope, the cell is split in two at the geometric mean of the
slacks of a row that is broken.

This ends. Let the slacks of a row in a cell be between ``low`` and ``low + width``. The points have
coordinates between -2 and 2 in the parallelepiped, so that a slack differs from that of the origin
by at most ``2 D width``; a row is never broken once ``2 D width <= low``, i.e. once the cell lies
within a class of slacks ``{0}`` or ``[t, t (1 + 1/(2 D))]``. A row that is broken has two different
slacks, and both parts of a cell that is split have points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from .parallelepiped import Parallelepiped, around
from .polygon import cut
from .polytope import HalfSpace, Point, Polytope

#: Integer points that are listed in three dimensions and more. Covering so many takes seconds, and
#: gains little: of 2,978 points 1,125 are vertices, and filled up these are 235 of the 246 maximal
#: points (measured for sizes 6, 9, 10 and capacity 200; theory 5.2 found the same).
MOST_POINTS = 5_000


@dataclass(frozen=True)
class Cell:
    """The integer points of a polytope within some half spaces.

    Attributes
    ----------
    corners : tuple of Points
        Points with the same convex hull as all points of the cell: in the plane the corners of that
        hull, on a line its ends, in higher dimensions all points.
    sides : Mapping[Point, int]
        The half spaces ``normal . z <= most``, by normal.
    """

    corners: tuple[Point, ...]
    sides: Mapping[Point, int]

    def within(self, half: HalfSpace) -> Cell:
        """Return the part of the cell in a half space.

        Examples
        --------
        >>> cell = whole(Polytope(((4, 7),), (251,)))
        >>> cell.within(HalfSpace((-1, -1), -60)).corners
        ((60, 0), (62, 0), (61, 1), (57, 3))
        """
        most = min(half.most, self.sides.get(half.normal, half.most))
        sides = {**self.sides, half.normal: most}
        match len(half.normal):
            case 1:
                corners = _cut_line(self.corners, half)
            case 2:
                corners = cut(self.corners, (HalfSpace(*side) for side in self.sides.items()), half)
            case _:
                corners = tuple(point for point in self.corners if half.slack(point) >= 0)
        return Cell(corners, sides)

    def split(self, row: HalfSpace) -> tuple[Cell, Cell]:
        """Split at the geometric mean of a row's slacks, of which there are at least two.

        Examples
        --------
        >>> low, high = whole(Polytope(((1,),), (24,))).split(HalfSpace((1,), 24))
        >>> low.corners, high.corners
        (((20,), (24,)), ((0,), (19,)))
        """
        low, high = self.slacks(row)
        at = isqrt((low + 1) * (high + 1)) - 1  # low <= at < high
        opposite = tuple(-entry for entry in row.normal)
        return (
            self.within(HalfSpace(opposite, at - row.most)),
            self.within(HalfSpace(row.normal, row.most - at - 1)),
        )

    def slacks(self, row: HalfSpace) -> tuple[int, int]:
        """Return the least and the largest slack of a row."""
        values = [row.slack(corner) for corner in self.corners]
        return min(values), max(values)


def whole(polytope: Polytope, near: Sequence[HalfSpace] = ()) -> Cell:
    """Return the cell of all integer points of a polytope that are in some half spaces.

    Raises
    ------
    ValueError
        If they would have to be listed and are more than ``MOST_POINTS``.
    """
    highest, k = polytope.highest, polytope.dimension
    if k > 2:
        points = polytope.points(MOST_POINTS, near)
        if points is None:
            raise ValueError(f"a polytope in dimension {k} has more than {MOST_POINTS} points")
        return Cell(points, {})
    ends = [sorted({0, most}) for most in highest]
    if k == 1:
        corners: tuple[Point, ...] = tuple((end,) for end in ends[0])
    else:
        (left, *right), (bottom, *top) = ends
        corners = (
            (left, bottom),
            *((x, bottom) for x in right),
            *((x, y) for x in right for y in top),
            *((left, y) for y in top),
        )
    signs = {half.normal: half.most for half in polytope.half_spaces[len(polytope.rows) :]}
    ceilings = {tuple(int(i == at) for i in range(k)): most for at, most in enumerate(highest)}
    cell = Cell(corners, {**signs, **ceilings})
    for half in (*polytope.half_spaces[: len(polytope.rows)], *near):
        cell = cell.within(half)
    return cell


def cover(
    polytope: Polytope,
    near: Sequence[HalfSpace] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Parallelepiped]:
    """Cover integer points of a polytope by integral parallelepipeds inside it.

    Parameters
    ----------
    polytope : Polytope
    near : sequence of HalfSpaces, optional
        Only the points in all of these are covered; the parallelepipeds may leave them.
    stopped : callable, optional
        Asked once a cell; the cover is incomplete if it ever answers yes.

    Yields
    ------
    Parallelepiped

    Examples
    --------
    >>> bodies = list(cover(Polytope(((4, 7),), (29,))))
    >>> len(bodies), len({vertex for body in bodies for vertex in body.vertices()})
    (5, 16)
    """
    cell = whole(polytope, near)
    waiting = [cell] if cell.corners else []
    while waiting and not stopped():
        cell = waiting.pop()
        least: list[HalfSpace] | None = None
        for body in around(cell.corners):
            broken = [half for half in polytope.half_spaces if body.least_slack(half) < 0]
            if least is None or len(broken) < len(least):
                least = broken
            if not broken:
                yield body
                break
        if least:
            waiting += cell.split(max(least, key=lambda row: _ratio(cell, row)))


def _ratio(cell: Cell, row: HalfSpace) -> Fraction:
    low, high = cell.slacks(row)
    return Fraction(high + 1, low + 1)


def _cut_line(corners: Sequence[Point], half: HalfSpace) -> tuple[Point, ...]:
    """Cut the integer points of an interval."""
    if not corners:
        return ()
    (low,), (high,) = corners[0], corners[-1]
    (rate,), most = half
    if rate > 0:
        high = min(high, most // rate)
    elif rate < 0:
        low = max(low, -(most // -rate))
    elif most < 0:
        return ()
    return tuple((end,) for end in sorted({low, high})) if low <= high else ()
