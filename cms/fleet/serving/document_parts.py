"""What several documents say of services, operating points and queueing rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...files import fields as f
from ...files import model as m
from ...files.numerals import is_whole
from ...files.parsed import show_value
from ...files.problems import problem_to_json
from ...problem.machine_problem import MachineProblem
from ...problem.parts import AnyConfiguration, MachineType
from ...values.numbers import shown
from ...values.words import count
from .capacity import CapacityRule
from .gpus_used import AvailableGpus, HeldInstance, list_configurations
from .latency_rule import LatencyRule
from .load_curve import POINT_KEYS, LoadCurve, PointKey, key_of
from .measurements import InstanceKind, find_allowed_instances, find_instance
from .neighbours import classes_in
from .operating_point import OperatingPoint
from .posing import AnyServing
from .queueing import RULES, QueueingRule, evidence_of, with_latency_margin
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

    def build(self) -> Any:
        """Build the service."""
        return Service(**{key: getattr(self, key) for key in ServicePart.model_fields})


#: A service in a document.
ServiceField = Annotated[Service, m.Built(ServicePart)]


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


def curves_to_json(curves: Mapping[PointKey, LoadCurve]) -> list[dict[str, Any]]:
    """Write load curves as JSON objects, each with its point."""
    return [
        {**dict(zip(POINT_KEYS, point, strict=True)), **_CurvePart.from_object(curve).to_json()}
        for point, curve in curves.items()
    ]


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
    if type(found) is not type(wanted) or not isinstance(found, dict | list):
        raise f.refusal(f"{show_value(wanted)}, {why}", *at)
    if isinstance(found, list):
        if len(found) != len(wanted):
            what = f"{{}} has {count(len(found), 'entry')}"
            raise f.refusal(f"{count(len(wanted), 'entry')}, {why}", *at, what=what)
        found, wanted = dict(enumerate(found)), dict(enumerate(wanted))
    for key, value in wanted.items():
        if key not in found:
            raise f.refusal(f"{show_value(value)}, {why}", *at, what=f"{{}} has no {key!r}")
        agree(found[key], value, why, *at, key)
    words = f"only {', '.join(wanted)}" if wanted else "nothing there"
    raise f.refusal(f"{words}, {why}", *at)


class _LatencyRulePart(m.Part):
    MAKES: ClassVar[Any] = LatencyRule
    name: f.Text
    share: f.Exact = Field(alias="latency_share")
    strict: f.Flag
    source: f.Text = ""
    latency_margin: f.Exact = f.omitted(Fraction(0))


class _CapacityRulePart(m.Part):
    MAKES: ClassVar[Any] = CapacityRule
    name: f.Text
    late_share: f.Exact
    queue: Queue
    certified: f.Flag
    latency_margin: f.Exact = f.omitted(Fraction(0))


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
    if known is not None and with_latency_margin(known, rule.latency_margin) != rule:
        raise f.refusal(f"{known}, which is what {name!r} means", what=f"{{}} is {rule}")
    if isinstance(rule, CapacityRule) and curves:
        with f.blaming():
            return rule.with_curves(curves)
    return rule


class HeldPart(m.Part):
    """An instance that stays where it is."""

    MAKES: ClassVar[Any] = HeldInstance
    profile: f.Text
    start: f.Count | None
    serves: f.Flag = f.omitted(False)


class AvailablePart(m.Part):
    """GPUs that are there: a machine type."""

    machine: f.Text
    gpu: f.Text
    count: f.Count
    held: tuple[Annotated[Any, m.Built(HeldPart)], ...] = f.omitted(())
    lacks: tuple[f.Text, ...] = f.omitted(())
    price: f.Exact = f.left_out()

    def build(self) -> AvailableGpus:
        """Build them; their name follows from the rest."""
        found = AvailableGpus(self.gpu, self.count, self.held, self.lacks, self.price)
        agree(self.machine, found.name, "what it is", "machine")
        return found

    @classmethod
    def from_object(cls, value: AvailableGpus, **other: Any) -> Self:
        """Describe them."""
        return super().from_object(value, machine=value.name)


def require_available(
    available: Sequence[AvailableGpus], types: Sequence[MachineType]
) -> list[str]:
    """Refuse GPUs that are not the machine types of a problem; return the device of each type."""
    names = [each.name for each in types]
    if not available:
        return names
    agree([each.name for each in available], names, "as in the problem", "available")
    for index, (each, it) in enumerate(zip(available, types, strict=True)):
        agree(each.count, it.limit, "the limit in the problem", "available", index, "count")
        cost = Fraction(0) if each.held else each.price
        if cost not in (None, it.cost):
            what = f"{{}} cost {shown(it.cost)} each in the problem"
            raise f.refusal(shown(cost or Fraction(0)), "available", index, what=what)
    return [each.gpu for each in available]


_WHY = "as the rest of the plan has"


def allowed_configurations(serving: AnyServing) -> list[AnyConfiguration]:
    """Return what the devices allow with the profiles that there are blocks of."""
    with f.blaming("problem", "blocks"):
        plain = (block for block in serving.problem.blocks if classes_in(block) is None)
        used = [serving.instance_of(block) for block in plain]
        return list_configurations(serving.gpus, used, serving.splits, serving.available)


def require_problem(given: MachineProblem, wanted: MachineProblem, *at: str) -> None:
    """Refuse a problem that is not the one that the rest of its plan poses."""
    if given != wanted:
        agree(problem_to_json(given), problem_to_json(wanted), _WHY, *at)
        raise f.refusal(f"the one {_WHY}", *at, what="{} is another problem")


def refuse_other_terms(points: Sequence[Any], serving: AnyServing) -> None:
    """Refuse points and unservable services that could not have made the plan's problem."""
    allowed: dict[str, set[InstanceKind]] = {}
    for index, service in enumerate(serving.services):
        with f.blaming("services", index, "allowed_profiles"):
            if service.allowed_profiles is not None:
                allowed[service.name] = {
                    instance
                    for name in service.allowed_profiles
                    for instance in find_allowed_instances(name, service, serving.gpus)
                }
    for index, part in enumerate(points):
        with f.blaming("operating_points", index):
            service, kind = serving.service(part.service), serving.instance_of(part.block)
            if part.model != service.model:
                expected = f'"{service.model}", which service {service.name!r} runs'
                raise f.refusal(expected, "model")
            if (found := find_instance(part.point(), serving.gpus)) != kind:
                was = " ".join(found or (part.device, part.profile))
                what = f"{{}} was measured on {was}"
                raise f.refusal(f"{' '.join(kind)}, which block {part.block} is", what=what)
            most = serving.max_processes
            if most is not None and part.processes > most:
                raise f.refusal(f"at most max_processes = {most}", "processes")
            if kind not in allowed.get(service.name, {kind}):
                names = ", ".join(service.allowed_profiles or ())
                raise f.refusal(f"one of {names}, which service {service.name!r} allows", "block")
    lost = {
        service.name
        for service in serving.services
        if service.rate_rps and not serving.can_serve(service.name)
    }
    for name in serving.unservable:
        if name not in lost:
            raise f.refusal(
                "services that no block serves, which this one is not",
                "unservable", name, what=f"{{}} is about {name!r}", at_key=True,
            )  # fmt: skip
    if missing := sorted(lost - set(serving.unservable)):
        raise f.refusal(
            "it, since no block serves it", "unservable", what=f"{{}} does not name {missing[0]!r}"
        )
