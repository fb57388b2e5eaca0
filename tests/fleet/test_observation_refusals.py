"""What a cluster cannot say is refused with its line; whatever is wrong is an error of ours."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import CmsError, FileError
from cms.fleet.deployment.observation.merge import merge

from .cluster import (
    ELSEWHERE,
    HALVES,
    HIGH,
    LOW,
    MIXED,
    OURS,
    TWO,
    WHOLE_GPU,
    claim,
    claiming,
    device,
    known,
    node,
    pod,
    slices,
    told,
)

BAD: dict[str, tuple[list[Any], str]] = {
    "twice": ([TWO, TWO], "items[1]"),
    "no such node": ([pod()], "items[0].spec.nodeName"),
    "no count": ([node("a", **{"mig-3g.40gb": "x"})], 'allocatable["nvidia.com/mig-3g.40gb"]'),
    "a negative count": ([node("a", gpu=-1)], 'allocatable["nvidia.com/gpu"] is -1'),
    "more than there is": ([TWO, pod("1"), pod("2"), pod("3")], "items[3]"),
    "none of these": ([node("a", gpu=1), pod()], "node 'a', which has 0"),
    "a slice of nobody": ([slices(LOW, on="b"), TWO], "node 'b'"),
    "no metadata": ([{"kind": "Node"}], 'items[0] has no "metadata"'),
    "no allocatable": ([{**TWO, "status": {}}], 'items[0].status has no "allocatable"'),
    "labels": ([{**TWO, "metadata": {"name": "a", "labels": []}}], "items[0].metadata.labels"),
    "no containers": ([TWO, {**pod(), "spec": {"nodeName": "a"}}], 'spec has no "containers"'),
    "no object": (["text"], 'items[0] is "text"'),
    "no claim": ([TWO, claiming("p", "c-1")], "'prod/c-1'"),
    "no device": ([slices(LOW), claim("c", "gpu-7")], "devices.results[0]: device 'gpu-7'"),
    "a name": ([slices({**LOW, "name": "gpu-0-mig-3"})], 'name is "gpu-0-mig-3"'),
    "another name": ([slices({**LOW, "name": "gpu-0-mig-2g20gb-9-4"})], "spec.devices[0].name"),
    "a missing slice": ([node("a", {}), slices(LOW, count=2)], "resourceSliceCount"),
    "no claims told": (
        [node("a", {}), slices(device("gpu-0", True, uuid="GPU-0"))], "node 'a'",
    ),
    "an old interface": (
        [{**slices(LOW), "apiVersion": "resource.k8s.io/v1beta1"}], "resource.k8s.io/v1beta1",
    ),
    "another node's device": (
        [TWO, slices(LOW, on="b"), claim("c-1", LOW["name"], on="b"), claiming("p", "c-1")],
        "'b'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "has"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_with_its_line(objects: list[Any], has: str) -> None:
    with pytest.raises(FileError) as fault:
        told(*objects)
    assert (fault.value.path, fault.value.line is not None) == ("cluster.json", True)
    assert has in f"{fault.value}"
    assert fault.value.expected


NO_UUID = {**LOW, "attributes": {**LOW["attributes"], "uuid": {"string": "no"}}}


@pytest.mark.parametrize(
    ("objects", "has"),
    [
        ([node("a", **{"mig-3g.40gb": "3"}), pod(), ELSEWHERE], "3 x 3g.40gb"),
        ([node("a", {**MIXED, "nvidia.com/mig.config.state": "pending"}), ELSEWHERE], "'pending'"),
        ([node("a", {}), slices(device("gpu-0", uuid="- off off no")), ELSEWHERE], "'- off"),
        ([node("a", {}), slices(NO_UUID), ELSEWHERE], "'no'"),
    ],
)
def test_what_contradicts_the_gpus_is_refused(objects: list[Any], has: str) -> None:
    listed = any(each["kind"] == "ResourceSlice" for each in objects)
    with pytest.raises(FileError, match=r"^cluster.json") as fault:
        merge([*([] if listed else [HALVES]), *told(*objects)], known())
    assert has in f"{fault.value}"


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
