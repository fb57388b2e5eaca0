"""Problems beside the user's: the same schedules where they should be, other ones where not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, solve
from cms.infeasibility.variants import PARTS, at_share, without_unservable_jobs

HUGE = 10**30


def exactly_at(problem: Problem, parts: int) -> Problem:
    """The demands times the share, as fractions: what ``at_share`` must be equivalent to."""
    jobs = [
        Job(job.name, job.demand * Fraction(parts, PARTS), job.demand_function)
        for job in problem.jobs
    ]
    return Problem(
        configurations=problem.configurations, jobs=jobs, machine_types=problem.machine_types
    )


@pytest.mark.parametrize("demand", [7, 2**62 + 1, 2**63 - 1, HUGE, Fraction(1, 3), "0.1"])
@pytest.mark.parametrize("parts", [0, 1, 333, 999, 1000, 2**52 + 1, 2**61 + 1, 2**63, 1000 << 60])
def test_a_share_is_the_least_demand_that_a_row_can_ask_for(demand: int, parts: int) -> None:
    problem = Problem(configurations=Configuration({"b": 1}), jobs=[Job("x", demand, {"b": "0.7"})])
    lowered = at_share(problem, parts).rows
    exact = problem.rows.demand(0) * Fraction(parts, PARTS)
    unit = Fraction(1, problem.rows.row(0).denominator)
    assert exact <= lowered.demand(0) < exact + unit
    assert lowered.supply(0, 0) == Fraction(7, 10)
    assert (lowered.demand(0) / unit).denominator == 1


def test_jobs_that_no_machine_serves_are_found_with_the_blocks_they_would_need() -> None:
    problem = Problem(
        configurations=[
            SizeBoundedConfigurations({"giant": 3, "titan": 4, "small": 1}, 2, "m"),
            Configuration({"a": 1}, "none"),
        ],
        jobs=[
            Job("lost", 1, {}),
            Job("big", HUGE, {"giant": HUGE, "titan": 1}),
            Job("wide", HUGE, {"a": Fraction(1, 3)}),
            Job("fine", 1, {"giant": 5, "small": 1}),
            Job("nothing", 0, {}),
            Job("idle", 0, {"giant": HUGE}),
        ],
        machine_types=[MachineType("m"), MachineType("none", limit=0)],
    )
    rest, lost = without_unservable_jobs(problem)
    assert lost == {"lost": (), "big": ("giant", "titan")}
    assert list(rest.job_names) == ["wide", "fine", "nothing", "idle"]
    assert [job.demand for job in rest.jobs] == [HUGE, 1, 0, 0]
    assert without_unservable_jobs(rest)[0] is rest
    everywhere = rest.replace(machine_types=[MachineType("m"), MachineType("none")])
    assert solve(everywhere).cost is not None
