"""Objects of a cluster, as ``kubectl get -o json`` prints them: read by their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ....files.node import Node
from ....files.numerals import is_whole
from ..instance import WHOLE
from .facts import SHARED

__all__ = [
    "ASK", "PREFIX", "Cluster", "Names", "array_of", "count_of", "entries_of", "labels_of",
    "profile_of", "text_of", "value_at",
]  # fmt: skip

ASK = "kubectl get nodes,pods,deployments,resourceslices,resourceclaims -A -o json"
PREFIX = "nvidia.com/"
_MIG = re.compile(r"((?:\d+c\.)?\d+g\.\d+gb(?:-[a-z.]+)?)(?:\.([a-z.]+))?", re.ASCII)


@dataclass
class Cluster:
    """The objects of all documents."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Node] = field(default_factory=dict)
    slices: dict[str, Node] = field(default_factory=dict)
    claims: dict[str, Node] = field(default_factory=dict)
    lists_pods: bool = False
    lists_claims: bool = False


class Names(NamedTuple):
    """What the resources of a node are."""

    single: str | None  # the profile that nvidia.com/gpu stands for
    is_shared: bool

    def profile(self, resource: str) -> str | None:
        """Return the profile of a resource, WHOLE, SHARED, or None if it is of no GPU."""
        if resource == "nvidia.com/gpu.shared":
            return SHARED
        if resource == "nvidia.com/gpu":
            return self.single or (SHARED if self.is_shared else WHOLE)
        _, is_part, written = resource.partition(f"{PREFIX}mig-")
        return profile_of(written) if is_part else None


def profile_of(written: str) -> str | None:
    """Return a profile from a name that may have no plus: ``1g.10gb+me`` of ``1g.10gb.me``."""
    match = _MIG.fullmatch(written)
    if match is None:
        return None
    return match[1] if match[2] is None else f"{match[1]}+{match[2]}"


def value_at(node: Node, *keys: str) -> Node | None:
    """Return the value that keys lead to, or None if there is none, or null.

    Raises
    ------
    FileError
        If a value on the way is no object.
    """
    for key in keys:
        if not isinstance(node.value, dict):
            raise node.wrong("an object")
        if node.value.get(key) is None:
            return None
        node = node.at(key)
    return node


def text_of(node: Node, *keys: str) -> str | None:
    """Return the text that keys lead to, or None if there is none."""
    found = value_at(node, *keys)
    return None if found is None else found.text()


def entries_of(node: Node, *keys: str) -> Iterator[tuple[str, Node]]:
    """Yield the entries of an object that may not be there."""
    found = value_at(node, *keys)
    yield from () if found is None else found.entries()


def array_of(node: Node, *keys: str) -> Iterator[Node]:
    """Yield the entries of an array that may not be there."""
    found = value_at(node, *keys)
    yield from () if found is None else found.array()


def labels_of(node: Node) -> dict[str, Node]:
    """Return the labels of an object."""
    return dict(entries_of(node, "metadata", "labels"))


def count_of(node: Node) -> int:
    """Read a count of devices: ``2`` or ``"2"``."""
    if isinstance(node.value, str) and is_whole(node.value):
        return int(node.value)
    return node.integer()
