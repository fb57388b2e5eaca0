"""The reference as a whole: what its runs say and where, and the problems that once hurt."""

from __future__ import annotations

from typing import Any

import pytest

import algorithms.branch_and_price.program
import algorithms.cp_sat
from cms import Job, Solution, check, load_instance, solve
from cms.shortages.variants import PARTS, at_share
from instances.families import generate
from tests.families import instance
from tests.oracle import given
from tests.property.problems import rebuilt
from tests.samples import few


def parts(solution: Solution) -> list[str]:
    """Which parts of the run the lines of the history come from, without the numbers of passes."""
    return [line.source.split(", ")[0] for line in solution.history]


@pytest.fixture
def no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT starts without a schedule."""
    monkeypatch.setattr(algorithms.cp_sat._Reference, "_round", lambda *_: iter(()))


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


@pytest.mark.usefixtures("no_rounding")
def test_without_a_first_schedule_the_compact_program_decides() -> None:
    feasible = solve(generate("arbitrary", n=5, seed=1), "cp_sat", time_limit=None)
    assert (feasible.status, feasible.proof) == ("optimal", "checked")
    assert parts(feasible)[-1] == "cp_sat: the compact program"
    lost = solve(instance("infeasible_by_limit", 4), "cp_sat", time_limit=None)
    assert (lost.status, lost.proof) == ("infeasible", "solver")
    assert parts(lost)[-1] == "CP-SAT: the compact program"


def test_beyond_a_number_of_jobs_only_prices_and_rounding_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = generate("mixed-fleet", n=8, seed=3, types=3)
    monkeypatch.setattr(algorithms.cp_sat, "_MOST_JOBS", 7)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert (solution.status, solution.stop_reason) == ("feasible", "finished")
    assert parts(solution) == ["cp_sat: block prices", "cp_sat: rounding"]


@pytest.mark.parametrize("factor", few(1, [10**9, 10**3, 10**6]))
def test_s5_at_any_multiple_of_its_rates_is_solved_and_proved(factor: int) -> None:
    scenario: Any = load_instance("S5")
    problem = at_share(scenario.as_problem().problem, factor * PARTS)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert len(solution.schedule.groups) <= 100


def test_rows_rounded_one_way_find_and_the_other_way_prove_the_optimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One unit less of a demand of thirty digits changes no option, but fits into no program."""
    short = generate("mixed-fleet", n=8, seed=3, types=3)
    rows = [
        (job.demand * 10**30 - 1, {b: given(job, b) * 10**30 for b in short.blocks})
        for job in short.jobs
    ]
    long = rebuilt(short, jobs=[Job(f"j{at}", *row) for at, row in enumerate(rows)])
    monkeypatch.setattr(algorithms.branch_and_price.program, "_OPTIONS_A_BLOCK", 0)
    for problem, last in ((short, "compact program"), (long, "program, rounded for proofs")):
        solution = solve(problem, "cp_sat", time_limit=None)
        assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 10)
        assert solution.history[-1].source.endswith(last)
        assert "cp_sat: the compact program" in parts(solution)
