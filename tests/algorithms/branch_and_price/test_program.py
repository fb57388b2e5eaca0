"""The small programs against enumeration: no wrong cost, no false proof, limits kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.branch_and_price.options import minimal_options
from algorithms.branch_and_price.program import (
    Answer,
    Found,
    Task,
    close,
    improvements,
    schedule_of,
    shortened,
)
from algorithms.branch_and_price.rounding import Box
from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.choices import choices_of, no_choices
from algorithms.prices.jobs import Jobs
from algorithms.solvers.integer import Settings
from cms import Configuration, Job, MachineType, Problem, check
from cms.problem.rows import Row
from tests.algorithms.branch_and_price.parts import Unlimited, reduced, single
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import spread

FEW, MANY = 4, 100
NOTHING = Fraction(0)


def whole(jobs: Jobs, target: Fraction | None = None, *, outer: bool = False) -> Task:
    """Every job chooses among all the blocks that it may need."""
    boxes = []
    for kind, weight in enumerate(jobs.weights.tolist()):
        row = shortened(jobs.rows.row(kind), outer=outer)
        highs = tuple(-(-row.demand // f) if f else 0 for f in row.supply)
        boxes += [Box(kind, (0,) * len(highs), highs)] * weight
    return Task(no_choices(jobs.problem), {}, boxes, NOTHING, target, outer=outer)


def listed(jobs: Jobs, target: Fraction | None = None) -> Task:
    """Every kind chooses among all its minimal options."""
    free: dict[int, Sequence[tuple[int, ...]]] = {}
    for kind in range(len(jobs)):
        row = jobs.rows.row(kind)
        options = minimal_options([0] * len(row.supply), row.supply, row.demand, 0, 10**5)
        assert options is not None
        free[kind] = options
    return Task(no_choices(jobs.problem), free, (), NOTHING, target)


def serves(jobs: Jobs, shapes: Shapes, found: Found) -> Fraction:
    """The cost of what was found, after the package's own check of the schedule."""
    schedule = schedule_of(shapes, jobs, found)
    assert check(jobs.problem, schedule) == ()
    assert schedule.cost(jobs.problem) <= found.cost == shapes.cost(found.machines)
    return found.cost


def examine(family: str, number: int) -> bool:
    """Hold exact tasks against the optimum; False if there is nothing to decide."""
    problem = instance(family, number)
    jobs = reduced(problem)
    lost = any(not any(jobs.rows.row(kind).supply) for kind in range(len(jobs)))
    if not len(jobs) or lost:
        return False
    best, shapes, budget = optimum(problem), Shapes(jobs.problem, ()), Unlimited()
    assert shapes.complete
    for make in (whole, listed):
        task = make(jobs)
        answer = close(shapes, jobs, task, budget, nodes=200, effort=20.0)
        if best is None:
            assert (answer.status, answer.found) == ("infeasible", None)
            continue
        assert answer.found is not None
        assert serves(jobs, shapes, answer.found) == best
        if best > 0:  # at cost 0, nobody has to be asked whether it could be less
            assert (answer.status, answer.bound) == ("optimal", best)
        # A search alone proves nothing, but what it finds is a schedule.
        alone = close(shapes, jobs, task, budget, nodes=50)
        assert alone.status in ("feasible", "unknown")
        assert alone.bound is None
        if alone.found is not None:
            assert serves(jobs, shapes, alone.found) >= best
        if best > 0:
            below = make(jobs, best - shapes.step)
            assert close(shapes, jobs, below, budget, effort=20.0).status == "infeasible"
            assert close(shapes, jobs, below, budget, nodes=50).found is None
        last = list(improvements(shapes, jobs, task, budget, Settings()))
        costs = [serves(jobs, shapes, item) for item in last if isinstance(item, Found)]
        assert costs == sorted(costs, reverse=True)
        assert isinstance(last[-1], Answer)
        assert last[-1].found is not None
        assert serves(jobs, shapes, last[-1].found) == best
    return True


@pytest.mark.parametrize("family", spread(5, [f for f in FAMILIES if f != "long_numbers"]))
def test_tasks_with_everything_in_them_find_the_optimum(family: str) -> None:
    done = sum(examine(family, number) for number in range(FEW))
    assert done >= (0 if family == "infeasible_by_block" else 1)


# --- what a task asks for -------------------------------------------------------------------------


def two_ways(limit: int | None = None) -> tuple[Jobs, Shapes]:
    """Five blocks on machines of one (cost 1) or of three (cost 2)."""
    problem = Problem(
        configurations=[Configuration({"a": 1}, "one"), Configuration({"a": 3}, "three")],
        machine_types=[MachineType("one", 1), MachineType("three", 2, limit)],
        jobs=[Job("x", 5, {"a": 1})],
    )
    jobs = Jobs(problem)
    return jobs, Shapes(problem, ())


def five(**more: Any) -> Task:
    return Task(choices_of([(0, (5,), 1)], 1), {}, (), NOTHING, **{"target": None, **more})


def test_limits_usable_machines_and_the_neighbourhood_are_kept() -> None:
    budget = Unlimited()
    for limit, usable, around, expected in (
        (None, None, None, (0, 2)),  # 4, and so are two of one with one of three
        (1, None, None, (2, 1)),
        (0, None, None, (5, 0)),
        (None, [True, False], None, (5, 0)),
        (None, None, [Fraction(30), Fraction(0)], (10, 0)),
    ):
        jobs, shapes = two_ways(limit)
        answer = close(shapes, jobs, five(usable=usable, around=around), budget, effort=10.0)
        assert answer.found is not None
        assert serves(jobs, shapes, answer.found) == shapes.cost(expected)
        assert limit is None or answer.found.machines[1] <= limit
        assert usable is None or answer.found.machines[1] == 0
    jobs, shapes = two_ways(0)
    answer = close(shapes, jobs, five(usable=[False, True]), budget, effort=10.0)
    assert answer.status == "infeasible"


# --- numbers that leave the solver's range --------------------------------------------------------


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


@pytest.mark.parametrize("number", range(12))
def test_short_rows_of_long_numbers_find_schedules_and_never_prove_too_much(number: int) -> None:
    problem = instance("long_numbers", number)
    jobs = reduced(problem)
    rows = [jobs.rows.row(kind) for kind in range(len(jobs))]
    if not rows or not all(any(row.supply) for row in rows):
        return
    best, shapes, budget = optimum(problem), Shapes(jobs.problem, ()), Unlimited()
    inner = close(shapes, jobs, whole(jobs), budget, effort=20.0)
    if inner.found is not None:
        assert best is not None
        assert serves(jobs, shapes, inner.found) >= best
    long = any(row.demand > 2**40 for row in rows)
    assert inner.exact == (not long)
    outer = close(shapes, jobs, whole(jobs, outer=True), budget, effort=20.0)
    assert outer.exact
    assert outer.found is None or not long
    if outer.status == "infeasible":
        assert best is None
    elif best is not None:
        assert outer.bound is None or outer.bound <= best


@pytest.mark.parametrize("exponent", [19, 30, 400])
def test_a_program_out_of_range_is_too_large(exponent: int) -> None:
    problem = single({"a": 2}, 10**exponent, {"a": 1})
    jobs, shapes = Jobs(problem), Shapes(problem, ())
    task = Task(choices_of([(0, (10**exponent,), 1)], 1), {}, (), NOTHING, None)
    answer = close(shapes, jobs, task, Unlimited(), nodes=10, effort=1.0)
    assert answer == Answer("too large", None, exact=False)
    assert list(improvements(shapes, jobs, task, Unlimited(), Settings())) == [answer]
