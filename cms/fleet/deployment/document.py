"""Deployments as JSON documents (format ``cms-deployment``): equal ones are equal files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import Field

from ...files import fields as f
from ...files import model as m
from ...files.documents import parse_document, write_document
from ...files.parsed import Parsed, show_value
from ...files.source import StrPath
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from ..hardware import Gpu
from ..hardware.catalogue import Device
from ..serving.document_parts import ServiceField, SuppliedPart, collect_curves, read_rule
from ..serving.load_curve import key_of
from ..serving.plan import Plan
from ..serving.plan_document import plan_to_json, read_plan_value
from ..serving.queueing import QueueingRule
from ..serving.service import Service
from .instance import UUID, Instance, Mode, StartSource, State, Work
from .model import Deployment, FleetGpu, FleetNode, Observation, driver_branch

_Uuid = Annotated[
    str, f.matching(UUID, "a UUID as nvidia-smi -L prints it (GPU-..., MIG-...), or null")
]


class References(NamedTuple):
    """What nodes refer to: services, devices and points by their names, and the rule."""

    services: Mapping[str, Service]
    devices: Mapping[str, Gpu]
    rule: QueueingRule | None
    works: Mapping[str, Work]


class InstancePart(m.Part):
    """An instance of a GPU; its work goes by the name of its point."""

    profile: f.Text
    start: f.Count | None
    point: f.Text | None
    owner: Annotated[str, f.name("owner")] | None
    state: State
    gpu_instance: f.Count | None
    uuid: _Uuid | None
    is_guessed: f.Flag

    def instance(self, works: Mapping[str, Work]) -> Instance:
        """Build the instance."""
        if self.point is not None:
            f.refuse_unknown(self.point, "point", works, "point")
        told = dict(self)
        point = told.pop("point")
        return Instance(work=None if point is None else works[point], **told)

    @classmethod
    def describe(cls, instance: Instance, names: Mapping[Work, str]) -> Self:
        """Describe an instance."""
        work = instance.work
        return cls.from_object(instance, point=None if work is None else names[work])


class _GpuPart(m.Part):
    index: f.Count
    gpu: f.Text
    uuid: _Uuid | None
    mode: Mode
    start_source: StartSource
    instances: tuple[InstancePart, ...]

    def card(self, node: str, given: References) -> FleetGpu:
        f.refuse_unknown(self.gpu, "device", given.devices, "gpu")
        instances = f.build_each(
            self.instances, lambda part: part.instance(given.works), "instances"
        )
        own = (self.index, given.devices[self.gpu], self.mode, instances)
        return FleetGpu(node, *own, self.uuid, self.start_source)


class _ObservedPart(m.Part):
    MAKES: ClassVar[Any] = Observation
    at: f.Text
    sources: tuple[f.Text, ...] = Field(alias="from")


class NodePart(m.Part):
    """A node with its GPUs and what is on them."""

    name: Annotated[str, f.name("node")]
    driver: f.Text | None
    labels: dict[str, f.Text]
    observed: Annotated[Observation, m.Built(_ObservedPart)] | None
    is_numbered: f.Flag = f.omitted(True)
    gpus: tuple[_GpuPart, ...]

    def node(self, given: References) -> FleetNode:
        """Build the node."""
        if self.driver is not None:
            with f.blaming("driver"):
                driver_branch(self.driver)
        gpus = f.build_each(self.gpus, lambda part: part.card(self.name, given), "gpus")
        labels = FrozenMap(self.labels)
        return FleetNode(self.name, gpus, labels, self.driver, self.observed, self.is_numbered)

    @classmethod
    def describe(cls, node: FleetNode, names: Mapping[Work, str]) -> Self:
        """Describe a node."""
        gpus = [
            _GpuPart.from_object(
                card, gpu=card.gpu.key,
                instances=[InstancePart.describe(each, names) for each in card.instances],
            )
            for card in node.gpus
        ]  # fmt: skip
        return cls.from_object(node, gpus=gpus)


class _WorkPart(SuppliedPart):
    name: f.Text
    service: f.Text


def point_names(works: Iterable[Work | None]) -> dict[Work, str]:
    """Name each way in which a service runs: ``chat on a100-80gb 3g.40gb, 2 x 8``."""

    def order(work: Work) -> tuple[Any, ...]:
        point = work.point
        more = point.throughput_rps, point.latency_ms, work.supply_rps, tuple(point.extra.items())
        return work.service, *key_of(point), *more

    names: dict[Work, str] = {}
    taken = Counter[str]()
    for work in sorted({work for work in works if work is not None}, key=order):
        at, runs = work.point, f"{work.point.processes} x {work.point.batch}"
        name = f"{work.service} on {at.device} {at.profile}, {runs}"
        taken[name] += 1
        names[work] = name if taken[name] == 1 else f"{name} ({taken[name]})"
    return names


class FleetDocument(m.Document):
    """What deployments and transitions say of services, points and devices."""

    rule: dict[str, Any] | None
    services: tuple[ServiceField, ...]
    points: tuple[_WorkPart, ...]
    devices: tuple[Device, ...]

    def references(
        self, own: QueueingRule | None, before: Mapping[str, Service] | None = None
    ) -> References:
        """Build what nodes refer to; a supply is what the rule makes of its point.

        `before` has services as they were: a point that the new limits do not admit may supply what
        it does under the old ones, and any what it does under tighter ones.
        """
        f.refuse_twice((each.name for each in self.services), "service", "services")
        f.refuse_twice((each.key for each in self.devices), "device", "devices", key="key")
        f.refuse_twice((each.name for each in self.points), "point", "points")
        curves = collect_curves("points", self.points)
        with f.blaming("rule"):
            rule = None if self.rule is None else read_rule(self.rule, own, curves)
        services = {each.name: each for each in self.services}
        works: dict[Work, str] = {}

        def read(part: _WorkPart) -> None:
            f.refuse_unknown(part.service, "service", services, "service")
            work = _read_work(part, services[part.service], rule, before or {})
            if works.setdefault(work, part.name) != part.name:
                raise f.refusal("one", what="{}: there are two names of one point")

        f.build_each(self.points, read, "points")
        devices = {each.key: each for each in self.devices}
        return References(services, devices, rule, {name: work for work, name in works.items()})

    @classmethod
    def references_of(
        cls, services: Iterable[Service], devices: Mapping[str, Gpu], rule: QueueingRule | None,
        names: Mapping[Work, str],
    ) -> dict[str, Any]:  # fmt: skip
        """Return the fields of what nodes refer to."""
        by_name = {service.name: service for service in services}
        points = [
            _WorkPart.from_object(
                work.point, name=called, service=work.service, supply_rps=work.supply_rps,
                **SuppliedPart.evidence_fields(rule, by_name[work.service], work.point),
            )
            for work, called in names.items()
        ]  # fmt: skip
        return {
            "rule": None if rule is None else rule.to_json(),
            "services": tuple(by_name.values()),
            "points": points,
            "devices": [devices[key] for key in sorted(devices)],
        }


def _read_work(
    part: _WorkPart, service: Service, rule: QueueingRule | None, before: Mapping[str, Service]
) -> Work:
    point, supply = part.point(), part.supply_rps
    models = {service.model, before.get(service.name, service).model}
    if point.model not in models:
        raise f.refusal(" or ".join(sorted(models)), "model", fix="it is its service's model")
    if rule is not None:
        why, granted = f"by the rule {rule.name!r}", rule.supply(service, point)
        if supply and supply != granted and service.name in before:
            earlier = rule.supply(before[service.name], point)
            if not granted or supply == earlier < granted:
                granted, why = earlier, f"{why}, before"
        if supply != granted:
            raise f.refusal(f"{shown(granted)}, {why}", "supply_rps")
        rests_on = SuppliedPart.evidence_fields(rule, service, point)
        if part.evidence != rests_on["evidence"]:
            raise f.refusal(f"{show_value(rests_on['evidence'])}, {why}", "evidence")
        if part.load_curve is None and rests_on["load_curve"] is not None:
            raise f.refusal(f"the curve of its other points, {why}", "load_curve")
    return Work(service.name, point, supply)


class DeploymentDocument(FleetDocument):
    """A deployment: nodes, what runs on them, and the plan that they realise."""

    KIND: ClassVar[str] = "cms-deployment"
    nodes: tuple[NodePart, ...]
    plan: Any

    def build(self, rule: QueueingRule | None = None) -> Deployment:
        """Build the deployment."""
        given = self.references(rule)
        nodes = f.build_each(self.nodes, lambda part: part.node(given), "nodes")
        with f.blaming("plan"):
            plan = None if self.plan is None else read_plan_value(self.plan, rule)
        _refuse_other_gpus(nodes, plan)
        return Deployment(nodes, tuple(given.services.values()), given.rule, plan)

    @classmethod
    def from_object(cls, value: Deployment, **other: Any) -> Self:
        """Describe a deployment."""
        names = point_names(each.work for _, each in value.instances())
        plan = value.plan
        return cls.from_fields(
            nodes=[NodePart.describe(node, names) for node in value.nodes],
            plan=None if plan is None else plan_to_json(plan),
            **cls.references_of(value.services, value.devices, value.rule, names),
        )


def _refuse_other_gpus(nodes: Iterable[FleetNode], plan: Plan | None) -> None:
    """Refuse a plan for more GPUs, with the same foreign instances or one price, than there are."""

    def key_of(gpu: str, held: Iterable[tuple[str, int | None]]) -> tuple[str, frozenset[Any]]:
        return gpu, frozenset(Counter(held).items())

    there, priced = Counter[Any](), Counter[Any]()
    for card, price in ((card, node.price) for node in nodes for card in node.gpus):
        known = card.mode is Mode.MIG and card.start_source is not StartSource.UNKNOWN
        foreign = ((each.profile, each.start if known else None) for each in card.foreign)
        there[key_of(card.gpu.key, foreign)] += card.mode is not Mode.FIXED
        if price is not None:
            priced[card.gpu.key, price] += card.mode is not Mode.FIXED
    for index, each in enumerate(() if plan is None else plan.serving.available):
        held = ((one.profile, one.start) for one in each.held if not one.serves)
        there[key := key_of(each.gpu, held)] -= each.count
        if each.price is not None and priced:
            priced[each.gpu, each.price] -= each.count
        if (left := min(there[key], priced[each.gpu, each.price])) < 0:
            what, at = f"{{}}: there are {-left} fewer such GPUs", ("plan", "available", index)
            raise f.refusal("no more than there are", *at, "count", what=what)


def write_deployment(deployment: Deployment, path: StrPath) -> None:
    """Write a deployment to a JSON file.

    `path`: The file; ``-`` is standard output.

    FileError if the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, Instance
    >>> card = FleetGpu("node-a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "now.json"
    >>> write_deployment(Deployment((FleetNode("node-a", (card,)),)), path)
    >>> print(read_deployment(path))
    1 GPU on 1 node, 1 instance
    """
    write_document(lambda: deployment_to_json(deployment), path)


def read_deployment(path: StrPath, *, rule: QueueingRule | None = None) -> Deployment:
    """Read a deployment from a JSON file.

    `path`: The file; ``-`` is standard input. `rule`: The rule of a deployment that was made with a
    rule of one's own.

    FileError: With line and column, if the file is no deployment or its parts contradict each
    other. Whether its instances can be where it has them is what `check_deployment` says.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "now.json"
    >>> write_deployment(Deployment(()), path)
    >>> read_deployment(path) == Deployment(())
    True
    """
    return deployment_from_json(parse_document(path), rule=rule)


def deployment_to_json(deployment: Deployment) -> dict[str, Any]:
    """Turn a deployment into the document that :func:`read_deployment` reads.

    CmsError if its plan cannot be written.
    """
    return DeploymentDocument.from_object(deployment).to_json()


def deployment_from_json(
    document: Parsed | Mapping[str, Any], *, rule: QueueingRule | None = None
) -> Deployment:
    """Turn a parsed document into a deployment.

    `document`: Of a parsed one, errors have the line and column of the file it was read from.
    `rule`: The rule of a deployment that was made with a rule of one's own.

    FileError if a part is missing or wrong, or the parts contradict each other.
    """
    found: Deployment = m.build(DeploymentDocument, document, rule=rule)
    return found
