"""Plan and placement in one search: against every plan on tiny fleets, and forged plans."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import Configuration, SizeBoundedConfigurations, solve
from cms.errors import FileError
from cms.files import problem_from_json
from cms.fleet import OperatingPoint, Plan, Service, build_problem, get_gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    Work,
    check_deployment,
    deployment_from_json,
    deployment_to_json,
    desired_state,
)
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementInfeasible,
    PlacementResult,
    list_available,
    place,
    place_plan,
)
from cms.fleet.placement.gpu_group import group_equivalent_gpus
from cms.fleet.serving import RULES, plan_from_json, plan_to_json
from cms.solving.solution import Proof, Status
from cms.values.frozen import FrozenMap
from proofs_checks.checker.__main__ import _examined
from tests.property.problems import share
from tests.references.fleet_plans import Asked, is_served, least_cost
from tests.samples import few

from .deployments import deployments
from .plans import set_at
from .test_placement import guesses_in, less_known

A30, A100 = get_gpu("a30-24gb"), get_gpu("a100-80gb")
PROFILES = {A30.key: ("1g.6gb", "2g.12gb", "4g.24gb"), A100.key: ("1g.10gb", "3g.40gb", "7g.80gb")}
RULE = RULES["half"]


def point(service: str, key: str, profile: str) -> OperatingPoint:
    size = int(profile[0])
    speed = {1: 10, 2: 22, 3: 34, 4: 45, 7: 80}[size] + (3 * size if service == "b" else 0)
    return OperatingPoint(service, key, profile, 1, 4, speed, 20)


def running(service: str, key: str, profile: str, start: int) -> Instance:
    measured = point(service, key, profile)
    return Instance(profile, start, Work(service, measured, Fraction(measured.throughput_rps)))


@dataclass(frozen=True)
class Case:
    fleet: Deployment
    asked: Asked
    constraints: PlacementConstraints
    services: tuple[Service, ...]

    @property
    def gpus(self) -> list[str]:
        return sorted(self.fleet.devices)

    def plan(self) -> Plan:
        points = [
            point(s, key, p) for s in self.asked.rates for key in self.gpus for p in PROFILES[key]
        ]
        devices = [self.fleet.devices[key] for key in self.gpus]
        serving = build_problem(
            self.services, points, devices, rule=RULE, limits=self.asked.caps,
            costs=self.asked.prices, available=list_available(self.fleet, devices),
        )  # fmt: skip
        return Plan(serving, solve(serving.problem, time_limit=None))


def drawn_case(seed: int) -> Case:
    rng = random.Random(seed)
    mixed = rng.random() < 0.3
    shape = rng.choice(
        ([1], [1, 1]) if mixed else ([1], [2], [3], [4], [1, 1], [2, 1], [2, 2], [1, 1, 1])
    )
    nodes = []
    for at, n in enumerate(shape):
        cards = []
        for index in range(n):
            gpu = A100 if mixed and rng.random() < 0.5 else A30
            held: tuple[Instance, ...] = ()
            if rng.random() < 0.35:
                layout = rng.choice([own for own in gpu.layouts(PROFILES[gpu.key]) if len(own) < 3])
                is_managed = rng.random() < 0.3
                held = tuple(
                    running(rng.choice("ab"), gpu.key, *p)
                    if is_managed
                    else Instance(*p, owner="pod x/y")
                    for p in layout
                )
            cards.append(FleetGpu(f"n{at}", index, gpu, instances=held))
        nodes.append(FleetNode(f"n{at}", tuple(cards)))
    fleet = Deployment(tuple(nodes), tuple(Service(s, s, 10, 1000) for s in "ab"), RULE)
    total = sum(shape)
    rates = {name: Fraction(rng.randint(0, 14 * total)) for name in "ab"}
    if mixed:
        rates = {name: rate * 2 for name, rate in rates.items()}
    keys = sorted(fleet.devices)
    prices = {key: Fraction(rng.choice(("1", "1", "2", "7/3"))) for key in keys}
    caps = {key: rng.randint(0, total) for key in keys if rng.random() < 0.2}
    replicas = {name: rng.randint(1, 3) for name in "ab" if rates[name] and rng.random() < 0.25}
    services = tuple(
        Service(name, name, rate, 1000, extra={"min_replicas": str(replicas.get(name, ""))})
        for name, rate in rates.items()
    )
    spread = frozenset(name for name in "ab" if rng.random() < 0.25)
    apart, most = (
        rng.random() < 0.15,
        {name: rng.randint(1, 2) for name in "ab" if rng.random() < 0.15},
    )
    survive = Fraction(rng.choice((0, 0, 0, 1, 2)), 2)
    supply = {
        (name, key, profile): Fraction(point(name, key, profile).throughput_rps)
        for name in rates for key in keys for profile in PROFILES[key]
    }  # fmt: skip
    shares = {}
    for name, n in replicas.items():
        best = max(own for (service, *_), own in supply.items() if service == name)
        small = best < rates[name] / (2 * n)
        shares[name] = n, Fraction(0) if small else rates[name] / (2 * n)
    asked = Asked(rates, supply, prices, caps, shares, spread, apart, most, survive)
    constraints = PlacementConstraints(
        replicas, dict.fromkeys(spread, "node"), [("a", "b")] if apart else [], most,
        survive or None,
    )  # fmt: skip
    return Case(fleet, asked, constraints, services)


@pytest.mark.parametrize("seed", few(30, range(500)))
def test_no_plan_on_any_layout_costs_less(seed: int) -> None:
    case = drawn_case(seed)
    plan, best = case.plan(), least_cost(case.fleet, case.asked)
    if plan.solution.status is Status.INFEASIBLE:
        assert plan.solution.proof is Proof.CHECKED
        assert best is None
        return
    assert plan_from_json(plan_to_json(plan)) == plan
    document = plan_to_json(plan)
    assert _examined([document])[0] == []
    found = place_plan(plan, case.fleet, constraints=case.constraints)
    if isinstance(found, PlacementInfeasible):
        assert best is None
        return
    assert best is not None
    assert check_deployment(found.deployment, found.wanted) == ()
    assert is_served(found.deployment, case.asked)
    assert max(found.least_cost, plan.solution.lower_bound) <= best[0]
    assert found.spent == best or (found.spent > best and found.cost_proof is Proof.NONE)
    if found.cost_proof is Proof.CHECKED:
        assert found.cost == found.least_cost
    held = deployment_to_json(found.deployment)
    assert deployment_from_json(held) == found.deployment
    assert _examined([held])[0] == []
    _priced_consistently(case, found)


def _priced_consistently(case: Case, found: PlacementResult) -> None:
    """What a constraint costs is at most what all of them do, and nothing costs less than none."""
    together = found.constraints_cost
    for each in found.constraint_costs.values():
        assert together is not None
        assert (0, 0) <= each <= together
    if together is not None:
        free = Asked(case.asked.rates, case.asked.supply, case.asked.prices, case.asked.caps)
        base = least_cost(case.fleet, free)
        assert base is not None
        assert (found.cost - together.cost, found.spent.gpus - together.gpus) == base


# --- machine types --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [None, guesses_in, less_known])
@share(4)
@given(st.data())
def test_machine_types_are_what_each_gpu_can_hold(
    known: Callable[[st.DataObject, Deployment], Deployment] | None, data: st.DataObject
) -> None:
    """Also of GPUs whose instances may be another's, or whose starts are not known."""
    now = data.draw(deployments(most_nodes=2, most_gpus=3, keys=(A30.key, A100.key)))
    now = now if known is None else known(data, now)
    if old := data.draw(st.booleans()):
        now = replace(now, nodes=tuple(replace(node, driver="450.80") for node in now.nodes))
    names = {gpu.key: [*gpu.base_profiles, "mps:20", "mps:50"] for gpu in (A30, A100)}
    kinds = [
        Kind(key, name, Work("chat", OperatingPoint("chat", key, name, 1, 1, 1, 1), Fraction(1)))
        for key, own in names.items() for name in own
    ]  # fmt: skip
    numbers = {kind: number for number, kind in enumerate(kinds)}
    blocks = [(key, name) for key, own in names.items() for name in own]
    there = {each.limit_to(names[each.gpu]).name: each for each in list_available(now, (A30, A100))}
    for group in group_equivalent_gpus(now, numbers, blocks=blocks):
        own = group.available
        assert own.name in there
        assert old or not own.lacks
        shapes = [*own.list_configurations(group.gpu, names[own.gpu])]
        cut = [Counter(dict(s.blocks)) for s in shapes if isinstance(s, Configuration)]
        shared = [s for s in shapes if isinstance(s, SizeBoundedConfigurations)]
        held = [
            Counter(dict(option.counts))
            for option in group.options
            if option.mode is not Mode.WHOLE
        ]
        for counts in held:
            assert any(counts <= each for each in cut) or any(s.allows(counts) for s in shared)
        for counts in cut:
            assert counts in held


def full_fleet() -> Deployment:
    """Three GPUs of two types, two of them partly taken."""
    taken = Instance("1g.6gb", 0, owner="pod x/y")
    half = Instance("3g.40gb", 4, owner="pod x/y")
    cards = (
        FleetGpu("n", 0, A30, instances=(taken,)), FleetGpu("n", 1, A30),
        FleetGpu("n", 2, A100, instances=(half,)),
    )  # fmt: skip
    return Deployment((FleetNode("n", cards),))


def case_of(fleet: Deployment, rates: dict[str, int]) -> Case:
    services = tuple(Service(name, name, rate, 1000) for name, rate in rates.items())
    asked = Asked({name: Fraction(rate) for name, rate in rates.items()}, {}, {})
    return Case(fleet, asked, PlacementConstraints(), services)


def test_plan_on_empty_gpus_is_moved_to_fewer_of_those_that_cost_as_much() -> None:
    """Two A30s at 1 cost what one A100 at 2 does, and serve as much of service a."""
    cards = (FleetGpu("n", 0, A100), FleetGpu("n", 1, A30), FleetGpu("n", 2, A30))
    case = case_of(Deployment((FleetNode("n", cards),)), {"a": 80})
    case = replace(
        case, asked=replace(case.asked, prices={A30.key: Fraction(1), A100.key: Fraction(2)})
    )
    plan = case.plan()
    problem = plan.serving.problem
    dear, cheap = (
        problem.replace(machine_types=[replace(it, cost=it.cost * (n if it.name == A100.key else 1))
                                       for it in problem.machine_types])
        for n in (2, Fraction(1, 2))
    )  # fmt: skip
    for other, gpus in ((dear, 2), (cheap, 1)):
        schedule = solve(other).schedule
        assert schedule.machine_count == gpus
        made = Plan(plan.serving, replace(plan.solution, schedule=schedule))
        found = place_plan(made, case.fleet)
        assert isinstance(found, PlacementResult)
        assert (found.spent, found.cost_proof) == ((2, 1), Proof.CHECKED)
        again = place(desired_state(made), case.fleet)
        assert isinstance(again, PlacementResult)
        assert again.spent == (2, gpus)  # of these instances


def test_what_exactly_suffices_survives_a_node() -> None:
    cards = [FleetNode(n, tuple(FleetGpu(n, at, A30) for at in range(3))) for n in "mn"]
    case = case_of(Deployment(tuple(cards)), {"a": 3 * 45})
    survive = PlacementConstraints(survive="node:100%")
    found = place_plan(case.plan(), case.fleet, constraints=survive)
    assert isinstance(found, PlacementResult)
    assert (found.gpus, found.cost_proof) == ({A30.key: 6}, Proof.CHECKED)
    assert "3 x a30-24gb more than planned (least, proof checked)\n" in str(found)
    assert str(found).endswith("survive: node:100%: costs 3 GPUs")


def forged(*changes: tuple[str, Any], is_sealed: bool = False) -> list[str]:
    """What both checkers say of a forged plan, and of the deployment that it is placed in.

    If it is sealed its solution names the problem as it is then.
    """
    case = case_of(full_fleet(), {"a": 44, "b": 90})
    of_a, of_b = case.services
    priced = replace(case.fleet.nodes[0], labels=FrozenMap({"price_per_hour": "1"}))
    asked = replace(of_a, extra=FrozenMap({"min_replicas": "1"}))
    case = replace(case, fleet=Deployment((priced,)), services=(asked, of_b))
    found = place_plan(case.plan(), case.fleet)
    assert isinstance(found, PlacementResult)
    document = json.loads(json.dumps(deployment_to_json(found.deployment)))
    plan = document["plan"]
    for path, value in changes:
        set_at(document, path, value)
    for own in (plan["solution"], plan["solution"]["certificate"]) if is_sealed else ():
        own["problem_sha256"] = problem_from_json(plan["problem"]).sha256
    said = []
    for read, written in ((plan_from_json, plan), (deployment_from_json, document)):
        try:
            read(written)
        except FileError:
            said.append("package")
        try:
            said += ["independent"] * bool(_examined([written])[0])
        except ValueError:
            said.append("independent")
    return said


BOTH = ["package", "independent"]


@pytest.mark.parametrize(
    ("path", "value", "is_sealed"),
    [
        ("available.1.held.0.start", 3, False),
        ("available.0.count", 2, False),
        ("available.1.held", [], False),
        ("problem.machine_types.1.cost", 1, False),
        ("problem.jobs.0.replicas.count", 2, True),
    ],
)
def test_forged_machine_types_are_refused_by_both_checkers(
    path: str, value: Any, is_sealed: bool
) -> None:
    assert forged((f"plan.{path}", value), is_sealed=is_sealed) == BOTH * 2


def test_what_a_plan_says_of_a_fleet_is_held_against_the_fleet_by_both_checkers() -> None:
    """A plan for more GPUs is consistent by itself; one that uses less than it could is legal."""
    assert forged() == []
    more = ("plan.available.0.count", 2), ("plan.problem.machine_types.0.limit", 2)
    assert forged(*more, is_sealed=True) == BOTH
    assert forged(("nodes.0.labels.price_per_hour", "999")) == BOTH
    assert forged(("plan.available.1.held.0.serves", True)) == ["package", *BOTH]
