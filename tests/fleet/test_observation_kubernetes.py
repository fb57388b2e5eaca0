"""What a cluster says of its nodes and pods becomes a deployment, and what cannot be is refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import CmsError, FileError
from cms.fleet import Gpu, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, StartSource, State
from cms.fleet.deployment.observation.facts import GpuFacts, NodeFacts, Statement
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
    device,
    known,
    node,
    pod,
    seen,
    slices,
    told,
)
from .deployments import point

COUNT, STRATEGY = "nvidia.com/gpu.count", "nvidia.com/gpu.sharing-strategy"


def test_a_node_says_what_it_is_and_can_give() -> None:
    labels = {
        **MIXED,
        "nvidia.com/mig.config.state": "success",
        "nvidia.com/cuda.driver.major": "550",
        "nvidia.com/cuda.driver.minor": "54",
        "topology.kubernetes.io/zone": "east",
    }
    plain: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"}}
    plain["status"] = {"allocatable": {"cpu": "64", "memory": "8Gi"}}
    other: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    counts = {"mig-1g.10gb.me": "1", "mig-2g.20gb": 2, "gpu": "0"}
    (facts,) = told(plain, other, node("a", labels, **counts))
    assert (facts.node, facts.product) == (Statement("a", ""), Statement(PRODUCT, ""))
    assert (facts.driver, facts.mig_state) == (Statement("550.54", ""), Statement("success", ""))
    assert facts.allocatable == {"1g.10gb+me": 1, "2g.20gb": 2, "whole": 0}  # no stale capacity
    assert (facts.labels["zone"], facts.pods) == ("east", None)


def test_a_node_is_not_passed_over_and_its_driver_is_the_same_without_zeros() -> None:
    broken = node("b", {"nvidia.com/gpu.present": "true"})
    del broken["metadata"]["labels"]["nvidia.com/gpu.product"]
    with pytest.raises(FileError, match="node 'b'"):
        seen(TWO, broken, pod(), ELSEWHERE)
    broken["metadata"]["labels"]["nvidia.com/gpu.present"] = "false"
    assert len(seen(TWO, broken, pod(), ELSEWHERE).deployment.nodes) == 1
    smi = replace(HALVES, driver=Statement("535.104.05", "smi.txt:2"))
    labels = {**MIXED, "nvidia.com/cuda.driver-version.full": "535.104.5"}
    found = seen(node("a", labels, **{"mig-3g.40gb": 2}), pod(), ELSEWHERE, gpus=smi)
    assert found.deployment.nodes[0].driver == "535.104.05"


def test_a_gpu_may_be_one_instance_and_media_engines_the_profile_without_them() -> None:
    product = f"{PRODUCT}-MIG-3g.40gb"
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/mig.strategy": "single"}
    (facts,) = told(node("a", labels, gpu="2"), pod(resource="gpu", metadata=OURS), ELSEWHERE)
    assert (facts.product, facts.allocatable) == (Statement(PRODUCT, ""), {"3g.40gb": 2})
    found = merge([HALVES, facts], known())
    assert Counter(i.work for _, i in found.deployment.instances()) == {CHAT: 1, None: 1}
    # As the device plug-in does, unless it has a resource for them.
    places = [*(("1g.10gb", at) for at in range(5)), ("1g.10gb+me", 5), ("1g.20gb", 6)]
    listing = replace(HALVES, gpus=(cut(*places),))
    for counts, most in (({"mig-1g.10gb": 6}, 6), ({"mig-1g.10gb": 5, "mig-1g.10gb.me": 1}, 5)):
        pods = [pod(f"p-{at}", "mig-1g.10gb") for at in range(most)]
        found = seen(node("a", **counts, **{"mig-1g.20gb": 1}), *pods, ELSEWHERE, gpus=listing)
        taken = [i.profile for _, i in found.deployment.instances() if i.owner]
        assert Counter(taken)["1g.10gb+me"] == most - 5
        assert not any("given away" in said for said in found.warnings)


def test_nothing_is_planned_on_gpus_that_are_shared_or_parts_of_which_are() -> None:
    wholes = {STRATEGY: "mps", COUNT: "2", "nvidia.com/mig.capable": "false"}
    product = {"nvidia.com/gpu.product": f"{PRODUCT}-SHARED", COUNT: "2"}
    parts = {"nvidia.com/mig-3g.40gb.sharing-strategy": "time-slicing", COUNT: "2"}
    other = node("b", {**wholes, STRATEGY: "none"}, gpu="2")
    for labels, resource in (
        (wholes, "gpu"), (wholes, "gpu.shared"), (product, "gpu"), (parts, "mig-3g.40gb.shared"),
    ):  # fmt: skip
        objects = [node("a", labels, **{resource: "8"}), pod(resource=resource), other, ELSEWHERE]
        found = merge(told(*objects))
        modes = {n.name: {card.mode for card in n.gpus} for n in found.deployment.nodes}
        assert modes == {"a": {Mode.FIXED}, "b": {Mode.WHOLE}}
        assert any(said.startswith("a/0, 1: fixed") for said in found.warnings)
        assert any("its GPUs are shared by " in said for said in found.warnings)


def test_cards_that_no_device_file_describes_are_fixed_whatever_is_counted_on_them() -> None:
    t4 = {"nvidia.com/gpu.product": "Tesla-T4", COUNT: "2", "nvidia.com/mig.capable": "false"}
    other = {"nvidia.com/gpu.product": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
             COUNT: "1", "nvidia.com/mig.strategy": "mixed"}  # fmt: skip
    objects = [node("a", t4, gpu="2"), node("b", other, **{"mig-1g.24gb.gfx": "4"})]
    found = merge(told(*objects, pod(resource="gpu"), ELSEWHERE))
    assert [(c.name, c.mode, c.gpu.key) for c in found.deployment.gpus()] == [
        ("a/0", Mode.FIXED, "tesla-t4"), ("a/1", Mode.FIXED, "tesla-t4"),
        ("b/0", Mode.FIXED, "rtx-pro-6000-96gb"),
    ]  # fmt: skip
    cards = (Statement(PRODUCT, "q:2"), Statement("Tesla T4", "q:3"))
    listed = tuple(
        GpuFacts(index, each.where, product=each, mig=Statement("off", "q:2"))
        for index, each in enumerate(cards)
    )
    for label in (PRODUCT, "Tesla-T4"):  # of a node with both types it names one
        both = node("c", {"nvidia.com/gpu.product": label}, gpu="2")
        merged = merge([*told(both, ELSEWHERE), NodeFacts("q", Statement("c", ""), gpus=listed)])
        assert [card.mode for card in merged.deployment.gpus()] == [Mode.WHOLE, Mode.FIXED]


@pytest.mark.parametrize(
    ("allocatable", "capacity", "says"),
    [(1, 2, "1 of its 2"), (0, 2, "2 of its 2"), (1, 1, "1 of its 2"), (2, 3, "1 of its 3"),
     (2, 2, None)],
)  # fmt: skip
def test_less_to_give_away_than_there_is_is_said_with_the_count(
    allocatable: int, capacity: int, says: str | None
) -> None:
    counted = node("a", **{"mig-3g.40gb": allocatable})
    counted["status"]["capacity"] = {"nvidia.com/mig-3g.40gb": capacity}
    holding = [pod(f"chat-{at}") for at in range(min(2, capacity))]  # also on what is broken
    found = seen(counted, *holding, ELSEWHERE)
    assert len([*found.deployment.instances()]) == 2
    said = [each for each in found.warnings if "given away" in each]
    assert len(said) == (says is not None)
    assert f"a: {says} x 3g.40gb cannot be given away" in "".join(said) or says is None


def test_what_may_mislead_is_said() -> None:
    state, half = {**MIXED, "nvidia.com/mig.config.state": "failed"}, {"mig-3g.40gb": 2}
    closed = node("a", **half)
    closed["spec"] = {"unschedulable": True}
    closed["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    for objects, said in (
        ([node("a", state, **half), ELSEWHERE, pod()], "has failed"),
        ([node("a", **half, gpu=2), ELSEWHERE], "a: 2 x nvidia.com/gpu"),
        ([node("a"), pod(resource=None), ELSEWHERE], "no device plug-in"),
        ([closed, ELSEWHERE, pod()], "cordoned"),
        ([closed, ELSEWHERE, pod()], "Ready is Unknown"),
        ([TWO, pod()], "-A"),
    ):
        assert any(said in each for each in seen(*objects).warnings), said
    for full in ([TWO, pod("1"), pod("2")], [TWO, pod(), ELSEWHERE]):
        assert not any("-A" in each for each in seen(*full).warnings)


def counting(number: int, capacity: Any = None, /, **allocatable: int) -> Object:
    """A node whose device plug-in counts, and tells nothing of its GPUs one by one."""
    counts = {name.replace("mig_", "mig-").replace("_", "."): n for name, n in allocatable.items()}
    told_of = node("a", {COUNT: str(number), **MIXED}, **counts)
    for name, count in (capacity or {}).items():
        told_of["status"]["capacity"][f"nvidia.com/{name}"] = str(count)
    return told_of


def meant(*content: Any, card: Gpu = A100) -> Deployment:
    """What a node was meant to hold, by GPU; None of one that is not cut."""
    cards = tuple(
        FleetGpu("a", at, card, Mode.WHOLE if each is None else Mode.MIG,
                 tuple(map(Instance, Counter(each).elements())), start_source=StartSource.UNKNOWN)
        for at, each in enumerate(content)
    )  # fmt: skip
    return Deployment((FleetNode("a", cards),))


def contents(found: Deployment) -> list[Any]:
    return [card.counts if card.mode is Mode.MIG else None for card in found.gpus()]


HALF = {"3g.40gb": 2}


@pytest.mark.parametrize(
    ("counted", "content"),
    [
        (counting(4, gpu=0, mig_3g_40gb=8), [HALF] * 4),
        (counting(1, gpu=0, mig_7g_80gb=1), [{"7g.80gb": 1}]),
        (counting(2, gpu=2), [None] * 2),
        (counting(1, gpu=0, mig_1g_10gb=2), [{"1g.10gb": 2}]),  # in one of several places
        (counting(1, {"mig-3g.40gb": 2}, mig_3g_40gb=1), [HALF]),  # one is out of order
        (counting(4, gpu=4, mig_3g_40gb=8), [HALF] * 4),  # the GPUs are stale
        (counting(1, {"mig-1g.10gb": 7}, mig_1g_10gb=0, mig_3g_40gb=2), [HALF]),  # stale parts
    ],
)
def test_counts_tell_the_gpus_where_they_can_be_so_in_one_way(
    counted: Object, content: list[Any]
) -> None:
    found = merge(told(counted, ELSEWHERE))
    assert contents(found.deployment) == content
    said = [each for each in found.warnings if "stale" in each or "given away" in each]
    assert len(said) <= 1


@given(
    st.lists(st.sampled_from([None, {}, *get_gpu("a30-24gb").multisets()]), min_size=1, max_size=3)
)
def test_counts_are_enough_just_where_no_other_gpus_have_them(content: list[Any]) -> None:
    kinds = [{}, {"whole": 1}, *(dict(each) for each in get_gpu("a30-24gb").multisets())]
    mine = sum((Counter(each if each is not None else {"whole": 1}) for each in content), Counter())
    ways = {
        tuple(sorted(map(str, way)))
        for way in combinations_with_replacement(kinds, len(content))
        if sum(map(Counter, way), Counter()) == mine
    }
    counts = {"gpu": mine["whole"]} | {f"mig-{p}": n for p, n in mine.items() if p != "whole"}
    labels = {COUNT: str(len(content)), **MIXED, "nvidia.com/gpu.product": "A30"}
    facts = told(node("a", labels, **counts))
    if not mine or len(ways) > 1:
        with pytest.raises(FileError, match="nvidia-smi mig -lgi"):
            merge(facts)
    else:
        assert (
            contents(merge(facts, meant(*content, card=get_gpu("a30-24gb"))).deployment) == content
        )


def test_which_gpu_is_which_is_as_meant_where_counts_do_not_tell() -> None:
    """Nothing is cut anew by a guess: where it was not meant, or others were, it is refused."""
    facts = told(counting(2, gpu=1, mig_7g_80gb=1), ELSEWHERE)
    for content in ((None, {"7g.80gb": 1}), ({"7g.80gb": 1}, None)):
        found = merge(facts, meant(*content))
        assert contents(found.deployment) == [*content]
        assert all(card.start_source is StartSource.UNKNOWN for card in found.deployment.gpus())
        assert any("nvidia-smi mig -lgi" in said for said in found.warnings)
    for other in (None, meant(None, HALF), meant(None)):
        with pytest.raises(FileError, match="in any order.* nvidia-smi mig -lgi"):
            merge(facts, other)
    for counted, says in (
        (counting(4, gpu=0, mig_3g_40gb=4), "nvidia-smi mig -lgi"),
        (counting(2, gpu=1, mig_3g_40gb=9), "nvidia-smi mig -lgi"),
        (counting(4, gpu=4, mig_7g_80gb=2), r"2 GPUs with nothing, or .* 2 GPUs with MIG off"),
    ):
        with pytest.raises(FileError, match=says):
            merge(told(counted, ELSEWHERE))


def test_gpus_of_which_counts_alone_tell_are_not_lost_beside_a_listing() -> None:
    large = NodeFacts("lgi.txt", Statement("a", "--node"), gpus=(cut(("7g.80gb", 0)),))
    whole = [{"7g.80gb": 1}] * 2
    for listing, counted, said in (
        (HALVES, counting(2, gpu=1, mig_3g_40gb=2), [HALF, None]),
        (large, counting(2, mig_7g_80gb=2), whole),
        (large, counting(2, mig_7g_79gb=2), whole),  # older drivers round down
    ):
        assert contents(merge([listing, *told(counted, ELSEWHERE)]).deployment) == said
    for counted in (counting(4, gpu=0, mig_3g_40gb=2), counting(3, gpu=1, mig_3g_40gb=2)):
        both = merge([HALVES, *told(counted, ELSEWHERE)])
        assert any("GPUs, 1 are told of" in said for said in both.warnings)


def test_a_label_of_ones_own_names_the_service_where_one_point_is_known() -> None:
    mine = {"labels": {"app": "chat"}}
    other, wide = (point("chat", A100.key, each, batch=8) for each in ("3g.40gb", "7g.80gb"))
    facts = [HALVES, *told(TWO, pod(metadata=mine), ELSEWHERE, service_label="app")]
    for works, is_managed in (((CHAT,), True), ((CHAT, other), False), ((CHAT, wide), True)):
        found = merge(facts, known(*works))
        assert (CHAT in [i.work for _, i in found.deployment.instances()]) is is_managed
        assert ("prod/chat-1" in "".join(found.warnings[:1])) is not is_managed


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, State.RUNNING),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, State.STARTING),
        ({"status": {"phase": "Pending", "conditions": None}}, State.STARTING),
        ({"metadata": {**OURS, "deletionTimestamp": "2026-11-23T10:00:00Z"}}, State.DRAINING),
        ({"status": {"phase": "Succeeded"}}, None),
        ({"on": None, "status": {"phase": "Pending"}}, None),
    ],
)
def test_what_a_pod_does(more: Object, state: State | None) -> None:
    (facts,) = told(TWO, pod(**{"metadata": OURS, **more}))
    assert [each.state for each in facts.pods or ()] == [each for each in [state] if each]


@pytest.mark.parametrize(
    ("counts", "init", "side", "held"),
    [((1, 2), (), (), 3), ((1,), (2, 1), (), 2), ((2,), (1,), (), 2), ((1,), (2,), (1,), 3)],
)
def test_what_containers_hold_adds_up_and_those_before_do_not(
    counts: Any, init: Any, side: Any, held: int
) -> None:
    def each(counts: Any, **more: str) -> list[Object]:
        return [{"resources": {"limits": {"nvidia.com/mig-3g.40gb": n}}, **more} for n in counts]

    before = each(side, restartPolicy="Always") + each(init)
    spec = {"containers": each(counts), "initContainers": before}
    (facts,) = told(node("a", **{"mig-3g.40gb": 9}), pod(spec=spec))
    assert [len(each.profiles) for each in facts.pods or ()] == [held]


def test_claims_say_exactly_which_and_slices_what_there_is() -> None:
    facts = told(
        node("a", {}), slices(HIGH), slices(LOW, HIGH, WHOLE_GPU, generation=2),
        claim("c-1", HIGH["name"]), claim("c-2", "gpu-1"), claiming("chat-1", "c-1"),
        claiming("chat-2", "c-2", metadata={"labels": {}}), ELSEWHERE,
    )  # fmt: skip
    found = merge(facts, known())
    first, second = found.deployment.gpus()
    assert [(i.start, i.work, i.uuid) for i in first.instances] == [
        (0, None, "MIG-0"), (4, CHAT, "MIG-4"),
    ]  # fmt: skip
    assert (first.uuid, second.uuid, second.mode) == ("GPU-0", "GPU-1", Mode.WHOLE)
    assert [(i.profile, i.owner) for i in second.instances] == [("whole", "pod prod/chat-2")]
    assert found.deployment.nodes[0].driver == "550.54.15"
    assert not found.warnings


def test_of_the_devices_that_a_driver_could_make_those_given_are_there() -> None:
    possible = [
        device(each["name"], True, profile="3g.40gb", parentUUID="GPU-0") for each in (LOW, HIGH)
    ]
    whole = device("gpu-0", True, uuid="GPU-0")
    objects = [node("a", {}), slices(whole, *possible), ELSEWHERE]
    given_one = [claim("c-1", HIGH["name"]), claiming("chat-1", "c-1")]
    (card,) = merge(told(*objects, *given_one), known()).deployment.gpus()
    assert [(i.place, i.work) for i in card.instances] == [("3g.40gb@4", CHAT)]
    reserved = claim("c-1", HIGH["name"], pods=("gone",))
    (card,) = merge(told(*objects[:-1], reserved)).deployment.gpus()
    assert [i.place for i in card.instances] == ["3g.40gb@4"], "pods were not asked for"
    for listed, mode in (([whole], Mode.WHOLE), ([], Mode.MIG)):  # only a reset switches it off
        free = [node("a", {}), slices(*listed, *possible), ELSEWHERE]
        (card,) = merge(told(*free)).deployment.gpus()
        assert (card.mode, card.instances, card.uuid) == (mode, (), "GPU-0")
    on = GpuFacts(0, "L", mig=Statement("on", "L"))
    switched = NodeFacts("L", Statement("a", ""), gpus=(on,))
    (card,) = merge([*told(*objects), switched]).deployment.gpus()
    assert (card.mode, card.instances) == (Mode.MIG, ())
    with pytest.raises(FileError, match="said nowhere"):  # both would be the GPU with a number
        merge([switched, *told(node("a", {}), slices(device("gpu-0"), device("gpu-1")))])


def test_claims_without_pods_of_several_pods_and_behind_old_names() -> None:
    objects = [node("a", {}), slices(LOW, HIGH), ELSEWHERE]
    found = merge(told(*objects, claim("c-1", LOW["name"], pods=("gone",))), known())
    assert [i.owner for _, i in found.deployment.instances()] == ["pod prod/gone", None]
    both = [claiming("chat-1", "c-1"), claiming("chat-2", "c-1")]
    found = merge(told(*objects, claim("c-1", LOW["name"]), *both), known())
    assert "pods prod/chat-1, prod/chat-2" in [i.owner for _, i in found.deployment.instances()]
    mapping = {"containerName": "c", "resourceName": "nvidia.com/mig-3g.40gb", "requestName": "r"}
    extended = {"resourceClaimName": "c-1", "requestMappings": [mapping]}
    served = pod(metadata=OURS, status={"extendedResourceClaimStatus": extended})
    facts = told(*objects, claim("c-1", HIGH["name"]), served)
    assert [each.places for each in facts[0].pods or ()] == [((0, "3g.40gb", 4),)]
    xid = [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]
    fine = [{"key": "gpu.nvidia.com/unmonitored", "effect": "None"}]
    tainted = slices({**LOW, "taints": fine}, {**HIGH, "taints": xid})
    said = [w for w in merge(told(node("a", {}), tainted, ELSEWHERE)).warnings if "taint" in w]
    assert len(said) == 1
    assert "devices[1]: taint gpu.nvidia.com/xid=79 (NoSchedule)" in said[0]


NO_UUID = {**LOW, "attributes": {**LOW["attributes"], "uuid": {"string": "no"}}}
BAD: dict[str, tuple[list[Any], str]] = {
    "twice": ([TWO, TWO], "items[1]"),
    "no such node": ([pod()], "items[0].spec.nodeName"),
    "no count": ([node("a", **{"mig-3g.40gb": "x"})], 'allocatable["nvidia.com/mig-3g.40gb"]'),
    "more than there is": ([TWO, pod("1"), pod("2"), pod("3")], "items[3]"),
    "none of these": ([node("a", gpu=1), pod()], "node 'a', which has 0"),
    "a slice of nobody": ([slices(LOW, on="b"), TWO], "node 'b'"),
    "no allocatable": ([{**TWO, "status": {}}], 'items[0].status has no "allocatable"'),
    "no containers": ([TWO, {**pod(), "spec": {"nodeName": "a"}}], 'spec has no "containers"'),
    "no claim": ([TWO, claiming("p", "c-1")], "'prod/c-1'"),
    "no device": ([slices(LOW), claim("c", "gpu-7")], "devices.results[0]: device 'gpu-7'"),
    "a name": ([slices({**LOW, "name": "gpu-0-mig-3"})], 'name is "gpu-0-mig-3"'),
    "a missing slice": ([node("a", {}), slices(LOW, count=2)], "resourceSliceCount"),
    "no claims told": ([node("a", {}), slices(device("gpu-0", True, uuid="GPU-0"))], "node 'a'"),
    "an old interface": ([{**slices(LOW), "apiVersion": "resource.k8s.io/v1beta1"}], "v1beta1"),
    "another node's device": (
        [TWO, slices(LOW, on="b"), claim("c-1", LOW["name"], on="b"), claiming("p", "c-1")],
        "'b'",
    ),
}
#: What contradicts the listing of the GPUs, by what is said.
CONTRADICTIONS: dict[str, list[Any]] = {
    "3 x 3g.40gb": [node("a", **{"mig-3g.40gb": "3"}), pod(), ELSEWHERE],
    "'pending'": [node("a", {**MIXED, "nvidia.com/mig.config.state": "pending"}), ELSEWHERE],
    "'- off": [node("a", {}), slices(device("gpu-0", uuid="- off off no")), ELSEWHERE],
    "'no'": [node("a", {}), slices(NO_UUID), ELSEWHERE],
}


@pytest.mark.parametrize(
    ("objects", "has"), [*BAD.values(), *((each, has) for has, each in CONTRADICTIONS.items())]
)
def test_what_cannot_be_is_refused_with_its_place(objects: list[Any], has: str) -> None:
    listed = any(each["kind"] == "ResourceSlice" for each in objects)
    with pytest.raises(FileError, match=re.escape(has)) as fault:
        merge([*([] if listed else [HALVES]), *told(*objects)], known())
    assert str(fault.value).startswith("cluster.json")
    assert (fault.value.line is not None) == (has not in CONTRADICTIONS)
    assert fault.value.expected


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
