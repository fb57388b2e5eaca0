"""Rightsizing: against every breakpoint, tried one by one with the oracle."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import check
from cms.fleet import Plan, build_problem, rightsize
from cms.fleet.serving import OperatingPoint, Service, loads
from cms.fleet.what_if import Relaxation, Rightsizing
from cms.fleet.what_if.least import Outcome
from cms.fleet.what_if.relaxations import What
from tests.fleet.what_if.tiny import A100, other, planned, tiny_fleet
from tests.oracle import optimum
from tests.property.problems import share

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


def ratios() -> list[Fraction]:
    """Where the shipped tables have entries, read from their files."""
    folder = Path(loads.__file__).parent / "loads"
    tables = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted({Fraction(ratio) for table in tables for ratio in table["ratios"]})


@share(4)
@given(seed=st.integers(0, 10**9))
def test_under_the_rule_capacity_limits_are_tried_where_its_tables_change(seed: int) -> None:
    rng = random.Random(seed)
    services, points = tiny_fleet(rng, most=2)
    plan = planned(services, points, "capacity")
    if plan is None:
        return
    found = rightsize(plan, points, time_limit=None, threads=1)
    for each in found.relaxations:
        require_proofs(found, plan, each)
        if each.what is not What.LATENCY_LIMIT:
            continue
        service = plan.serving.service(each.service)
        own = [point.batch_ms for point in points if point.model == service.model]
        assert service.latency_limit_ms is not None
        limits = sorted({batch * ratio for batch in own for ratio in ratios()})
        enough = None
        for limit in limits:
            if limit > service.latency_limit_ms:
                new = other(service, latency_limit_ms=limit)
                cost = fewest(exchanged(services, new), points, "capacity")
                if cost is not None and cost <= found.target:
                    enough = limit
                    break
        assert each.enough == enough
