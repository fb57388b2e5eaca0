"""The reference as a whole: what its runs say and where, and the problems that once hurt."""

from __future__ import annotations

from typing import Any

import pytest

import algorithms.branch_and_price.program
import algorithms.cp_sat
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    Solution,
    check,
    load_instance,
    solve,
)
from instances.families import generate
from tests.families import instance
from tests.oracle import given
from tests.samples import few


def parts(solution: Solution) -> list[str]:
    """Which parts of the run the lines of the history come from, without the numbers of passes."""
    return [line.source.split(", ")[0] for line in solution.history]


@pytest.fixture
def no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT starts without a schedule."""
    monkeypatch.setattr(algorithms.cp_sat._Reference, "_round", lambda *_: iter(()))


# --- the parts of a run ---------------------------------------------------------------------------


def test_a_problem_whose_prices_are_met_by_rounding_needs_nothing_else() -> None:
    solution = solve(generate("real-rows", n=50, seed=1, m=5), "cp_sat", time_limit=None)
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert parts(solution) == ["cp_sat: block prices", "cp_sat: rounding"]


def test_a_bound_beyond_the_prices_is_the_solver_s_word_on_a_named_program() -> None:
    problem = generate("mixed-fleet", n=8, seed=3, types=3)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert (solution.status, solution.proof) == ("optimal", "solver")
    assert solution.claimed_bound is not None
    assert solution.lower_bound < solution.claimed_bound == solution.cost
    first, second, *more, last = parts(solution)
    assert (first, second) == ("cp_sat: block prices", "cp_sat: rounding")
    assert set(more) == {"cp_sat: all options that can matter"}
    assert last == "CP-SAT: all options that can matter"


def test_limits_that_are_too_low_are_proved_by_a_ray() -> None:
    problem = generate("mixed-fleet-infeasible", n=10, seed=1)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert (solution.status, solution.proof) == ("infeasible", "checked")
    assert parts(solution) == ["cp_sat: ray"]


@pytest.mark.usefixtures("no_rounding")
def test_without_a_first_schedule_the_compact_program_decides() -> None:
    feasible = solve(generate("arbitrary", n=5, seed=1), "cp_sat", time_limit=None)
    assert (feasible.status, feasible.proof) == ("optimal", "checked")
    assert parts(feasible)[-1] == "cp_sat: the compact program"
    lost = solve(instance("infeasible_by_limit", 4), "cp_sat", time_limit=None)
    assert (lost.status, lost.proof) == ("infeasible", "solver")
    assert parts(lost)[-1] == "CP-SAT: the compact program"


@pytest.mark.parametrize("workers", [1, 3])
def test_one_worker_tells_the_same_story_twice_and_several_have_the_same_end(workers: int) -> None:
    problem = generate("mixed-fleet", n=8, seed=3, types=3)
    stories = []
    for _ in range(2):
        solution = solve(problem, "cp_sat", options={"workers": workers}, time_limit=None)
        lines = [line._replace(seconds=0.0) for line in solution.history]
        stories.append(lines if workers == 1 else lines[-1][1:4])
    assert stories[0] == stories[1]


def test_beyond_a_number_of_jobs_only_prices_and_rounding_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = generate("mixed-fleet", n=8, seed=3, types=3)
    monkeypatch.setattr(algorithms.cp_sat, "_MOST_JOBS", 7)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert (solution.status, solution.stop_reason) == ("feasible", "finished")
    assert parts(solution) == ["cp_sat: block prices", "cp_sat: rounding"]


def test_a_set_with_too_many_contents_is_refused_with_the_reason() -> None:
    shares = SizeBoundedConfigurations({f"mps:{s}": s for s in range(1, 91)}, 100, max_blocks=48)
    job = Job("a", 300, dict.fromkeys(shares.sizes, 1))
    problem = Problem(configurations=shares, jobs=[job])
    with pytest.raises(ValueError, match="more than 20000 maximal configurations"):
        solve(problem, "cp_sat")


@pytest.mark.parametrize("method", ["cp_sat", "price_and_branch"])
@pytest.mark.parametrize("cheap", ["0.01", "1e10", "1e99"])
def test_costs_that_no_float_has_both_of_are_taken_or_refused_with_the_reason(
    method: str, cheap: str
) -> None:
    problem = Problem(
        configurations=[Configuration({"a": 1}, "m"), Configuration({"b": 1}, "n")],
        machine_types=[MachineType("m", cost=cheap), MachineType("n", cost="1e99")],
        jobs=[Job("x", 7, {"a": 1}), Job("y", 9, {"b": 2})],
    )
    if (cheap, method) == ("0.01", "cp_sat"):
        with pytest.raises(ValueError, match="10\\*\\*100 times"):
            solve(problem, method)
    else:
        solution = solve(problem, method)
        assert check(problem, solution.schedule) == ()
        assert solution.cost == 7 * problem.machine_types[0].cost + 5 * 10**99
        assert solution.proof == "checked" or cheap != "1e99"


@pytest.mark.parametrize("workers", [0, True, 1025])
def test_workers_out_of_range_are_refused(workers: Any) -> None:
    with pytest.raises(ValueError, match=f"workers is {workers}; expected a whole number from 1"):
        algorithms.cp_sat.CpSatOptions(workers)


# --- problems that once hurt ----------------------------------------------------------------------


@pytest.mark.parametrize("factor", few(1, [10**9, 10**3, 10**6]))
def test_s5_at_any_multiple_of_its_rates_is_solved_and_proved(factor: int) -> None:
    scenario: Any = load_instance("S5")
    problem = scenario.as_problem().problem
    jobs = [Job(job.name, job.demand * factor, job.demand_function) for job in problem.jobs]
    large = Problem(
        configurations=problem.configurations, jobs=jobs, machine_types=problem.machine_types
    )
    solution = solve(large, "cp_sat", time_limit=None)
    assert check(large, solution.schedule) == ()
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert len(solution.schedule.groups) <= 100


def test_numbers_of_sixteen_digits_do_not_cost_the_proof() -> None:
    """Too many options and products beyond 63 bits: the rounded programs close the gap."""
    sizes = (5, 10, 15, 20, 25, 30, 40, 50, 100)
    shares = SizeBoundedConfigurations({f"s{s}": s for s in sizes}, 100, max_blocks=48)
    jobs = [Job(f"j{n}", 100 + 17 * n, {f"s{s}": s**0.9 for s in sizes}) for n in range(12)]
    solution = solve(Problem(configurations=shares, jobs=jobs), "cp_sat", time_limit=None)
    assert (solution.status, solution.cost) == ("optimal", 28)


def test_rows_rounded_one_way_find_and_the_other_way_prove_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One unit less of a demand of thirty digits changes no option, but fits into no program."""
    short = generate("mixed-fleet", n=8, seed=3, types=3)
    jobs = [
        Job(
            job.name,
            job.demand * 10**30 - 1,
            {block: given(job, block) * 10**30 for block in short.blocks},
        )
        for job in short.jobs
    ]
    long = Problem(
        configurations=short.configurations, jobs=jobs, machine_types=short.machine_types
    )
    monkeypatch.setattr(algorithms.branch_and_price.program, "_OPTIONS_A_BLOCK", 0)
    for problem, last in ((short, "compact program"), (long, "program, rounded for proofs")):
        solution = solve(problem, "cp_sat", time_limit=None)
        assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 10)
        assert solution.history[-1].source.endswith(last)
        assert "cp_sat: the compact program" in parts(solution)


@pytest.mark.parametrize(
    ("types", "demand", "cost"),
    [
        ([MachineType("m", limit=10**19)], 2, 1),  # a limit beyond the solver's range
        ([MachineType("m"), MachineType("idle", 10**60, limit=5)], 2, 1),  # used by nobody
        ([MachineType("m")], 2 * 10**399, 10**399),  # beyond every float
    ],
)
def test_numbers_that_no_solver_holds_need_not_matter(
    types: list[MachineType], demand: int, cost: int
) -> None:
    problem = Problem(
        configurations=Configuration({"a": 1, "b": 2}, "m"),
        machine_types=types,
        jobs=[Job("x", demand, {"a": "1.5", "b": "0.25"})],
    )
    solution = solve(problem, "cp_sat", time_limit=None)
    assert (solution.status, solution.proof, solution.cost) == ("optimal", "checked", cost)
    assert check(problem, solution.schedule) == ()
