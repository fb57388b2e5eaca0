"""DutyCycles replayed: limits met by evenly spaced arrivals, exactly, and what random ones do."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import DutyCycleRule, TimeSharedProblem, solve
from cms.errors import InvalidOption, UnsupportedProblem
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
from cms.fleet.simulation import Verdict, replay_duty_cycles, simulate
from cms.fleet.simulation.duty_cycles import batches
from instances.families.time_sharing import random_mix
from tests.fleet.plans import A100, mixed_plan, plan


def latencies(arrivals: list[Any], *slots: Any) -> list[Any]:
    return [
        each.ends - arrivals[at]
        for each in batches(arrivals, *slots)
        for at in range(each.first, each.first + each.taken)
    ]


LENGTHS = st.fractions(min_value=Fraction(1, 10), max_value=20, max_denominator=12)


@given(
    rule=st.sampled_from(DutyCycleRule), length=LENGTHS, others=LENGTHS, before=st.booleans(),
    amount=st.integers(1, 9), phase=LENGTHS, slower=st.fractions(1, 3, max_denominator=7),
)  # fmt: skip
def test_evenly_spaced_requests_take_no_longer_than_the_rule_needs(
    rule: DutyCycleRule, length: Fraction, others: Fraction, before: bool, amount: int,
    phase: Fraction, slower: Fraction,
) -> None:  # fmt: skip
    cycle = length + others
    gap = slower * cycle / amount
    arrivals = [phase + nth * gap for nth in range(60)]
    offset = others if before else Fraction(0)
    took = latencies(arrivals, rule, cycle, length, offset, amount)
    assert len(took) == 60
    assert max(took) <= rule.needed(cycle, length)


@pytest.mark.parametrize("rule", list(DutyCycleRule))
def test_a_plan_keeps_every_limit_with_evenly_spaced_arrivals(rule: DutyCycleRule) -> None:
    chat, see = replay_duty_cycles(plan(rule=rule), requests=500).services
    assert (chat.late, see.late) == (0, 0)
    assert chat.max_ns <= 60 * 10**6
    assert (chat.requests, see.requests) == (500, 500)


def serving_of(problem: TimeSharedProblem, **terms: object) -> Plan:
    """The plan of a made-up problem, whose jobs become services of models of their own."""
    services = [Service(job.name, job.name, job.demand, 1000 * job.limit) for job in problem.jobs]
    points = [
        OperatingPoint(
            job.name, A100, block, 1, int(point.amount), point.amount / point.length,
            1000 * point.length,
        )
        for job in problem.jobs
        for block, own in job.points.items()
        for point in own
    ]  # fmt: skip
    posed = build_problem(services, points, A100, sharing="time", **terms)  # type: ignore[call-overload]
    return Plan(posed, solve(posed.problem, "mix_first_fit", options={"orders": 1}))


@pytest.mark.long
@pytest.mark.parametrize("rule", list(DutyCycleRule))
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_mixed_plans_keep_every_limit_with_evenly_spaced_arrivals(
    seed: int, rule: DutyCycleRule
) -> None:
    made = serving_of(random_mix(seed, most=6), rule=rule.value)
    assert replay_duty_cycles(made, requests=2000).count(Verdict.MET) == len(made.services)


def test_head_room_makes_fewer_random_requests_late() -> None:
    full, easy = (
        sum(
            each.late for each in replay_duty_cycles(plan(), arrivals="poisson", rate=rate).services
        )
        for rate in (Fraction(23, 10), 1)
    )
    assert easy < full


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_a_run_that_is_ended_says_so_soon_and_claims_nothing(arrivals: str) -> None:
    cancel = threading.Event()
    told = []

    def heard(done: int, expected: int) -> None:
        told.append(done)
        cancel.set()

    found = replay_duty_cycles(
        plan(), arrivals=arrivals, requests=300_000, cancel=cancel, on_progress=heard
    )
    assert found.stopped
    assert sum(each.requests for each in found.services) == told[-1] <= 20_016
    assert {each.verdict for each in found.services} <= {Verdict.UNDECIDED, Verdict.VIOLATED}


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(InvalidOption, match="cycles are replayed of plans whose services share"):
        replay_duty_cycles(mixed_plan())
    with pytest.raises(InvalidOption, match="arrivals is 'odd'; expected 'even' or 'poisson'"):
        replay_duty_cycles(plan(), arrivals="odd")
    with pytest.raises(UnsupportedProblem, match="the simulator of queues takes plans"):
        simulate(plan())
