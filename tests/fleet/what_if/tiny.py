"""Tiny fleets of services whose plans ``tests.oracle`` finds by enumeration."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cms import solve
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
from cms.fleet.serving.serving_problem import ServingProblem

A100 = "a100-80gb"
PROFILES = ("7g.80gb", "4g.40gb", "3g.40gb", "1g.10gb")


def tiny_fleet(rng: random.Random, most: int = 3) -> tuple[list[Service], list[OperatingPoint]]:
    """Up to three services of one or two models, each measured on a few instances."""
    points = []
    models = ["m", "n"][: rng.randint(1, 2)]
    for model in models:
        for profile in rng.sample(PROFILES, rng.randint(1, 3)):
            for batch in rng.sample([1, 2, 4], rng.randint(1, 2)):
                latency = rng.randint(5, 40)
                points.append(
                    OperatingPoint(model, A100, profile, 1, batch, rng.randint(20, 90), latency)
                )
    services = [
        Service(
            f"s{number}", rng.choice(models), rng.randint(20, 120), rng.choice([20, 45, 90])
        )
        for number in range(rng.randint(1, most))
    ]  # fmt: skip
    return services, points


def other(service: Service, **changes: Any) -> Service:
    return replace(service, **changes)


def planned(
    services: Sequence[Service], points: Sequence[OperatingPoint], rule: str = "plain"
) -> Plan | None:
    """The best plan; None if some service cannot be served."""
    serving: ServingProblem = build_problem(services, points, A100, rule=rule)
    solution = solve(serving.problem, time_limit=None, threads=1)
    return None if solution.cost is None else Plan(serving, solution)
