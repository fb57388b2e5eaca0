"""Problems beside the user's: the same schedules where they should be, other ones where not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, check, solve
from cms.schedule.schedule import MachineGroup, Schedule
from cms.shortages.variants import (
    PARTS,
    at_share,
    beyond_limits,
    extended,
    unservable_jobs,
    without_unservable_jobs,
)

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
    assert unservable_jobs(problem) == {"lost": (), "big": ("giant", "titan")}
    rest = without_unservable_jobs(problem)
    assert list(rest.job_names) == ["wide", "fine", "nothing", "idle"]
    assert [job.demand for job in rest.jobs] == [HUGE, 1, 0, 0]
    assert without_unservable_jobs(rest) is rest
    everywhere = rest.replace(machine_types=[MachineType("m"), MachineType("none")])
    assert solve(everywhere).cost is not None


def fleet() -> Problem:
    return Problem(
        configurations=[
            Configuration({"a": 1}, "few"),
            SizeBoundedConfigurations({"a": 2, "b": 3}, 5, "few", max_blocks=2),
            Configuration({"b": 1}, "more few"),
            Configuration({"b": 2}, "any"),
        ],
        jobs=[Job("x", 3, {"a": 1, "b": 1})],
        machine_types=[
            MachineType("few", "2.5", 1), MachineType("more few", 7, 0), MachineType("any", 0),
        ],
    )  # fmt: skip


def test_an_extended_problem_counts_machines_beyond_the_limits() -> None:
    larger = extended(fleet())
    costs = {
        machine.name: (machine.cost, machine.limit) for machine in larger.problem.machine_types
    }
    assert costs == {
        "few": (0, 1), "more few": (0, 0), "any": (0, None),
        "more few'": (1, None), "more more few": (1, None),
    }  # fmt: skip
    assert larger.origin == {"more few'": "few", "more more few": "more few"}
    shapes = [str(shape) for shape in larger.problem.configurations if "more" in str(shape.machine)]
    assert len(shapes) == 4
    schedule = Schedule([MachineGroup(Configuration({"a": 1}, "more few'"), {("a", "x"): 1}, 3)])
    assert check(larger.problem, schedule) == ()
    back = larger.restore(schedule)
    assert back.machines == {Configuration({"a": 1}, "few"): 3}
    assert beyond_limits(fleet(), back) == {"few": 2}
    assert beyond_limits(fleet(), Schedule()) == {}
