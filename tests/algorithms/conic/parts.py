"""Problems on size-bounded sets, and their optimum by a program over all maximal contents."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from algorithms.conic import Conic
from algorithms.conic.parallelepiped import Frame, Parallelepiped, spanning
from algorithms.conic.polytope import Point, Polytope
from cms import Job, MachineType, Problem, SizeBoundedConfigurations, Solution
from cms.solving.arguments import Arguments
from cms.solving.solve import run_checked


def solved(problem: Problem, *, start: Any = None, **options: Any) -> Solution:
    """Solve as if by name: the solver's word is accepted."""
    arguments = Arguments(options=options, time_limit=None, threads=1, start=start)
    return run_checked(Conic(), True, problem, arguments)


def of(
    sizes: Mapping[str, Any],
    capacity: Any,
    jobs: Mapping[str, tuple[Any, Mapping[str, Any]]],
    *,
    max_blocks: int | None = None,
    machine: MachineType | None = None,
) -> Problem:
    """A problem on one size-bounded set."""
    return Problem(
        configurations=SizeBoundedConfigurations(sizes, capacity, max_blocks=max_blocks),
        jobs=[Job(name, demand, supply) for name, (demand, supply) in jobs.items()],
        machine_types=[machine or MachineType("machine")],
    )


def random_problem(number: int) -> Problem:
    """Tiny problems of every kind: one to three types, fractions, zeros, limits, costs."""
    rng = random.Random(f"conic {number}")
    blocks = [f"b{i}" for i in range(rng.choice([1, 2, 2, 2, 3]))]
    unit = rng.choice([Fraction(1), Fraction(1, 3), Fraction("0.1")])
    jobs = {}
    for j in range(rng.randint(1, 3)):
        supply = {b: 0 if rng.random() < 0.2 else rng.randint(1, 8) for b in blocks}
        least = min((f for f in supply.values() if f), default=1)
        demand = 0 if rng.random() < 0.1 else rng.randint(1, 6 * least)
        jobs[f"j{j}"] = demand * unit, {b: f * unit for b, f in supply.items()}
    return of(
        {b: rng.randint(2, 9) * unit for b in blocks},
        rng.randint(6, 20) * unit,
        jobs,
        max_blocks=rng.choice([None, None, 1, 2, 3]),
        machine=MachineType(
            "machine", Fraction(rng.choice([2, 2, 3]), 2), rng.choice([None, None, None, 2, 4])
        ),
    )


def polytopes() -> list[Polytope]:
    """Small polytopes in one, two and three dimensions, with and without a second row."""
    rng = random.Random(5)
    found = []
    for k, most, number in ((1, 60, 10), (2, 70, 40), (3, 24, 15)):
        for _ in range(number):
            sizes = tuple(rng.randint(1 if k < 3 else 3, 11) for _ in range(k))
            rows, right = [sizes], [rng.randint(0, most)]
            if rng.random() < 0.5:
                rows.append((1,) * k)
                right.append(rng.randint(1, 8))
            found.append(Polytope(tuple(rows), tuple(right)))
    return found


def listed(polytope: Polytope) -> list[Point]:
    """All integer points, one by one from their definition."""
    ranges = (range(most + 1) for most in polytope.highest)
    return [point for point in itertools.product(*ranges) if inside(polytope, point)]


def inside(polytope: Polytope, point: Sequence[int]) -> bool:
    return min(point) >= 0 and all(
        sum(a * x for a, x in zip(row, point, strict=True)) <= most
        for row, most in zip(polytope.rows, polytope.right, strict=True)
    )


@cache
def _frame(body: Parallelepiped) -> Frame:
    moved = [tuple(a + b for a, b in zip(body.origin, edge, strict=True)) for edge in body.edges]
    simplex, axes = spanning([body.origin, *moved])
    assert len(simplex) == len(moved) + 1, f"the edges of {body} are linearly dependent"
    return Frame([body.origin, *moved], axes)


def coordinates(body: Parallelepiped, point: Point) -> list[Fraction] | None:
    """A point's coordinates in a body; None outside the affine hull."""
    frame = _frame(body)
    found = [Fraction(number, frame.volume) for number in frame.numerators(point)]
    moved = (
        start + sum(mu * edge[i] for mu, edge in zip(found, body.edges, strict=True))
        for i, start in enumerate(body.origin)
    )
    return found if all(a == b for a, b in zip(moved, point, strict=True)) else None


def holds(body: Parallelepiped, point: Point) -> bool:
    """Whether a point is in a body."""
    found = coordinates(body, point)
    return found is not None and all(
        low <= mu <= high for low, mu, high in zip(body.low, found, body.high, strict=True)
    )


def mirror(body: Parallelepiped, point: Point) -> tuple[Point, Point]:
    """Write twice a point of a body as the sum of a vertex and another point (theory 5.1).

    The vertex v takes the nearer end in every coordinate: for mu >= (low + high) / 2 it is high,
    and 2 mu - high is between low and high again.
    """
    assert holds(body, point), f"the point {point} is not in {body}"
    ends = [
        high if 2 * mu >= low + high else low
        for mu, low, high in zip(coordinates(body, point) or (), body.low, body.high, strict=True)
    ]
    vertex = body.point(ends)
    return vertex, tuple(2 * x - v for x, v in zip(point, vertex, strict=True))
