"""What a plan's document says of its services, its points and its GPUs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator

from ...files import fields as f
from ...files import model as m
from ...files.numerals import is_whole
from ...values.numbers import shown
from .document_parts import Queue, ServicePart, SuppliedPart
from .fills import FillTimes
from .promise import Promise


class GivenPart(ServicePart):
    """A service, and what it gets."""

    provided_rps: f.Exact
    instances: f.Count

    @classmethod
    def from_object(cls, value: Any, **other: Any) -> Self:
        """Describe a service and what it gets."""
        own = ServicePart.model_fields
        given = {key: value.service if key in own else value for key in cls.model_fields}
        return cls.from_fields(**{key: getattr(of, key) for key, of in given.items()})


class PlannedPart(GivenPart):
    """A service, what is planned for it, and what it gets."""

    planned_rps: f.Exact


class PlannedPoint(SuppliedPart):
    """An operating point of a service on a block."""

    service: f.Text
    block: f.Text
    gpu: f.Text
    batch_ms: f.Exact
    fill_ms: Annotated[dict[str, f.Exact], BeforeValidator(m.drop_own_keys)]

    def times(self) -> FillTimes:
        """Build T(n); the smaller batches are what was measured, the full one follows."""
        times = {}
        for written, time in self.fill_ms.items():
            if not (is_whole(written) and written == str(int(written))):
                what = f"{{}} is the key {written!r}"
                raise f.refusal("a number of requests", "fill_ms", written, what=what, at_key=True)
            times[int(written)] = time
        if not times or 0 in times or list(times)[-1] != self.batch:
            expected = f"times of 1 or more requests, the last of {self.batch}, the batch"
            raise f.refusal(expected, "fill_ms")
        if times[self.batch] != self.point().batch_ms:
            raise f.refusal(
                f"{shown(self.point().batch_ms)}, as batch_ms", "fill_ms", str(self.batch)
            )
        with f.blaming("fill_ms"):
            return FillTimes(times)


class PromisePart(m.Part):
    """What the plan says of latencies."""

    MAKES: ClassVar[Any] = Promise
    late_share: f.Exact
    arrivals: f.Text
    routing: f.Text
    queue: Queue
    rate_margin: f.Exact


class ServedPart(m.Part):
    """What an instance does for a service."""

    service: f.Text
    processes: f.AtLeastOne
    batch: f.AtLeastOne
    length_ms: f.Exact = f.left_out()
    rate_rps: f.Exact
    slack_ms: f.AnyExact | None

    @classmethod
    def from_object(cls, value: Any, **other: Any) -> Self:
        """Describe what an instance does."""
        point = value.point
        told = {
            key: getattr(value, key) for key in ("service", "length_ms", "rate_rps", "slack_ms")
        }
        return cls.from_fields(processes=point.processes, batch=point.batch, **told)


class InstancesPart(m.Part):
    """Instances that serve the same services."""

    block: f.Text
    profile: f.Text
    count: f.AtLeastOne
    frame_ms: f.Exact = f.left_out()
    serves: tuple[Annotated[Any, m.Built(ServedPart)], ...]


class GroupPart(m.Part):
    """GPUs of one layout."""

    gpu: f.Text
    count: f.AtLeastOne
    instances: tuple[Annotated[Any, m.Built(InstancesPart)], ...]
