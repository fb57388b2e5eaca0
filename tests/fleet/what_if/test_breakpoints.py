"""Rightsizing: against every breakpoint, tried one by one with the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import check
from cms.fleet import Plan, build_problem, rightsize
from cms.fleet.serving import LatencyRule, LoadCurve, OperatingPoint, Service
from cms.fleet.serving.capacity import CAPACITY, CERTIFIED, CapacityRule
from cms.fleet.serving.load_curve import key_of
from cms.fleet.serving.queueing import RULES
from cms.fleet.what_if import Relaxation, Rightsizing
from cms.fleet.what_if.least import Outcome, What, find_last, rate_ladder
from cms.fleet.what_if.services import Posing
from tests.fleet.what_if.tiny import A100, other, planned, tiny_fleet
from tests.oracle import optimum
from tests.property.problems import share
from tests.samples import few, so_many

LITTLE = Fraction(1, 10**6)


def fewest(
    services: Sequence[Service], points: Sequence[OperatingPoint], rule: str
) -> Fraction | None:
    return optimum(build_problem(services, points, A100, rule=rule).problem)


def exchanged(services: Sequence[Service], new: Service) -> list[Service]:
    return [new if one.name == new.name else one for one in services]


def sums_below(plan: Plan, service: Service) -> Iterator[Fraction]:
    """All that instances can add up to below the rate, the greatest first."""
    serving = plan.serving.problem
    j = serving.job_index(service.name)
    gives = {serving.one_job_a_block().rows.supply(j, at) for at in range(len(serving.blocks))} - {
        0
    }
    reached, new = {Fraction(0)}, {Fraction(0)}
    while new:
        sums = {total + more for total in new for more in gives if total + more < service.rate_rps}
        new = sums - reached
        reached |= new
    yield from sorted(reached, reverse=True)


def require_rate(
    plan: Plan, points: Sequence[OperatingPoint], rule: str, each: Relaxation, target: Fraction
) -> None:
    """The greatest sum of instances that is enough, and nothing above it."""
    services = plan.serving.services
    service = plan.serving.service(each.service)

    def cost(rate: Fraction) -> Fraction | None:
        return fewest(exchanged(services, other(service, rate_rps=rate)), points, rule)

    costs = ((rate, cost(rate)) for rate in sums_below(plan, service))
    enough = next((rate for rate, found in costs if found is not None and found <= target), None)
    assert each.enough == enough
    if enough is not None:
        over = cost(enough + LITTLE)
        assert over is None or over > target


def require_limit(
    plan: Plan, points: Sequence[OperatingPoint], rule: str, each: Relaxation, target: Fraction
) -> None:
    """The first of all limits at which any point is admitted that is enough, and nothing below."""
    services = plan.serving.services
    service = plan.serving.service(each.service)
    assert service.latency_limit_ms is not None
    part, above = {"plain": (Fraction(1), False), "parvagpu": (Fraction(9, 20), True)}[rule]
    limits = sorted(
        {p.latency_ms / part for p in points if p.latency_ms / part >= service.latency_limit_ms}
    )
    enough = None
    for limit in limits:
        tried = limit + LITTLE if above else limit
        if tried <= service.latency_limit_ms:
            continue
        found = fewest(exchanged(services, other(service, latency_limit_ms=tried)), points, rule)
        if found is not None and found <= target:
            enough = limit
            break
    assert each.enough == enough
    if enough is not None:
        assert each.above is above
        if above and enough > service.latency_limit_ms:
            found = fewest(
                exchanged(services, other(service, latency_limit_ms=enough)), points, rule
            )
            assert found is None or found > target


def require_proofs(found: Rightsizing, plan: Plan, each: Relaxation) -> None:
    """What is said to be proved is, by what the answer holds."""
    if each.plan is not None:
        cost = each.plan.solution.cost
        assert cost is not None
        assert cost <= found.target
        assert not check(each.plan.serving.problem, each.plan.solution.schedule)
    if each.outcome is Outcome.NONE:
        assert each.certificate is not None
        assert each.ruled_out is None
    if each.outcome is Outcome.LEAST:
        assert each.certificate is not None
        assert each.plan is not None
        assert each.ruled_out == each.change
    assert (each.plan is None) == (each.outcome in (Outcome.NONE, Outcome.OPEN))


@pytest.mark.parametrize("rule", ["plain", "parvagpu"])
@share(2)
@given(seed=st.integers(0, 10**9))
def test_the_least_relaxation_is_the_first_breakpoint_that_is_enough(rule: str, seed: int) -> None:
    rng = random.Random(seed)
    services, points = tiny_fleet(rng, most=2)
    plan = planned(services, points, rule)
    if plan is None:
        return
    found = rightsize(plan, points, time_limit=None, threads=1)
    assert plan.solution.cost is not None
    assert (found.cost, found.target, found.better) == (
        plan.solution.cost,
        plan.solution.cost - 1,
        None,
    )
    assert found.proved
    assert len(found.relaxations) == 2 * len(services)
    changes = [each.change for each in found.relaxations if each.change is not None]
    assert changes == sorted(changes)
    assert found.least is (found.relaxations[0] if changes else None)
    for each in found.relaxations:
        assert each.outcome in (Outcome.LEAST, Outcome.NONE)
        require_proofs(found, plan, each)
        check_one = require_rate if each.what is What.RATE else require_limit
        check_one(plan, points, rule, each, found.target)


POINT = OperatingPoint("m", "a100-80gb", "3g.40gb", 2, 4, 200, 40)


def curve_of(rng: random.Random) -> LoadCurve:
    rates = sorted(rng.sample(range(1, 60), rng.randint(1, 4)))
    unit = rng.choice([Fraction(1), Fraction(1, 300), Fraction(7, 3)])
    return LoadCurve([rate * unit for rate in rates], [rng.randint(20, 60) for _ in rates])


def rules(rng: random.Random) -> list[CapacityRule | LatencyRule]:
    shares = LatencyRule("mine", Fraction(rng.randint(1, 9), 9), strict=rng.random() < 0.5)
    return [shares, CAPACITY, CERTIFIED, CAPACITY.with_curves({key_of(POINT): curve_of(rng)})]


@pytest.mark.parametrize("part", few(1, range(10)))
def test_between_breakpoints_a_point_counts_for_the_same(part: int) -> None:
    """Up to the next one, at it, and right after it."""
    for number in range(so_many(20, 100)):
        rng = random.Random(f"breakpoints {part} {number}")
        queue = rng.choice([None, None, "instance", "process"])
        service = Service(
            "s", "m", 10, Fraction(rng.randint(1, 400), rng.choice([1, 3, 7])), queue=queue
        )
        for rule in rules(rng):
            limit, now = service.latency_limit_ms, rule.supply(service, POINT)
            assert limit is not None
            following = rule.next_limit(service, POINT)
            if following is None:
                for far in (2, 100, 10**9):
                    assert rule.supply(replace(service, latency_limit_ms=far * limit), POINT) == now
                continue
            at = following.limit_ms
            assert at >= limit
            little = Fraction(1, 10**9)
            steps = [limit + (at - limit) * Fraction(part, 16) for part in range(16)]
            tried = [*steps, at - little] if at - little > limit else steps
            for each in tried:
                assert rule.supply(replace(service, latency_limit_ms=each), POINT) == now
            there = rule.supply(replace(service, latency_limit_ms=at), POINT)
            after = rule.supply(replace(service, latency_limit_ms=at + little), POINT)
            assert after > now
            assert (there == now) is following.above


def test_without_a_limit_there_is_no_looser_one() -> None:
    service = Service("s", "m", 10)
    for rule in RULES.values():
        assert isinstance(rule, LatencyRule | CapacityRule)
        assert rule.next_limit(service, POINT) is None


@given(st.integers(0, 10**9))
def test_a_rate_ladder_stops_at_all_sums_of_blocks_alone(seed: int) -> None:
    rng = random.Random(seed)
    services, points = tiny_fleet(rng)
    service = services[0]
    posing = Posing(build_problem(services, points, "a100-80gb", rule="plain"), points)
    serving = posing.serving
    if not serving.can_serve(service.name):
        return
    ladder = rate_ladder(posing, service)
    supplies = [serving.supply(service.name, block) for block in serving.problem.blocks]
    gives = [int(supply) for supply in supplies if supply]
    sums = {0}
    for _ in range(6):
        sums |= {total + more for total in sums for more in gives}
    state = ladder.now
    visited = set()
    while state > ladder.end:
        state = ladder.following(state)
        visited.add(state)
    assert {total for total in sums if total < ladder.now} <= visited
    last, first = find_last(ladder, ladder.now, ladder.end, lambda rate: rate > 17)
    assert first <= 17
    assert last == ladder.now or last > 17
    assert ladder.following(last) == first
