"""The plan near what runs: against all plans on two or three GPUs, and what it says of itself."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import load_instance, solve
from cms.errors import CmsError, InvalidOption, InvalidProblem
from cms.fleet import OperatingPoint, Plan, Service, get_gpu
from cms.fleet.deployment import (
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Work,
    check_deployment,
    desired_state,
)
from cms.fleet.deployment.recounting import recounted
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementInfeasible,
    PlacementResult,
    place,
    place_plan,
)
from cms.fleet.placement.constraint_rows import build_model
from cms.fleet.placement.kept_bound import PlanBound
from cms.fleet.placement.plan_placement import build_plan_demand
from cms.fleet.serving import RULES, Scenario, build_problem
from cms.solving.solution import Proof
from tests.fleet.deployments import placed
from tests.fleet.transition.cases import reached
from tests.property.problems import share
from tests.references.placements import contents, price_of
from tests.samples import few

A30 = get_gpu("a30-24gb")
PROFILES = ("1g.6gb", "2g.12gb", "4g.24gb")
RULE = RULES["half"]


def point(service: str, profile: str, batch: int = 4) -> OperatingPoint:
    """Batch 8 is what ran before: somewhat slower, and late."""
    size = int(profile[0])
    speed = {1: 10, 2: 22, 4: 45}[size] + (3 * size if service == "b" else 0) - (batch > 4)
    return OperatingPoint(service, A30.key, profile, 1, batch, speed, 20 if batch == 4 else 100)


def running(service: str, profile: str, start: int, batch: int = 4) -> Instance:
    measured = point(service, profile, batch)
    return Instance(profile, start, Work(service, measured, Fraction(measured.throughput_rps)))


def plan_of(rates: Mapping[str, int], limit: int = 1000) -> Plan:
    services = [Service(name, name, rate, limit) for name, rate in rates.items()]
    points = [point(name, profile) for name in rates for profile in PROFILES]
    serving = build_problem(services, points, A30.key, rule=RULE)
    return Plan(serving, solve(serving.problem, time_limit=None))


def fleet(*held: Sequence[Instance]) -> Deployment:
    cards = tuple(FleetGpu("n", i, A30, instances=tuple(each)) for i, each in enumerate(held))
    known = tuple(Service(name, name, 10, 1000) for name in "ab")
    return Deployment((FleetNode("n", cards),), known, RULE)


def random_fleet(rng: random.Random, gpus: int) -> Deployment:
    layouts = [(), *A30.layouts()]
    return fleet(
        *(
            [
                Instance(p.profile, p.start, owner="pod x/y")
                if rng.random() < 0.1
                else running(rng.choice("ab"), p.profile, p.start, rng.choice((4, 8)))
                for p in rng.choice(layouts)
            ]
            for _ in range(gpus)
        )
    )


def found_near(
    now: Deployment, plan: Plan, extra: int = 0, constraints: PlacementConstraints | None = None
) -> PlacementResult:
    found = place_plan(plan, now, extra_cost=extra, constraints=constraints)
    assert isinstance(found, PlacementResult), found
    assert check_deployment(found.deployment, found.wanted) == ()
    if not any(card.foreign for card in now.gpus()):  # else plans that cost less may keep less
        assert found.blind_kept is None or found.kept >= found.blind_kept
    assert found.kept <= found.most_kept <= found.running
    assert (found.proof is Proof.CHECKED) == (found.kept == found.most_kept)
    for job in plan.serving.problem.jobs:
        assert supplied(found.deployment, job.name) >= job.demand
    return found


def supplied(deployment: Deployment, service: str) -> Fraction:
    ours = deployment.kinds().items()
    own = (n * kind.work.supply_rps for kind, n in ours if kind.work.service == service)
    return sum(own, Fraction(0))


def most_kept(now: Deployment, plan: Plan) -> dict[tuple[Fraction, int], int]:
    """The most that plans of each cost and number of GPUs keep, by trying all."""
    Given = tuple[tuple[Fraction, ...], Fraction, int]  # of services, up to their rates; cost; GPUs
    services = {each.name: each for each in plan.serving.services}
    names, ran = sorted(services), now.kinds()
    kinds = [
        Kind(A30.key, profile, Work(name, measured, RULE.supply(services[name], measured)))
        for name in services
        for profile in PROFILES
        for measured in (point(name, profile), point(name, profile, 8))
    ]
    kinds = [k for k in kinds if k.work.supply_rps and (k.work.point.batch == 4 or ran[k])]
    counts = dict.fromkeys(kinds, 9)
    wanted = DesiredState(counts, {}, {A30.key: A30}, tuple(services.values()), RULE)
    full = tuple(services[name].rate_rps for name in names)
    best: dict[Given, int] = {((Fraction(0),) * len(names), Fraction(0), 0): 0}
    for card in now.gpus():
        price, gpu = price_of(card, now.nodes[0], wanted)
        ways: dict[Given, int] = {}
        for held, (kept, _, _) in contents(card, now.nodes[0], wanted).items():
            gives = dict.fromkeys(names, Fraction(0))
            for kind, n in held:
                gives[kind.work.service] += n * kind.work.supply_rps
            key = tuple(gives.values()), price * bool(held), gpu * bool(held)
            ways[key] = max(kept, ways.get(key, 0))
        more: dict[Given, int] = {}
        for ((has, cost, gpus), kept), ((adds, price, n), keeps) in product(
            best.items(), ways.items()
        ):
            capped = (min(a + b, rate) for a, b, rate in zip(has, adds, full, strict=True))
            key = tuple(capped), cost + price, gpus + n
            more[key] = max(kept + keeps, more.get(key, 0))
        best = more
    return {(cost, gpus): kept for (has, cost, gpus), kept in best.items() if has == full}


CASES = [*((seed, 2) for seed in range(25)), *((seed, 3) for seed in range(150))]


@pytest.mark.parametrize("case", few(3, CASES), ids=str)
def test_no_plan_on_two_or_three_gpus_keeps_more(case: tuple[int, int]) -> None:
    seed, gpus = case
    rng = random.Random(seed)
    now = random_fleet(rng, gpus)
    plan = plan_of({name: rng.randint(0, 20 * gpus) for name in "ab"})
    extra = rng.choice((0, 0, 1))
    found, best = place_plan(plan, now, extra_cost=extra), most_kept(now, plan)
    if isinstance(found, PlacementInfeasible):
        assert not best
        return
    found = found_near(now, plan, extra)
    cost, fewest = min(best)
    within = {at: n for at, n in best.items() if at[0] <= cost + extra}
    within = {at: n for at, n in within.items() if extra or at[1] <= fewest}
    assert found.spent in within
    assert found.kept == max(within.values())


@share(6)
@given(st.data())
def test_no_prices_bound_below_what_is_kept(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    plan = plan_of({"a": rng.randint(1, 30), "b": rng.randint(1, 30)})
    now = random_fleet(rng, 2)
    now = recounted(now, plan.serving.services, RULE)
    found = place_plan(plan, now)
    if isinstance(found, PlacementInfeasible):
        return
    demand = build_plan_demand(now, found.wanted, plan)
    model = build_model(demand, now, PlacementConstraints())
    bound = PlanBound(model, found.spent)
    unit = data.draw(st.integers(1, 6))
    prices = [data.draw(st.integers(-1, 2 * unit)) for _ in bound.program.rows]
    assert bound.bound(prices, unit)[0] >= found.kept


def scenario(name: str, drift: int = 0) -> Plan:
    """A published scenario; rates drift by so many per cent at most."""
    known = load_instance(name)
    assert isinstance(known, Scenario)
    rng = random.Random(0)
    services = [
        replace(each, rate_rps=each.rate_rps * (100 + rng.randint(-drift, drift)) / 100)
        for each in known.services
    ]
    serving = replace(known, services=tuple(services)).build_problem()
    return Plan(serving, solve(serving.problem))


def test_a_chain_of_published_scenarios_keeps_more_than_plans_made_blind() -> None:
    cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(20))
    first = placed(desired_state(scenario("S2")), Deployment((FleetNode("a", cards),)))
    now, kept = first.deployment, []
    for name in ("S5", "S1"):
        plan = scenario(name)
        found = found_near(now, plan)
        assert found.gpus == desired_state(plan).gpus
        assert found.proof is Proof.CHECKED
        kept.append(found.kept)
        now = found.deployment
    assert kept >= [1, 6]


def test_todays_point_goes_on_until_limits_or_figures_change() -> None:
    now = fleet([running("a", "2g.12gb", 0, 8)], [])
    found = found_near(now, plan_of({"a": 20}))
    assert (found.kept, found.blind_kept, found.starts, found.stops) == (1, 0, 0, 0)
    assert [kind.work.point.batch for kind in found.wanted.counts] == [8]
    assert found.deployment.capacity("a") == 21  # its own supply, not the 22 of the plan's point
    assert str(found) == (
        "1 x a30-24gb on 1 node, 0 changed\n"
        "1 of 1 running instances kept (maximum, proof checked) of all plans; "
        "the plan as it was made keeps 0"
    )
    more = found_near(now, plan_of({"a": 22}))  # 21 are not enough, and are never taken for it
    assert more.deployment.capacity("a") >= 22
    now = fleet([running("a", "2g.12gb", 0, 8)], [])
    found = found_near(now, plan_of({"a": 20}, limit=150))
    assert (found.kept, found.most_kept, found.stops) == (0, 0, 1)
    assert {kind.work.point.batch for kind in found.wanted.counts} == {4}
    old = OperatingPoint("a", A30.key, "2g.12gb", 1, 4, 50, 20)  # 22 by the new table
    now = fleet([Instance("2g.12gb", 0, Work("a", old, Fraction(50)))])
    assert found_near(now, plan_of({"a": 20})).deployment.capacity("a") < 50


def test_a_service_goes_and_extra_cost_buys_what_keeps_more() -> None:
    now = fleet([running("a", "2g.12gb", 0), running("b", "2g.12gb", 2)], [])
    gone = found_near(now, plan_of({"a": 20}))
    assert (gone.kept, gone.stops, gone.most_kept) == (1, 1, 1)
    assert [each.name for each in gone.deployment.services] == ["a"]
    now = fleet([running("a", "4g.24gb", 0, 8)], [running("b", "4g.24gb", 0, 8)])
    plan = plan_of({"a": 20, "b": 20})
    assert found_near(now, plan).kept == 0
    for extra in (1, 2):
        more = found_near(now, plan, extra)
        assert (more.kept, more.gpus, more.more_gpus) == (2, {A30.key: 2}, {A30.key: 1})
    none = found_near(now, plan_of({"a": 45, "b": 45}), 1)
    assert (none.cost, none.cost_proof) == (2, Proof.CHECKED)  # nothing extra was of use
    with pytest.raises(InvalidOption, match="extra_cost is -1"):
        place_plan(plan, now, extra_cost=-1)


def test_a_plan_that_cannot_be_is_refused() -> None:
    found = place_plan(plan_of({"a": 60, "b": 60}), fleet([]))
    assert isinstance(found, PlacementInfeasible)
    assert found.proof is Proof.CHECKED
    assert "GPUs at least are needed, by the plan's certificate, and the fleet has 1" in str(found)
    full = fleet([Instance("4g.24gb", 0, owner="pod x/y")])
    held = place_plan(plan_of({"a": 10}), full)
    assert isinstance(held, PlacementInfeasible)
    assert held.proof is Proof.CHECKED
    assert "no plan has a place" in str(held)
    other = FleetGpu("n", 0, get_gpu("a100-80gb"))
    found = place_plan(plan_of({"a": 10}), Deployment((FleetNode("n", (other,)),)))
    assert isinstance(found, PlacementInfeasible)
    with pytest.raises(InvalidProblem, match="no schedule"):
        place_plan(plan_of({"a": 10}, limit=1), fleet([]))
    now, plan = fleet([running("a", "2g.12gb", 0, 8)], []), plan_of({"a": 20})
    cancel = threading.Event()
    cancel.set()
    for over in ({"time_limit": 0.0}, {"cancel": cancel}):
        with pytest.raises(CmsError, match="expected a longer time limit"):
            place_plan(plan, now, **over)


def test_what_is_wanted_is_reached_by_a_transition_and_not_taken_for_the_plans_groups() -> None:
    now = fleet([running("a", "2g.12gb", 0, 8), running("b", "2g.12gb", 2)], [], [])
    found = found_near(now, plan_of({"a": 30, "b": 40}))
    way = reached(now, found.wanted)
    assert way.kept.count == found.kept
    assert way.target.kinds() == found.deployment.kinds()
    with pytest.raises(InvalidProblem, match="no plan whose groups hold what is wanted"):
        place(found.wanted, fleet([]), as_grouped=True)
