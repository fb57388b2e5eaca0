"""Integer hulls in the plane, against the hull of all points one by one."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from algorithms.conic.cells import Cell, whole
from algorithms.conic.polygon import cut
from algorithms.conic.polytope import HalfSpace, Point, Polytope
from tests.samples import few


def hull(found: Iterable[Point]) -> list[Point]:
    """Andrew's monotone chain, without points on edges; counterclockwise from the least point."""
    points = sorted(found)
    if len(points) < 3:
        return points

    def half(sequence: list[Point]) -> list[Point]:
        chain: list[Point] = []
        for p in sequence:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return half(points) + half(points[::-1])


def _turn(a: Point, b: Point, c: Point) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def in_order(corners: tuple[Point, ...]) -> list[Point]:
    """The same cycle, from its least point on."""
    at = corners.index(min(corners)) if corners else 0
    return [*corners[at:], *corners[:at]]


@pytest.mark.parametrize("seed", few(25, range(400)))
def test_a_cell_cut_again_and_again_has_the_corners_of_its_points(seed: int) -> None:
    rng = random.Random(seed)
    reach = rng.choice([3, 8, 25])
    highest = rng.randint(0, reach), rng.randint(1, reach)
    cell = whole(Polytope(((1, 0), (0, 1)), highest))
    points = [(x, y) for x in range(highest[0] + 1) for y in range(highest[1] + 1)]
    for _ in range(6):
        normal = rng.randint(-9, 9), rng.randint(-9, 9)
        values = sorted(normal[0] * x + normal[1] * y for x, y in points)
        # Mostly through the points that are left, now and then past all of them.
        half = HalfSpace(normal, rng.choice(values) + rng.choice([0, 0, 0, -1, 2]))
        cell = cell.within(half)
        points = [point for point in points if half.slack(point) >= 0]
        assert in_order(cell.corners) == hull(points)
        if not points:
            return


def test_a_hull_of_a_thin_needle_is_found_without_listing_its_columns() -> None:
    # Between two lines of almost the same slope; the lattice points there are far apart.
    n = 10**12
    cell = whole(Polytope(((n + 1, n),), (n * n * n,)))
    needle = cell.within(HalfSpace((-n - 1, -n), 1 - n * n * n))
    assert all((n + 1) * x + n * y in (n**3, n**3 - 1) for x, y in needle.corners)
    assert 2 <= len(needle.corners) < 20
    assert (0, n * n) in needle.corners


def test_a_hull_has_few_corners_however_many_points() -> None:
    cell = whole(Polytope(((10**9 + 7, 998_244_353),), (10**27,)))
    assert 4 <= len(cell.corners) < 200
    assert Cell(cell.corners, cell.sides).within(HalfSpace((0, -1), 1)) == Cell(
        cell.corners, {**cell.sides, (0, -1): 0}
    )


def test_only_one_corner_stays_and_no_other_point() -> None:
    square = ((0, 0), (5, 0), (5, 5), (0, 5))
    sides = [HalfSpace(n, m) for n, m in (((-1, 0), 0), ((0, -1), 0), ((1, 0), 5), ((0, 1), 5))]
    assert cut(square, sides, HalfSpace((2, 3), 1)) == ((0, 0),)


def test_only_one_corner_stays_and_a_point_between_its_edges() -> None:
    triangle = ((0, 0), (7, 2), (2, 7))
    sides = [HalfSpace((2, -7), 0), HalfSpace((-7, 2), 0), HalfSpace((1, 1), 9)]
    assert cut(triangle, sides, HalfSpace((1, 1), 2)) == ((0, 0), (1, 1))
    assert in_order(cut(triangle, sides, HalfSpace((1, 1), 5))) == [
        (0, 0),
        (3, 1),
        (3, 2),
        (2, 3),
        (1, 3),
    ]


def test_only_one_corner_stays_and_a_point_in_the_middle_of_a_run_of_neighbours() -> None:
    # The neighbours around the corner are (6, 1), (5, 1), ..., (1, 1), (1, 2), ..., (1, 6).
    triangle = ((0, 0), (6, 1), (1, 6))
    sides = [HalfSpace((1, -6), 0), HalfSpace((-6, 1), 0), HalfSpace((1, 1), 7)]
    assert cut(triangle, sides, HalfSpace((1, 1), 4)) == ((0, 0), (3, 1), (1, 3))
    assert cut(triangle, sides, HalfSpace((1, 2), 5)) == ((0, 0), (3, 1), (1, 2))
