"""Toys against their image in plain CMS: the same schedules cost the same."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from cms import TimeSharedProblem, algorithms, solve
from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import kinds_taken
from cms.plugin.registry import load_algorithm
from cms.referee.kinds import referee_of
from cms.testing.edge_problems import TIME_SHARED_EDGE_PROBLEMS
from tests.oracle import optimum
from tests.references.mixes import expanded, time_shared_toy
from tests.samples import few, refusal


def best_of_image(problem: TimeSharedProblem) -> Fraction | None:
    """The least cost, by the reference algorithm."""
    found = solve(expanded(problem), "cp_sat")
    assert found.status in ("optimal", "infeasible")
    return found.cost


@pytest.mark.parametrize("seed", few(4, range(400)))
def test_what_is_certain_at_first_is_true_of_the_image(seed: int) -> None:
    """Sharing never costs more than going without, nor less than the first bound says."""
    problem = time_shared_toy(random.Random(seed))
    alone = optimum(problem.unshared())
    best = best_of_image(problem)
    first = referee_of(problem).first()
    assert first.certificate.bound(problem) <= first.bound
    if first.infeasible:
        assert best is None
        assert first.certificate.proves_infeasible(problem)
    if first.schedule is not None:
        assert best == 0
    if best is not None:
        assert first.bound <= best
        assert alone is None or best <= alone
    if problem.max_jobs == 1:
        assert best == alone
    if best is None:
        assert first.infeasible or referee_of(problem).limited


@pytest.mark.parametrize("name", algorithms())
def test_an_algorithm_that_does_not_take_mixes_says_so(name: str) -> None:
    problem = TIME_SHARED_EDGE_PROBLEMS[3].make()
    (kind, *others) = kinds_taken(load_algorithm(name)[0])
    if any(issubclass(TimeSharedProblem, taken) for taken in (kind, *others)):
        return
    message = refusal(UnsupportedProblem, solve, problem, name)
    words = f"takes {kind.__name__}; this problem is of type TimeSharedProblem"
    assert message == f"method {name!r} {words}"
