"""Deployments: their model, files, what is wrong with them, and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError, InvalidProblem
from cms.files.documents import lay_out
from cms.fleet import get_gpu
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    StartSource,
    State,
    check_deployment,
    deployment_from_json,
    deployment_to_json,
    difference,
    read_nodes,
)
from cms.fleet.serving import RULES
from tests.property.problems import share

from .deployments import SERVICES, deployments, point, published

A100 = get_gpu("a100-80gb")
CHAT, CODE = (point(name, A100.key, "3g.40gb") for name in ("chat", "code"))


def fleet(
    *instances: Instance, mode: Mode = Mode.MIG, uuid: str | None = None, driver: str | None = None
) -> Deployment:
    card = FleetGpu("a", 0, A100, mode, instances, uuid)
    return Deployment((FleetNode("a", (card,), driver=driver),), SERVICES, RULES["half"])


def first(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["nodes"][0]["gpus"][0]
    return found


@given(deployments())
def test_a_legal_deployment_is_read_back_equal(deployment: Deployment) -> None:
    document = json.loads(lay_out(deployment_to_json(deployment)))
    assert {violation.kind for violation in check_deployment(deployment)} <= {"capacity"}
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


def test_what_travels_with_a_deployment_and_what_it_needs() -> None:
    wanted = published("S1")
    plan = wanted.plan
    assert plan is not None
    deployment = Deployment(fleet().nodes, plan.serving.services, RULES["parvagpu"], plan)
    assert deployment_from_json(deployment_to_json(deployment)).plan == plan
    found = [fault for fault in check_deployment(deployment, wanted) if fault.kind == "count"]
    assert len(found) == len(wanted.counts)
    one = fleet(Instance("1g.10gb", 0, point("chat", A100.key, "1g.10gb")))
    with pytest.raises(InvalidProblem, match="there is no service 'chat'"):
        replace(one, services=())
    document = deployment_to_json(one)
    document["points"].append({**document["points"][0], "name": "copy"})
    with pytest.raises(FileError, match=r"points\[1\] .*: there are two names of one point"):
        deployment_from_json(document)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda d: d["points"][0].update(supply_rps=99), "supply_rps .* by the rule 'half'"),
        (lambda d: first(d).update(gpu="h100-80gb"), 'gpu \\(node .a.\\) is "h100-80gb"'),
        (lambda d: first(d)["instances"][0].update(point="no"), 'point \\(node .a.\\) is "no"'),
        (lambda d: first(d).update(mode="off"), 'mode \\(node .a.\\) is "off"'),
        (lambda d: d["nodes"].append(d["nodes"][0]), "2 nodes 'a'"),
        (lambda d: d["services"].append(d["services"][0]), "two services 'chat'"),
        (lambda d: first(d).update(index=-1), "index"),
    ],
)
def test_an_edited_file_is_refused(edit: Callable[[Any], object], says: str) -> None:
    document = json.loads(lay_out(deployment_to_json(fleet(Instance("3g.40gb", 4, CHAT)))))
    edit(document)
    with pytest.raises(FileError, match=says):
        deployment_from_json(document)


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


def test_gpus_may_be_fixed_and_are_counted_at_their_own_points() -> None:
    held = Instance("1g.20gb", 0, owner="another")
    found = check_deployment(fleet(held, mode=Mode.FIXED, driver="470.82"))
    assert {violation.kind for violation in found} == {"capacity"}
    twice = FleetGpu("a", 0, A100)
    (fault,) = check_deployment(Deployment((FleetNode("a", (twice, twice)),)))
    assert str(fault) == "a has 2 GPUs 0, needs one of a number"
    slow, fast = point("chat", A100.key, "1g.10gb"), point("chat", A100.key, "3g.40gb")
    deployment = fleet(
        Instance("1g.10gb", 0, slow),
        Instance("1g.10gb", 1, slow, state=State.STARTING),
        Instance("3g.40gb", 4, fast),
    )
    assert deployment.capacity("chat") == slow.supply_rps + fast.supply_rps
    assert deployment.kinds()[Kind(A100.key, "1g.10gb", slow)] == 2


def held(deployment: Deployment) -> int:
    """How many instances there are: a whole GPU that nothing works on has none."""
    every = (each for _, each in deployment.instances())
    return sum(each.profile != WHOLE or bool(each.work or each.owner) for each in every)


@share(4)
@given(deployments(), deployments())
def test_what_is_kept_made_and_gone_adds_up(one: Deployment, other: Deployment) -> None:
    same = [node for node in one.nodes if node.name in {n.name for n in other.nodes}]
    if [[c.gpu.key for c in n.gpus] for n in same] != [
        [c.gpu.key for c in other.node(n.name).gpus] for n in same
    ]:
        return
    assert difference(one, one).is_empty
    found = difference(one, other).counts
    there, then = held(one), held(other)
    stays = sum(found.get(what, 0) for what in ("kept", "restarted", "foreign"))
    assert stays + found.get("deleted", 0) == there
    assert stays + found.get("created", 0) == then
    every = [each for side in (one, other) for _, each in side.instances()]
    if all(each.state in (State.RUNNING, State.STARTING) for each in every):
        # what is hollow is made anew, what drains goes: neither is so the other way round
        back = difference(other, one).counts
        assert back.get("created", 0) == found.get("deleted", 0)


OURS = Instance("3g.40gb", 4, CHAT)
LEAVING = replace(OURS, state=State.DRAINING)
THEIRS = replace(LEAVING, work=None, owner="pod team-x/a")
SHARE = Instance("mps:40", None, point("chat", A100.key, "mps:40"))
OFF = fleet(mode=Mode.WHOLE)


@pytest.mark.parametrize(
    ("now", "then", "counts", "is_empty"),
    [
        (fleet(OURS), fleet(replace(OURS, work=CODE)), {"restarted": 1}, False),
        # what is hollow is made anew
        (fleet(Instance("3g.40gb", 4, state=State.NO_COMPUTE_INSTANCE)), fleet(OURS),
         {"created": 1, "deleted": 1}, False),
        # shares of one size are counted, not matched by place
        (fleet(SHARE, SHARE, mode=Mode.MPS), fleet(SHARE, mode=Mode.MPS),
         {"kept": 1, "deleted": 1}, False),
        # what drains goes, and is started again where it is to stay
        (fleet(LEAVING), fleet(OURS), {"restarted": 1}, False),
        (fleet(LEAVING), fleet(), {"deleted": 1}, False),
        (fleet(LEAVING), fleet(LEAVING), {"kept": 1}, True),
        (fleet(THEIRS), fleet(replace(THEIRS, state=State.RUNNING)), {"foreign": 1}, True),
        # a mode that changes touches the GPU, unless nothing is to be on it
        (fleet(), OFF, {}, False),
        (OFF, fleet(Instance("3g.40gb", 4)), {"created": 1}, False),
        (OFF, fleet(), {}, True),
        (fleet(Instance(WHOLE), mode=Mode.WHOLE), fleet(), {}, True),
        (fleet(Instance(WHOLE), mode=Mode.WHOLE), OFF, {}, True),
    ],
)  # fmt: skip
def test_what_becomes_of_instances(
    now: Deployment, then: Deployment, counts: dict[str, int], is_empty: bool
) -> None:
    found = difference(now, then)
    assert ({key: n for key, n in found.counts.items() if n}, found.is_empty) == (counts, is_empty)


@pytest.mark.parametrize(
    ("now", "then", "says"),
    [
        (fleet(uuid="GPU-1"), fleet(uuid="GPU-2"), "GPU with UUID GPU-1 in the one"),
        (fleet(Instance("3g.40gb")), fleet(), "starts of the instances on a/0 are not known"),
    ],
)
def test_what_cannot_be_compared(now: Deployment, then: Deployment, says: str) -> None:
    cards = {("a", 0): replace(now.node("a").gpus[0], start_source=StartSource.UNKNOWN)}
    with pytest.raises(InvalidProblem, match=says):
        difference(now.with_gpus(cards), then)


def test_a_node_of_two_gpu_types(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("node,gpu,count,driver,rack\nb,a100-80gb,2,550.1,r1\nb,a30-24gb,1,550.1,r1\n")
    (node,) = read_nodes(path).nodes
    assert [(c.index, c.gpu.key) for c in node.gpus] == [
        (0, "a100-80gb"), (1, "a100-80gb"), (2, "a30-24gb"),
    ]  # fmt: skip
    assert (node.driver, dict(node.labels)) == ("550.1", {"rack": "r1"})


def test_bad_tables_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    for rows, says in (
        ("a,a100,2,,\n", "no GPU 'a100'"),
        ("a,a100-80gb,0,,\n", "count"),
        ("a,a100-80gb,10001,,\n", "10001 GPUs, expected at most 10000"),
        ("a,a100-80gb,1,new,\n", "driver is 'new'"),
        ("a,a100-80gb,1,123456789,\n", "nodes.csv:2:15: the driver is"),
        ("a,a100-80gb,1,,x\na,a30-24gb,1,,y\n", "zone 'y' here and 'x' in line 2"),
        ("a,a100-80gb,1,,\na,a100-80gb,1,,\n", "nodes.csv:3:3: node 'a' has a second row"),
    ):
        path.write_text(f"node,gpu,count,driver,zone\n{rows}")
        with pytest.raises(FileError, match=says):
            read_nodes(path)
    for column in ("gpu_index", "uuid", "zones", "gpu driver"):  # which are no labels
        path.write_text(f"node,gpu,count,{column}\na,a100-80gb,2,4\n")
        with pytest.raises(FileError, match=f":1: the column '{column}' "):
            read_nodes(path)
