"""Deployments: their model, their files, and what is wrong with them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import load_instance, solve
from cms.errors import FileError, InvalidProblem
from cms.files.documents import lay_out
from cms.fleet import Plan, gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    State,
    check_deployment,
    deployment_from_json,
    deployment_to_json,
    read_nodes,
    wanted_of,
)
from cms.fleet.serving import RULES, Scenario

from .deployments import SERVICES, deployments, point

A100 = gpu("a100-80gb")


def fleet(*instances: Instance, mode: Mode = Mode.MIG, driver: str | None = None) -> Deployment:
    card = FleetGpu("a", 0, A100, mode, instances)
    return Deployment((FleetNode("a", (card,), driver=driver),), SERVICES, RULES["half"])


def first(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["nodes"][0]["gpus"][0]
    return found


def scenario() -> Scenario:
    loaded = load_instance("S1")
    assert isinstance(loaded, Scenario)
    return loaded


# --- files ----------------------------------------------------------------------------------------


@given(deployments())
def test_a_deployment_is_read_back_equal(deployment: Deployment) -> None:
    document = json.loads(lay_out(deployment_to_json(deployment)))
    again = deployment_from_json(document)
    assert again == deployment
    assert lay_out(deployment_to_json(again)) == lay_out(deployment_to_json(deployment))


@given(deployments(), st.randoms(use_true_random=False))
def test_the_order_of_parts_does_not_matter(deployment: Deployment, random: object) -> None:
    nodes = tuple(
        replace(node, gpus=tuple(replace(c, instances=c.instances[::-1]) for c in node.gpus[::-1]))
        for node in deployment.nodes[::-1]
    )
    assert replace(deployment, nodes=nodes) == deployment


def test_a_plan_travels_with_its_certificate() -> None:
    serving = scenario().as_problem()
    plan = Plan(serving, solve(serving.problem))
    deployment = replace(fleet(), services=serving.services, rule=serving.rule, plan=plan)
    again = deployment_from_json(deployment_to_json(deployment))
    assert again.plan == plan


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda d: d["points"][0].update(supply_rps=99), "supply_rps .* by the rule 'half'"),
        (lambda d: first(d).update(gpu="h100-80gb"), 'gpu \\(node .a.\\) is "h100-80gb"'),
        (
            lambda d: d["nodes"][0]["gpus"][0]["instances"][0].update(point="no"),
            'point \\(node .a.\\) is "no"',
        ),
        (lambda d: first(d).update(mode="off"), 'mode \\(node .a.\\) is "off"'),
        (lambda d: d["nodes"].append(d["nodes"][0]), "2 nodes 'a'"),
        (lambda d: d["services"].append(d["services"][0]), "two services 'chat'"),
        (lambda d: first(d).update(index=-1), "index"),
    ],
)
def test_an_edited_file_is_refused(edit: object, says: str) -> None:
    document = deployment_to_json(fleet(Instance("3g.40gb", 4, point("chat", A100.key, "3g.40gb"))))
    document = json.loads(lay_out(document))
    assert callable(edit)
    edit(document)
    with pytest.raises(FileError, match=says):
        deployment_from_json(document)


# --- what is wrong --------------------------------------------------------------------------------


@given(deployments())
def test_nothing_is_wrong_with_legal_gpus(deployment: Deployment) -> None:
    kinds = {violation.kind for violation in check_deployment(deployment)}
    assert kinds <= {"capacity"}


@cache
def _layouts(key: str) -> set[frozenset[tuple[str, int]]]:
    every = [profile.name for profile in gpu(key).profiles]
    legal = {frozenset((p.profile, p.start) for p in each) for each in gpu(key).layouts(every)}
    return {*legal, frozenset()}


@pytest.mark.parametrize("key", ["a30-24gb", "h100-96gb"])
@given(data=st.data())
def test_a_gpu_is_legal_exactly_where_the_enumeration_has_its_layout(
    key: str, data: st.DataObject
) -> None:
    card = gpu(key)
    legal = _layouts(key)
    places = [(p.name, s) for p in card.profiles for s in p.starts]
    chosen = data.draw(st.lists(st.sampled_from(places), unique=True, max_size=5))
    held = tuple(Instance(profile, start) for profile, start in chosen)
    found = check_deployment(
        Deployment((FleetNode("a", (FleetGpu("a", 0, card, instances=held),)),))
    )
    assert (not found) == (frozenset(chosen) in legal), found


@pytest.mark.parametrize(
    ("deployment", "kind"),
    [
        (fleet(Instance("3g.40gb", 0), Instance("4g.40gb", 0)), "overlap"),
        (fleet(Instance("3g.40gb", 2)), "start"),
        (fleet(Instance("3g.40gb")), "start"),
        (fleet(Instance("5g.40gb", 0)), "profile"),
        (fleet(Instance("1g.10gb+me", 0), Instance("1g.10gb+me", 1)), "media"),
        (fleet(Instance("4g.40gb", 0), Instance("4g.40gb", 0)), "maximum"),
        (fleet(Instance("mps:60"), Instance("mps:50"), mode=Mode.MPS), "share"),
        (fleet(*[Instance("mps:2")] * 49, mode=Mode.MPS), "share"),
        (fleet(Instance("3g.40gb", 0), mode=Mode.MPS), "mode"),
        (fleet(Instance("3g.40gb", 0), mode=Mode.WHOLE), "mode"),
        (fleet(Instance("1g.20gb", 0), driver="470.82"), "driver"),
        (fleet(Instance("1g.10gb", 0, uuid="MIG-1"), Instance("1g.10gb", 1, uuid="MIG-1")), "uuid"),
        (fleet(*[Instance("mps:40", uuid="MIG-1")] * 2, mode=Mode.MPS), "uuid"),
        (fleet(Instance("1g.10gb", 0, point("chat", A100.key, "4g.40gb"))), "point"),
        (fleet(Instance("1g.10gb", 0, point("chat", "h100-80gb", "1g.10gb"))), "point"),
    ],
)
def test_what_cannot_be_is_named(deployment: Deployment, kind: str) -> None:
    assert kind in [violation.kind for violation in check_deployment(deployment)]


def test_what_is_on_a_fixed_gpu_may_be_anything() -> None:
    held = Instance("1g.20gb", 0, owner="another")
    found = check_deployment(fleet(held, mode=Mode.FIXED, driver="470.82"))
    assert {violation.kind for violation in found} == {"capacity"}


def test_two_gpus_with_one_number() -> None:
    cards = (FleetGpu("a", 0, A100), FleetGpu("a", 0, A100))
    (found,) = check_deployment(Deployment((FleetNode("a", cards),)))
    assert str(found) == "a has 2 GPUs 0, needs one of a number"


def test_capacity_counts_running_instances_at_their_own_points() -> None:
    slow, fast = point("chat", A100.key, "1g.10gb"), point("chat", A100.key, "3g.40gb")
    deployment = fleet(
        Instance("1g.10gb", 0, slow),
        Instance("1g.10gb", 1, slow, state=State.STARTING),
        Instance("3g.40gb", 4, fast),
    )
    assert deployment.capacity("chat") == slow.supply_rps + fast.supply_rps
    assert deployment.kinds()[Kind(A100.key, "1g.10gb", slow)] == 2


def test_counts_are_held_against_the_plan() -> None:
    serving = scenario().as_problem()
    wanted = wanted_of(Plan(serving, solve(serving.problem)))
    empty = Deployment((FleetNode("a", ()),), serving.services, serving.rule)
    found = [
        violation for violation in check_deployment(empty, wanted) if violation.kind == "count"
    ]
    assert len(found) == len(wanted.counts)


def test_work_needs_its_service() -> None:
    with pytest.raises(InvalidProblem, match="there is no service 'chat'"):
        replace(fleet(Instance("1g.10gb", 0, point("chat", A100.key, "1g.10gb"))), services=())


def test_one_point_has_one_name() -> None:
    of = deployment_to_json(fleet(Instance("1g.10gb", 0, point("chat", A100.key, "1g.10gb"))))
    of["points"].append({**of["points"][0], "name": "copy"})
    with pytest.raises(FileError, match=r"points\[1\] .*: there are two names of one point"):
        deployment_from_json(of)


# --- tables of nodes ------------------------------------------------------------------------------


def test_a_node_of_two_gpu_types(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("node,gpu,count,driver,rack\nb,a100-80gb,2,550.1,r1\nb,a30-24gb,1,550.1,r1\n")
    (node,) = read_nodes(path).nodes
    assert [(c.index, c.gpu.key) for c in node.gpus] == [
        (0, "a100-80gb"), (1, "a100-80gb"), (2, "a30-24gb"),
    ]  # fmt: skip
    assert (node.driver, dict(node.labels)) == ("550.1", {"rack": "r1"})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("a,a100,2,,\n", "no GPU 'a100'"),
        ("a,a100-80gb,0,,\n", "count"),
        ("a,a100-80gb,10001,,\n", "10001 GPUs, expected at most 10000"),
        ("a,a100-80gb,1,new,\n", "driver is 'new'"),
        (f"a,a100-80gb,1,{'9' * 5000}.1,\n", "nodes.csv:2:15: the driver is"),
        ("a,a100-80gb,1,123456789,\n", "nodes.csv:2:15: the driver is"),
        ("a,a100-80gb,1,,x\na,a100-80gb,1,,y\n", "zone 'y' here and 'x' in line 2"),
    ],
)
def test_bad_tables_of_nodes(rows: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(f"node,gpu,count,driver,zone\n{rows}")
    with pytest.raises(FileError, match=says):
        read_nodes(path)


@pytest.mark.parametrize("column", ["gpu_index", "index", "uuid", "zones", "gpu driver"])
def test_a_column_of_nodes_that_is_no_label(column: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(f"node,gpu,count,{column}\na,a100-80gb,2,4\n")
    with pytest.raises(FileError, match=f":1: the column '{column}' "):
        read_nodes(path)
