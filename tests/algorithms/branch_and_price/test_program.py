"""The small programs against enumeration: what they find, what they prove, and what they do not."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms.branch_and_price.program
from algorithms.branch_and_price.program import (
    Answer,
    Found,
    Task,
    close,
    every_block,
    every_option,
    improvements,
    schedule_of,
    shortened,
    solver_bound,
)
from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.choices import choices_of
from algorithms.prices.jobs import Jobs
from algorithms.prices.search import PriceSearch
from cms import PresolvedProblem, Problem, SolverBound, check, presolve
from cms.problem.row import Row
from tests.algorithms.branch_and_price.parts import Unlimited, reduced, searched, single
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import so_many, spread

FEW = so_many(4, 6)
NOTHING = Fraction(0)
FAMILIES_WITH_SCHEDULES = [name for name in FAMILIES if name != "infeasible_by_block"]


class Known:
    """A tiny problem with its optimum, reduced and priced; prices may be missing."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.best = problem, optimum(problem)
        self.reduction: PresolvedProblem = presolve(problem)
        self.jobs = Jobs(self.reduction.problem)
        self.search: PriceSearch = searched(problem, jobs=self.jobs)
        self.shapes = Shapes(self.reduction.problem, self.search.region.rows)
        self.step = problem.cost_step

    def decide(self, task: Task) -> Answer:
        return close(self.shapes, self.jobs, task, Unlimited(), effort=math.inf)

    def holds(self, found: Found) -> bool:
        schedule = self.reduction.restore(schedule_of(self.shapes, self.jobs, found))
        return check(self.problem, schedule) == () and schedule.cost(self.problem) <= found.cost


def problems(family: str) -> list[Known]:
    """Those of a family with something to decide."""
    found = []
    for number in range(FEW):
        problem = instance(family, number)
        if presolve(problem).problem.n_jobs and problem.cost_step:
            found.append(Known(problem))
    return found


@pytest.mark.parametrize("family", spread(6, FAMILIES_WITH_SCHEDULES))
def test_every_block_is_enough_to_find_the_optimum_and_nothing_below(family: str) -> None:
    for known in problems(family):
        task = every_block(known.jobs, Fraction(0), None)
        answer = known.decide(task)
        if known.best is None:
            assert answer.status == "infeasible"
            continue
        assert answer.status == "optimal"
        assert answer.found is not None
        assert known.holds(answer.found)
        assert answer.found.cost >= known.best
        if answer.exact:
            assert (answer.found.cost, answer.bound) == (known.best, known.best)
            assert solver_bound(answer, task, known.step) == SolverBound(known.best, "CP-SAT")
        outer = known.decide(every_block(known.jobs, Fraction(0), None, outer=True))
        assert outer.exact
        assert outer.bound is None or outer.bound <= known.best
        # A search alone proves nothing, but what it finds is a schedule.
        alone = close(known.shapes, known.jobs, task, Unlimited(), nodes=50)
        assert alone.status in ("feasible", "unknown")
        assert alone.bound is None
        assert alone.found is None or known.holds(alone.found)
        *found, last = improvements(known.shapes, known.jobs, task, Unlimited())
        costs = [each.cost for each in found if isinstance(each, Found) and known.holds(each)]
        assert costs == sorted(set(costs), reverse=True)
        assert len(costs) == len(found)
        assert isinstance(last, Answer)
        assert last.found is not None
        assert last.found.cost == answer.found.cost


@pytest.mark.parametrize("family", spread(5, FAMILIES_WITH_SCHEDULES))
def test_every_option_within_the_target_is_enough(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms.branch_and_price.program, "_OPTIONS_A_BLOCK", 10**6)
    decided = 0
    for known in problems(family):
        point = known.search.best
        if known.best is None or point is None:
            continue
        for above in range(2):
            target = known.best + above * known.step
            task = every_option(known.shapes, known.jobs, point, Fraction(0), target, Unlimited())
            assert task is not None
            answer = known.decide(task)
            assert (answer.status, answer.exact) == ("optimal", True)
            assert answer.found is not None
            assert answer.found.cost == known.best
            assert known.holds(answer.found)
            decided += 1
        task = every_option(
            known.shapes, known.jobs, point, Fraction(0), known.best - known.step, Unlimited()
        )
        assert task is not None
        answer = known.decide(task)
        assert answer.status == "infeasible"
        assert solver_bound(answer, task, known.step) == SolverBound(known.best, "CP-SAT")
    assert decided >= (0 if family == "infeasible_by_limit" else 2)


@pytest.mark.parametrize(
    ("answer", "target", "expected"),
    [
        (Answer("infeasible", None), None, SolverBound(None, "CP-SAT")),
        (Answer("infeasible", None), 7, SolverBound("7.5", "CP-SAT")),
        (Answer("infeasible", None, None, exact=False), 7, None),
        (Answer("unknown", None, Fraction(6)), 7, SolverBound(6, "CP-SAT")),
        (Answer("unknown", None, Fraction(9)), 7, SolverBound("7.5", "CP-SAT")),
        (Answer("unknown", None, Fraction(9)), None, SolverBound(9, "CP-SAT")),
        (Answer("unknown", None), 7, None),
    ],
)
def test_an_answer_holds_for_costs_up_to_the_target(
    answer: Answer, target: int | None, expected: SolverBound | None
) -> None:
    jobs = reduced(instance("costs", 3))
    task = every_block(jobs, Fraction(0), None if target is None else Fraction(target))
    assert solver_bound(answer, task, Fraction(1, 2)) == expected


@given(st.integers(1, 10**60), st.lists(st.integers(0, 10**61), min_size=1, max_size=4))
def test_what_serves_a_shortened_row_serves_the_job(demand: int, supply: list[int]) -> None:
    row = Row(demand, tuple(supply), 1)
    inner, outer = shortened(row), shortened(row, outer=True)
    assert inner.demand <= 2**40 or inner == row._replace(supply=inner.supply)
    rng = random.Random(demand)
    for _ in range(20):
        option = [rng.choice([0, rng.randint(0, 10), -(-demand // f) if f else 0]) for f in supply]

        def enough(given: Row, option: list[int] = option) -> bool:
            return sum(f * n for f, n in zip(given.supply, option, strict=True)) >= given.demand

        assert not enough(inner) or enough(row)
        assert not enough(row) or enough(outer)


@pytest.mark.parametrize("exponent", [25, 40, 400])
def test_a_program_out_of_range_is_too_large_and_proves_nothing(exponent: int) -> None:
    problem = single({"a": 2}, 10**exponent, {"a": 3})
    jobs, shapes = Jobs(problem), Shapes(problem, ())
    fixed = Task(choices_of([(0, (10**exponent,), 1)], 1), {}, (), NOTHING, None)
    for task in (fixed, every_block(jobs, NOTHING, None, outer=True)):
        answer = close(shapes, jobs, task, Unlimited(), nodes=10, effort=1.0)
        assert answer == Answer("too large", None, exact=False)
        assert list(improvements(shapes, jobs, task, Unlimited())) == [answer]
        assert solver_bound(answer, task, Fraction(1)) is None
    # A short row has nothing left of a supply of 3: finding nothing is no proof.
    inner = close(shapes, jobs, every_block(jobs, NOTHING, None), Unlimited(), effort=1.0)
    assert (inner.status, inner.exact) == ("infeasible", False)
