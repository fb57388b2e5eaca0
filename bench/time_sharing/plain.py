"""Figures 4 and 5: what sharing is beside plain CMS."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from bench.expected import Line
from cms import Solution, solve
from cms.fleet.serving import build_problem
from instances import published
from proofs_checks.shared import drawn
from proofs_checks.time_sharing import linear_bounds

from .asked import Asked, listed, wrong_ones

#: Of each scenario at most 3 processes an instance, by a tenth of which limits are tighter.
OPTIMA = {
    0: {"S1": 2, "S2": 3, "S3": 5, "S4": 7, "S5": 12, "S6": 15},
    1: {"S1": 2, "S2": 3, "S3": 5, "S4": 7, "S5": 12, "S6": 16},
}


def both_ways(name: str, tenths: int) -> tuple[Solution, Solution]:
    """Solve a published scenario by the rule ``half``, and shared by one service an instance."""
    scenario, factor = published.scenario(name), 1 - Fraction(tenths, 10)
    services = [
        replace(each, latency_limit_ms=(each.latency_limit_ms or 0) * factor)
        for each in scenario.services
    ]
    points, gpus = scenario.operating_points, scenario.gpus
    plain = build_problem(services, points, gpus, rule="half", max_processes=3)
    mixed = build_problem(services, points, gpus, sharing="time", max_services=1, max_processes=3)
    return solve(plain.problem), solve(mixed.problem)


def one_service(_: Asked) -> Iterator[Line]:
    """Figure 4: with one service an instance it is plain CMS."""
    for tenths, optima in OPTIMA.items():
        found, alike = [], True
        for name in optima:
            plain, mixed = both_ways(name, tenths)
            found.append(mixed.machine_count)
            alike &= (
                plain.machine_count == mixed.machine_count
                and plain.lower_bound == mixed.lower_bound
                and plain.certificate == mixed.certificate
                and mixed.proof == "checked"
            )
        limits = f", limits x 0.{10 - tenths}" if tenths else ""
        yield Line(
            "4", f"one service an instance, {listed(optima)}{limits}: GPUs, and all as plain CMS",
            f"{listed(optima.values())}; bound, count, certificate alike",
            f"{listed(found)}; {'alike' if alike else 'not alike'}",
            alike and found == [*optima.values()],
        )  # fmt: skip


def linear(asked: Asked) -> Iterator[Line]:
    """Figure 5: the linear bound without truncation, and how far from it the optimum can be."""

    def check(seed: int) -> None:
        rng = random.Random(f"linear bounds {seed}")
        linear_bounds(drawn(rng), rng)

    cases = asked.cases(500)
    wrong = wrong_ones(cases, check)
    yield Line(
        "5", f"{len(cases)} tiny problems: LP_0 with sharing as without, OPT <= ceil(LP_0) + n - 1",
        "0 otherwise", "; ".join([f"{len(wrong)} otherwise", *wrong[:3]]), not wrong,
    )  # fmt: skip
