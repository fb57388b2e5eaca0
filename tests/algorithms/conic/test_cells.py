"""Covers: every integer point in some parallelogram inside the polygon (theory 5.1)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction
from math import gcd
from typing import Any

import pytest

import algorithms.conic.cells
from algorithms.conic.cells import Cell, Parallelogram, cover
from algorithms.conic.polygon import HalfPlane, Point, Polygon, cut_hull, read_polygon
from cms import SizeBoundedConfigurations
from tests.algorithms.conic.parts import inside, points_of, polygons
from tests.samples import few, spread

# --- hulls ----------------------------------------------------------------------------------------


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
    cell = Cell.of(Polygon((), highest))
    points = [(x, y) for x in range(highest[0] + 1) for y in range(highest[1] + 1)]
    for _ in range(6):
        normal = rng.randint(-9, 9), rng.randint(-9, 9)
        values = sorted(normal[0] * x + normal[1] * y for x, y in points)
        # Mostly through the points that are left, now and then past all of them.
        half = HalfPlane(normal, rng.choice(values) + rng.choice([0, 0, 0, -1, 2]))
        cell = cell.cut(half)
        points = [point for point in points if half.slack(point) >= 0]
        assert in_order(cell.corners) == hull(points)
        if not points:
            return


def test_a_hull_of_a_thin_needle_is_found_without_listing_its_columns() -> None:
    # Between two lines of almost the same slope; the lattice points there are far apart.
    n = 10**12
    row = HalfPlane((n + 1, n), n**3)
    cell = Cell.of(Polygon((row,), (n**3 // (n + 1), n * n))).cut(HalfPlane((-n - 1, -n), 1 - n**3))
    assert all(row.slack(corner) in (0, 1) for corner in cell.corners)
    assert 2 <= len(cell.corners) < 20
    assert (0, n * n) in cell.corners


TRIANGLE = ((0, 0), (7, 2), (2, 7)), [((2, -7), 0), ((-7, 2), 0), ((1, 1), 9)]
#: The neighbours around its corner are (6, 1), (5, 1), ..., (1, 1), (1, 2), ..., (1, 6).
FLATTER = ((0, 0), (6, 1), (1, 6)), [((1, -6), 0), ((-6, 1), 0), ((1, 1), 7)]


@pytest.mark.parametrize(
    ("shape", "half", "wanted"),
    [
        (TRIANGLE, ((1, 1), 1), [(0, 0)]),
        (TRIANGLE, ((1, 1), 2), [(0, 0), (1, 1)]),
        (TRIANGLE, ((1, 1), 5), [(0, 0), (3, 1), (3, 2), (2, 3), (1, 3)]),
        (FLATTER, ((1, 1), 4), [(0, 0), (3, 1), (1, 3)]),
        (FLATTER, ((1, 2), 5), [(0, 0), (3, 1), (1, 2)]),
    ],
)
def test_a_cut_that_leaves_a_single_corner_finds_the_points_beside_it(
    shape: Any, half: Any, wanted: list[Point]
) -> None:
    corners, sides = shape
    found = cut_hull(corners, [HalfPlane(*side) for side in sides], HalfPlane(*half))
    assert in_order(found) == wanted


# --- covers ---------------------------------------------------------------------------------------


def coordinates(body: Parallelogram, point: Point) -> list[Fraction] | None:
    """A point's coordinates in a body, by Cramer's rule; None outside the affine hull."""
    x, y = point[0] - body.origin[0], point[1] - body.origin[1]
    match body.edges:
        case ():
            return None if (x, y) != (0, 0) else []
        case ((u, v),):
            mu = Fraction(x, u) if u else Fraction(y, v)
            return [mu] if (mu * u, mu * v) == (x, y) else None
        case ((a, b), (c, d)):
            return [Fraction(x * d - y * c, a * d - b * c), Fraction(a * y - b * x, a * d - b * c)]
    raise AssertionError(f"{body} has too many edges")


def holds(body: Parallelogram, point: Point) -> bool:
    """Whether a point is in a body."""
    found = coordinates(body, point)
    return found is not None and all(
        low <= mu <= high for low, mu, high in zip(body.low, found, body.high, strict=True)
    )


@pytest.mark.parametrize("polygon", spread(20, polygons()), ids=str)
def test_every_point_is_covered_from_inside(polygon: Polygon) -> None:
    bodies = list(cover(polygon))
    for body in bodies:
        vertices = body.list_vertices()
        assert all(inside(polygon, vertex) for vertex in vertices)
        for side in polygon.sides:
            assert body.least_slack(side) == min(map(side.slack, vertices))
    for point in points_of(polygon):
        body = next(body for body in bodies if holds(body, point))
        # The mirror step: twice a point is the vertex of the nearer ends and another point.
        x, y = body.origin
        for mu, low, high, (u, v) in zip(
            coordinates(body, point) or (), body.low, body.high, body.edges, strict=True
        ):
            end = high if 2 * mu >= low + high else low
            x, y = x + end * u, y + end * v
        assert (x, y) in body.list_vertices()
        assert inside(polygon, (2 * point[0] - x, 2 * point[1] - y))


@pytest.mark.parametrize(
    ("sizes", "capacity", "points", "most"),
    [((4, 7), 251, 1179, 125), ((4, 3), 225, 2185, 244), ((1009, 997), 10**7, None, 4_000)],
)
def test_corners_are_fewer_than_points(
    sizes: Point, capacity: int, points: int | None, most: int
) -> None:
    polygon = Polygon((HalfPlane(sizes, capacity),), (capacity // sizes[0], capacity // sizes[1]))
    bodies = list(cover(polygon))
    corners = {vertex for body in bodies for vertex in body.list_vertices()}
    assert points is None or len(points_of(polygon)) == points
    assert len(corners) <= most
    assert all(inside(polygon, corner) for corner in corners)
    rng = random.Random(1)
    for _ in range(100):
        x = rng.randint(0, polygon.highest[0])
        room = (capacity - sizes[0] * x) // sizes[1]
        point = (x, rng.choice([room, rng.randint(0, room)]))
        assert any(holds(body, point) for body in bodies)


def test_a_cover_ends_where_it_is_stopped() -> None:
    asked = iter([False, False, True])
    polygon = Polygon((HalfPlane((4, 7), 10**6),), (250_000, 142_857))
    assert len(list(cover(polygon, stopped=lambda: next(asked)))) <= 2


@pytest.mark.parametrize("polygon", spread(16, polygons()), ids=str)
def test_a_full_machine_holds_what_it_held_and_takes_no_more(polygon: Polygon) -> None:
    for point in points_of(polygon):
        x, y = polygon.fill(point)
        assert inside(polygon, (x, y))
        assert (x, y) >= point
        assert y >= point[1]
        assert not inside(polygon, (x + 1, y))
        assert not inside(polygon, (x, y + 1))


def test_rational_sizes_become_integers_without_a_common_divisor() -> None:
    shape = SizeBoundedConfigurations({"a": "0.6", "b": "1/5"}, capacity="1.5", max_blocks=4)
    found = read_polygon(shape, ["a", "b"], [9, 3])
    assert found == Polygon((HalfPlane((3, 1), 7), HalfPlane((1, 1), 4)), (2, 3))
    assert gcd(*found.rows[0].normal) == 1


# --- planted faults -------------------------------------------------------------------------------

_split, _enclose, _cut = Cell.split, algorithms.conic.cells.enclose, cut_hull
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a split loses a part": (Cell, "split", lambda self, side: _split(self, side)[:1]),
    "a body is a step too narrow": (
        algorithms.conic.cells,
        "enclose",
        lambda corners: [
            body._replace(high=tuple(end - 1 for end in body.high)) for body in _enclose(corners)
        ],
    ),
    "a hull loses its last corner": (
        algorithms.conic.cells,
        "cut_hull",
        lambda *cut: _cut(*cut)[:-1] or _cut(*cut),
    ),
    "what is broken is not seen": (Parallelogram, "least_slack", lambda self, side: 0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_cover_with_a_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises((AssertionError, StopIteration, IndexError)):
        test_every_point_is_covered_from_inside(Polygon((HalfPlane((4, 7), 60),), (15, 8)))
