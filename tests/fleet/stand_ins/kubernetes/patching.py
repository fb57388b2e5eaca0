"""The four kinds of PATCH that kubectl sends, and who owns which field.

JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as written there; strategic merge and
server-side apply as in the Kubernetes documentation, with the merge keys of the kinds served here.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Json = dict[str, Any]
Path = tuple[str | tuple[str, str], ...]

# Lists that are maps by a key; a list whose field is not here is replaced as a whole.
MERGE_KEYS = {
    "containers": "name", "initContainers": "name", "env": "name", "volumes": "name",
    "volumeMounts": "mountPath", "ports": "containerPort", "conditions": "type",
    "ownerReferences": "uid", "resourceClaims": "name", "claims": "name", "hostAliases": "ip",
    "imagePullSecrets": "name", "addresses": "type", "taints": "key",
    "topologySpreadConstraints": "topologyKey",
}  # fmt: skip


class PatchError(ValueError):
    """A patch that does not fit what it is applied to."""


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    merged = deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: Any, operations: list[Json]) -> Any:
    """RFC 6902 without move and copy."""
    patched = deepcopy(target)
    for operation in operations:
        kind, pointer = operation.get("op"), str(operation.get("path"))
        parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
        at: Any = patched
        try:
            for part in parts[:-1]:
                at = at[int(part)] if isinstance(at, list) else at[part]
            last: Any = parts[-1]
            if isinstance(at, list):
                last = len(at) if last == "-" else int(last)
            if kind == "add" and isinstance(at, list):
                at.insert(last, operation["value"])
            elif kind == "add":
                at[last] = operation["value"]
            elif kind == "remove":
                del at[last]
            elif kind == "replace":
                at[last]  # it must be there
                at[last] = operation["value"]
            elif kind == "test":
                if at[last] != operation["value"]:
                    raise PatchError(f"test failed at {pointer}")
            else:
                raise PatchError(f"unknown operation {kind!r}")
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise PatchError(f"{kind} {pointer}: {error}") from error
    return patched


def strategic_merge(target: Any, patch: Any, field: str = "") -> Any:
    """Strategic merge: like a merge patch, but lists with a key are merged by it."""
    if isinstance(patch, dict):
        if patch.get("$patch") == "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        merged = deepcopy(target) if isinstance(target, dict) else {}
        for key, value in patch.items():
            if key.startswith("$retainKeys"):
                merged = {k: v for k, v in merged.items() if k in value}
        for key, value in patch.items():
            if key.startswith("$deleteFromPrimitiveList/"):
                name = key.partition("/")[2]
                merged[name] = [item for item in merged.get(name, []) if item not in value]
            elif key.startswith("$"):
                continue
            elif value is None:
                merged.pop(key, None)
            else:
                merged[key] = strategic_merge(merged.get(key), value, key)
        return merged
    if isinstance(patch, list) and field == "finalizers":
        return list(dict.fromkeys([*(target or []), *patch]))
    if isinstance(patch, list) and field in MERGE_KEYS:
        if any(item.get("$patch") == "replace" for item in patch):
            return [item for item in patch if "$patch" not in item]
        return _merge_lists(target or [], patch, MERGE_KEYS[field])
    return deepcopy(patch)


def _merge_lists(target: list[Json], patch: list[Json], key: str) -> list[Json]:
    merged = {item.get(key): item for item in target}
    for item in patch:
        if key not in item:
            raise PatchError(f"an entry has no {key}: {item}")
        if item.get("$patch") == "delete":
            merged.pop(item[key], None)
        else:
            merged[item[key]] = strategic_merge(merged.get(item[key]), item)
    return list(merged.values())


def leaves(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field with its value; entries of a keyed list are named by their key."""
    key = MERGE_KEYS.get(str(at[-1])) if at else None
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*at, name))
    elif isinstance(value, list) and value and key and all(key in item for item in value):
        for item in value:
            yield from leaves(item, (*at, (key, str(item[key]))))
    else:
        yield at, value


_NOT_OWNED = {"apiVersion", "kind", "status"}
_OWN_METADATA = {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"}


def owned_leaves(config: Json) -> dict[Path, Any]:
    """The fields that a manager owns once it has written `config`."""
    return {
        path: value
        for path, value in leaves(config)
        if path
        and path[0] not in _NOT_OWNED
        and not (path[0] == "metadata" and path[1] in _OWN_METADATA)
    }


def without(value: Any, paths: set[Path], at: Path = ()) -> Any:
    """`value` without the fields at `paths`, and without what is empty thereby."""
    key = MERGE_KEYS.get(str(at[-1])) if at else None
    if isinstance(value, dict):
        kept: Json = {}
        for name, inner in value.items():
            here = (*at, name)
            if here in paths:
                continue
            rest = without(inner, paths, here)
            if rest in ({}, []) and inner not in ({}, []):
                continue
            kept[name] = rest
        return kept
    if isinstance(value, list) and key:
        rests = [without(item, paths, (*at, (key, str(item.get(key))))) for item in value]
        return [rest for rest in rests if rest]
    return value


def server_side_apply(
    live: Json, config: Json, manager: str, owners: dict[Path, set[str]], force: bool
) -> tuple[Json, list[str]]:
    """Apply `config` for `manager`: the object that results, and the conflicts that stand against.

    `owners` is changed to who owns what afterwards, unless there are conflicts.
    """
    wanted, now = owned_leaves(config), owned_leaves(live)
    conflicts = []
    for path, value in wanted.items():
        others = owners.get(path, set()) - {manager}
        if others and path in now and now[path] != value and not force:
            place = ".".join(part if isinstance(part, str) else part[1] for part in path)
            conflicts.append(f"conflict with {sorted(others)[0]}: .{place}")
    if conflicts:
        return live, conflicts
    given_up = {path for path, of in owners.items() if manager in of} - wanted.keys()
    gone = {path for path in given_up if owners[path] == {manager}}
    for path in given_up:
        owners[path] -= {manager}
    for path, value in wanted.items():
        shared = now.get(path) == value
        owners[path] = (owners.get(path, set()) if shared else set()) | {manager}
    return strategic_merge(without(live, gone), config), []
