"""What several documents say of services, points, rules, available GPUs and sharing in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...checker.kinds import check
from ...files import fields as f
from ...files import model as m
from ...files.numerals import is_whole
from ...files.parsed import show_value
from ...files.problems import EmbeddedProblem, problem_to_json
from ...files.solutions import SolutionDocument
from ...problem.machine_problem import MachineProblem
from ...problem.parts import AnyConfiguration, Block, MachineType
from ...solving.solution import Solution
from ...time_sharing.duty_cycle import DutyCycleRule
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from ...values.words import count
from .capacity import CapacityRule, CapacityRulePart
from .gpus_used import AvailableGpus, HeldInstance, list_configurations
from .interference import Interference, Pair
from .latency_rule import LatencyRulePart
from .load_curve import POINT_KEYS, LoadCurve, PointKey, key_of
from .measurements import InstanceKind, find_allowed_instances, find_instance
from .neighbours import NeighbourServing, classes_in, pose_beside
from .operating_point import OperatingPoint
from .plan import Plan
from .posing import AnyServing
from .queueing import RULES, QueueingRule, evidence_of, with_latency_margin
from .service import Queue, Service
from .time_sharing import Headroom, SharedServing, TimeSharing, amount_of


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
        return dict(zip(("evidence", "load_curve"), found or (None, None), strict=True))


def _read_batch(written: Any) -> int:
    if isinstance(written, str) and is_whole(written) and written == str(int(written)):
        return int(written)
    raise f.refusal("a batch: a number of requests, in digits", what=f"{{}} is the key {written!r}")


#: An object whose keys are numbers of requests, written in the one way.
ByBatch = dict[Annotated[int, f.Value(_read_batch, str)], f.Exact]


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


def read_rule(
    value: Any, own: QueueingRule | None, curves: Mapping[PointKey, LoadCurve]
) -> QueueingRule:
    """Read a rule by its kind; `own` is one of the caller's, `curves` those of the points."""
    if not isinstance(value, dict) or "name" not in value:
        raise f.refusal('an object with "name"')
    if not isinstance(name := value["name"], str):
        raise f.refusal("a text", "name")
    if own is not None and own.name != name:
        raise f.refusal(f'"{own.name}", the rule that was given', "name")
    rule, kind = own, LatencyRulePart if "latency_share" in value else CapacityRulePart
    if rule is None:
        if kind is CapacityRulePart and "late_share" not in value:
            fix = "give read_plan the rule it was made with"
            raise f.refusal(what=f"the rule {name!r} is not known here", fix=fix)
        rule = found = m.read_part(kind, value).build()
        known = RULES.get(name)
        if known is not None and with_latency_margin(known, found.latency_margin) != found:
            raise f.refusal(f"{known}, which is what {name!r} means", what=f"{{}} is {found}")
    with f.blaming():
        return rule.with_curves(curves) if isinstance(rule, CapacityRule) and curves else rule


class HeldPart(m.Part):
    """An instance that stays where it is."""

    MAKES: ClassVar[Any] = HeldInstance
    profile: f.Text
    start: f.Count | None
    serves: f.Flag = f.omitted(False)


class AvailablePart(m.Part):
    """GPUs that are there: a machine type."""

    name: f.Text = Field(alias="machine")
    gpu: f.Text
    count: f.Count
    held: tuple[Annotated[Any, m.Built(HeldPart)], ...] = f.omitted(())
    lacks: tuple[f.Text, ...] = f.omitted(())
    price: f.Exact = f.left_out()

    def build(self) -> AvailableGpus:
        """Build them; their name follows from the rest."""
        found = AvailableGpus(self.gpu, self.count, self.held, self.lacks, self.price)
        agree(self.name, found.name, "what it is", "machine")
        return found


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


def allowed_configurations(serving: AnyServing) -> list[AnyConfiguration]:
    """Return what the devices allow with the profiles that there are blocks of."""
    with f.blaming("problem", "blocks"):
        plain = (block for block in serving.problem.blocks if classes_in(block) is None)
        used = [serving.instance_of(block) for block in plain]
        splits = serving.sharing.splits if isinstance(serving, SharedServing) else "any"
        return list_configurations(serving.gpus, used, splits, serving.available)


def require_problem(given: MachineProblem, wanted: MachineProblem, *at: str) -> None:
    """Refuse a problem that is not the one that the rest of its plan poses."""
    if given != wanted:
        why = "as the rest of the plan has"
        agree(problem_to_json(given), problem_to_json(wanted), why, *at)
        raise f.refusal(f"the one {why}", *at, what="{} is another problem")


def require_valid(problem: MachineProblem, solution: Solution, *at: str) -> None:
    """Refuse a solution whose schedule is none of its problem."""
    for violation in () if solution.cost is None else check(problem, solution.schedule):
        raise f.refusal(None, *at, what=f"{{}} is not valid: {violation}")


def refuse_other_terms(points: Sequence[Any], serving: AnyServing) -> None:
    """Refuse points and unservable services that could not have made the plan's problem."""
    allowed: dict[str, set[InstanceKind]] = {}
    for index, service in enumerate(serving.services):
        with f.blaming("services", index, "allowed_profiles"):
            allowed[service.name] = find_allowed_instances(service, serving.gpus)
    for index, part in enumerate(points):
        with f.blaming("operating_points", index):
            service, kind = serving.service(part.service), serving.instance_of(part.block)
            if part.model != service.model:
                expected = f'"{service.model}", which service {service.name!r} runs'
                raise f.refusal(expected, "model")
            if (measured := find_instance(part.point(), serving.gpus)) != kind:
                what = f"{{}} was measured on {' '.join(measured or (part.device, part.profile))}"
                raise f.refusal(f"{' '.join(kind)}, which block {part.block} is", what=what)
            most = serving.max_processes
            if most is not None and part.processes > most:
                raise f.refusal(f"at most max_processes = {most}", "processes")
            if kind not in (allowed[service.name] or {kind}):
                listed = ", ".join(service.allowed_profiles or ())
                raise f.refusal(f"one of {listed}, which service {service.name!r} allows", "block")
    asked = (service.name for service in serving.services if service.rate_rps)
    lost = {name for name in asked if not serving.can_serve(name)}
    for name in serving.unservable:
        if name not in lost:
            expected, what = "services that no block serves", f"{{}} is about {name!r}"
            raise f.refusal(expected, "unservable", name, what=what, at_key=True)
    if missing := sorted(lost - set(serving.unservable)):
        what = f"{{}} does not name {missing[0]!r}"
        raise f.refusal("it, since no block serves it", "unservable", what=what)


class _HeadroomPart(m.Part):
    MAKES: ClassVar[Any] = Headroom
    name: f.Text
    overheads_ms: ByBatch | None


class _PairPart(m.Part):
    model: f.Text
    device: f.Text
    profile: f.Text
    batch: f.AtLeastOne
    beside_model: f.Text
    beside_batch: f.AtLeastOne
    slowdown: f.Exact


class _KindPart(m.Part):
    gpu: f.Text
    model: f.Text
    batch: f.AtLeastOne
    rank: f.AtLeastOne = Field(alias="class")


class _OuterPart(m.Part):
    problem: EmbeddedProblem
    solution: Annotated[Solution, m.Built(SolutionDocument)] | None


class _InterferencePart(m.Part):
    """The pairs, the classes made of them, and the problem that bounds, with its solution."""

    classes: f.AtLeastOne
    kinds: tuple[_KindPart, ...]
    pairs: tuple[_PairPart, ...]
    outer: _OuterPart

    @classmethod
    def of_plan(cls, serving: NeighbourServing, outer: Solution | None) -> Self:
        kinds = [
            _KindPart.from_fields(gpu=gpu, model=model, batch=batch, rank=rank)
            for (gpu, model, batch), rank in serving.ranks.items()
        ]
        measured = serving.interference.pairs.items()
        pairs = [_PairPart.from_object(pair, slowdown=factor) for pair, factor in measured]
        bound = _OuterPart.from_fields(problem=serving.outer, solution=outer)
        return cls.from_fields(classes=serving.classes, kinds=kinds, pairs=pairs, outer=bound)

    def serving(self, solo: SharedServing) -> NeighbourServing:
        """Make both images anew of the pairs; refuse other classes or pairs than follow."""
        with f.blaming("sharing", "interference", "pairs"):
            given = ((Pair(*(getattr(p, key) for key in Pair._fields)), p) for p in self.pairs)
            table = Interference({pair: part.slowdown for pair, part in given})
            serving = pose_beside(solo, table, self.classes)
        why = {
            "kinds": "by how much they slow others",
            "pairs": "those of this plan's batches by their GPUs' keys, and >= 1",
        }
        told, wanted = (of.to_json(*why) for of in (self, self.of_plan(serving, None)))
        for key in why:
            agree(told[key], wanted[key], why[key], "sharing", "interference", key)
        outer = "sharing", "interference", "outer"
        require_problem(self.outer.problem, serving.outer, *outer, "problem")
        if self.outer.solution is not None:
            require_valid(serving.outer, self.outer.solution, *outer, "solution")
        return serving


class SharedPoint(PointPart):
    """A point that a mix may have, with the length of its slot."""

    service: f.Text
    block: f.Text
    gpu: f.Text
    length_ms: f.Exact
    supply_rps: None  # what it counts for depends on the mix

    @classmethod
    def describe(
        cls, serving: SharedServing, service: Service, block: Block, point: OperatingPoint
    ) -> dict[str, Any]:
        """Return what a plan says of a point."""
        posed = serving.problem.job(service.name).point(block, amount_of(point))
        assert posed is not None  # the problem was made of the points
        return {"length_ms": 1000 * posed.length, "supply_rps": None}


class SharingPart(m.Part):
    """The terms on which services share instances in time."""

    kind: Literal["time"]
    rule: DutyCycleRule
    max_services: f.AtLeastOne | None
    splits: Literal["pairs", "any"]
    headroom: Annotated[Headroom, m.Built(_HeadroomPart)] | None
    latency_margin: f.Exact = f.omitted(Fraction(0))
    interference: _InterferencePart | None = f.omitted(None)

    @classmethod
    def of_plan(cls, plan: Plan) -> Self:
        """Describe the terms of a plan."""
        serving, told = plan.serving, None
        assert isinstance(serving, SharedServing)
        if isinstance(serving, NeighbourServing):
            told = _InterferencePart.of_plan(serving, plan.outer)
        return cls.from_object(serving.sharing, kind="time", interference=told)

    def serving(
        self, points: Sequence[SharedPoint], problem: TimeSharedProblem, **common: Any
    ) -> SharedServing:
        """Build what a plan was made from; its problem must be what follows from the rest."""
        sharing = TimeSharing(**{key: getattr(self, key) for key in TimeSharing.__match_args__})
        of_pair: dict[tuple[str, Block], list[OperatingPoint]] = {}
        for index, part in enumerate(points):
            with f.blaming("operating_points", index):
                if classes_in(part.block) is None:  # others are made anew of these
                    of_pair.setdefault((part.service, part.block), []).append(part.point())
        by_amount = {pair: tuple(sorted(own, key=amount_of)) for pair, own in of_pair.items()}
        given = SharedServing(
            problem=problem, sharing=sharing, points=FrozenMap(by_amount), **common
        )
        jobs = []
        for service in given.services:
            with f.blaming("operating_points"):
                own = {block: by_amount.get((service.name, block), ()) for block in problem.blocks}
                jobs.append(sharing.job(service, own, given.rate_margin))
        wanted = TimeSharedProblem(
            configurations=allowed_configurations(given), jobs=jobs, rule=sharing.rule,
            machine_types=problem.machine_types, group_limits=problem.group_limits,
            max_jobs=sharing.max_services,
        )  # fmt: skip
        solo = replace(given, problem=wanted)
        serving = solo if self.interference is None else self.interference.serving(solo)
        require_problem(problem, serving.problem, "problem")
        return serving
