"""Covers: every integer point in some parallelepiped inside the polytope (theory 5.1)."""

from __future__ import annotations

import random

import pytest

from algorithms.conic.cells import MOST_POINTS, Cell, cover, whole
from algorithms.conic.parallelepiped import Parallelepiped
from algorithms.conic.polytope import HalfSpace, Point, Polytope
from tests.algorithms.conic.parts import holds, inside, listed, mirror, polytopes
from tests.samples import few, spread


def corners(bodies: list[Parallelepiped]) -> set[Point]:
    return {vertex for body in bodies for vertex in body.vertices()}


@pytest.mark.parametrize("polytope", spread(16, polytopes()), ids=str)
def test_every_point_is_covered_from_inside(polytope: Polytope) -> None:
    bodies = list(cover(polytope))
    assert all(inside(polytope, vertex) for vertex in corners(bodies))
    for point in listed(polytope):
        body = next(body for body in bodies if holds(body, point))
        vertex, other = mirror(body, point)
        assert inside(polytope, vertex)
        assert inside(polytope, other)


@pytest.mark.parametrize("seed", few(10, range(40)))
def test_the_points_of_some_half_spaces_are_covered_from_inside(seed: int) -> None:
    rng = random.Random(f"near {seed}")
    polytope = rng.choice(polytopes())
    normal = tuple(-rng.randint(0, 9) for _ in range(polytope.dimension))
    points = listed(polytope)
    half = HalfSpace(
        normal, HalfSpace(normal, 0).most - HalfSpace(normal, 0).slack(rng.choice(points))
    )
    bodies = list(cover(polytope, [half]))
    assert all(inside(polytope, vertex) for vertex in corners(bodies))
    near = [point for point in points if half.slack(point) >= 0]
    assert near
    assert all(any(holds(body, point) for body in bodies) for point in near)


def test_nothing_near_needs_no_cover() -> None:
    assert list(cover(Polytope(((2, 3),), (6,)), [HalfSpace((-1, 0), -4)])) == []


def test_one_dimension_needs_its_two_ends() -> None:
    assert corners(list(cover(Polytope(((7,),), (10**15,))))) == {(0,), (10**15 // 7,)}


@pytest.mark.parametrize(
    ("sizes", "capacity", "points", "most"),
    [((4, 7), 251, 1179, 125), ((4, 3), 225, 2185, 244)],
)
def test_corners_are_fewer_than_points(sizes: Point, capacity: int, points: int, most: int) -> None:
    polytope = Polytope((sizes,), (capacity,))
    assert len(listed(polytope)) == points
    assert len(corners(list(cover(polytope)))) <= most


@pytest.mark.parametrize(
    "polytope",
    few(
        1,
        [
            Polytope(((4, 7), (1, 1)), (10**6, 200_000)),
            Polytope(((4, 7),), (10**6,)),
            Polytope(((1009, 997),), (10**7,)),
        ],
    ),
)
def test_a_million_columns_are_covered_by_a_few_thousand_corners(polytope: Polytope) -> None:
    rows, right = polytope.rows, polytope.right
    bodies = list(cover(polytope))
    assert len(corners(bodies)) < 4_000
    assert all(inside(polytope, vertex) for vertex in corners(bodies))
    rng = random.Random(1)
    highest = polytope.highest
    for _ in range(200):
        x = rng.randint(0, highest[0])
        room = min((b - row[0] * x) // row[1] for row, b in zip(rows, right, strict=True))
        if room >= 0:
            point = (x, rng.choice([room, rng.randint(0, room)]))
            assert any(holds(body, point) for body in bodies)


def test_a_cover_ends_where_it_is_stopped() -> None:
    asked = iter([False, False, True])
    polytope = Polytope(((4, 7),), (10**6,))
    assert len(list(cover(polytope, stopped=lambda: next(asked)))) <= 2


def test_too_many_points_in_space_are_refused() -> None:
    with pytest.raises(ValueError, match=f"more than {MOST_POINTS} points"):
        whole(Polytope(((1, 1, 1),), (100,)))


def test_a_split_has_both_parts_and_loses_nothing() -> None:
    polytope = Polytope(((4, 7),), (60,))
    cell = whole(polytope)
    row = polytope.half_spaces[0]
    low, high = cell.split(row)
    assert low.slacks(row)[1] < high.slacks(row)[0]
    assert (low.slacks(row)[0], high.slacks(row)[1]) == cell.slacks(row)


# --- planted faults -------------------------------------------------------------------------------


def first_part(self: Cell, row: HalfSpace) -> tuple[Cell, ...]:
    """A split that loses one of the two parts."""
    return honest_split(self, row)[:1]


honest_split = Cell.split


@pytest.mark.parametrize("fault", ["a split loses a part", "every third body is lost"])
def test_a_cover_that_loses_bodies_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    polytope = Polytope(((4, 7),), (60,))
    test_every_point_is_covered_from_inside(polytope)
    if fault == "a split loses a part":
        monkeypatch.setattr(Cell, "split", first_part)
    else:
        bodies = list(cover(polytope))
        fewer = [body for number, body in enumerate(bodies) if number % 3]
        monkeypatch.setitem(globals(), "cover", lambda _: fewer)
    with pytest.raises((AssertionError, StopIteration)):
        test_every_point_is_covered_from_inside(polytope)
