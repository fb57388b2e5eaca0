"""Nodes, what is on their GPUs, and the points that it runs at, as parts of JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ...errors import InvalidProblem
from ...files.documents import number_to_json
from ...files.node import Node
from ...values.frozen import FrozenMap
from ..hardware import Gpu
from ..hardware.catalogue import described_device
from ..serving.load_curve import LoadCurve, PointKey, key_of
from ..serving.part_files import (
    POINT_KEYS,
    SERVICE_KEYS,
    evidence_to_json,
    point_from_json,
    point_to_json,
    service_from_json,
)
from ..serving.queueing import QueueingRule
from ..serving.rule_files import curve_from_json, rule_from_json
from ..serving.service import Service
from .instance import UUID, Instance, Mode, Seen, State, Work
from .model import FleetGpu, FleetNode, Observation, driver_branch

__all__ = [
    "Parts",
    "instance_from_json",
    "instance_to_json",
    "node_from_json",
    "node_to_json",
    "point_names",
    "points_to_json",
    "read_parts",
]

T = TypeVar("T")
_INSTANCE = ("profile", "start", "point", "owner", "state", "gpu_instance", "uuid", "is_guessed")


def point_names(works: Iterable[Work | None]) -> dict[Work, str]:
    """Name each way in which a service runs: ``chat on a100-80gb 3g.40gb, 2 x 8``."""
    every = {work for work in works if work is not None}
    names: dict[Work, str] = {}
    taken: dict[str, int] = {}
    for work in sorted(every, key=_work_order):
        point = work.point
        name = (
            f"{work.service} on {point.device} {point.profile}, {point.processes} x {point.batch}"
        )
        taken[name] = number = taken.get(name, 0) + 1
        names[work] = name if number == 1 else f"{name} ({number})"
    return names


def _work_order(work: Work) -> tuple[Any, ...]:
    point = work.point
    more = point.throughput_rps, point.latency_ms, work.supply_rps, tuple(point.extra.items())
    return work.service, *key_of(point), *more


def node_to_json(node: FleetNode, names: Mapping[Work, str]) -> dict[str, Any]:
    """Write a node with its GPUs and what is on them."""
    seen = node.observed
    return {
        "name": node.name,
        "driver": node.driver,
        "labels": dict(node.labels),
        "observed": None if seen is None else {"at": seen.at, "from": list(seen.sources)},
        **({} if node.is_numbered else {"is_numbered": False}),
        "gpus": [
            {
                "index": card.index,
                "gpu": card.gpu.key,
                "uuid": card.uuid,
                "mode": card.mode.value,
                "seen": card.seen.value,
                "instances": [instance_to_json(each, names) for each in card.instances],
            }
            for card in node.gpus
        ],
    }


def instance_to_json(instance: Instance, names: Mapping[Work, str]) -> dict[str, Any]:
    """Write an instance; its work goes by the name of its point."""
    return {
        "profile": instance.profile,
        "start": instance.start,
        "point": None if instance.work is None else names[instance.work],
        "owner": instance.owner,
        "state": instance.state.value,
        "gpu_instance": instance.gpu_instance,
        "uuid": instance.uuid,
        "is_guessed": instance.is_guessed,
    }


def points_to_json(
    names: Mapping[Work, str], services: Iterable[Service], rule: QueueingRule | None
) -> list[dict[str, Any]]:
    """Write each point with what its supply rests on."""
    by_name = {service.name: service for service in services}
    none = {"evidence": None, "load_curve": None}
    return [
        {
            "name": name,
            "service": work.service,
            **point_to_json(work.point),
            **(none if rule is None else evidence_to_json(rule, by_name[work.service], work.point)),
            "supply_rps": number_to_json(work.supply_rps),
        }
        for work, name in names.items()
    ]


class Parts(NamedTuple):
    """What nodes refer to.

    Attributes
    ----------
    services : dict of Service
        By name.
    devices : dict of Gpu
        By key.
    rule : QueueingRule or None
    works : dict of Work
        By the name of their point.
    """

    services: dict[str, Service]
    devices: dict[str, Gpu]
    rule: QueueingRule | None
    works: dict[str, Work]


def read_parts(
    fields: Mapping[str, Node],
    rule: QueueingRule | None,
    before: Mapping[str, Service] | None = None,
) -> Parts:
    """Read services, devices, the rule and the points of a document.

    Parameters
    ----------
    fields : Mapping[str, Node]
    rule : QueueingRule or None
        One of the caller's own.
    before : Mapping[str, Service], optional
        Services as they were: a point that the new limits do not admit may supply what it does
        under the old ones, and any what it does under tighter ones.

    Raises
    ------
    FileError
        If one is wrong, or a supply is not what the rule makes of its point.
    """
    services: dict[str, Service] = {}
    for entry in fields["services"].array():
        service = service_from_json(entry, entry.object(SERVICE_KEYS))
        _put_new(services, service.name, service, entry, "service")
    devices: dict[str, Gpu] = {}
    for entry in fields["devices"].array():
        device = described_device(entry)
        _put_new(devices, device.key, device, entry, "device")
    counted, points = fields["rule"], list(fields["points"].array())
    curves = _curves(points)
    own = None if counted.value is None else rule_from_json(counted, rule, curves)
    return Parts(services, devices, own, _works(points, services, own, before or {}))


def _put_new(found: dict[str, T], name: str, value: T, node: Node, what: str) -> None:
    if name in found:
        raise node.error(f"{node.label}: there are two of {what} {name!r}", expected="one")
    found[name] = value


def _curves(points: list[Node]) -> dict[PointKey, LoadCurve]:
    curves: dict[PointKey, LoadCurve] = {}
    for entry in points:
        fields = _point_fields(entry)
        if fields["load_curve"].value is not None:
            point = point_from_json(entry, fields)
            curve = curve_from_json(fields["load_curve"])
            if curves.setdefault(key_of(point), curve) != curve:
                raise fields["load_curve"].error(
                    f"{fields['load_curve'].label} is the second load curve of {point}",
                    expected="one a point",
                )
    return curves


def _point_fields(node: Node) -> dict[str, Node]:
    return node.object(("name", "service", *POINT_KEYS, "evidence", "load_curve", "supply_rps"))


def _works(
    points: list[Node],
    services: Mapping[str, Service],
    rule: QueueingRule | None,
    before: Mapping[str, Service],
) -> dict[str, Work]:
    """Read each point; its supply must be what the rule makes of it."""
    works: dict[str, Work] = {}
    seen: set[Work] = set()
    for entry in points:
        fields = _point_fields(entry)
        service = services[fields["service"].one_of(services)]
        point = point_from_json(entry, fields)
        models = {service.model, before.get(service.name, service).model}
        if point.model not in models:
            raise fields["model"].wrong(" or ".join(sorted(models)), "it is its service's model")
        supply = fields["supply_rps"].number()
        fields["evidence"].or_null(Node.text)
        if rule is not None:
            why = f"by the rule {rule.name!r}"
            granted = rule.supply(service, point)
            if supply and supply != granted and service.name in before:
                earlier = rule.supply(before[service.name], point)
                if not granted or supply == earlier < granted:
                    granted, why = earlier, f"{why}, before"
            fields["supply_rps"].agree(granted, why)
            rests_on = evidence_to_json(rule, service, point)
            fields["evidence"].agree(rests_on["evidence"], why)
            if fields["load_curve"].value is None and rests_on["load_curve"] is not None:
                raise fields["load_curve"].wrong("the curve of its other points", why)
        work = Work(service.name, point, supply)
        if work in seen:
            raise entry.error(f"{entry.label}: there are two names of one point", expected="one")
        seen.add(work)
        _put_new(works, fields["name"].text(), work, fields["name"], "point")
    return works


def node_from_json(node: Node, parts: Parts) -> FleetNode:
    """Read a node with its GPUs and what is on them.

    Raises
    ------
    FileError
        If something is wrong.
    """
    fields = node.object(("name", "driver", "labels", "observed", "gpus"), ("is_numbered",))
    name = fields["name"].name("node")
    node.about = f"node {name!r}"
    seen = fields["observed"]
    observed = None
    if seen.value is not None:
        when = seen.object(("at", "from"))
        sources = tuple(entry.text() for entry in when["from"].array())
        observed = Observation(when["at"].text(), sources)
    driver = fields["driver"].or_null(Node.text)
    if driver is not None:
        try:
            driver_branch(driver)
        except InvalidProblem as fault:
            raise fields["driver"].refused(fault) from None
    return FleetNode(
        name,
        tuple(_gpu(entry, name, parts) for entry in fields["gpus"].array()),
        FrozenMap({key: entry.text() for key, entry in fields["labels"].entries()}),
        driver,
        observed,
        "is_numbered" not in fields or fields["is_numbered"].boolean(),
    )


def _gpu(node: Node, name: str, parts: Parts) -> FleetGpu:
    fields = node.object(("index", "gpu", "uuid", "mode", "seen", "instances"))
    return FleetGpu(
        name,
        fields["index"].integer(),
        parts.devices[fields["gpu"].one_of(parts.devices)],
        Mode(fields["mode"].one_of([each.value for each in Mode])),
        tuple(instance_from_json(entry, parts.works) for entry in fields["instances"].array()),
        _uuid(fields["uuid"]),
        Seen(fields["seen"].one_of([each.value for each in Seen])),
    )


def _uuid(node: Node) -> str | None:
    uuid = node.or_null(Node.text)
    if uuid is not None and not UUID.fullmatch(uuid):
        raise node.wrong("a UUID as nvidia-smi -L prints it (GPU-..., MIG-...), or null")
    return uuid


def instance_from_json(node: Node, works: Mapping[str, Work]) -> Instance:
    """Read an instance.

    Raises
    ------
    FileError
        If something is wrong.
    """
    fields = node.object(_INSTANCE)
    point = fields["point"]
    return Instance(
        fields["profile"].text(),
        fields["start"].or_null(Node.integer),
        None if point.value is None else works[point.one_of(works)],
        fields["owner"].or_null(lambda it: it.name("owner")),
        State(fields["state"].one_of([each.value for each in State])),
        fields["gpu_instance"].or_null(Node.integer),
        _uuid(fields["uuid"]),
        fields["is_guessed"].boolean(),
    )
