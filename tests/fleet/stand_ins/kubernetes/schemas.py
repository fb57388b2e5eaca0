"""Objects in a text, and strict validation against the schemas of kubernetes-validate.

The package reads its definitions (1.8 MB) again for every object; here they are read once. That
the verdicts are the package's own is tested.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

Json = dict[str, Any]

VERSIONS = ("1.34", "1.35", "1.36", "1.37")


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


def schema_faults(manifest: Any, version: str) -> list[str]:
    """What the strict schema of Kubernetes `version` has against one object."""
    if not isinstance(manifest, dict):
        return [f"not an object but {type(manifest).__name__}"]
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
    if not re.fullmatch(r"[a-z0-9_.-]+", name):
        return None
    path = folder / f"v{version}.0-local-strict" / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
