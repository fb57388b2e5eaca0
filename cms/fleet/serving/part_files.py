"""What several documents say of services, operating points and devices, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from ...errors import CmsError
from ...files.documents import number_to_json
from ...files.node import Node
from ..hardware import Evidence, Gpu, Profile
from ..hardware.device_file import SCHEMA as DEVICE_SCHEMA
from .operating_point import OperatingPoint
from .promise import QUEUES
from .queueing import QueueingRule, evidence_of
from .service import Service

__all__ = [
    "POINT_KEYS",
    "SERVICE_KEYS",
    "device_to_json",
    "evidence_to_json",
    "number_or_null",
    "point_from_json",
    "point_to_json",
    "service_from_json",
    "service_to_json",
]

SERVICE_KEYS = (
    "name", "model", "rate_rps", "latency_limit_ms", "late_share", "queue", "allowed_profiles",
    "extra",
)  # fmt: skip
POINT_KEYS = (
    "model", "device", "profile", "processes", "batch", "throughput_rps", "latency_ms", "extra",
)  # fmt: skip


def number_or_null(value: Fraction | None) -> int | str | None:
    """Write a number that may be left open."""
    return None if value is None else number_to_json(value)


def service_to_json(service: Service) -> dict[str, Any]:
    """Write a service under `SERVICE_KEYS`."""
    allowed = service.allowed_profiles
    return {
        "name": service.name,
        "model": service.model,
        "rate_rps": number_to_json(service.rate_rps),
        "latency_limit_ms": number_or_null(service.latency_limit_ms),
        "late_share": number_or_null(service.late_share),
        "queue": service.queue,
        "allowed_profiles": None if allowed is None else list(allowed),
        "extra": dict(service.extra),
    }


def service_from_json(node: Node, fields: Mapping[str, Node]) -> Service:
    """Read a service from the fields of a node.

    Raises
    ------
    FileError
        If one is wrong.
    """
    allowed, queue = fields["allowed_profiles"], fields["queue"]
    try:
        return Service(
            fields["name"].text(),
            fields["model"].text(),
            fields["rate_rps"].number(),
            fields["latency_limit_ms"].or_null(Node.number),
            None if allowed.value is None else [entry.text() for entry in allowed.array()],
            {name: entry.text() for name, entry in fields["extra"].entries()},
            late_share=fields["late_share"].or_null(Node.number),
            queue=None if queue.value is None else queue.one_of(QUEUES),
        )
    except CmsError as fault:
        raise node.refused(fault) from None


def point_to_json(point: OperatingPoint) -> dict[str, Any]:
    """Write an operating point under `POINT_KEYS`."""
    return {
        "model": point.model,
        "device": point.device,
        "profile": point.profile,
        "processes": point.processes,
        "batch": point.batch,
        "throughput_rps": number_to_json(point.throughput_rps),
        "latency_ms": number_to_json(point.latency_ms),
        "extra": dict(point.extra),
    }


def point_from_json(node: Node, fields: Mapping[str, Node]) -> OperatingPoint:
    """Read an operating point from the fields of a node.

    Raises
    ------
    FileError
        If one is wrong.
    """
    try:
        return OperatingPoint(
            fields["model"].text(),
            fields["device"].text(),
            fields["profile"].text(),
            fields["processes"].integer(minimum=1),
            fields["batch"].integer(minimum=1),
            fields["throughput_rps"].number(),
            fields["latency_ms"].number(),
            {name: entry.text() for name, entry in fields["extra"].entries()},
        )
    except CmsError as fault:
        raise node.refused(fault) from None


def evidence_to_json(rule: QueueingRule, service: Service, point: OperatingPoint) -> dict[str, Any]:
    """Write what a supply rests on: a load curve of the point, or a table of the rule's."""
    found = evidence_of(rule, service, point)
    if found is None:
        return {"evidence": None, "load_curve": None}
    curve = None if found.curve is None else found.curve.to_json()
    return {"evidence": found.kind, "load_curve": curve}


def device_to_json(gpu: Gpu) -> dict[str, Any]:
    """Write a device as its file has it, so that plans for users' own cards explain themselves."""
    return {
        "schema": DEVICE_SCHEMA,
        "version": gpu.version,
        "key": gpu.key,
        "aliases": list(gpu.aliases),
        "pci_device_ids": list(gpu.pci_device_ids),
        "architecture": gpu.architecture,
        "compute_slices": gpu.compute_slices,
        "memory_slices": gpu.memory_slices,
        "mode_change_needs_reset": gpu.mode_change_needs_reset,
        "geometry": "own",  # its geometry was judged when the device was read
        "profiles": [{"id": profile.id, **_record(profile)} for profile in gpu.profiles],
        "sources": [_record(each) for each in gpu.sources],
    }


def _record(part: Profile | Evidence) -> dict[str, Any]:
    """Write each field of a part of a device under its name, as its file has it."""
    values = {each.name: getattr(part, each.name) for each in fields(part)}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
