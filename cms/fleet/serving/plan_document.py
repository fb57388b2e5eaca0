"""Plans as JSON documents (format ``cms-plan``): everything to draw, replay or recheck one.

A plan embeds its problem and solution, the services with their limits, the operating point behind
every supply, the queueing rule and the device files. What each service gets and the layout of each
GPU are written out too, for programs that only want to read a plan.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator

from ...files import fields as f
from ...files import model as m
from ...files.documents import parse_document, write_document
from ...files.parsed import Parsed
from ...files.problems import EmbeddedProblem
from ...files.solutions import SolutionDocument
from ...files.source import StrPath
from ...infeasibility.shortage import Shortage
from ...problem.parts import Block
from ...problem.problem import Problem
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from ..hardware.catalogue import Device
from .document_parts import (
    AvailablePart,
    ByBatch,
    ServicePart,
    SharedPoint,
    SharingPart,
    SuppliedPart,
    agree,
    allowed_configurations,
    collect_curves,
    read_rule,
    refuse_other_terms,
    require_available,
    require_problem,
    require_valid,
)
from .load_curve import FillTimes
from .operating_point import OperatingPoint
from .plan import Plan
from .posing import AnyServing
from .queueing import QueueingRule
from .service import Promise, Queue, Service
from .serving_problem import ServingProblem, pose_job
from .time_sharing import SharedServing


class GivenPart(ServicePart):
    """A service, and what it gets."""

    provided_rps: f.Exact
    instances: f.Count
    latency_headroom: f.Exact | None

    def build(self) -> Self:
        """Keep what is written, to compare it with what follows; see ``ServicePart``."""
        return self

    @classmethod
    def from_object(cls, value: Any, **other: Any) -> Self:
        """Describe a service and what it gets."""
        gets = cls.model_fields.keys() - ServicePart.model_fields
        return super().from_object(value.service, **{key: getattr(value, key) for key in gets})


class PlannedPart(GivenPart):
    """A service, what is planned for it, and what it gets."""

    planned_rps: f.Exact


class PlannedPoint(SuppliedPart):
    """An operating point of a service on a block."""

    service: f.Text
    block: f.Text
    gpu: f.Text
    batch_ms: f.Exact
    fill_ms: Annotated[ByBatch, BeforeValidator(m.drop_own_keys)]

    @classmethod
    def describe(
        cls, serving: ServingProblem, service: Service, block: Block, point: OperatingPoint
    ) -> dict[str, Any]:
        """Return what a plan says of a point."""
        supply, fills = serving.supply(service.name, block), serving.fills[service.name, block]
        evidence = cls.evidence_fields(serving.rule, service, point)
        return {"supply_rps": supply, "fill_ms": fills.times_ms, **evidence}

    def times(self) -> FillTimes:
        """Build T(n); the smaller batches are what was measured, the full one follows."""
        times = self.fill_ms
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
    latency_margin: f.Exact = f.omitted(Fraction(0))


class HeadroomPart(m.Part):
    """By which share batches may take longer until the first limit breaks, and whose it is."""

    share: f.Exact
    service: f.Text


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
    duty_cycle_ms: f.Exact = f.left_out()
    serves: tuple[Annotated[Any, m.Built(ServedPart)], ...]


class GpuGroupPart(m.Part):
    """GPUs of one layout."""

    gpu: f.Text
    machine: f.Text = f.left_out()
    count: f.AtLeastOne
    instances: tuple[Annotated[Any, m.Built(InstancesPart)], ...]


class _AnyPlan(m.Document):
    """What plans say, whether their services share instances in time or not."""

    KIND: ClassVar[str] = "cms-plan"
    POINT: ClassVar[Any]
    PROBLEM: ClassVar[Any]
    rule: dict[str, Any] | None
    promise: Annotated[Promise, m.Built(PromisePart)] | None
    rate_margin: f.Exact
    max_processes: f.AtLeastOne | None
    currency: f.Text = f.omitted("")
    services: tuple[Annotated[Any, m.Built(GivenPart)], ...]
    latency_headroom: Annotated[Any, m.Built(HeadroomPart)] | None
    checkers: tuple[f.Text, ...]
    operating_points: Any
    groups: tuple[Annotated[Any, m.Built(GpuGroupPart)], ...]
    warnings: tuple[f.Text, ...]
    unservable: dict[str, f.Text]
    devices: tuple[Device, ...]
    problem: EmbeddedProblem
    solution: Annotated[Any, m.Built(SolutionDocument)]
    sharing: Any

    def build(self, rule: QueueingRule | None = None) -> Plan:
        problem, sharing = self.problem, self.sharing
        if not isinstance(problem, self.PROBLEM):
            kind, jobs = "nothing, so a service a block", "share blocks in time"
            if sharing:
                kind, jobs = "sharing in time", "have blocks of their own"
            expected = f'what "sharing" of the plan says: {kind}'
            raise f.refusal(expected, "problem", what=f"in {{}} jobs {jobs}")
        keys = [gpu.key for gpu in self.devices]
        machines = require_available(getattr(self, "available", ()), problem.machine_types)
        _require_names("devices", "key", keys, dict.fromkeys(machines))
        _require_names("services", "name", [each.name for each in self.services], problem.job_names)
        for index, block in enumerate(problem.blocks if len(keys) > 1 else ()):
            if block.partition(":")[0] not in keys or ":" not in block:
                expected = f'a GPU\'s key, ":" and a profile, where the keys are {", ".join(keys)}'
                raise f.refusal(expected, "problem", "blocks", index)
        for index, part in enumerate(self.operating_points):
            for kind, known in (("service", problem.job_names), ("block", problem.blocks)):
                f.refuse_unknown(getattr(part, kind), kind, known, "operating_points", index, kind)
        serving = self.serving(
            rule, services=f.build_each(self.services, ServicePart.build, "services"),
            problem=problem, gpus=self.devices, warnings=self.warnings,
            unservable=FrozenMap(self.unservable), max_processes=self.max_processes,
            rate_margin=self.rate_margin, currency=self.currency,
        )  # fmt: skip
        refuse_other_terms(self.operating_points, serving)
        require_valid(problem, self.solution, "solution")
        beside = sharing and sharing.interference
        with f.blaming("solution"):
            plan = Plan(serving, self.solution, beside and beside.outer.solution)
        # what is written out for readers has to follow from the rest
        derived = {
            "promise": "what the rule promises", "services": "as problem and solution have",
            "latency_headroom": "the least of a service",
            "checkers": "those that know the form of the proof", "groups": "as the solution has",
            "operating_points": "by the rule, the problem and its point",
        }  # fmt: skip
        said, wanted = (of.to_json(*derived) for of in (self, type(self).from_object(plan)))
        for key, why in derived.items():
            agree(said[key], wanted[key], why, key)
        return plan

    @abstractmethod
    def serving(self, rule: QueueingRule | None, **common: Any) -> AnyServing: ...

    @classmethod
    def from_object(cls, value: Plan, **other: Any) -> Self:
        serving, own = value.serving, ("services", "latency_headroom", "checkers", "groups")
        told = {key: getattr(value, key) for key in (*own, "solution")}
        points = [
            cls.POINT.from_object(
                point, service=service.name, block=block, gpu=serving.instance_of(block)[0],
                **cls.POINT.describe(serving, service, block, point),
            )
            for service, block in product(serving.services, serving.problem.blocks)
            for point in serving.points.get((service.name, block), ())
        ]  # fmt: skip
        told |= {"devices": serving.gpus, "operating_points": points}
        return super().from_object(serving, **told, **other)


def _require_names(key: str, name: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse entries that are called otherwise than in the problem, or in another order."""
    named, expected = ([{name: each} for each in names] for names in (found, wanted))
    agree(named, expected, "as in the problem", key)


class PlanDocument(_AnyPlan):
    """A plan of instances that serve one service each."""

    POINT, PROBLEM = PlannedPoint, Problem
    rule: dict[str, Any]
    sharing: None = f.omitted(None)
    routing: Literal["weighted", "equal"] = f.omitted("weighted")
    replica_share: f.Exact = f.left_out()
    available: tuple[Annotated[Any, m.Built(AvailablePart)], ...] = f.omitted(())
    operating_points: tuple[PlannedPoint, ...]

    def serving(self, rule: QueueingRule | None, **common: Any) -> ServingProblem:
        """Build what the plan was made from."""
        problem = common["problem"]
        points: dict[tuple[str, Block], Any] = {}
        fills: dict[tuple[str, Block], FillTimes] = {}
        for index, part in enumerate(self.operating_points):
            with f.blaming("operating_points", index):
                pair = part.service, part.block
                points[pair], fills[pair] = (part.point(),), part.times()
        curves = collect_curves("operating_points", self.operating_points)
        with f.blaming("rule"):
            counted = read_rule(self.rule, rule, curves)
        serving = ServingProblem(
            rule=counted, points=FrozenMap(points), fills=FrozenMap(fills), **common,
            routing=self.routing, replica_share=self.replica_share, available=self.available,
        )  # fmt: skip
        supply: dict[str, dict[Block, Fraction]] = {name: {} for name in problem.job_names}
        for (name, block), (point,) in points.items():
            supply[name][block] = counted.supply(serving.service(name), point)
        wanted = Problem(
            configurations=allowed_configurations(serving),
            jobs=[pose_job(each, supply[each.name], serving) for each in serving.services],
            machine_types=problem.machine_types,
            group_limits=problem.group_limits,
        )
        require_problem(problem, wanted, "problem")
        return serving

    @classmethod
    def from_object(cls, value: Plan, **other: Any) -> Self:
        """Describe a plan."""
        assert isinstance(value.serving, ServingProblem)
        return super().from_object(value, rule=value.serving.rule.to_json(), sharing=None)


class SharedPlanDocument(_AnyPlan):
    """A plan of instances that services share in time."""

    POINT, PROBLEM = SharedPoint, TimeSharedProblem
    rule: None
    services: tuple[Annotated[Any, m.Built(PlannedPart)], ...]
    sharing: SharingPart
    operating_points: tuple[SharedPoint, ...]

    def serving(self, rule: QueueingRule | None, **common: Any) -> SharedServing:
        """Build what the plan was made from."""
        return self.sharing.serving(self.operating_points, **common)

    @classmethod
    def from_object(cls, value: Plan, **other: Any) -> Self:
        """Describe a plan."""
        return super().from_object(value, rule=None, sharing=SharingPart.of_plan(value))


def write_plan(plan: Plan, path: StrPath) -> None:
    """Write a plan to a JSON file that :func:`read_plan` reads; ``-`` is standard output.

    See :func:`read_plan`. FileError if the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, read_plan
    >>> serving = load_instance("S1").build_problem()
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
    >>> write_plan(Plan(serving, solve(serving.problem)), path)
    >>> read_plan(path).solution.machine_count
    2
    """
    write_document(lambda: plan_to_json(plan), path)


def plan_to_json(plan: Plan, shortage: Shortage | None = None) -> dict[str, Any]:
    """Turn a plan into the document that :func:`read_plan` reads.

    Where there is no schedule, a shortage, with sufficient changes, goes into the solution.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> serving = load_instance("S1").build_problem()
    >>> document = plan_to_json(Plan(serving, solve(serving.problem)))
    >>> document["format"], len(document["groups"])
    ('cms-plan', 2)
    """
    shared = isinstance(plan.serving, SharedServing)
    document = (SharedPlanDocument if shared else PlanDocument).from_object(plan)
    if shortage is not None:
        solution = SolutionDocument.from_object(plan.solution, shortage=shortage)
        document = document.model_copy(update={"solution": solution})
    return document.to_json()


def read_plan(path: StrPath, *, rule: QueueingRule | None = None) -> Plan:
    """Read a plan from a JSON file; ``-`` is standard input.

    Its schedule is checked again; `rule` is that of a plan made with a rule of one's own. A
    FileError has line and column, if the file is no plan or its parts contradict each other.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import load_instance, solve
    >>> serving = load_instance("S1").build_problem()
    >>> plan = Plan(serving, solve(serving.problem))
    >>> write_plan(plan, path := pathlib.Path(tempfile.mkdtemp()) / "plan.json")
    >>> read_plan(path) == plan_from_json(plan_to_json(plan)) == plan
    True
    """
    return plan_from_json(parse_document(path), rule=rule)


def plan_from_json(
    document: Parsed | Mapping[str, Any], *, rule: QueueingRule | None = None
) -> Plan:
    """Turn a parsed document into a plan; see :func:`read_plan`.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> serving = load_instance("S1").build_problem()
    >>> plan = Plan(serving, solve(serving.problem))
    >>> plan_from_json(plan_to_json(plan)) == plan
    True
    """
    return m.read_as(document, lambda value: read_plan_value(value, rule))


def read_plan_value(value: Any, rule: QueueingRule | None) -> Plan:
    """Read a plan, which may stand in another document."""
    shared = isinstance(value, dict) and value.get("sharing") is not None
    found: Plan = m.read_part(SharedPlanDocument if shared else PlanDocument, value).build(rule)
    return found
