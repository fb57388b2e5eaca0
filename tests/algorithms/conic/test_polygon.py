"""The corners of a polygon's integer points, which with two contents more are all machines."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement

from algorithms.conic.polygon import HalfPlane, Point, Polygon
from tests.algorithms.conic.parts import inside, points_of, polygons


def hull(found: Iterable[Point]) -> list[Point]:
    """Andrew's monotone chain, without points on edges; counterclockwise from the least point."""
    points = sorted(found)

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


def test_corners_are_those_of_all_points() -> None:
    for polygon in polygons():
        assert polygon.list_corners() == hull(points_of(polygon)), polygon


def added(one: Iterable[Point], other: Iterable[Point]) -> set[Point]:
    return {(a + c, b + d) for a, b in one for c, d in other}


def test_machines_are_corners_and_at_most_two_others() -> None:
    """Every sum of two to five contents, by comparing the sets of sums."""
    for polygon in polygons():
        points = points_of(polygon)
        if len(points) > 60:
            continue
        every, corners = {(0, 0)}, polygon.list_corners()
        for number in range(1, 6):
            every = added(every, points)
            free = min(number, 2)
            others = {(a + c, b + d) for (a, b), (c, d) in combinations_with_replacement(points, 2)}
            found = set(points) if free == 1 else others
            for _ in range(number - free):
                found = added(found, corners)
            assert found == every, (polygon, number)


def test_a_huge_polygon_has_few_corners_and_they_are_not_outside() -> None:
    n = 10**12
    polygon = Polygon((HalfPlane((n + 1, n), n**3),), (n**3 // (n + 1), n * n))
    corners = polygon.list_corners()
    assert all(inside(polygon, corner) for corner in corners)
    assert 3 <= len(corners) < 200
    assert all(_turn(*corners[at : at + 3]) > 0 for at in range(len(corners) - 2))
