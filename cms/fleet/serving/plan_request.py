"""What is asked of a plan, sorted and with every name checked, before a problem is made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ...values.numbers import Number
from ..hardware import Gpu
from .gpus_used import build_machine_types, list_configurations
from .guards import batch_time_warnings, limit_warnings, shrinking_warnings, unit_warnings
from .measurements import InstanceKind, Measurements
from .operating_point import OperatingPoint
from .service import Service


class PlanRequest(NamedTuple):
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
    def measured(self) -> dict[str, Mapping[InstanceKind, Sequence[OperatingPoint]]]:
        """The points of each model that a service runs."""
        return {each.model: self.known.measured[each.model] for each in self.services}

    @property
    def points(self) -> list[OperatingPoint]:
        """The points of models that a service runs, in a row."""
        return [point for own in self.measured.values() for each in own.values() for point in each]

    def build_machines(self, used: Iterable[InstanceKind], splits: str = "any") -> dict[str, Any]:
        """Return the configurations with these kinds of instances, and the machine types."""
        return {
            "configurations": list_configurations(self.fleet, used, splits),
            "machine_types": build_machine_types(self.fleet, self.limits, self.costs),
        }

    @property
    def kept(self) -> dict[str, Any]:
        """What a serving problem keeps as it is."""
        terms = {"rate_margin": self.margin, "max_processes": self.max_processes}
        return {"services": self.services, "gpus": self.fleet, **terms}

    def warnings(self, *, batches: bool) -> tuple[str, ...]:
        """Say what looks odd about services and points that are known to go together.

        `batches`: whether to name points whose latency is not what their throughput says.
        """
        units = unit_warnings(self.points)
        # latencies in a wrong unit make every limit look wrong: one mistake, one warning
        odd_limits = () if units else limit_warnings(self.services, self.measured)
        slow = batch_time_warnings(self.points) if batches and not units else ()
        return (*units, *slow, *odd_limits, *shrinking_warnings(self.measured, self.fleet))
