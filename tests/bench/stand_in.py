"""A module of generators as small as can be: what ``--families`` needs, on instances of seconds.

Every family draws the same kind of problem; only the names and the machines differ.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations
from cms.fleet import get_gpu

SHAPES = [{"l": 1}, {"m": 2}, {"m": 1, "s": 2}, {"s": 5}]


def on_a100(rows: list[tuple[int, list[int]]], cost: int = 1) -> Problem:
    """Jobs on an A100 with what 1, 2, 3, 4 and 7 slices give them."""
    card = get_gpu("a100-80gb")
    return Problem(
        configurations=card.configurations,
        jobs=[
            Job(f"j{j}", demand, dict(zip(card.base_profiles, supply, strict=True)))
            for j, (demand, supply) in enumerate(rows)
        ],
        machine_types=[MachineType(card.key, cost)],
    )


def generate(name: str, *, n: int, seed: int, **parameters: Any) -> Problem:
    """At most four different jobs, however many there are."""
    rng = random.Random(f"{name} {seed}")
    kinds = [(rng.randint(1, 40), *sorted(rng.sample(range(1, 25), 3))) for _ in range(4)]
    limit = 0 if "infeasible" in name else None
    types = [MachineType("machine", limit=limit)]
    shapes: list[Configuration | SizeBoundedConfigurations] = [Configuration(s) for s in SHAPES]
    if any(word in name for word in ("size-bounded", "stock", "shares")):
        shapes = [SizeBoundedConfigurations({"s": 1, "m": 2, "l": 5}, capacity=5)]
    jobs = []
    for j in range(n):
        demand, small, middle, large = kinds[j % len(kinds)]
        jobs.append(Job(f"j{j}", demand, {"s": small, "m": middle, "l": large}))
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)


VARIANTS: dict[str, tuple[dict[str, Any]]] = {
    "sparse": ({},),
    "arbitrary": ({},),
    "size-bounded": ({},),
}


def suite(
    instances: int, largest: int, seed: int, names: Sequence[str] = tuple(VARIANTS)
) -> Iterator[tuple[str, dict[str, Any]]]:
    mine = [name for name in VARIANTS if name in names]
    for number in range(instances):
        n = 1 + number % min(largest, 6)
        yield mine[number % len(mine)], {"n": n, "seed": 1000 * seed + number}
