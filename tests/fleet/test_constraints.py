"""Placement constraints: kept where a placement can, at no more than it must cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from cms.errors import InvalidOption, InvalidProblem
from cms.fleet import Service, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Kind
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementInfeasible,
    PlacementResult,
    place,
    placement_constraints,
)
from cms.fleet.placement.constraint_rows import build_demand, build_model
from cms.fleet.placement.program import Limits
from cms.values.frozen import FrozenMap

from .deployments import placed, point, wanted_for

A30 = "a30-24gb"


def kind(service: str, profile: str = "1g.6gb") -> Kind:
    return Kind(A30, profile, point(service, A30, profile))


def empty(nodes: int, each: int, zones: str = "ew") -> Deployment:
    return Deployment(
        tuple(
            FleetNode(
                name := f"node-{i}",
                tuple(FleetGpu(name, k, get_gpu(A30)) for k in range(each)),
                FrozenMap({"zone": zones[i % len(zones)]}),
            )
            for i in range(nodes)
        )
    )


def where(found: PlacementResult, service: str) -> list[str]:
    return [
        card.name
        for card, each in found.deployment.instances()
        if each.work is not None and each.work.service == service
    ]


def test_constraints_cost_what_is_said() -> None:
    wanted = wanted_for({kind("chat", "2g.12gb"): 1, kind("code", "2g.12gb"): 1}, {A30: 1})
    found = placed(wanted, empty(1, 2), constraints=PlacementConstraints(min_replicas={"chat": 3}))
    assert len(where(found, "chat")) == 3
    assert found.more_gpus == {A30: 1}
    assert found.constraint_costs == {"min_replicas of chat: 3": (1, 1)}
    more = "1 x a30-24gb more than planned (least for the plan's instances, proof checked)"
    assert more in str(found)
    assert "min_replicas of chat: 3: costs 1 GPU" in str(found)
    wanted = wanted_for({kind("chat"): 2}, {A30: 1})
    wanted = replace(wanted, services=(Service("chat", "chat", 20, 1000),))
    found = placed(wanted, empty(3, 1), constraints=PlacementConstraints(survive="node:80%"))
    # 12 requests/s each: two on either of two nodes
    assert sorted(where(found, "chat")) == ["node-0/0"] * 2 + ["node-1/0"] * 2
    assert str(found).endswith("survive: node:80%: costs about 1 GPU")  # on a solver's word
    wanted = wanted_for({kind("chat"): 4}, {A30: 1})
    together = placed(wanted, empty(2, 1), constraints=PlacementConstraints())
    assert len({*where(together, "chat")}) == 1
    nodes = placed(wanted, empty(2, 1), constraints=PlacementConstraints(spread={"chat": "node"}))
    assert sorted(where(nodes, "chat")) == ["node-0/0"] * 2 + ["node-1/0"] * 2
    zones = placed(wanted, empty(4, 1), constraints=PlacementConstraints(spread={"chat": "zone"}))
    assert sorted(where(zones, "chat")) == ["node-0/0"] * 2 + ["node-1/0"] * 2
    assert zones.constraint_costs == {"spread of chat: zone": (1, 1)}
    bare = Deployment((FleetNode("a", (FleetGpu("a", 0, get_gpu(A30)),)),))
    with pytest.raises(InvalidProblem, match="'a' has no label zone"):
        place(wanted, bare, constraints=PlacementConstraints(spread={"chat": "zone"}))


def test_max_per_gpu_bounds_what_shares_a_gpu() -> None:
    counts = {kind("chat"): 6, kind("code"): 3, kind("sum"): 3}
    wish = PlacementConstraints(max_per_gpu={"chat": 2})
    found = placed(wanted_for(counts, {A30: 3}), empty(1, 5), constraints=wish)
    assert where(found, "chat") == [f"node-0/{index}" for index in (0, 0, 1, 1, 2, 2)]
    assert found.constraint_costs == {"max_per_gpu of chat: 2": (0, 0)}
    wish = PlacementConstraints(max_per_gpu={"chat": 1}, min_replicas={"chat": 2})
    none = place(wanted_for({kind("chat"): 2}, {A30: 1}), empty(1, 1), constraints=wish)
    assert isinstance(none, PlacementInfeasible)
    assert str(none) == (
        "unplaceable, proof checked: max_per_gpu of chat: 1 is asked for, and without it there is "
        "a placement"
    )


def test_constraints_are_read_from_columns_unless_given_and_add_up() -> None:
    extra = {"min_replicas": "2", "spread": "node"}
    chat = Service("chat", "chat", 0, 1000, extra=extra)
    wanted = replace(wanted_for({kind("chat"): 1}, {A30: 1}), services=(chat,))
    found = place(wanted, empty(2, 1))
    assert isinstance(found, PlacementResult)
    assert sorted(where(found, "chat")) == ["node-0/0", "node-1/0"]
    assert len(where(placed(wanted, empty(2, 1), constraints=PlacementConstraints()), "chat")) == 1
    whole = PlacementConstraints({"a": 1}, {"b": "node"}, [("b", "a")], {"c": 2}, "80%")
    again = PlacementConstraints()
    for name, wish in whole.split().items():
        assert whole.without(name).split().keys() == whole.split().keys() - {name}
        again |= wish
    assert again == whole
    drawn = PlacementConstraints(anti_affinity=(pair for pair in [("c", "b"), ("a", "b")]))
    assert drawn.anti_affinity == (("a", "b"), ("b", "c"))
    assert (bool(whole), bool(PlacementConstraints())) == (True, False)


def test_placement_constraints_refuses_cells() -> None:
    for extra, says in (
        ({"min_replicas": "two"}, "s.csv:2: min_replicas of 'chat' is 'two'"),
        ({"min_replicas": "9" * 5000}, "s.csv:2: min_replicas of 'chat' is '9"),
        ({"spread": "rack"}, "s.csv:2: spread of 'chat' is 'rack'; expected node or zone"),
        ({"anti_affinity": "chat"}, "s.csv:2: anti_affinity has chat and chat"),
    ):
        with pytest.raises(InvalidProblem, match=says):
            placement_constraints([Service("chat", "chat", 1, 1, extra=extra, origin="s.csv:2")])


def test_placement_constraints_refuses_values() -> None:
    with pytest.raises(InvalidOption, match="max_per_gpu of 'chat' is 0"):
        PlacementConstraints(max_per_gpu={"chat": 0})
    with pytest.raises(InvalidOption, match="survive is 'most'"):
        PlacementConstraints(survive="most")


def test_no_bound_on_instances_is_told_of_rates_that_rows_have_rounded() -> None:
    odd = [
        replace(each, work=replace(each.work, supply_rps=n + Fraction(1, 10**8 + n)))
        for each, n in ((kind("chat"), 12), (kind("chat", "2g.12gb"), 25))
    ]
    chat = Service("chat", "chat", 24, 1000)
    wanted = replace(wanted_for(dict.fromkeys(odd, 1), {A30: 1}), services=(chat,))
    for survive, is_exact in ((None, True), ("node:50%", False)):
        some = PlacementConstraints(survive=survive)
        model = build_model(build_demand(wanted, some), empty(2, 1), some)
        assert model.is_exact is is_exact
        assert model.bound_placed(Limits()) == (2 if is_exact else None)


def test_growth_takes_the_cheapest_gpus_within_caps_and_refusals_name_them() -> None:
    big = "a100-80gb"
    counts = {kind("chat", "4g.24gb"): 1, Kind(big, "7g.80gb", point("chat", big, "7g.80gb")): 1}
    nodes = tuple(
        FleetNode(key[:2], tuple(FleetGpu(key[:2], i, get_gpu(key)) for i in range(3)))
        for key in (A30, big)
    )
    prices = {A30: Fraction(1), big: Fraction(5, 2)}
    wanted = replace(wanted_for(counts, {A30: 1, big: 1}), prices=prices)
    some = PlacementConstraints(min_replicas={"chat": 3})
    found = placed(wanted, Deployment(nodes), constraints=some)
    assert (found.gpus, found.cost) == ({A30: 2, big: 1}, Fraction(9, 2))
    assert found.constraint_costs == {"min_replicas of chat: 3": (1, 1)}
    capped = placed(replace(wanted, max_gpus={A30: 1}), Deployment(nodes), constraints=some)
    assert (capped.gpus, capped.cost) == ({A30: 1, big: 2}, 6)
    assert str(capped).splitlines()[1:] == [
        "1 x a100-80gb more than planned (least for the plan's instances, proof checked)",
        "cost 6 (least for the plan's instances, proof checked)",
        "min_replicas of chat: 3: costs 1 GPU (cost 2.5)",
    ]
    none = place(replace(wanted, max_gpus=dict.fromkeys(prices, 1)), Deployment(nodes),
                 constraints=some)  # fmt: skip
    assert str(none) == (
        "unplaceable, proof checked: at most 1 x a30-24gb may be used, and with more there is a "
        "placement; at most 1 x a100-80gb may be used, and with more there is a placement; "
        "min_replicas of chat: 3 is asked for, and without it there is a placement"
    )
