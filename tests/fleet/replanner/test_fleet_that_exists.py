"""Replanning on the fleet that exists: held against every layout of tiny fleets."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from cms import GroupLimit
from cms.errors import InvalidOption
from cms.fleet import OperatingPoint, Service, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, check_deployment
from cms.fleet.replanner import (
    Latest,
    NoPath,
    Planner,
    Rates,
    ReplanDecision,
    Terms,
    empty_fleet,
    reasons,
    replan,
    replan_decision_to_json,
)
from cms.values.frozen import FrozenMap
from tests.fleet.test_one_plan import PROFILES, RULE, drawn_case, point, running
from tests.references.fleet_plans import is_served, least_cost
from tests.samples import few

HOUR = Fraction(3600)
TERMS = Terms(horizon_s=HOUR, lead_s=Fraction(0), restart_cost=Fraction(0))


@pytest.mark.parametrize("seed", few(12, range(300)))
def test_replan_costs_as_much_as_the_best_of_all_layouts(seed: int) -> None:
    case = drawn_case(seed)
    asked = replace(
        case.asked, replicas={}, spread=frozenset(), apart=False, most={}, survive=Fraction(0)
    )
    services = [Service(name, name, 0, 1000) for name in asked.rates]
    points = [point(s, key, p) for s in asked.rates for key in case.gpus for p in PROFILES[key]]
    planner = Planner(services, points, case.gpus, rule=RULE, costs=asked.prices, limits=asked.caps)
    rates = Rates(Fraction(0), HOUR, {name: (rate, rate) for name, rate in asked.rates.items()})
    best = least_cost(case.fleet, asked)
    try:
        found = replan(case.fleet, rates, planner, Latest(), TERMS)
    except NoPath:
        assert best is None
        return
    assert isinstance(found, ReplanDecision)
    if best is None:  # more runs than the caps allow, and it is enough
        assert found.keeps
        return
    assert found.windows.ask(0, 1).solution.cost == best[0]
    target = found.way.transition.target
    assert check_deployment(target) == ()
    assert is_served(target, asked)
    assert found.keeps or found.windows.planner.cost_of(target) == best[0]


def test_replan_plans_beside_foreign_instances_and_by_the_prices_of_nodes() -> None:
    """The plan for empty GPUs is one 4g.24gb, which has no place; the free GPU costs too much."""
    a30 = get_gpu("a30-24gb")
    taken = Instance("1g.6gb", 0, owner="pod x/y")
    cards = tuple(FleetGpu("n", at, a30, instances=(taken,)) for at in range(2))
    fleet = Deployment((FleetNode("n", cards),))
    points = [
        OperatingPoint("m", a30.key, profile, 1, 1, speed, 5)
        for profile, speed in (("1g.6gb", 10), ("2g.12gb", 22), ("4g.24gb", 45))
    ]
    planner = Planner([Service("chat", "m", 0, 100)], points, [a30], rule="plain")
    assert planner.plan({"chat": Fraction(44)}).solution.machine_count == 1

    def decided(rate: int, on: Deployment, planner: Planner = planner) -> ReplanDecision:
        rates = Rates(Fraction(0), HOUR, {"chat": (Fraction(rate),) * 2})
        found = replan(on, rates, planner, Latest(), TERMS)
        assert isinstance(found, ReplanDecision)
        return found

    found = decided(44, fleet)
    assert found.windows.ask(0, 1).solution.machine_count == 2
    then = found.way.transition.target
    assert (then.capacity("chat") >= 44, found.windows.planner.cost_of(then)) == (True, 0)
    quick = [replace(each, batch=2, latency_ms=Fraction(2)) for each in points]
    fast = [*quick, *(replace(each, model="m2") for each in points)]
    for now in (Service("chat", "m", 0, 3), Service("chat", "m2", 0, 100)):  # not at these points
        planned = Planner([now], points + fast, [a30], rule="plain")
        assert not any(decided(rate, then, planned).keeps for rate in (0, 44))
    # less runs than it was planned for, and it is enough for the rates of now
    assert decided(40, replace(then, services=(Service("chat", "m", 90, 100),))).keeps
    with pytest.raises(NoPath, match="no plan on the GPUs there are serves the rates from 3600 s"):
        decided(65, fleet)
    more = replace(fleet, nodes=(*fleet.nodes, FleetNode("m", (FleetGpu("m", 0, a30),))))
    assert decided(65, more).windows.ask(0, 1).solution.cost == 1
    half = Deployment((FleetNode("n", (cards[0], FleetGpu("n", 1, a30))),))
    for answer, gpus, beside, which in (
        (found, 2, 2, "2 GPUs (2 beside foreign instances, which cost nothing more) until 7200 s"),
        (decided(65, half), 2, 1, "2 GPUs (1 beside foreign instances, which costs nothing more) "),
        (decided(45, empty_fleet({a30.key: 1}, {a30.key: a30})), 1, 0, ": 1 GPU until 7200 s"),
    ):
        assert which in " ".join(reasons(answer))
        told = replan_decision_to_json(answer)["change"]
        (window,) = told["windows"]
        assert (window["gpus"], window["gpus_beside_foreign"]) == (gpus, beside)
        assert told["gpu_hours"] == gpus - beside + TERMS.replan_cost


def test_group_limits_count_the_planners_gpus_and_refuse_others() -> None:
    a30, points = get_gpu("a30-24gb"), [point("a", "a30-24gb", "1g.6gb")]

    def planner(**weights: int) -> Planner:
        limits = [GroupLimit("g", weights, 1)]
        return Planner([Service("a", "a", 0, 1000)], points, [a30], group_limits=limits)

    fleet = Deployment((FleetNode("n", tuple(FleetGpu("n", at, a30) for at in range(2))),))
    supply = planner(A30=1).largest_supply["a"]
    for own in (planner(A30=1), planner(A30=1).on(fleet), planner(A30=1).by("auto").on(fleet)):
        assert own.plan({"a": 4 * supply}).solution.machine_count == 1
        assert own.plan({"a": 5 * supply}).solution.status == "infeasible"
    for weights in ({"typo": 1}, {"A30": 1, "typo": 1}):
        says = "a weight in group 'g' is given for the GPU 'typo', .* expected one of a30-24gb"
        with pytest.raises(InvalidOption, match=says):
            planner(**weights)


def test_cost_of_a_fleet_counts_prices_of_nodes_and_nothing_beside_foreign_instances() -> None:
    a30, work = get_gpu("a30-24gb"), running("a", "a30-24gb", "1g.6gb", 0)
    beside = (Instance("1g.6gb", 1, owner="pod x/y"), work)
    nodes = tuple(
        FleetNode(name, (FleetGpu(name, 0, a30, instances=held),), FrozenMap(labels))
        for name, held, labels in (
            ("dear", (work,), {"price_per_hour": "5"}), ("own", (work,), {}),
            ("shared", beside, {"price_per_hour": "5"}), ("idle", (), {}),
        )
    )  # fmt: skip
    points = [point("a", a30.key, "1g.6gb")]
    planner = Planner([Service("a", "a", 0, 1000)], points, ["a30"], costs={"a30": "7/3"})
    fleet = Deployment(nodes, (Service("a", "a", 0, 1000),), RULE)
    assert planner.cost_of(fleet) == 5 + Fraction(7, 3)
