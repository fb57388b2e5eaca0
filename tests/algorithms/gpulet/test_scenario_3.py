"""gpulet's third scenario on the measured table, where it is at hand, and on the made-up one."""

from __future__ import annotations

from typing import Any

import pytest

import cms
from cms import FrameRule
from instances.families import time_sharing
from tests.references import gpulet_table
from tests.samples import few

RATES = (50, 100, 300, 500, 600, 900, 1200, 2400, 5000)
#: GPUs at each rate; under either rule, and whether or not a mix has at most three jobs.
MEASURED = {
    "gpulet": (1, 1, 1, 1, 1, 2, 2, 3, 7),
    "gpulet uncut": (1, 1, 1, 1, 1, 2, 2, 3, 6),
    "gpulet_sbp": (1, 1, 1, 1, 1, 2, 2, 4, 7),
    "gpulet_guided": (2, 2, 2, 2, 2, 2, 2, 3, 7),
    "mix_first_fit": (1, 1, 1, 1, 1, 1, 2, 3, 5),
}
MADE_UP = {
    "gpulet": (1, 1, 1, 1, 1, 1, 1, 2, 4),
    "gpulet_sbp": (1, 1, 1, 1, 1, 1, 1, 2, 4),
    "gpulet_guided": (2, 2, 2, 2, 2, 2, 2, 2, 4),
    "mix_first_fit": (1, 1, 1, 1, 1, 1, 1, 2, 3),
}


def gpus(problem: cms.TimeSharedProblem, method: str) -> int | None:
    options: dict[str, Any] = {"orders": 100} if method == "mix_first_fit" else {}
    if method == "gpulet uncut":
        method, options = "gpulet", {"uncut_first": True}
    return cms.solve(problem, method, options=options, time_limit=None).machine_count


@pytest.mark.parametrize("rule", FrameRule)
@pytest.mark.parametrize("method", MEASURED)
def test_the_measured_table_gives_the_known_numbers(method: str, rule: FrameRule) -> None:
    points = gpulet_table.table()
    problems = [gpulet_table.scenario_3(points, rate, rule) for rate in RATES]
    assert tuple(gpus(problem, method) for problem in problems) == MEASURED[method]


@pytest.mark.parametrize("rule", few(1, FrameRule))
@pytest.mark.parametrize("method", MADE_UP)
def test_the_made_up_table_gives_the_known_numbers(method: str, rule: FrameRule) -> None:
    problems = [time_sharing.scenario_3(rate, rule=rule) for rate in RATES]
    assert tuple(gpus(problem, method) for problem in problems) == MADE_UP[method]
