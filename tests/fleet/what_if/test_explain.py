"""Explanations: each choice costs no less when it is forced, and the words of what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import InvalidOption, UnsupportedProblem, solve
from cms.certificate.certificate import round_up
from cms.fleet import Plan, build_problem, changed_services, explain
from cms.fleet.serving import Interference, OperatingPoint, Pair, Service
from cms.fleet.what_if import Alternative, Explanation
from cms.fleet.what_if.explaining import Given
from cms.fleet.what_if.rightsizing import explanation_to_json
from tests.fleet.what_if.test_one_job import forced
from tests.fleet.what_if.tiny import A100, other, planned, tiny_fleet
from tests.oracle import optimum
from tests.property.certificates import random_certificate
from tests.property.problems import share
from tests.samples import refusal


def require_bounds(plan: Plan, found: Explanation) -> int:
    """Force each choice and find the fewest GPUs; return how many choices need more GPUs."""
    problem, name = plan.serving.problem.one_job_a_block(), found.given.service.name
    dearer = 0

    def held(choice: Alternative | None, wanted: Given) -> None:
        nonlocal dearer
        if choice is None:
            return
        least = optimum(forced(problem, name, wanted))
        if choice.bound is None:
            assert least is None
            return
        assert choice.more == choice.bound - found.bound >= 0
        assert choice.at_least == round_up(max(choice.bound, Fraction(0)), problem.cost_step)
        assert least is None or choice.at_least <= least
        dearer += choice.at_least > found.lower_bound

    for each in found.blocks:
        others = frozenset(problem.blocks) - {each.block}
        held(each.one, Given({each.block: 1}))
        held(each.only, Given({each.block: each.needed}, others))
        held(each.without, Given(without=frozenset({each.block})))
        assert (each.without is None) == (each.count == 0)
    return dearer


@share(2)
@given(st.integers(0, 10**9))
def test_no_choice_costs_less_than_is_said(seed: int) -> None:
    rng = random.Random(seed)
    plan = planned(*tiny_fleet(rng))
    if plan is None:
        return
    for service in plan.serving.services:
        found = explain(plan, service.name)
        assert found.cases == sum(1 for _ in plan.solution.certificate.leaves())
        require_bounds(plan, found)
        assert found.cost is not None
        for each in found.blocks:
            if each.count:  # as in the plan
                assert each.one.at_least is not None
                assert each.one.at_least <= found.cost


@share(2)
@given(st.integers(0, 10**9))
def test_nor_where_the_proof_branches(seed: int) -> None:
    rng = random.Random(seed)
    plan = planned(*tiny_fleet(rng, most=2))
    if plan is None:
        return
    problem = plan.serving.problem.one_job_a_block()
    tree = random_certificate(rng, problem)
    if tree.proves_infeasible(problem):
        return
    bound = tree.bound(problem)
    branched = Plan(plan.serving, replace(plan.solution, certificate=tree, lower_bound=bound))
    for service in plan.serving.services:
        found = explain(branched, service.name)
        assert found.bound == bound
        if found.cases > 1:
            assert found.pays is None
            assert all(each.worth is None for each in found.blocks)
        require_bounds(branched, found)


CHAT = Service("chat", "bert", 100, 100)
POINTS = [
    OperatingPoint("bert", A100, "3g.40gb", 1, 2, 60, 33),
    OperatingPoint("bert", A100, "7g.80gb", 1, 2, 90, 22),
    OperatingPoint("vgg", A100, "4g.40gb", 1, 2, 60, 20),
    OperatingPoint("vgg", A100, "1g.10gb", 1, 2, 5, 400),
]
SEE = Service("see", "vgg", 50, 100)


def test_what_a_choice_adds_is_exact() -> None:
    plan = planned([CHAT, SEE], POINTS)
    assert plan is not None
    found = explain(plan, "chat")
    seven, three = found.blocks
    # two 3g at 1/2 or two 7g; see takes a 4g, which fits beside a 3g
    assert (seven.profile, three.profile) == ("7g.80gb", "3g.40gb")
    assert (seven.needed, three.needed) == (2, 2)
    assert (seven.count, three.count) == (0, 2)
    assert found.cost == found.lower_bound == 2
    assert seven.only.at_least == 2
    assert found.bound == Fraction(4, 3)
    assert seven.only.more == Fraction(2, 3)
    assert seven.without is None
    assert three.without is not None
    assert three.without.bound == seven.only.bound
    assert found.pays is not None
    assert found.pays <= found.bound
    assert found.useless == ("4g.40gb", "1g.10gb")
    document = explanation_to_json(found)
    assert document["choices"][0]["only"]["more"] == "2/3"
    assert document["choices"][0]["without"] is None
    assert document["choices"][1]["count"] == 2


def test_a_service_without_a_rate_has_no_choices() -> None:
    plan = planned([CHAT, other(SEE, rate_rps=0)], POINTS)
    assert plan is not None
    found = explain(plan, "see")
    assert (found.blocks, found.given.uses) == ((), ())
    assert explain(plan, "chat").blocks


def test_rates_of_a_million_million_are_explained_exactly() -> None:
    plan = planned([other(CHAT, rate_rps=10**12 + 1)], POINTS)
    assert plan is not None
    found = explain(plan, "chat")
    seven, three = found.blocks
    assert three.needed == -(-(10**12 + 1) // 60)
    assert found.cost == found.lower_bound == -(-three.needed // 2)
    assert seven.only.at_least == -(-(10**12 + 1) // 90)
    assert seven.one.more is not None
    assert 0 < seven.one.more < 1


SHARED = [
    OperatingPoint("bert", A100, "mps:50", 1, 8, 800, 10),
    OperatingPoint("bert", A100, "mps:100", 1, 8, 1600, 5),
]


def test_a_plan_of_shared_instances_is_explained_too() -> None:
    services = [Service("a", "bert", 300, 60), Service("b", "bert", 100, 60)]
    serving = build_problem(services, SHARED, sharing="time", max_services=2)
    plan = Plan(serving, solve(serving.problem))
    found = explain(plan, "a")
    assert (found.cost, found.pays) == (1, None)
    half = next(each for each in found.blocks if each.profile == "mps:50")
    assert half.alone is not None
    assert half.alone.bound is not None
    assert half.one.bound is not None
    assert found.bound <= half.one.bound <= half.alone.bound
    assert half.supply_rps == 800
    document = explanation_to_json(found)
    assert document["choices"][0]["alone"]["possible"] is True


def test_with_one_service_an_instance_sharing_is_explained_as_without() -> None:
    services = [Service("a", "bert", 300, 60), Service("b", "bert", 100, 60)]
    serving = build_problem(services, SHARED, sharing="time", max_services=1)
    found = explain(Plan(serving, solve(serving.problem)), "a")
    assert found.blocks
    assert found.cost is not None
    assert all(each.one.bound is not None for each in found.blocks)


def test_where_batches_slow_one_another_nothing_is_explained() -> None:
    table = Interference({Pair("bert", A100, "mps:50", 8, "bert", 8): "1.5"})
    services = [Service("a", "bert", 300, 60)]
    serving = build_problem(services, SHARED[:1], sharing="time", interference=table)
    plan = Plan(serving, solve(serving.problem), solve(serving.outer))
    said = refusal(UnsupportedProblem, explain, plan, "a")
    assert "batches slow one another" in said


LABELLED = Service(
    "chat", "bert", 100, 60, ["3g.40gb"], {"team": "a"}, "s.csv:2", "0.05", "process"
)
UNLIMITED = Service("see", "vgg", 50)


@pytest.mark.parametrize(
    ("asked", "rates"),
    [
        ({}, {"chat": 100, "see": 50}),
        ({"scale": 2}, {"chat": 200, "see": 100}),
        ({"scale": "1/3"}, {"chat": Fraction(100, 3), "see": Fraction(50, 3)}),
        ({"scale": 0}, {"chat": 0, "see": 0}),
        ({"scale": 10**12}, {"chat": 10**14, "see": 5 * 10**13}),
        ({"scale": {"see": "0.5"}}, {"chat": 100, "see": 25}),
        ({"drop": ["chat"]}, {"see": 50}),
        ({"scale": 2, "drop": ["see", "see"]}, {"chat": 200}),
        ({"drop": ["see", "chat"]}, {}),
    ],
)
def test_rates_are_multiplied_and_services_left_out(
    asked: dict[str, Any], rates: dict[str, Any]
) -> None:
    changed = changed_services([LABELLED, UNLIMITED], **asked)
    assert {service.name: service.rate_rps for service in changed} == rates


def test_all_else_of_a_service_stays() -> None:
    (chat,) = changed_services([LABELLED], scale=3)
    assert chat == Service(
        "chat", "bert", 300, 60, ["3g.40gb"], {"team": "a"}, "", "0.05", "process"
    )
    assert chat.origin == "s.csv:2"


def test_of_many_services_an_error_names_some() -> None:
    many = [Service(f"s{number}", "m", 1) for number in range(40)]
    said = refusal(InvalidOption, changed_services, many, drop=["zzz"])
    assert said.endswith("s10, s11 and 28 more")
    assert "expected one of: none" in refusal(InvalidOption, changed_services, [], drop=["zzz"])
