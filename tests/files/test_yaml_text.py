"""YAML of clusters and their tools: streams, anchors and merge keys, with the lines of errors."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from cms.errors import FileError
from cms.files import Source, parse_json
from cms.fleet.hardware.yaml_text import read_yaml_or_json

PODS = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: 2026-11-02T09:00:00Z
    name: chat-0
  spec:
    containers:
    - resources:
        limits:
          nvidia.com/mig-1g.10gb: "1"
      args: ["--on", yes, no, 0777]
---
---
# nothing in here
---
kind: Node
allocatable: &it
  cpu: "16"
capacity:
  <<: *it
  cpu: 7.5
"""


def values(text: str, name: str = "a.yaml") -> list[Any]:
    return [document.value for document in read_yaml_or_json(Source(name, text))]


def test_a_stream_of_cluster_objects_is_read_without_its_empty_documents() -> None:
    pods, node = read_yaml_or_json(Source("<stdin>", PODS))
    pod = pods.at("items", 0)
    assert pod.at("metadata", "creationTimestamp").value == "2026-11-02T09:00:00Z"
    container = pod.at("spec", "containers", 0)
    assert container.at("resources").value == {"limits": {"nvidia.com/mig-1g.10gb": "1"}}
    assert container.at("args").value == ["--on", "yes", "no", "0777"]
    assert node.value["capacity"] == {"cpu": parse_json(Source("", "7.5"))}
    error = node.at("kind").error("here")
    assert (error.line, error.column) == (19, 7)


def test_merge_keys_bring_what_is_not_there_the_first_before_the_others() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2, <<: *a}\nc: {<<: [*a, *b], w: 3}\nd: *b\n"
    assert values(text) == [
        {
            "a": {"x": 1, "y": 1},
            "b": {"y": 2, "z": 2, "x": 1},
            "c": {"w": 3, "x": 1, "y": 1, "z": 2},
            "d": {"y": 2, "z": 2, "x": 1},
        }
    ]


# The other library writes a next-line character without quotes, and reads a blank; "?0" and ":0" in
# braces it reads otherwise as well.
_TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x85"), max_size=8
).filter(lambda text: not text.startswith(("?", ":")))
_LEAVES = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | _TEXTS
_DOCUMENTS = st.recursive(
    _LEAVES,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(_TEXTS, some, max_size=3),
    max_leaves=8,
).filter(lambda value: value is not None)


@given(st.lists(_DOCUMENTS, min_size=1, max_size=3))
def test_what_another_library_writes_is_read_as_it_was(documents: list[Any]) -> None:
    written = io.StringIO()
    YAML(typ="safe", pure=True).dump_all(documents, written)
    assert values(written.getvalue()) == [parse_json(Source("", json.dumps(d))) for d in documents]


def test_json_documents_after_one_another_know_where_they_stand() -> None:
    _, second = read_yaml_or_json(Source("a.json", '{"a": 1}\n {"a": 2}\n'))
    error = second.at("a").error("here")
    assert (second.value, error.line, error.column) == ({"a": 2}, 2, 8)


def bomb(line: str) -> str:
    """Twenty lines, each of which holds the one before ten times."""
    head = "a0: &a0 {k: 0}\n"
    return head + "".join(
        line.format(own=i, last=", ".join([f"*a{i - 1}"] * 10)) for i in range(1, 21)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\n---\n# nothing\n", "a.yaml: the file holds only comments, expected a cluster"),
        ("a: 1\n---\nb: [1\nc: 2\n", "a.yaml:4:2: this is no YAML: "),
        ("a: 1\n---\nb: 1\nb: 2\n", 'a.yaml:4:1: the key "b" is there twice'),
        ("a: &x [*x]\n", "a.yaml:1:4: a value holds itself by an alias (*name)"),
        ("a: &x 1\n---\nb: *x\n", "a.yaml:3:4: this is no YAML: found undefined alias"),
        ("a: &x {<<: *x}\n", "a.yaml:1:4: a value holds itself by an alias (*name)"),
        ("a: !secret x\n", "a.yaml:1:4: the tag !secret is not read here"),
        (bomb("a{own}: &a{own} [{last}]\n"), "is used again too often by an alias"),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_stands(text: str, words: str) -> None:
    with pytest.raises(FileError) as error:
        read_yaml_or_json(Source("a.yaml", text), holds="a cluster")
    assert words in str(error.value)
