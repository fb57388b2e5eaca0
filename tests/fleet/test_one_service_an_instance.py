"""With one service an instance, time sharing is the plain plan of the rule ``half``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from cms import Proof, solve
from cms.fleet.serving import as_problem
from instances import published
from tests.samples import few

OPTIMA = {"S1": (2, 2), "S2": (3, 3), "S3": (5, 5), "S4": (7, 7), "S5": (12, 12), "S6": (15, 16)}


@pytest.mark.parametrize("name", few(2, OPTIMA))
@pytest.mark.parametrize("tighter", few(1, [1, 0]))
def test_one_service_an_instance_takes_as_many_gpus_as_plain(name: str, tighter: int) -> None:
    scenario, factor = published.scenario(name), 1 - Fraction(tighter, 10)
    services = [
        replace(each, latency_limit_ms=(each.latency_limit_ms or 0) * factor)
        for each in scenario.services
    ]
    points, gpus = scenario.operating_points, scenario.gpus
    plain = as_problem(services, points, gpus, rule="half", max_processes=3)
    mixed = as_problem(services, points, gpus, sharing="time", max_services=1, max_processes=3)
    for problem in (plain.problem, mixed.problem):
        found = solve(problem, method="auto")
        assert (found.machine_count, found.lower_bound) == (OPTIMA[name][tighter],) * 2
        assert found.proof is Proof.CHECKED
        assert type(found.certificate).__name__ == "BlockPrices"
