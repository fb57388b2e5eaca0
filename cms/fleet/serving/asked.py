"""What is asked of a plan, sorted and with every name checked, before a problem is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption
from ...values.numbers import Number
from ..hardware import Gpu
from .guards import (
    batch_time_warnings,
    limit_warnings,
    shrinking_warnings,
    unit_warnings,
)
from .measurements import Measurements
from .operating_point import OperatingPoint
from .service import Service


class Asked(NamedTuple):
    """Services, what was measured of their models on these GPUs, and the terms of a plan.

    `margin`: rates are taken to be higher by this share. `limits` and `costs` are of GPUs, by key
    or product name.
    """

    services: tuple[Service, ...]
    fleet: tuple[Gpu, ...]
    known: Measurements
    margin: Fraction = Fraction(0)
    max_processes: int | None = None
    limits: Mapping[str, int] | None = None
    costs: Mapping[str, Number] | None = None

    @property
    def points(self) -> list[OperatingPoint]:
        """The points of models that a service runs."""
        mine = {service.model: self.known.measured[service.model] for service in self.services}
        return [point for own in mine.values() for each in own.values() for point in each]


def warnings_of(asked: Asked, *, batches: bool) -> tuple[str, ...]:
    """Say what looks odd about services and points that are known to go together.

    `batches`: whether to name points whose latency is not what their throughput says.
    """
    services = asked.services
    mine = {service.model: asked.known.measured[service.model] for service in services}
    units = unit_warnings(asked.points)
    # latencies in a wrong unit make every limit look wrong: one mistake, one warning
    odd_limits = () if units else limit_warnings(services, mine)
    slow = batch_time_warnings(asked.points) if batches and not units else ()
    shrinking = shrinking_warnings(mine, asked.fleet)
    return (*units, *slow, *odd_limits, *shrinking)


def unique(services: Iterable[Service]) -> tuple[Service, ...]:
    """Return services whose names differ; refuse two that are called alike."""
    found: dict[str, Service] = {}
    for service in services:
        if service.name in found:
            raise service.fault(
                f"two services are called {service.name!r}; every service needs a name of its own"
            )
        found[service.name] = service
    return tuple(found.values())


def require_processes(max_processes: int | None) -> None:
    if max_processes is not None and (type(max_processes) is not int or max_processes < 1):
        raise InvalidOption(f"max_processes is {max_processes!r}; expected an integer >= 1")
