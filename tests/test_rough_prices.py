"""A schedule without a bound gets one by rough prices: cheap, certified, never beside a better."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction

import pytest

from cms.certificate.certificate import BlockPrices
from cms.plugin.algorithm import Budget, Claim, SolverBound
from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem
from cms.running.stopping import Stopped
from cms.solving.rough_prices import rough_prices
from cms.solving.solution import Status, StopReason
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import spread
from tests.scripted import QUARTER, blocks, serving, solved, told


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_rough_prices_hold_and_prove_no_more_than_the_optimum(family: str) -> None:
    for number in range(5):
        problem = instance(family, number)
        best = optimum(problem)
        for prices in rough_prices(problem):
            assert best is None or 0 <= prices.bound(problem) <= best


def test_a_schedule_without_a_bound_or_a_solvers_word_gets_one() -> None:
    for claims in ([serving(8, 5), QUARTER], [serving(8, 5), SolverBound(3, "oracle")]):
        solution = told(blocks(8), claims, trusted=True)
        assert "rough prices" not in [line.source for line in solution.history]
    assert told(blocks(8), []).lower_bound == 0, "there is no schedule to judge"
    solution = told(blocks(8), [serving(8, 5)])
    assert (solution.status, solution.cost, solution.lower_bound) == (Status.FEASIBLE, 5, 4)
    assert solution.stop_reason is StopReason.FINISHED
    proved = told(blocks(8), [serving(8, 4)])
    assert (proved.status, proved.stop_reason) == (Status.OPTIMAL, StopReason.PROVED)


def test_demands_beyond_any_float_and_machines_that_cost_nothing_are_priced() -> None:
    huge = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", "1e400", {"b": 1})])
    assert rough_prices(huge) == (BlockPrices({"b": "1/2"}),) * 2
    free = Problem(
        configurations=[Configuration({"a": 1}, "free"), Configuration({"a": 1, "b": 1}, "paid")],
        jobs=[Job("x", 3, {"a": 1}), Job("y", 4, {"b": 2})],
        machine_types=[MachineType("free", cost=0, limit=1), MachineType("paid", cost=3)],
    )
    for prices in rough_prices(free):
        assert prices.prices == {"b": Fraction(3)}
        assert prices.bound(free) == 6
    useless = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 1, {})])
    assert rough_prices(useless) == (BlockPrices(),) * 2


def test_rough_prices_are_given_up_when_the_time_is_over() -> None:
    with pytest.raises(Stopped):
        rough_prices(blocks(8), lambda: True)
    shapes = [Configuration({"b": n + 1}) for n in range(5_000)]
    many = Problem(configurations=shapes, jobs=[Job("j", 9, {"b": 1})])
    looks = iter([False, False])  # for the block, and before the first configuration
    with pytest.raises(Stopped):
        rough_prices(many, lambda: next(looks, True))


def test_who_interrupts_a_run_waits_for_no_prices() -> None:
    cancel = threading.Event()

    def then_cancelled(problem: Problem, budget: Budget) -> Iterator[Claim]:
        yield serving(8, 6)
        cancel.set()
        yield serving(8, 5)

    solution = solved(then_cancelled, cancel=cancel)
    assert solution.stop_reason is StopReason.INTERRUPTED
    assert solution.lower_bound == 0
