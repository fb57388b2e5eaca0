"""Dynamic resource allocation: ResourceSlices of a node, CEL selectors, first match.

After the reference of `resource.k8s.io/v1`: a selector must be true or false, anything else ends
the attempt. Devices are tried in the order in which they are listed; nothing is scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tests.fleet.stand_ins.kubernetes.kinds import Json
from tests.fleet.stand_ins.kubernetes.nodes import Device, Machine
from tests.fleet.stand_ins.kubernetes.store import World

DRIVER = "gpu.nvidia.com"


class Listed(NamedTuple):
    """A device of a ResourceSlice, with the name that an allocation gives it."""

    node: str  # and its pool
    name: str
    attributes: Json


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
    profile = machine.node.cards[device.gpu].model.by_name[device.profile]
    short = device.profile.replace(".", "").replace("+", "-")
    return f"gpu-{device.gpu}-mig-{short}-{profile.number}-{device.start}"


def _described(machine: Machine, device: Device) -> Json:
    card = machine.node.cards[device.gpu]
    uuid = machine.node.mig_uuids(device.gpu)[device.start] if device.profile else card.uuid
    attributes: Json = {
        "type": {"string": "mig" if device.profile else "gpu"},
        "uuid": {"string": uuid},
        "productName": {"string": card.model.product},
        "driverVersion": {"version": "580.95.5"},
    }
    if device.profile is not None:
        attributes["profile"] = {"string": device.profile}
        attributes["parentUUID"] = {"string": card.uuid}
    return {"name": name_of(machine, device), "attributes": attributes}


def publish(world: World, machine: Machine) -> None:
    """Say what is on a node with static MIG, anew where that has changed."""
    devices = [_described(machine, device) for device in machine.devices()]
    name = f"{machine.name}-{DRIVER}"
    held = world.store.find("ResourceSlice", name)
    if held is not None and held["spec"]["devices"] == devices:
        return
    generation = 1 if held is None else held["spec"]["pool"]["generation"] + 1
    made = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
        "spec": {
            "driver": DRIVER, "nodeName": machine.name, "devices": devices,
            "pool": {"name": machine.name, "generation": generation, "resourceSliceCount": 1},
        },
    }  # fmt: skip
    if held is not None:
        world.store.delete(held)
    world.store.create(made)


def listed(slices: Iterable[Json]) -> list[Listed]:
    """All devices, in the order in which their slices list them."""
    return [
        Listed(item["spec"]["nodeName"], device["name"], device["attributes"])
        for item in slices
        for device in item["spec"]["devices"]
    ]


def takes(request: Json, device: Listed, classes: dict[str, Json]) -> bool:
    """Whether a request takes a device."""
    selectors = [*classes[request["deviceClassName"]]["spec"].get("selectors", ())]
    expressions = [e["cel"]["expression"] for e in (*selectors, *request.get("selectors", ()))]
    # A value whose name an expression does not have cannot matter.
    return all(
        _evaluate(text, tuple(
            (name, next(iter(value.values())))
            for name, value in device.attributes.items() if name in text
        ))
        for text in expressions
    )  # fmt: skip


@cache
def _evaluate(expression: str, told: tuple[tuple[str, str], ...]) -> bool:
    # Imported where it is needed: a fifth of a second that most tests do without.
    from celpy.adapter import json_to_cel

    device = {"driver": DRIVER, "attributes": {DRIVER: dict(told)}}
    answer = _program(expression).evaluate({"device": json_to_cel(device)})
    assert type(answer).__name__ in ("BoolType", "bool"), f"{expression} is {answer!r}"
    return bool(answer)


@cache
def _program(expression: str) -> Any:
    from celpy import Environment

    environment = Environment()
    return environment.program(environment.compile(expression))


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
