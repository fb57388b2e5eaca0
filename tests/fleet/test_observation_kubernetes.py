"""What a cluster says of its nodes and pods becomes a deployment, and what cannot be is refused."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import CmsError, FileError
from cms.files.node import Node
from cms.files.source import Source
from cms.files.yaml_text import read_yaml_or_json
from cms.fleet.deployment import Mode, State
from cms.fleet.deployment.observation.facts import GpuFacts, NodeFacts, Stated
from cms.fleet.deployment.observation.kubernetes import facts_of_kubernetes, is_kubernetes
from cms.fleet.deployment.observation.merge import merge

from .cluster import (
    A100,
    CHAT,
    ELSEWHERE,
    HALVES,
    HIGH,
    LOW,
    MIXED,
    OURS,
    PRODUCT,
    TWO,
    WHOLE_GPU,
    Object,
    claim,
    claiming,
    cut,
    known,
    node,
    pod,
    seen,
    slices,
    told,
)
from .deployments import point

# --- nodes ----------------------------------------------------------------------------------------


def test_a_node_says_what_it_is_and_can_give() -> None:
    labels = {
        **MIXED,
        "nvidia.com/mig.config": "all-balanced",
        "nvidia.com/mig.config.state": "success",
        "nvidia.com/cuda.driver.major": "550",
        "nvidia.com/cuda.driver.minor": "54",
        "nvidia.com/cuda.driver.rev": "15",
        "topology.kubernetes.io/zone": "east",
    }
    (facts,) = told(node("a", labels, **{"mig-1g.10gb.me": "1", "mig-2g.20gb": 2, "gpu": "0"}))
    assert facts.node == Stated("a", "")
    assert facts.product == Stated(PRODUCT, "")
    assert facts.driver == Stated("550.54.15", "")
    assert facts.mig_state == Stated("success", "")
    assert facts.allocatable == {"1g.10gb+me": 1, "2g.20gb": 2, "whole": 0}  # no stale capacity
    assert (facts.labels["zone"], facts.labels["nvidia.com/mig.config"]) == ("east", "all-balanced")
    assert facts.pods is None


def test_nodes_without_gpus_are_left_out_and_other_kinds_passed_over() -> None:
    plain: Object = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"},
        "status": {"allocatable": {"cpu": "64"}},
    }  # fmt: skip
    replicas: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    assert [facts.node and facts.node.value for facts in told(plain, replicas, node("b"))] == ["b"]


def test_yaml_and_single_objects_and_typed_lists_are_read_too() -> None:
    text = "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a, labels: {}}\n"
    text += "  status: {allocatable: {nvidia.com/gpu: '2'}}\n---\n" + json.dumps(pod())
    text = text.replace("mig-3g.40gb", "gpu")
    (facts,) = facts_of_kubernetes(read_yaml_or_json(Source("c.yaml", text)), "c.yaml")
    assert [each.profiles for each in facts.pods or ()] == [("whole",)]


def test_what_is_recognised() -> None:
    assert is_kubernetes([Node(node()), Node(pod())])
    others: list[Any] = [{"version": "v1"}, {"apiVersion": "v1", "kind": "ConfigMap"}, [], "text"]
    for other in others:
        assert not is_kubernetes([Node(other)])
    assert not is_kubernetes([])


def test_whole_gpus_are_counted_and_one_cut_gpu_is_known_by_its_counts() -> None:
    one = {"nvidia.com/gpu.count": "1", **MIXED}
    found = merge(told(node("a", one, **{"mig-7g.80gb": "1", "gpu": "0"}))).deployment
    assert [str(card) for card in found.gpus()] == ["a/0 a100-80gb: 7g.80gb@0 of unknown"]
    two = {"nvidia.com/gpu.count": "2", **MIXED}
    found = merge(told(node("a", two, gpu="2"), pod(resource="gpu"), ELSEWHERE)).deployment
    assert [card.mode for card in found.gpus()] == [Mode.WHOLE] * 2
    whose = [(i.owner, i.is_guessed) for _, i in found.instances()]
    assert whose == [("pod prod/chat-1", True), (None, True)]  # either may be the pod's
    with pytest.raises(FileError, match="no GPU of node 'a' is told of"):
        merge(told(node("a", two, **{"mig-3g.40gb": "2"})))


def test_a_node_of_whose_gpus_nothing_is_told_is_not_passed_over() -> None:
    broken = node("b", {"nvidia.com/gpu.present": "true"})
    del broken["metadata"]["labels"]["nvidia.com/gpu.product"]
    with pytest.raises(FileError, match="no GPU of node 'b'"):
        seen(TWO, broken, pod(), ELSEWHERE)
    broken["metadata"]["labels"]["nvidia.com/gpu.present"] = "false"
    assert len(seen(TWO, broken, pod(), ELSEWHERE).deployment.nodes) == 1


def test_under_the_strategy_single_a_gpu_is_an_instance() -> None:
    labels = {
        "nvidia.com/gpu.product": f"{PRODUCT}-MIG-3g.40gb",
        "nvidia.com/mig.strategy": "single",
    }
    (facts,) = told(node("a", labels, gpu="2"), pod(resource="gpu", metadata=OURS), ELSEWHERE)
    assert (facts.product, facts.allocatable) == (Stated(PRODUCT, ""), {"3g.40gb": 2})
    assert facts.pods is not None
    assert facts.pods[0].profiles == ("3g.40gb",)
    found = merge([HALVES, facts], known())
    assert Counter(i.work for _, i in found.deployment.instances()) == {CHAT: 1, None: 1}


def test_of_shared_gpus_it_says_what_is_not_known_and_keeps_off() -> None:
    labels = {
        "nvidia.com/gpu.count": "2",
        "nvidia.com/mig.capable": "false",
        "nvidia.com/gpu.sharing-strategy": "mps",
        "nvidia.com/gpu.product": f"{PRODUCT}-SHARED",
    }
    for name in ("gpu", "gpu.shared"):
        found = merge(told(node("a", labels, **{name: "8"}), pod(resource=name), ELSEWHERE))
        assert [i.owner for _, i in found.deployment.instances()] == ["pods prod/chat-1"] * 2
        assert "its GPUs are shared by mps: which pods share which" in found.warnings[0]


def test_a_node_that_shares_parts_or_unheld_gpus_is_fixed_and_the_rest_is_read() -> None:
    parts = {"nvidia.com/mig-3g.40gb.sharing-strategy": "time-slicing", "nvidia.com/gpu.count": "2",
             "nvidia.com/gpu.product": PRODUCT}  # fmt: skip
    wholes = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.count": "2",
              "nvidia.com/mig.capable": "false", "nvidia.com/gpu.product": PRODUCT}  # fmt: skip
    for labels, offered in ((parts, {"mig-3g.40gb.shared": "8"}), (wholes, {"gpu": "8"})):
        other = node("b", {**wholes, "nvidia.com/gpu.sharing-strategy": "none"}, gpu="2")
        found = merge(told(node("a", labels, **offered), other, ELSEWHERE))
        modes = {n.name: {card.mode for card in n.gpus} for n in found.deployment.nodes}
        assert modes == {"a": {Mode.FIXED}, "b": {Mode.WHOLE}}
        assert any(said.startswith("a/0, 1: fixed") for said in found.warnings)


def test_cards_that_no_device_file_describes_are_fixed_whatever_is_counted_on_them() -> None:
    t4 = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "2",
          "nvidia.com/mig.capable": "false"}  # fmt: skip
    other = {"nvidia.com/gpu.product": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
             "nvidia.com/gpu.count": "1", "nvidia.com/mig.strategy": "mixed"}  # fmt: skip
    objects = [node("a", t4, gpu="2"), node("b", other, **{"mig-1g.24gb.gfx": "4"})]
    cards = (Stated(PRODUCT, "q:2"), Stated("Tesla T4", "q:3"))
    listed = tuple(
        GpuFacts(index, each.where, product=each, mig=Stated("off", "q:2"))
        for index, each in enumerate(cards)
    )
    for label in (PRODUCT, "Tesla-T4"):  # of a node with both types it names one
        both = node("c", {"nvidia.com/gpu.product": label}, gpu="2")
        seen = merge([*told(both, ELSEWHERE), NodeFacts("q", Stated("c", ""), gpus=listed)])
        assert [card.mode for card in seen.deployment.gpus()] == [Mode.WHOLE, Mode.FIXED]
    found = merge(told(*objects, pod(resource="gpu"), ELSEWHERE))
    assert [(c.name, c.mode, c.gpu.key) for c in found.deployment.gpus()] == [
        ("a/0", Mode.FIXED, "tesla-t4"), ("a/1", Mode.FIXED, "tesla-t4"),
        ("b/0", Mode.FIXED, "rtx-pro-6000-96gb"),
    ]  # fmt: skip


def test_a_change_under_way_is_refused_and_a_failed_one_said() -> None:
    for state in ("pending", "failed"):
        changed = node("a", {**MIXED, "nvidia.com/mig.config.state": state}, **{"mig-3g.40gb": "2"})
        if state == "pending":
            with pytest.raises(FileError, match=r"items\[0\].*is being changed"):
                seen(changed, ELSEWHERE, pod())
        else:
            assert "has failed" in seen(changed, ELSEWHERE, pod()).warnings[0]


def test_a_driver_is_the_same_with_and_without_zeros() -> None:
    labels = {**MIXED, "nvidia.com/cuda.driver-version.full": "535.104.5"}
    smi = replace(HALVES, driver=Stated("535.104.05", "smi.txt:2"))
    found = seen(node("a", labels, **{"mig-3g.40gb": 2}), gpus=smi)
    assert found.deployment.nodes[0].driver == "535.104.05"
    other = {**labels, "nvidia.com/cuda.driver-version.full": "535.104.6"}
    with pytest.raises(FileError, match="the driver of a is 535"):
        seen(node("a", other, **{"mig-3g.40gb": 2}), gpus=smi)


# --- pods -----------------------------------------------------------------------------------------


def test_labels_say_whose_an_instance_is() -> None:
    found = seen(TWO, pod(metadata=OURS), pod("train", metadata={"namespace": "team-x"}))
    held = [i for _, i in found.deployment.instances()]
    assert Counter((i.work, i.owner) for i in held) == {
        (CHAT, None): 1,
        (None, "pod team-x/train"): 1,
    }
    assert all(i.is_guessed for i in held)


def test_a_label_of_ones_own_names_the_service_where_one_point_is_known() -> None:
    mine = {"labels": {"app": "chat"}}
    found = seen(TWO, pod(metadata=mine), ELSEWHERE, service_label="app")
    assert CHAT in [i.work for _, i in found.deployment.instances()]
    other = point("chat", A100.key, "3g.40gb", batch=8)
    facts = [HALVES, *told(TWO, pod(metadata=mine), ELSEWHERE, service_label="app")]
    found = merge(facts, known(CHAT, other))
    assert "pod prod/chat-1" in [i.owner for _, i in found.deployment.instances()]
    assert "which no plan or deployment that was given knows" in found.warnings[0]
    wide = point("chat", A100.key, "7g.80gb")  # which a pod on 3g.40gb cannot be
    found = merge(facts, known(CHAT, wide))
    assert CHAT in [i.work for _, i in found.deployment.instances()]


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, State.RUNNING),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, State.STARTING),
        ({"status": {"phase": "Pending", "conditions": []}}, State.STARTING),
        ({"metadata": {**OURS, "deletionTimestamp": "2026-11-23T10:00:00Z"}}, State.DRAINING),
        ({"status": {"phase": "Succeeded"}}, None),
        ({"status": {"phase": "Failed"}}, None),
        ({"on": None, "status": {"phase": "Pending"}}, None),
    ],
)
def test_what_a_pod_does(more: Object, state: State | None) -> None:
    (facts,) = told(TWO, pod(**{"metadata": OURS, **more}))
    assert [each.state for each in facts.pods or ()] == ([] if state is None else [state])


def test_what_containers_hold_adds_up_and_those_before_do_not() -> None:
    def holding(*counts: int, init: tuple[int, ...] = (), side: tuple[int, ...] = ()) -> int:
        def one(count: int, **more: str) -> Object:
            return {"resources": {"limits": {"nvidia.com/mig-3g.40gb": count}}, **more}

        spec = {
            "containers": [one(count) for count in counts],
            "initContainers": [one(count, restartPolicy="Always") for count in side]
            + [one(count) for count in init],
        }
        (facts,) = told(node("a", **{"mig-3g.40gb": 9}), pod(spec=spec))
        return len(facts.pods[0].profiles) if facts.pods else 0

    assert holding(1, 2) == 3
    assert holding(1, init=(2, 1)) == 2
    assert holding(2, init=(1,)) == 2
    assert holding(1, side=(1,), init=(2,)) == 3


def test_pods_of_one_namespace_may_not_be_all() -> None:
    (said,) = [each for each in seen(TWO, pod()).warnings if "of namespace prod" in each]
    assert "unless they were listed with -A" in said
    assert not any("namespace" in said for said in seen(TWO, pod("1"), pod("2")).warnings)
    assert not any("of namespace" in said for said in seen(TWO, pod(), ELSEWHERE).warnings)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([TWO, TWO], r"items\[1\]: Node 'a' is told of twice, also in cluster.json: items\[0\]"),
        ([pod()], r"spec.nodeName: pod prod/chat-1 holds GPUs of node 'a', which is not told of"),
        ([node("a", **{"mig-3g.40gb": "x"})], r'status.allocatable\["nvidia.com/mig-3g.40gb"\] is'),
        ([TWO, pod("1"), pod("2"), pod("3")], r"items\[3\]: pod prod/3 holds 3g.40gb, and then 3"),
        ([node("a", gpu=1), pod()], "held of node 'a', which has 0"),
        ([slices(LOW, on="b"), TWO], "lists devices of node 'b' .*, which is not told of"),
        ([{"kind": "Node"}], r'items\[0\] has no "metadata"'),
        ([{**TWO, "status": {}}], 'items.0..status has no "allocatable"'),
        ([{**TWO, "metadata": {"name": "a", "labels": []}}], "expected an object"),
        ([TWO, {**pod(), "spec": {"nodeName": "a"}}], 'has no "containers"'),
        (["text"], r'items\[0\] is "text", expected an object of Kubernetes'),
        ([TWO, claiming("p", "c-1")], r"holds the claim 'prod/c-1', which is not told of"),
        ([slices(LOW), claim("c", "gpu-7")], "device 'gpu-7' of pool 'a' is in no ResourceSlice"),
        ([slices({**LOW, "name": "gpu-0-mig-3"})], "expected gpu-0, or gpu-0-mig-3g40gb-9-4"),
        ([slices({**LOW, "name": "gpu-0-mig-2g20gb-9-4"})], "with the profile '3g.40gb'"),
        ([{**slices(LOW), "apiVersion": "resource.k8s.io/v1beta1"}], "resource.k8s.io/v1beta2"),
        (
            [TWO, slices(LOW, on="b"), claim("c-1", LOW["name"], on="b"), claiming("p", "c-1")],
            "runs on node 'a', and holds a device of 'b'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_line(objects: list[Any], message: str) -> None:
    with pytest.raises(FileError, match=message) as fault:
        told(*objects)
    assert fault.value.line is not None


def test_a_node_that_gives_away_what_its_gpus_do_not_hold() -> None:
    with pytest.raises(FileError, match="can give away 3 x 3g.40gb, but its GPUs hold 2") as fault:
        seen(node("a", **{"mig-3g.40gb": "3"}), pod(), ELSEWHERE)
    assert "restart the device plug-in" in str(fault.value)


@pytest.mark.parametrize(
    ("allocatable", "capacity", "says"),
    [
        (1, 2, "a: 1 of its 2 x 3g.40gb cannot be given away"),
        (0, 2, "a: 2 of its 2 x 3g.40gb cannot be given away"),
        (1, 1, "a: 1 of its 2 x 3g.40gb cannot be given away"),
        (2, 3, "a: 1 of its 3 x 3g.40gb cannot be given away"),
        (2, 2, None),
    ],
)
def test_less_to_give_away_than_there_is_is_said_with_the_count(
    allocatable: int, capacity: int, says: str | None
) -> None:
    known_of = node("a", **{"mig-3g.40gb": allocatable})
    known_of["status"]["capacity"] = {"nvidia.com/mig-3g.40gb": capacity}
    held = [pod(f"chat-{at}") for at in range(min(2, capacity))]  # they run on what broke as well
    found = seen(known_of, *held, ELSEWHERE)
    assert len([*found.deployment.instances()]) == 2
    said = [each for each in found.warnings if "given away" in each]
    assert len(said) == (says is not None)
    assert (says or "") in "".join(said)


def test_media_engines_are_counted_as_the_profile_without_them() -> None:
    """As the device plug-in does, unless it has a resource for them."""
    places = [*(("1g.10gb", at) for at in range(5)), ("1g.10gb+me", 5), ("1g.20gb", 6)]
    listing = replace(HALVES, gpus=(cut(*places),))
    ours = {"mig-1g.10gb": 6, "mig-1g.20gb": 1}, {"mig-1g.10gb": 5, "mig-1g.10gb.me": 1}
    for counts, most in ((ours[0], 6), ({**ours[1], "mig-1g.20gb": 1}, 5)):
        pods = [pod(f"p-{at}", "mig-1g.10gb") for at in range(most)]
        found = seen(node("a", **counts), *pods, ELSEWHERE, gpus=listing)
        taken = [i.profile for _, i in found.deployment.instances() if i.owner]
        assert Counter(taken)["1g.10gb+me"] == most - 5
        assert not any("given away" in said for said in found.warnings)


def test_gpus_that_are_counted_though_they_are_cut_are_stale() -> None:
    found = seen(node("a", **{"mig-3g.40gb": 2, "gpu": 2}), ELSEWHERE)
    (said,) = [each for each in found.warnings if "stale" in each]
    assert said.startswith("a: 2 x nvidia.com/gpu")


def test_a_node_that_takes_no_pods_is_named() -> None:
    assert "no device plug-in" in "".join(seen(node("a"), pod(resource=None), ELSEWHERE).warnings)
    closed = node("a", **{"mig-3g.40gb": 2})
    closed["spec"] = {"unschedulable": True}
    closed["status"]["conditions"] = [
        {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "Unknown"}
    ]  # fmt: skip
    assert [word for word in ("cordoned", "Ready is Unknown") if any(
        word in each for each in seen(closed, ELSEWHERE, pod()).warnings
    )] == ["cordoned", "Ready is Unknown"]  # fmt: skip


EVERYTHING = [
    node("a", {**MIXED, "nvidia.com/gpu.count": "2"}, **{"mig-3g.40gb": "2", "gpu": 1}),
    slices(LOW, HIGH, WHOLE_GPU),
    claim("c-1", HIGH["name"], pods=("chat-1",)),
    claiming("chat-1", "c-1"),
    pod("chat-2", metadata=OURS),
    ELSEWHERE,
]


@given(st.data())
def test_whatever_is_wrong_in_it_is_an_error_of_ours(data: st.DataObject) -> None:
    objects = json.loads(json.dumps(EVERYTHING))
    at: Any = objects
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 3)) == 0:
            break
        at = at[key]
    at[key] = data.draw(
        st.sampled_from((None, "", "x", "7", 7, -1, True, 0.5, [], {}, [1], {"a": 1}))
    )
    with suppress(CmsError):
        merge(told(*objects), known())
