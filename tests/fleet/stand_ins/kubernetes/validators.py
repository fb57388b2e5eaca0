"""Is an exported text what its readers take? Each function takes texts and returns messages.

Written from the documents of the formats: strict schemas of each version of Kubernetes, names,
label keys and values, resources and quantities (RFC 1123, at most 63 characters a part), and the
files of Slurm. No message means that nothing was found, never that the text does what it should:
that is for the other stand-ins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tests.fleet.stand_ins.kubernetes.kinds import Json
from tests.fleet.stand_ins.kubernetes.nodes import devices_of
from tests.fleet.stand_ins.machines import StandInNode

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_NUMBER = r"[+-]?(\d+(\.\d*)?|\.\d+)"
_QUANTITY = rf"{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?"


def manifests(text: str) -> list[str]:
    """Objects of Kubernetes: the strict schema of each version, names, labels and quantities."""
    items, said = documents(text)
    for item in items:
        name = f"{item.get('kind')}/{(item.get('metadata') or {}).get('name')}"
        found = [fault for version in VERSIONS for fault in schema_faults(item, version)]
        said += [f"{name}: {fault}" for fault in [*found, *rule_faults(item)]]
    return said


def documents(text: str) -> tuple[list[Json], list[str]]:
    """The objects of a YAML or JSON stream."""
    try:
        read = [each for each in YAML(typ="safe", pure=True).load_all(text) if each is not None]
    except YAMLError as error:
        return [], [f"not YAML: {' '.join(str(error).split())}"]
    flat: list[Any] = []
    for each in read:
        is_list = isinstance(each, dict) and each.get("kind") == "List"
        flat += each.get("items") or [] if is_list else [each]
    said = [f"document {n}: not an object" for n, d in enumerate(flat) if not isinstance(d, dict)]
    return [each for each in flat if isinstance(each, dict)], said


# --- schemas: of kubernetes-validate, which reads 1.8 MB again for every object -------------------


def schema_faults(manifest: Json, version: str) -> list[str]:
    """What the strict schema of Kubernetes `version` has against one object."""
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str):
            return [f"{field} is missing"]
    # A file is named like pod-v1, deployment-apps-v1, resourceclaim-resource-v1.
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", manifest["apiVersion"])
    validator = _validator(f"{manifest['kind'].lower()}-{group}.json", version)
    if validator is None:
        return [f"{version} has no {manifest['kind']} of {manifest['apiVersion']}"]
    faults = []
    for error in validator.iter_errors(manifest):
        found = best_match([error]) or error
        place = ".".join(str(part) for part in found.absolute_path)
        faults.append(f"{version}: {place or '(top)'}: {found.message[:300]}")
    return faults


@cache
def _validator(name: str, version: str) -> Draft202012Validator | None:
    schema = _read(name, version)
    if schema is None:
        return None
    registry = Resource.from_contents(schema) @ _definitions(version)
    return Draft202012Validator(schema, registry=registry)


@cache
def _definitions(version: str) -> Registry[Any]:
    empty: Registry[Any] = Registry()
    return Resource.from_contents(_read("_definitions.json", version)) @ empty


def _read(name: str, version: str) -> Any:
    folder = files("kubernetes_validate") / "kubernetes-json-schema"
    path = folder / f"v{version}.0-local-strict" / name
    is_name = re.fullmatch(r"[a-z0-9_.-]+", name) is not None
    return json.loads(path.read_text(encoding="utf-8")) if is_name and path.is_file() else None


# --- what schemas do not say ----------------------------------------------------------------------


def _is(pattern: str, value: Any, most: int = 63) -> bool:
    return len(str(value)) <= most and re.fullmatch(pattern, str(value)) is not None


def is_subdomain(text: Any) -> bool:
    """The name of nearly every object."""
    return _is(rf"{_DNS}(\.{_DNS})*", text, 253)


def is_qualified(text: str) -> bool:
    """A label key, an annotation key, a resource: an optional domain, a slash, a name."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and _is(_PART, name)


def is_label_value(text: Any) -> bool:
    """Empty, or like a name."""
    return text == "" or _is(_PART, text)


def rule_faults(manifest: Json) -> list[str]:
    """Everything wrong with the names, labels, resources and quantities of an object."""
    metadata, found = manifest.get("metadata") or {}, []
    name, space = (metadata.get(k) for k in ("name", "namespace"))
    if name is None and "generateName" not in metadata:
        found.append("metadata.name is missing")
    elif name is not None and not is_subdomain(name):
        found.append(f"metadata.name: {name!r} is not a name (RFC 1123)")
    if space is not None and not _is(_DNS, space):
        found.append(f"metadata.namespace: {space!r} is not a label (RFC 1123)")
    return [*found, *_inside(manifest, "")]


def _inside(value: Any, at: str) -> Iterator[str]:
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from _inside(item, f"{at}[{number}]")
    for key, inner in value.items() if isinstance(value, dict) else ():
        here = f"{at}.{key}".lstrip(".")
        if isinstance(inner, dict) and key == "data":
            yield from (f"{here}: {k!r} is no key" for k in inner if not _is(r"[-._\w]+", k, 253))
            continue
        if isinstance(inner, dict) and key in ("matchLabels", "nodeSelector", "labels"):
            for name, each in inner.items() if "nodeSelectorTerms" not in inner else ():
                if not is_qualified(name):
                    yield f"{here}: {name!r} is not a label's key"
                if not is_label_value(each):
                    yield f"{here}.{name}: {each!r} is not a label's value (at most 63)"
        if isinstance(inner, dict) and key == "annotations":
            yield from (f"{here}: {k!r} is not a key" for k in inner if not is_qualified(k))
        if isinstance(inner, dict) and key in ("limits", "requests", "capacity", "allocatable"):
            for name, each in inner.items():
                amount = each.get("value") if isinstance(each, dict) else each
                if not is_qualified(name):
                    yield f"{here}: {name!r} is not the name of a resource"
                if not _is(_QUANTITY, amount):
                    yield f"{here}.{name}: {amount!r} is not a quantity"
        if isinstance(inner, dict) and key == "resources":
            yield from _extended(inner, here)
        if isinstance(inner, list) and key in ("containers", "initContainers", "resourceClaims"):
            names = [str(item.get("name", "")) for item in inner if isinstance(item, dict)]
            yield from (f"{here}: {n!r} is not a name" for n in names if not _is(_DNS, n))
            if len({*names}) < len(names):
                yield f"{here}: a name occurs twice"
        if key == "extendedResourceName" and not (is_qualified(str(inner)) and "/" in inner):
            yield f"{here}: {inner!r} is not the name of an extended resource"
        yield from _inside(inner, here)


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
        elif str(requests.get(key, amount)) != amount:
            yield f"{at}.requests.{key}: {requests[key]!r} differs from the limit {amount!r}"


# --- Slurm ----------------------------------------------------------------------------------------

_GRES = {
    "name", "type", "file", "multiplefiles", "count", "autodetect", "nodename", "cores", "links",
    "flags",
}  # fmt: skip


def slurm(gres: str, conf: str, nodes: Mapping[str, StandInNode]) -> list[str]:
    """gres.conf and the lines of slurm.conf, for nodes that are cut like this."""
    said = []
    lines = [line.partition("#")[0].strip() for line in gres.splitlines()]
    for line in filter(None, lines):
        fields = dict(word.partition("=")[::2] for word in line.split())
        keys = {key.lower() for key in fields}
        said += [f"gres.conf: unknown key {key}" for key in keys - _GRES]
        if not keys & {"autodetect", "file", "multiplefiles", "count"}:
            said.append(f"gres.conf: neither AutoDetect nor files: {line}")
    words = {}
    types, tres = set[str](), set[str]()
    for line in conf.splitlines():
        fields = dict(word.partition("=")[::2] for word in line.partition("#")[0].split())
        types |= set(filter(None, fields.get("GresTypes", "").split(",")))
        tres |= set(filter(None, fields.get("AccountingStorageTRES", "").split(",")))
        if "NodeName" in fields:
            words[fields["NodeName"]] = fields.get("Gres", "")
    if any(each.startswith("gres/") for each in tres):
        said.append("slurm.conf: with TRES of gres slurmctld starts beside slurmdbd alone")
    if not types & {"gpu"}:
        said.append("slurm.conf: GresTypes without gpu")
    for name, node in nodes.items():
        found_there = [(node.cards[d.gpu].model.product, d.profile) for d in devices_of(node)]
        detected = [_detected(*each) for each in found_there]
        for item in filter(None, words.get(name, "").split(",")):
            found = re.fullmatch(r"(gpu)(?::([^:]+))?:(\d+)|mps:\d+00", item)
            if found is None:
                said.append(f"{name}: {item!r} is neither gpu:type:count nor hundreds of mps")
                continue
            kind, count = found[2] or "", int(found[3] or 0)
            if found[1] is None:
                if "mps" not in types:
                    said.append("slurm.conf: GresTypes without mps")
                continue
            whole = [each for each in detected if each.endswith("-")]
            fits = [each for each in detected if each.endswith(kind) or f"{kind}-" in each]
            fits = fits if kind else whole
            if count == 0 or len(fits) != count:
                said.append(f"{name}: {item} beside {len(fits)} devices of that type: {detected}")
            detected = [each for each in detected if each not in fits]
        if detected:
            said.append(f"{name}: not in Gres: {', '.join(detected)}")
    return said


def _detected(product: str, profile: str | None) -> str:
    """As NVML's detection names a device: nvidia_a100_3g.20gb, nvidia_a100-sxm4-80gb."""
    product = product.lower().removeprefix("nvidia ").replace(" ", "-")
    return f"nvidia_{product.partition('-')[0]}_{profile}" if profile else f"nvidia_{product}-"
