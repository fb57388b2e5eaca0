"""The PTAS as a whole: its guarantee, its two parts, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import algorithms.ptas
from algorithms.prices.vertex import rounded
from algorithms.ptas import Ptas
from cms import Problem, Schedule, Solution, SolverBound, UnsupportedProblem
from cms.solving.driver import Arguments
from cms.solving.solve import run_checked
from cms.testing.checks import Observation
from instances import hard
from tests.algorithms.branch_and_price.parts import cases
from tests.families import FAMILIES
from tests.samples import no_round_up, so_many, spread

FEW = so_many(2, 4)


def run(problem: Problem, **options: Any) -> Solution:
    """Solve a problem; the solver's word counts."""
    arguments = Arguments(options=options, time_limit=None, threads=1)
    return run_checked(Ptas(), True, problem, arguments)


def watch(problem: Problem, **options: Any) -> Observation:
    """Solve a problem and note every claim."""
    return Observation(Ptas(), True, problem, options=options, time_limit=None, threads=1)


def schedules(seen: Observation) -> list[Schedule]:
    """The schedules a run claimed."""
    return [claim for claim in seen.claims if isinstance(claim, Schedule)]


def sources(solution: Solution) -> list[str]:
    """Which parts of the run improved something."""
    return [line.source for line in solution.history]


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_the_bare_algorithm_claims_one_schedule_within_the_guarantee(family: str, way: str) -> None:
    for case in cases(family, FEW):
        seen = watch(case.problem, plain=True, exact=way, epsilon="1/4")
        assert seen.solution is not None, case.name
        if [line.source for line in seen.solution.history] == ["trivial"]:
            continue  # nothing to do, or a proof at a glance
        assert len(seen.claims) == len(schedules(seen)) == 1, case.name
        cost = schedules(seen)[0].cost(case.problem)
        assert case.best <= cost <= Fraction(5, 4) * case.best, case.name


@pytest.mark.parametrize("way", ["dynamic", "program"])
@pytest.mark.parametrize("family", ["a100", "costs", "size_bounded", "set_cover"])
def test_both_ways_find_the_optimum_and_say_so(family: str, way: str) -> None:
    word = {"dynamic": "dynamic program", "program": "CP-SAT"}[way]
    for case in cases(family, FEW):
        seen = watch(case.problem, exact=way, epsilon="1/1000000")
        assert seen.solution is not None, case.name
        assert seen.solution.status == "optimal", case.name
        assert seen.solution.cost == case.best, case.name
        for claim in seen.claims:
            if isinstance(claim, SolverBound):
                assert (claim.value, claim.solver) == (case.best, word)


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
def test_where_the_bound_does_not_round_up_the_exact_part_has_the_last_word(way: str) -> None:
    solution = run(no_round_up(), exact=way, epsilon="1/10")
    assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 6)
    assert (solution.lower_bound, solution.claimed_bound) == (5, 6)
    assert sources(solution)[-1].endswith(": exact part")


def test_where_the_numbers_are_too_large_the_error_says_what_would_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algorithms.ptas.few_machines, "MAX_CELLS", 1)
    with pytest.raises(UnsupportedProblem, match="cells .*; take a larger epsilon, or the method"):
        run(no_round_up(), exact="dynamic", epsilon="1/10")
    assert run(no_round_up(), exact="program", epsilon="1/10").cost == 6
    solution = run(no_round_up(), exact="dynamic", epsilon="1/5")
    assert (solution.cost, solution.stop_reason) == (6, "finished")
    # The bare algorithm has no other check than the theorem: 2 machines and 4 - 1 more are 5.
    two = hard.packing((44, 33, 12), 132, (2, 2, 4))
    assert run(two, exact="dynamic", epsilon="1/10").cost == 2
    with pytest.raises(UnsupportedProblem, match="take a larger epsilon"):
        run(two, exact="dynamic", epsilon=1, plain=True)


# --- planted faults -------------------------------------------------------------------------------


def breached(epsilon: str, **options: Any) -> bool:
    """Whether a problem costs more than the guarantee allows, or ends in an error."""
    for family in ("random_configurations", "a100_arbitrary", "set_cover", "sparse", "costs"):
        for case in cases(family, 8):
            seen = watch(case.problem, plain=True, epsilon=epsilon, **options)
            if seen.solution is None or seen.solution.cost is None:
                return True
            if seen.solution.cost > (1 + Fraction(epsilon)) * case.best:
                return True
    return False


def test_a_switch_that_comes_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms.ptas, "additive_loss_in_steps", lambda _: Fraction(0))
    # The exact check of the cost still holds the rounding back ...
    assert not breached("1/10")
    # ... which is the second fault that has to be made.
    monkeypatch.setattr(algorithms.ptas, "round_up", lambda bound, step: bound + 10 * step)
    assert breached("1/10")


def test_a_rounding_that_serves_too_little_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(solution: Any) -> Any:
        machines, given = rounded(solution)
        return machines, {pair: n - 1 for pair, n in given.items()}

    monkeypatch.setattr(algorithms.ptas, "rounded", short)
    assert breached("1")
