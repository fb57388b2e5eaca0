"""The small programs against enumeration: what they find, what they prove, and what they do not."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.branch_and_price.program import (
    Answer,
    Found,
    Task,
    close,
    every_block,
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
from tests.families import instance
from tests.oracle import optimum
from tests.samples import so_many

FEW = so_many(4, 6)
NOTHING = Fraction(0)


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
