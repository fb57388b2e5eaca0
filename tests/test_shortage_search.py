"""The search for what would do, with scripted methods: time, Ctrl-C, little knowledge."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from fractions import Fraction

import pytest

from cms import (
    BlockPrices,
    Configuration,
    Job,
    MachineType,
    Problem,
    Proof,
    explain_infeasibility,
    solve,
)
from cms.plugin.algorithm import Budget, Claim
from tests.scripted import Clock, Scripted, blocks, serving


def test_without_time_only_what_needs_none_is_known() -> None:
    problem = Problem(
        configurations=Configuration({"b": 1}),
        jobs=[Job("x", 3, {"b": 1}), Job("lost", 3, {})],
        machine_types=[MachineType("machine", limit=1)],
    )
    found = explain_infeasibility(problem, time_limit=0)
    assert (found.unservable, found.more_machines) == ({"lost": ()}, None)
    assert (found.machines_at_least, found.less_demand, found.too_much_demand) == (0, 0, None)
    assert (found.machines_proof, found.demand_proof) == (Proof.NONE, Proof.NONE)
    assert str(found).splitlines()[1] == (
        "for everything else, how many more machines would do was not found in time; what share "
        "of every demand would do was not found in time"
    )


def test_what_was_given_up_for_want_of_time_gets_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        demand = fits(problem)
        if demand is None:
            return
        asked.append(demand // 8)
        if demand > 6000:
            yield BlockPrices({"b": "1/2"}, {"machine": 1})
        elif demand < 6000 or budget.remaining() > 1:
            yield serving(demand, 0)
        else:
            while not budget.stopped:
                clock.now += 0.01
                time.sleep(0.001)

    clock = Clock().rule(monkeypatch)
    found = explain_infeasibility(blocks(8000, limit=3000), method=Scripted(run), time_limit=2.4)
    # a quarter of the time is less than it wants, and what the others leave of it is more
    assert asked == [1000, 749, 750, 750]
    assert (found.less_demand, found.demand_proof) == (Fraction(3, 4), Proof.CHECKED)


def test_ctrl_c_ends_the_search_with_what_is_known() -> None:
    asked = []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        asked.append(problem)
        if any(machine.limit is None for machine in problem.machine_types):
            yield BlockPrices({"b": "1/2"}, {"machine": 1})
            yield solve(problem).schedule
        signal.raise_signal(signal.SIGINT)
        while not budget.stopped:
            pass

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = explain_infeasibility(blocks(8, limit=3), method=Scripted(run), time_limit=None)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(asked) == 2
    assert (found.more_machines, found.machines_proof) == ({"machine": 1}, Proof.CHECKED)
    assert found.demand_proof is Proof.NONE


def test_a_method_that_proves_nothing_leaves_the_answer_open() -> None:
    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        if any(machine.limit is None for machine in problem.machine_types):
            shape = Configuration({"b": 2}, "more machine")
            groups = serving(8, 4).groups
            yield type(serving(8, 4))([group._replace(configuration=shape) for group in groups])
        elif problem.rows.demand(0) <= 4:
            yield serving(4, 2)

    found = explain_infeasibility(blocks(8, limit=3), method=Scripted(run), time_limit=None)
    # all four machines were twins; three of them are within the limit
    assert found.more_machines == {"machine": 1}
    assert (found.machines_at_least, found.machines_proof) == (0, Proof.NONE)
    assert (found.less_demand, found.too_much_demand) == (Fraction(1, 2), None)
    assert found.demand_proof is Proof.NONE
    assert str(found) == "1 more machine would do, or 50 % of every demand"


def test_a_bound_above_the_limits_is_a_proof_without_a_ray() -> None:
    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        if all(machine.limit is not None for machine in problem.machine_types):
            yield BlockPrices({"b": "1/2"})
            if problem.rows.demand(0) <= 6:
                yield serving(6, 3)

    found = explain_infeasibility(blocks(8, limit=3), method=Scripted(run), time_limit=None)
    assert (found.less_demand, found.too_much_demand) == (Fraction(3, 4), Fraction(751, 1000))
    assert found.demand_proof is Proof.CHECKED
    assert str(found) == (
        "how many more machines would do was not found in time; 75 % of every demand would do "
        "(proved most)"
    )


def fits(problem: Problem) -> int | None:
    """The demand, if the question is about it: then no machine type is without a limit."""
    limited = all(machine.limit is not None for machine in problem.machine_types)
    return int(problem.rows.demand(0)) if limited else None
