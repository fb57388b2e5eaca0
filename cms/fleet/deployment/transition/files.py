"""Transitions as JSON documents (format ``cms-transition``), complete enough to be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....errors import CmsError
from ....files.documents import check_head, head, number_to_json, read_document, write_document
from ....files.node import Node
from ....files.source import StrPath
from ....values.frozen import FrozenMap
from ...serving.part_files import SERVICE_KEYS, device_to_json, service_from_json, service_to_json
from ...serving.queueing import QueueingRule
from ...serving.service import Service
from ..instance import Mode, Work
from ..model import Deployment
from ..node_files import (
    Parts,
    instance_from_json,
    instance_to_json,
    node_from_json,
    node_to_json,
    point_names,
    points_to_json,
    read_parts,
)
from ..recounting import beyond_limits
from .checking import coming
from .model import Action, Floor, Transition, What
from .proof_files import kept_from_json, kept_to_json, spare_from_json, spare_to_json

__all__ = ["read_transition", "transition_from_json", "transition_to_json", "write_transition"]


#: What is said of each number of restarts where what runs was put together.
_COMPACTED = (
    "max_restarts", "restarts", "gpus", "least_gpus", "nodes", "free", "proof", "freed_gpus",
    "freed_nodes",
)  # fmt: skip


def write_transition(transition: Transition, path: StrPath) -> None:
    """Write a transition to a JSON file.

    Parameters
    ----------
    transition : Transition
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    write_document(lambda: transition_to_json(transition), path)


def read_transition(path: StrPath, *, rule: QueueingRule | None = None) -> Transition:
    """Read a transition from a JSON file.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.
    rule : QueueingRule, optional
        The rule of a transition that was made with a rule of one's own.

    Raises
    ------
    FileError
        With line and column, if the file is no transition or its parts contradict each other.
        Whether it does what it says is what `check_transition` says.
    """
    return transition_from_json(read_document(path, "cms-transition"), rule=rule)


def transition_to_json(transition: Transition) -> dict[str, Any]:
    """Turn a transition into the document that :func:`read_transition` reads."""
    start, target = transition.start, transition.target
    services = {service.name: service for service in (*start.services, *target.services)}
    rule = target.rule or start.rule
    names = point_names(
        each.work
        for part in (
            (instance for _, instance in start.instances()),
            (instance for _, instance in target.instances()),
            *((*action.removes, *action.adds) for action in transition.actions),
        )
        for each in part
    )
    devices = {**start.devices, **target.devices}
    return {
        **head("cms-transition"),
        "rule": None if rule is None else rule.to_json(),
        "services": [service_to_json(service) for service in services.values()],
        "points": points_to_json(names, services.values(), rule),
        "devices": [device_to_json(devices[key]) for key in sorted(devices)],
        "start": _side_to_json(start, names),
        "target": _side_to_json(target, names),
        "floors": {
            name: {"rps": number_to_json(floor.rps), "reason": floor.reason}
            for name, floor in sorted(transition.floors.items())
        },
        "actions": [
            {
                "what": action.what.value,
                "node": action.node,
                "index": action.index,
                "removes": [instance_to_json(each, names) for each in action.removes],
                "adds": [instance_to_json(each, names) for each in action.adds],
                "after": list(action.after),
                "mode": None if action.mode is None else action.mode.value,
                "is_temporary": action.is_temporary,
            }
            for action in transition.actions
        ],
        "kept": kept_to_json(transition.kept, names),
        "spare": spare_to_json(transition.spare, names),
    }


def _side_to_json(deployment: Deployment, names: Mapping[Work, str]) -> dict[str, Any]:
    return {
        "services": [service_to_json(service) for service in deployment.services],
        "nodes": [node_to_json(node, names) for node in deployment.nodes],
    }


def transition_from_json(
    document: Node | Mapping[str, Any], *, rule: QueueingRule | None = None
) -> Transition:
    """Turn a parsed document into a transition.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.
    rule : QueueingRule, optional
        The rule of a transition that was made with a rule of one's own.

    Raises
    ------
    FileError
        If a part is missing or wrong.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, "cms-transition")
    fields = node.object(
        (
            "format", "schema", "rule", "services", "points", "devices", "start", "target",
            "floors", "actions", "kept", "spare",
        ),
        optional=("compacted",),
    )  # fmt: skip
    if "compacted" in fields:  # of the search for the target; the transition is as true without it
        for row in fields["compacted"].array():
            row.object(_COMPACTED)
    before, wanted = (_services(fields[side].at("services")) for side in ("start", "target"))
    parts = read_parts(fields, rule, before)
    _require_services(fields["services"], parts.services, {**before, **wanted})
    floors = {}
    for name, entry in fields["floors"].entries():
        if name not in parts.services:
            raise entry.wrong("a floor of a service that is there", f"there is no {name!r}")
        floor = entry.object(("rps", "reason"))
        floors[name] = Floor(floor["rps"].number(), floor["reason"].text())
    found = Transition(
        _side(fields["start"], parts),
        _side(fields["target"], parts),
        FrozenMap(floors),
        tuple(_action(entry, parts) for entry in fields["actions"].array()),
        spare_from_json(fields["spare"], parts.works),
        kept_from_json(fields["kept"], parts.works),
    )
    _require_no_old_work(node, found, parts)
    return found


def _require_no_old_work(node: Node, of: Transition, parts: Parts) -> None:
    """What counts under the old limits alone may go, and not come."""
    for work in beyond_limits(coming(of), parts.services, parts.rule):
        raise node.error(
            f"{node.label}: {work} comes or is in the target, and the limit of "
            f"{work.service!r} does not admit its point",
            expected="work within the target's limits",
        )


def _require_services(
    node: Node, counted: Mapping[str, Service], sides: Mapping[str, Service]
) -> None:
    """Points are counted by the limits that the target states, and by no others."""
    for name in sorted({*counted, *sides}):
        if counted.get(name) != sides.get(name):
            raise node.error(
                f"{node.label}: {name!r} is another service there than in the target, or in the "
                "start where the target has none",
                expected="the services of the target, and those of the start that go",
            )


def _services(node: Node) -> dict[str, Service]:
    found: dict[str, Service] = {}
    for entry in node.array():
        service = service_from_json(entry, entry.object(SERVICE_KEYS))
        if service.name in found:
            raise entry.error(
                f"{entry.label}: there are two of service {service.name!r}", expected="one"
            )
        found[service.name] = service
    return found


def _side(node: Node, parts: Parts) -> Deployment:
    fields = node.object(("services", "nodes"))
    services = tuple(_services(fields["services"]).values())
    nodes = tuple(node_from_json(entry, parts) for entry in fields["nodes"].array())
    try:
        return Deployment(nodes, services, parts.rule)
    except CmsError as fault:
        raise node.refused(fault) from None


def _action(node: Node, parts: Parts) -> Action:
    fields = node.object(
        ("what", "node", "index", "removes", "adds", "after", "mode", "is_temporary")
    )
    mode = fields["mode"]
    return Action(
        What(fields["what"].one_of([each.value for each in What])),
        fields["node"].text(),
        fields["index"].integer(),
        tuple(instance_from_json(entry, parts.works) for entry in fields["removes"].array()),
        tuple(instance_from_json(entry, parts.works) for entry in fields["adds"].array()),
        tuple(entry.integer() for entry in fields["after"].array()),
        None if mode.value is None else Mode(mode.one_of([each.value for each in Mode])),
        fields["is_temporary"].boolean(),
    )
