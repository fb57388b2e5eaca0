"""What kustomize makes of an overlay and what a cluster makes of that, as far as tests need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cms.files.source import Source
from cms.fleet.deployment.export import Export
from cms.fleet.deployment.export.export import remove_head
from cms.fleet.hardware.yaml_text import read_yaml_or_json

Manifest = dict[str, Any]


def documents(text: str, name: str = "manifest.yaml") -> list[Manifest]:
    return [each.value for each in read_yaml_or_json(Source(name, remove_head(text)))]


def applied(export: Export) -> list[Manifest]:
    """The Deployments of an overlay, each the patch of its base."""
    files = export.files
    found = []
    for path in sorted(files):
        if path.startswith("workloads/") and path.endswith("/patch.yaml"):
            (overlay,) = documents(files[path.replace("patch", "kustomization")])
            base = str(overlay["resources"][0]).removeprefix("../../")
            (patched,) = documents(files[f"{base}/deployment.yaml"])
            (patch,) = documents(files[path])
            found.append(merged(patched, patch))
    return found


def merged(base: Manifest, patch: Manifest) -> Manifest:
    """The strategic merge, of which containers and their variables alone are merged by name."""
    found = dict(base)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            found[key] = merged(found.get(key, {}), value)
        elif key in ("containers", "env") and key in found:
            named = {each["name"]: each for each in found[key]}
            for each in value:
                named[each["name"]] = merged(named.get(each["name"], {}), each)
            found[key] = list(named.values())
        else:
            found[key] = value
    return found


def canonical(found: Iterable[Manifest]) -> list[Manifest]:
    done = []
    for each in sorted(found, key=lambda d: str(d["metadata"]["name"])):
        template = each["spec"]["template"]["spec"]
        for container in template["containers"]:
            container["env"] = sorted(
                container.get("env", []), key=lambda variable: str(variable["name"])
            )
        done.append(each)
    return done


def env_of(container: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}
