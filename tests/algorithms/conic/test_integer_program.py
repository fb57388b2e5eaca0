"""The integer program on contents and slots: its value, and what prices leave out of it."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil

import pytest

import algorithms.conic.run
from algorithms.conic.run import (
    ContentProgram,
    Prepared,
    Priced,
    find_windows,
    limit_columns,
    prepare,
    price_jobs,
)
from cms import Problem
from instances import hard
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.algorithms.conic.parts import random_problem
from tests.oracle import optimum
from tests.samples import few


def best(given: Prepared, most: int | None = None, known: Priced | None = None) -> int | None:
    """How many machines the program's best schedule has, of at most so many."""
    most = given.simple if most is None else most
    windows = find_windows(given.demands, given.highest, most, known)
    least = 1 if known is None else ceil(known.bound)
    if most < least or windows is None:
        return None
    model = ContentProgram(given, windows, least, most, known)
    outcome = model.program.solve(Unlimited())
    assert outcome.status in ("optimal", "infeasible")
    return None if outcome.values is None else model.schedule(outcome.values).machine_count


def ready(problem: Problem, route: str = "cells") -> Prepared:
    answer = prepare(problem, route)
    assert isinstance(answer, Prepared)
    return answer


@pytest.mark.parametrize("seed", few(4, range(25)))
def test_the_value_falls_with_slots_to_the_optimum(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"value {seed}")
    problem = hard.packing((5, 3), 22, (rng.randint(1, 9), rng.randint(1, 9)))
    given, values = ready(problem), list[int | None]()
    assert algorithms.conic.run.SLOTS == 2
    for slots in range(3):
        monkeypatch.setattr(algorithms.conic.run, "SLOTS", slots)
        values.append(best(given))
    assert None not in values
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert values[-1] == optimum(problem)


@pytest.mark.parametrize("seed", few(20, range(200)))
def test_what_prices_leave_out_is_in_no_schedule_that_is_good_enough(seed: int) -> None:
    """At any prices, the program for the optimum as target finds it; one less, it finds nothing."""
    rng = random.Random(f"prices {seed}")
    problem, route = random_problem(seed), rng.choice(["auto", "cells"])
    given, value = prepare(problem, route), optimum(problem)
    if not value or not isinstance(given, Prepared):
        return
    least = int(value / problem.machine_types[0].cost)
    raw = [Fraction(rng.randint(5, 15), max(1, most)) for most in given.highest]
    worth = max(sum(p * n for p, n in zip(raw, content, strict=True)) for content in given.contents)
    known = price_jobs(given.demands, [price / worth for price in raw])
    assert known.bound <= least
    assert best(given, least, known) == least
    if least - 1 >= known.bound:
        assert best(given, least - 1, known) is None


def test_prices_limit_how_often_a_content_that_is_worth_little_is_used() -> None:
    contents, known = ((2,), (1,)), Priced((Fraction(1, 2),), (), Fraction(7, 2))
    assert limit_columns(contents, 5, known) == {(2,): 5, (1,): 3}
    assert limit_columns(contents, 4, known) == {(2,): 4, (1,): 1}
    assert limit_columns(contents, 4, known._replace(bound=Fraction(4))) == {(2,): 4}
    assert limit_columns(contents, 4, None) == {(2,): 4, (1,): 4}
