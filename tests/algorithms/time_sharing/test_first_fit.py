"""First fit over mixes: what it claims holds, and how it fills machines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from algorithms.time_sharing.hosting import Hosting, Saturated
from cms import Configuration, MachineType, Status, TimeSharedJob, TimeSharedProblem, check
from cms.testing.edge_problems import TIME_SHARED_EDGE_PROBLEMS
from instances.families.time_sharing import pairs, scenario_3

#: All of them, with their options for short runs.
METHODS: dict[str, dict[str, Any]] = {
    "mix_first_fit": {"orders": 20},
    "gpulet": {},
    "gpulet_sbp": {},
    "gpulet_guided": {},
}
SHARES = (40, 50, 60, 100)


@st.composite
def tiny(draw: st.DrawFn) -> TimeSharedProblem:
    """Up to four jobs of small whole numbers, in any order of size, on GPUs cut in pairs."""
    lengths = st.integers(1, 9)
    names = [f"j{j}" for j in range(draw(st.integers(1, 4)))]
    jobs = []
    for name in names:
        points = {
            f"mps:{share}": draw(st.dictionaries(st.integers(1, 6), lengths, max_size=3)).items()
            for share in SHARES
        }
        demand = draw(st.fractions(0, 5, max_denominator=4))
        jobs.append(TimeSharedJob(name, demand, draw(st.integers(3, 30)), points))
    return TimeSharedProblem(
        configurations=pairs(SHARES),
        jobs=jobs,
        rule=draw(st.sampled_from(list(cms.FrameRule))),
        max_jobs=draw(st.sampled_from([None, 1, 2, 3])),
    )


@given(tiny())
def test_every_schedule_is_valid_and_none_is_below_the_bound(problem: TimeSharedProblem) -> None:
    """The driver refuses what does not pass the check; some algorithm might offer nothing."""
    saturated = Saturated(Hosting(problem), problem.listed_configurations)
    for method, options in METHODS.items():
        solution = cms.solve(problem, method, options=options, time_limit=None)
        if saturated.unservable:
            assert solution.status is Status.INFEASIBLE
            continue
        if solution.status is Status.NO_SCHEDULE:
            assert method == "gpulet_sbp"  # a job that a whole GPU does not serve
            continue
        assert check(problem, solution.schedule) == ()
        assert solution.cost is not None
        assert solution.cost >= saturated.least_cost()


@given(tiny())
def test_without_sharing_the_plain_optimum_is_a_bound(problem: TimeSharedProblem) -> None:
    alone = TimeSharedProblem(
        configurations=problem.configurations, jobs=problem.jobs, rule=problem.rule, max_jobs=1
    )
    plain = cms.solve(problem.unshared(), threads=1)
    found = cms.solve(alone, "mix_first_fit", options={"orders": 20}, time_limit=None)
    assert (plain.cost is None) == (found.cost is None)
    if plain.cost is not None and found.cost is not None:
        assert plain.cost <= found.cost


@pytest.mark.parametrize("named", TIME_SHARED_EDGE_PROBLEMS, ids=lambda named: named.name)
def test_known_optima_are_kept_by_all_and_met_by_first_fit(named: Any) -> None:
    problem = named.make()
    for method, options in METHODS.items():
        try:
            solution = cms.solve(problem, method, options=options, time_limit=None)
        except cms.UnsupportedProblem:
            limited = any(machine.limit is not None for machine in problem.machine_types)
            assert method != "mix_first_fit" or limited
            continue
        assert (solution.status is Status.INFEASIBLE) == named.infeasible
        if solution.cost is not None:
            assert solution.cost >= named.optimum
        if method == "mix_first_fit":
            assert solution.cost == named.optimum


def test_a_start_is_only_improved_on() -> None:
    problem = scenario_3(2400)
    start = cms.solve(problem, "mix_first_fit", options={"orders": 30}).schedule
    again = cms.solve(problem, "mix_first_fit", options={"orders": 5}, start=start)
    assert again.machine_count == start.machine_count
    assert [line.source for line in again.history][-1] == "start"


def test_machines_that_one_job_fills_are_opened_at_once() -> None:
    problem = scenario_3(10**13)
    solution = cms.solve(problem, "mix_first_fit", options={"orders": 2}, time_limit=None)
    hosting, shapes = Hosting(problem), problem.listed_configurations
    bound = Saturated(hosting, shapes).least_cost()
    assert solution.cost is not None
    assert bound <= solution.cost <= bound * 2
    assert len(solution.schedule.groups) < 60


def test_a_machine_is_drawn_by_what_it_gives_for_its_cost() -> None:
    """A thousand small machines at 1 each, or one at 2: small ones are never drawn."""
    points = {"small": [(1, 1)], "large": [(1000, 1)]}
    problem = TimeSharedProblem(
        configurations=[Configuration({"small": 1}, "s"), Configuration({"large": 1}, "l")],
        jobs=[TimeSharedJob("x", 1000, 9, points)],
        machine_types=[MachineType("s", 1), MachineType("l", 2)],
    )
    assert cms.solve(problem, "mix_first_fit", options={"orders": 3}).cost == 2
