"""Dynamic resource allocation: ResourceSlices of a node, CEL selectors, first match.

After the reference of `resource.k8s.io/v1`: a selector must be true or false, anything else ends
the attempt. Devices are tried in the order in which they are listed; nothing is scored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tests.fleet.stand_ins.kubernetes.nodes import Device, Json, Machine
from tests.fleet.stand_ins.kubernetes.store import World

DRIVER = "gpu.nvidia.com"


class Listed(NamedTuple):
    """A device of a ResourceSlice, with the name that an allocation gives it."""

    driver: str
    pool: str
    name: str
    device: Json
    node: str


class CelError(ValueError):
    """An expression that does not compile, fails, or is neither true nor false."""


def device_class(kind: str) -> Json:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": f"{kind}.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }  # fmt: skip


def name_of(machine: Machine, device: Device) -> str:
    """`gpu-<minor>` or `gpu-<minor>-mig-<profile without dot>-<profile id>-<start>`."""
    if device.profile is None:
        return f"gpu-{device.gpu}"
    profile = machine.gpus[device.gpu].card.by_name[device.profile]
    short = device.profile.replace(".", "").replace("+", "-")
    return f"gpu-{device.gpu}-mig-{short}-{profile.number}-{device.start}"


def resource_slice(machine: Machine, generation: int = 1) -> Json:
    """What the driver publishes of a node with static MIG."""
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": f"{machine.name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER, "nodeName": machine.name,
            "pool": {"name": machine.name, "generation": generation, "resourceSliceCount": 1},
            "devices": [_described(machine, device) for device in machine.devices()],
        },
    }  # fmt: skip


def _described(machine: Machine, device: Device) -> Json:
    gpu = machine.gpus[device.gpu]
    attributes: Json = {
        "type": {"string": "mig" if device.profile else "gpu"},
        "uuid": {"string": machine.uuid(device)},
        "productName": {"string": gpu.card.product},
        "driverVersion": {"version": "580.95.5"},
    }
    if device.profile is not None:
        attributes["profile"] = {"string": device.profile}
        attributes["parentUUID"] = {"string": machine.uuid(Device(device.gpu))}
    return {"name": name_of(machine, device), "attributes": attributes}


def publish(world: World, machine: Machine) -> None:
    """Renew the node's slice where what it says has changed."""
    wanted = resource_slice(machine)
    held = world.store.find("ResourceSlice", wanted["metadata"]["name"])
    if held is None:
        world.store.create(wanted)
    elif held["spec"]["devices"] != wanted["spec"]["devices"]:
        pool = held["spec"]["pool"]

        def renew(item: Json) -> None:
            item["spec"]["devices"] = wanted["spec"]["devices"]
            item["spec"]["pool"] = {**pool, "generation": pool["generation"] + 1}

        world.store.change(held, renew)


def listed(slices: Iterable[Json]) -> list[Listed]:
    """All devices, in the order in which their slices list them."""
    return [
        Listed(spec["driver"], spec["pool"]["name"], device["name"], device, spec["nodeName"])
        for spec in (item["spec"] for item in slices)
        for device in spec.get("devices") or []
    ]


def selected(expression: str, device: Listed) -> bool:
    """Whether a CEL selector takes a device."""
    shown = {
        f"{part} {name}": next(iter(value.values()))
        for part in ("attributes", "capacity")
        for name, value in (device.device.get(part) or {}).items()
    }
    # A value whose name the expression does not have cannot matter; whether it is there can.
    told = {name: v for name, v in shown.items() if re.split("[ /]", name)[-1] in expression}
    return _selected(expression, device.driver, frozenset(shown), tuple(told.items()))


@cache
def _selected(
    expression: str, driver: str, names: frozenset[str], told: tuple[tuple[str, Any], ...]
) -> bool:
    # Imported where it is needed: a fifth of a second that most tests do without.
    from celpy.evaluation import CELEvalError

    try:
        answer = _program(expression).evaluate({"device": _view(driver, names, dict(told))})
    except CELEvalError as error:
        raise CelError(f"{expression}: {error.args[0]}") from error
    if str(type(answer).__name__) not in ("BoolType", "bool"):
        raise CelError(f"{expression}: neither true nor false but {answer!r}")
    return bool(answer)


@cache
def _program(expression: str) -> Any:
    from celpy import Environment
    from celpy.celparser import CELParseError

    try:
        environment = Environment()
        return environment.program(environment.compile(expression))
    except CELParseError as error:
        raise CelError(f"{expression}: {' '.join(str(error).split())}") from error


def _view(driver: str, names: frozenset[str], told: dict[str, Any]) -> Any:
    """The variable `device`: attributes and capacities by domain, the driver's own by default."""
    from celpy.adapter import json_to_cel

    grouped: dict[str, Json] = {"attributes": {driver: {}}, "capacity": {driver: {}}}
    for each in names:
        part, _, name = each.partition(" ")
        domain, slash, short = name.rpartition("/")
        grouped[part].setdefault(domain if slash else driver, {})[short] = told.get(each, "")
    return json_to_cel({"driver": driver, **grouped})


def takes(request: Json, device: Listed, classes: dict[str, Json]) -> bool:
    """Whether a request takes a device."""
    kind = classes.get(request["deviceClassName"])
    if kind is None:
        raise CelError(f"there is no DeviceClass {request['deviceClassName']}")
    selectors = [*(kind["spec"].get("selectors") or []), *(request.get("selectors") or [])]
    return all(selected(each["cel"]["expression"], device) for each in selectors)


Choice = tuple[str, Listed]


def allocate(
    claim: Json, devices: Sequence[Listed], classes: dict[str, Json]
) -> list[Choice] | None:
    """The first devices, in listed order, that meet the requests of a claim one after the other."""
    chosen: list[Choice] = []
    for request in claim["devices"].get("requests") or []:
        for _ in range(request["exactly"].get("count", 1)):
            free = (each for each in devices if all(each is not other for _, other in chosen))
            found = next((e for e in free if takes(request["exactly"], e, classes)), None)
            if found is None:
                return None
            chosen.append((request["name"], found))
    return chosen
