"""Parallelepipeds around points, and the mirror step."""

from __future__ import annotations

import random

import pytest

from algorithms.conic.parallelepiped import Parallelepiped, around
from algorithms.conic.polytope import HalfSpace, Point
from tests.algorithms.conic.parts import holds, mirror
from tests.samples import few


def random_points(rng: random.Random) -> list[Point]:
    """Points in one to four dimensions, often in a plane or on a line."""
    k, reach = rng.randint(1, 4), rng.choice([2, 9, 10**6])
    rank = rng.randint(0, k)
    edges = [[rng.randint(-3, 3) for _ in range(k)] for _ in range(rank)]
    origin = [rng.randint(-5, 5) for _ in range(k)]
    found = []
    for _ in range(rng.randint(1, 12)):
        steps = [rng.randint(-reach, reach) for _ in edges]
        found.append(
            tuple(
                origin[i] + sum(s * edge[i] for s, edge in zip(steps, edges, strict=True))
                for i in range(k)
            )
        )
    return found


@pytest.mark.parametrize("seed", few(15, range(150)))
def test_each_body_holds_all_points_at_coordinates_of_at_most_two(seed: int) -> None:
    rng = random.Random(seed)
    points = random_points(rng)
    bodies = around(points)
    assert len(bodies) == len(bodies[0].edges) + 1
    for body in bodies:
        assert all(holds(body, point) for point in points)
    assert any(
        all(-2 <= low <= high <= 2 for low, high in zip(body.low, body.high, strict=True))
        for body in bodies
    )


@pytest.mark.parametrize("seed", few(15, range(150)))
def test_the_mirror_step_stays_inside_and_keeps_the_sum(seed: int) -> None:
    rng = random.Random(f"mirror {seed}")
    k = rng.randint(1, 3)
    body = around([tuple(rng.randint(-4, 4) for _ in range(k)) for _ in range(rng.randint(2, 7))])[
        0
    ]
    vertices = body.vertices()
    low, high = (tuple(f(v[i] for v in vertices) for i in range(k)) for f in (min, max))
    points = [
        point
        for point in (
            tuple(rng.randint(a, b) for a, b in zip(low, high, strict=True)) for _ in range(60)
        )
        if holds(body, point)
    ]
    for point in [*points, *vertices]:
        vertex, other = mirror(body, point)
        assert vertex in vertices
        assert holds(body, other)
        assert tuple(a + b for a, b in zip(vertex, other, strict=True)) == tuple(
            2 * x for x in point
        )


def test_the_mirror_step_takes_the_nearer_end_of_a_box_that_is_not_centred() -> None:
    body = Parallelepiped((0,), ((1,),), (-1,), (5,))
    assert mirror(body, (1,)) == ((-1,), (3,))
    assert mirror(body, (2,)) == ((5,), (-1,))
    assert mirror(body, (3,)) == ((5,), (1,))


@pytest.mark.parametrize("seed", few(15, range(60)))
def test_the_least_slack_is_that_of_a_vertex(seed: int) -> None:
    rng = random.Random(f"slack {seed}")
    body = around(random_points(rng))[-1]
    half = HalfSpace(tuple(rng.randint(-6, 6) for _ in body.origin), rng.randint(-9, 9))
    assert body.least_slack(half) == min(half.slack(vertex) for vertex in body.vertices())
