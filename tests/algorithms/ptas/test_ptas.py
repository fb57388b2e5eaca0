"""The PTAS: both exact parts against enumeration, its guarantee, and faults planted in it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import algorithms.ptas
import algorithms.ptas.few_machines
from algorithms.ptas import Ptas
from algorithms.ptas.few_machines import CompactProgram, DynamicProgram, Fleet
from cms import Problem, Solution, UnsupportedProblem, check, presolve, solve
from cms.testing.checks import Observation
from instances import hard
from tests.algorithms.branch_and_price.parts import Counting, Unlimited, cases
from tests.families import FAMILIES
from tests.samples import no_round_up, so_many, spread

WAYS = (DynamicProgram, CompactProgram)


def searched(way: Any, problem: Problem, lowest: Any, highest: Any) -> list[Fraction]:
    """The costs of what a way finds between two costs; every schedule is checked."""
    reduction = presolve(problem)
    fleet = Fleet(reduction.problem)
    *found, last = way(fleet, Fraction(lowest), Fraction(highest)).run(Unlimited())
    assert last is None
    for one in found:
        assert not check(problem, reduction.restore(one))
    return [one.cost(reduction.problem) for one in found]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_a_way_finds_what_enumeration_finds(family: str, way: Any) -> None:
    for case in cases(family, so_many(6, 24)):
        step = Fleet(presolve(case.problem).problem).step
        if not step or not case.best:
            continue  # nothing to do, or nothing to pay
        for lowest in (0, case.best):
            costs = searched(way, case.problem, lowest, case.best + 3 * step)
            assert costs == sorted(costs, reverse=True), case.name
            assert costs[-1] == case.best, case.name
        # Below the optimum there is nothing.
        assert searched(way, case.problem, 0, case.best) == [], case.name


def test_a_search_ends_whenever_it_is_stopped() -> None:
    fleet = Fleet(presolve(hard.PARTITION_NO.make()).problem)
    table = DynamicProgram(fleet, Fraction(0), Fraction(9))
    whole = Counting(10**9)
    assert len(list(table.run(whole))) == 2
    for questions in range(0, whole.asked, 3):
        assert list(table.run(Counting(questions))) == []
    budget = Unlimited()
    budget.stopped = True
    assert list(CompactProgram(fleet, Fraction(0), Fraction(9)).run(budget)) == []


@pytest.mark.parametrize(
    ("limit", "value"),
    [("MAX_CELLS", 3), ("MAX_LAST", 1), ("MAX_PASSES", 1), ("MAX_WORK", 1), ("MAX_LEAVES", 1)],
)
def test_tables_that_are_too_large_are_refused(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms.ptas.few_machines, limit, value)
    with pytest.raises(UnsupportedProblem, match="tables of the dynamic program"):
        searched(DynamicProgram, hard.PARTITION_NO.make(), 0, 9)


def run(problem: Problem, **options: Any) -> Solution:
    return solve(problem, "ptas", options=options, time_limit=None, threads=1)


def watch(problem: Problem, **options: Any) -> Observation:
    """Solve a problem and note every claim."""
    return Observation(Ptas(), True, problem, options=options, time_limit=None, threads=1)


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_the_bare_algorithm_claims_one_schedule_within_the_guarantee(family: str, way: str) -> None:
    for case in cases(family, so_many(2, 4)):
        seen = watch(case.problem, plain=True, exact=way, epsilon="1/4")
        assert seen.solution is not None, case.name
        if [line.source for line in seen.solution.history] == ["trivial"]:
            continue  # nothing to do, or a proof at a glance
        (schedule,) = seen.claims
        assert case.best <= schedule.cost(case.problem) <= Fraction(5, 4) * case.best, case.name


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
def test_where_the_bound_does_not_round_up_the_exact_part_has_the_last_word(way: str) -> None:
    solution = run(no_round_up(), exact=way, epsilon="1/10")
    assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 6)
    assert (solution.lower_bound, solution.claimed_bound) == (5, 6)
    assert solution.history[-1].source.endswith(": exact part")


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
