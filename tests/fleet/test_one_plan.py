"""Plan and placement in one search: against every plan on tiny fleets, and forged plans."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import pytest

from cms import solve
from cms.fleet import OperatingPoint, Plan, Service, build_problem, get_gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    check_deployment,
    deployment_from_json,
    deployment_to_json,
)
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementInfeasible,
    PlacementResult,
    list_available,
    place_plan,
)
from cms.fleet.serving import RULES, plan_from_json, plan_to_json
from cms.solving.solution import Proof, Status
from proofs_checks.checker.__main__ import _examined
from tests.references.fleet_plans import Asked, least_cost
from tests.samples import few

A30, A100 = get_gpu("a30-24gb"), get_gpu("a100-80gb")
PROFILES = {A30.key: ("1g.6gb", "2g.12gb", "4g.24gb"), A100.key: ("1g.10gb", "3g.40gb", "7g.80gb")}
RULE = RULES["half"]


def point(service: str, key: str, profile: str) -> OperatingPoint:
    size = int(profile[0])
    speed = {1: 10, 2: 22, 3: 34, 4: 45, 7: 80}[size] + (3 * size if service == "b" else 0)
    return OperatingPoint(service, key, profile, 1, 4, speed, 20)


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
            held = ()
            if rng.random() < 0.35:
                layout = rng.choice([own for own in gpu.layouts(PROFILES[gpu.key]) if len(own) < 3])
                held = tuple(Instance(p.profile, p.start, owner="pod x/y") for p in layout)
            cards.append(FleetGpu(f"n{at}", index, gpu, instances=held))
        nodes.append(FleetNode(f"n{at}", tuple(cards)))
    fleet = Deployment(tuple(nodes))
    total = sum(shape)
    rates = {name: Fraction(rng.randint(0, 18 * total)) for name in "ab"}
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
    assert found.least_cost <= best
    assert plan.solution.lower_bound <= best
    if found.cost != best:  # then it says so
        assert found.cost > best
        assert found.cost_proof is Proof.NONE
    if found.cost_proof is Proof.CHECKED:
        assert found.cost == best == found.least_cost
    held = deployment_to_json(found.deployment)
    assert deployment_from_json(held) == found.deployment
    assert _examined([held])[0] == []
    _priced_consistently(case, found)


def _priced_consistently(case: Case, found: PlacementResult) -> None:
    """What a constraint costs is at most what all of them do, and nothing costs less than none."""
    together = found.constraints_cost
    for each in found.constraint_costs.values():
        assert together is not None
        assert (0, 0) <= (each.cost, 0) <= (together.cost, 0)
    if together is not None:
        free = Asked(case.asked.rates, case.asked.supply, case.asked.prices, case.asked.caps)
        base = least_cost(case.fleet, free)
        assert base is not None
        assert found.cost - together.cost == base
