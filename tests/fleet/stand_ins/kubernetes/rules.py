"""What schemas do not say: names, label keys and values, resource names, quantities.

As in the Kubernetes documentation (object names, labels, resource management): RFC 1123 labels and
subdomains, qualified names, at most 63 characters a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_NUMBER = r"[+-]?(\d+(\.\d*)?|\.\d+)"
_QUANTITY = rf"{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?"


def dns_label(text: str) -> bool:
    """RFC 1123 label: a namespace, a container, a claim of a pod."""
    return len(text) <= 63 and re.fullmatch(_LABEL, text) is not None


def dns_subdomain(text: str) -> bool:
    """RFC 1123 subdomain: the name of nearly every object."""
    return len(text) <= 253 and re.fullmatch(_SUBDOMAIN, text) is not None


def qualified_name(text: str) -> bool:
    """A label key, an annotation key, a resource: an optional domain, a slash, a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and not dns_subdomain(prefix):
        return False
    return len(name) <= 63 and re.fullmatch(_PART, name) is not None


def label_value(text: str) -> bool:
    """A label's value: empty, or like a name, at most 63 characters."""
    return text == "" or (len(text) <= 63 and re.fullmatch(_PART, text) is not None)


def quantity(value: Any) -> bool:
    """A quantity: a number, perhaps with a suffix."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or (
        isinstance(value, str) and re.fullmatch(_QUANTITY, value) is not None
    )


def rule_faults(manifest: Json) -> list[str]:
    """Everything wrong with the names, labels, resources and quantities of an object."""
    return list(_metadata(manifest)) + list(_inside(manifest, ""))


# Path segments are looser than subdomains only for kinds that are not served here.
def _metadata(manifest: Json) -> Iterator[str]:
    metadata = manifest.get("metadata") or {}
    name = metadata.get("name", metadata.get("generateName", ""))
    is_name = dns_label if manifest.get("kind") == "Namespace" else dns_subdomain
    if "name" in metadata and not is_name(str(name)):
        yield f"metadata.name: {name!r} is not a name (RFC 1123)"
    if not name:
        yield "metadata.name is missing"
    namespace = metadata.get("namespace")
    if namespace is not None and not dns_label(str(namespace)):
        yield f"metadata.namespace: {namespace!r} is not a label (RFC 1123)"


_SELECTORS = ("matchLabels", "nodeSelector", "labels")


def _inside(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _inside(item, f"{at}[{number}]")
        return
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        here = f"{at}.{key}".lstrip(".")
        if isinstance(inner, dict) and key == "data":
            yield from _data_keys(inner, here)
            continue
        if isinstance(inner, dict) and key in _SELECTORS and "nodeSelectorTerms" not in inner:
            yield from _labels(inner, here)
        if isinstance(inner, dict) and key == "annotations":
            yield from (f"{here}: {k!r} is not a key" for k in inner if not qualified_name(k))
        if isinstance(inner, dict) and key in ("limits", "requests", "capacity", "allocatable"):
            yield from _quantities(inner, here)
        if key == "resources" and isinstance(inner, dict):
            yield from _extended(inner, here)
        if key in ("containers", "initContainers", "resourceClaims") and isinstance(inner, list):
            yield from _named(inner, here)
        if key == "extendedResourceName" and not (qualified_name(str(inner)) and "/" in inner):
            yield f"{here}: {inner!r} is not the name of an extended resource"
        yield from _inside(inner, here)


def _data_keys(data: Json, at: str) -> Iterator[str]:
    for key in data:
        if len(key) > 253 or not re.fullmatch(r"[-._A-Za-z0-9]+", key) or key in (".", ".."):
            yield f"{at}: {key!r} is not a key of a ConfigMap"


def _labels(labels: Json, at: str) -> Iterator[str]:
    for key, value in labels.items():
        if not qualified_name(key):
            yield f"{at}: {key!r} is not a label's key"
        if not label_value(str(value)):
            yield f"{at}.{key}: {value!r} is not a label's value (at most 63 of A-Za-z0-9_.-)"


def _quantities(amounts: Json, at: str) -> Iterator[str]:
    for key, value in amounts.items():
        if not qualified_name(key):
            yield f"{at}: {key!r} is not the name of a resource"
        amount = value.get("value") if isinstance(value, dict) else value
        if not quantity(amount):
            yield f"{at}.{key}: {amount!r} is not a quantity"


def _extended(resources: Json, at: str) -> Iterator[str]:
    """Extended resources are whole numbers, and requests, where given, equal the limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for key in dict.fromkeys([*limits, *requests]):
        if "/" not in key or key.startswith("kubernetes.io/"):
            continue
        amount = str(limits.get(key, ""))
        if key not in limits:
            yield f"{at}.requests.{key}: an extended resource stands in limits"
        elif not re.fullmatch(r"[0-9]+", amount):
            yield f"{at}.limits.{key}: {amount!r} is not a whole number"
        elif key in requests and str(requests[key]) != amount:
            yield f"{at}.requests.{key}: {requests[key]!r} differs from the limit {amount!r}"


def _named(items: list[Any], at: str) -> Iterator[str]:
    names = [str(item.get("name", "")) for item in items if isinstance(item, dict)]
    for name in names:
        if not dns_label(name):
            yield f"{at}: {name!r} is not a name (RFC 1123)"
    if len(set(names)) < len(names):
        yield f"{at}: a name occurs twice"
