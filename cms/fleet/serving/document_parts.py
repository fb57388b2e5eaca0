"""What several documents say of services, operating points and queueing rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator

from ...files import fields as f
from ...files import model as m
from ...files.numerals import is_whole
from ...files.parsed import show_value
from ...values.numbers import shown
from .capacity import CapacityRule
from .fills import FillTimes
from .latency_rule import LatencyRule
from .load_curve import LoadCurve, PointKey, key_of
from .operating_point import OperatingPoint
from .promise import Promise
from .queueing import RULES, QueueingRule, evidence_of
from .service import Service

Queue = Literal["instance", "process"]


class ServicePart(m.Part):
    """A service."""

    name: f.Text
    model: f.Text
    rate_rps: f.Exact
    latency_limit_ms: f.Exact | None
    late_share: f.Exact | None
    queue: Queue | None
    allowed_profiles: tuple[f.Text, ...] | None
    extra: dict[str, f.Text]

    def service(self) -> Service:
        """Build the service."""
        return Service(**{key: getattr(self, key) for key in ServicePart.model_fields})


class _OnlyService(ServicePart):
    def build(self) -> Service:
        return self.service()


#: A service in a document.
ServiceField = Annotated[Service, m.Built(_OnlyService)]


class PointPart(m.Part):
    """An operating point."""

    model: f.Text
    device: f.Text
    profile: f.Text
    processes: f.AtLeastOne
    batch: f.AtLeastOne
    throughput_rps: f.Exact
    latency_ms: f.Exact
    extra: dict[str, f.Text]

    def point(self) -> OperatingPoint:
        """Build the point."""
        return OperatingPoint(**{key: getattr(self, key) for key in PointPart.model_fields})

    @classmethod
    def point_fields(cls, point: OperatingPoint) -> dict[str, Any]:
        """Return the fields of a point."""
        return {key: getattr(point, key) for key in PointPart.model_fields}


class _CurvePart(m.Part):
    MAKES: ClassVar[Any] = LoadCurve
    late_share: f.Exact
    evidence: f.Text
    batches_sha256: f.Text = f.omitted("")
    rates_rps: tuple[f.Exact, ...]
    latencies_ms: tuple[f.Exact, ...]


#: A load curve in a document.
Curve = Annotated[LoadCurve, m.Built(_CurvePart)]


class SuppliedPart(PointPart):
    """An operating point, what it counts for, and what that rests on."""

    evidence: f.Text | None
    load_curve: Curve | None
    supply_rps: f.Exact

    @classmethod
    def evidence_fields(
        cls, rule: QueueingRule | None, service: Service, point: OperatingPoint
    ) -> dict[str, Any]:
        """Return what a supply rests on: a load curve of the point, or a table of the rule's."""
        found = None if rule is None else evidence_of(rule, service, point)
        if found is None:
            return {"evidence": None, "load_curve": None}
        return {"evidence": found.kind, "load_curve": found.curve}


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
        times = read_whole_keys(self.fill_ms, "a number of requests", "fill_ms")
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
        of_point = {key: getattr(value.point, key) for key in ("processes", "batch")}
        return super().from_object(value, **of_point)


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


def read_whole_keys(table: Mapping[str, Fraction], expected: str, *at: str) -> dict[int, Fraction]:
    """Read an object whose keys are whole numbers, written in the one way."""
    for written in table:
        if not (is_whole(written) and written == str(int(written))):
            what = f"{{}} is the key {written!r}"
            raise f.refusal(expected, *at, written, what=what, at_key=True)
    return {int(written): value for written, value in table.items()}


def collect_curves(key: str, points: Iterable[SuppliedPart]) -> dict[PointKey, LoadCurve]:
    """Collect the load curves of the points that stand under a key; a point has one."""
    curves: dict[PointKey, LoadCurve] = {}
    for index, part in enumerate(points):
        if part.load_curve is not None:
            point = part.point()
            if curves.setdefault(key_of(point), part.load_curve) != part.load_curve:
                what = f"{{}} is the second load curve of {point}"
                raise f.refusal("one a point", key, index, "load_curve", what=what)
    return curves


def agree(found: Any, wanted: Any, why: str, *at: str | int) -> None:
    """Check what is written out for readers, plain JSON values, against what follows."""
    if found == wanted and type(found) is type(wanted):
        return
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        for key, value in wanted.items():
            agree(found[key], value, why, *at, key)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for index, value in enumerate(wanted):
            agree(found[index], value, why, *at, index)
    elif isinstance(found, list) and isinstance(wanted, list):
        what = f"{{}} has {len(found)} entries"
        raise f.refusal(f"{len(wanted)} entries, {why}", *at, what=what)
    else:
        raise f.refusal(f"{show_value(wanted)}, {why}", *at)


# --- queueing rules, which write themselves -------------------------------------------------------


class _LatencyRulePart(m.Part):
    name: f.Text
    latency_share: f.Exact
    strict: f.Flag
    source: f.Text = ""

    def build(self) -> LatencyRule:
        with f.blaming("latency_share"):
            return LatencyRule(
                self.name, self.latency_share, strict=self.strict, source=self.source
            )


class _CapacityRulePart(m.Part):
    MAKES: ClassVar[Any] = CapacityRule
    name: f.Text
    late_share: f.Exact
    queue: Queue
    certified: f.Flag


def read_rule(
    value: Any, own: QueueingRule | None, curves: Mapping[PointKey, LoadCurve]
) -> QueueingRule:
    """Read a rule by its kind; `own` is one of the caller's, `curves` those of the points."""
    if not isinstance(value, dict) or "name" not in value:
        raise f.refusal('an object with "name"')
    if not isinstance(name := value["name"], str):
        raise f.refusal("a text", "name")
    if own is not None:
        if own.name != name:
            raise f.refusal(f'"{own.name}", the rule that was given', "name")
        return own.with_curves(curves) if isinstance(own, CapacityRule) and curves else own
    kind = _LatencyRulePart if "latency_share" in value else _CapacityRulePart
    if kind is _CapacityRulePart and "late_share" not in value:
        raise f.refusal(
            what=f"the rule {name!r} is not known here",
            fix="give read_plan the rule it was made with",
        )
    rule: LatencyRule | CapacityRule = m.read_part(kind, value).build()
    known = RULES.get(name)
    if known is not None and not _is_same(known, rule):
        raise f.refusal(f"{known}, which is what {name!r} means", what=f"{{}} is {rule}")
    if isinstance(rule, CapacityRule) and curves:
        with f.blaming():
            return rule.with_curves(curves)
    return rule if known is None else known


def _is_same(known: QueueingRule, rule: LatencyRule | CapacityRule) -> bool:
    if isinstance(known, LatencyRule) and isinstance(rule, LatencyRule):
        return (known.share, known.strict) == (rule.share, rule.strict)
    return known == rule
