"""Problems on size-bounded sets and lists, and small polygons point by point."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from algorithms.conic import Conic
from algorithms.conic.polygon import HalfPlane, Point, Polygon
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, Solution
from cms.solving.driver import Arguments
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
    """Tiny problems of every kind: one to three types, fractions, zeros, limits, costs, lists."""
    rng = random.Random(f"conic {number}")
    blocks = [f"b{i}" for i in range(rng.choice([1, 2, 2, 2, 3]))]
    unit = rng.choice([Fraction(1), Fraction(1, 3), Fraction("0.1")])
    jobs = {}
    for j in range(rng.randint(1, 3)):
        supply = {b: 0 if rng.random() < 0.2 else rng.randint(1, 8) for b in blocks}
        least = min((f for f in supply.values() if f), default=1)
        demand = 0 if rng.random() < 0.1 else rng.randint(1, 6 * least)
        jobs[f"j{j}"] = demand * unit, {b: f * unit for b, f in supply.items()}
    problem = of(
        {b: rng.randint(2, 9) * unit for b in blocks},
        rng.randint(6, 20) * unit,
        jobs,
        max_blocks=rng.choice([None, None, 1, 2, 3]),
        machine=MachineType(
            "machine", Fraction(rng.choice([2, 2, 3]), 2), rng.choice([None, None, None, 2, 4])
        ),
    )
    shapes = [
        Configuration({b: rng.randint(0, 3) for b in blocks} | {rng.choice(blocks): 1})
        for _ in range(rng.randint(1, 5))
    ]
    kind = rng.choice(["set", "set", "list", "both"])
    if kind != "set":
        problem = problem.replace(
            configurations=[*(problem.configurations if kind == "both" else ()), *shapes]
        )
    return problem


def polygons() -> list[Polygon]:
    """Small polygons, with and without a second row and narrower ranges."""
    rng = random.Random(5)
    found = []
    for _ in range(60):
        a, b, most = rng.randint(1, 11), rng.randint(1, 11), rng.randint(11, 70)
        rows = [HalfPlane((a, b), most)]
        if rng.random() < 0.5:
            rows.append(HalfPlane((1, 1), rng.randint(1, 8)))
        x, y = (min(rng.choice([9, 99]), *(r.most // r.normal[i] for r in rows)) for i in (0, 1))
        found.append(Polygon(tuple(rows), (x, y)))
    return found


def points_of(polygon: Polygon) -> list[Point]:
    """All integer points, one by one from their definition."""
    x, y = polygon.highest
    every = ((i, j) for i in range(x + 1) for j in range(y + 1))
    return [point for point in every if inside(polygon, point)]


def inside(polygon: Polygon, point: Point) -> bool:
    """Whether a point keeps every row and range."""
    x, y = point
    return (0 <= x <= polygon.highest[0] and 0 <= y <= polygon.highest[1]) and all(
        a * x + b * y <= most for (a, b), most in polygon.rows
    )
