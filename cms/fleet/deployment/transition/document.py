"""Transitions as JSON documents (format ``cms-transition``), complete enough to be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from ....files import fields as f
from ....files import model as m
from ....files.documents import parse_document, write_document
from ....files.parsed import Parsed
from ....files.source import StrPath
from ....solving.solution import Proof
from ....values.frozen import FrozenMap
from ...serving.document_parts import ServiceField
from ...serving.queueing import QueueingRule
from ...serving.service import Service
from ..document import FleetDocument, InstancePart, NodePart, References, point_names
from ..instance import Mode, Work
from ..model import Deployment
from ..recounting import beyond_limits
from .checking import coming
from .model import Action, Floor, Frozen, Kept, KeptPrices, Spare, Transition, What

_Works = Mapping[str, Work]
_Names = Mapping[Work, str]
_OF = {False: "counts", True: "target"}


class _PointPrice(m.Part):
    point: f.Text
    price: f.Exact


class _GpuPrice(m.Part):
    gpu: f.Text
    price: f.Exact


class _BlockPrice(m.Part):
    gpu: f.Text
    profile: f.Text
    price: f.Exact


class _KeptPricesPart(m.Part):
    points: tuple[_PointPrice, ...]
    instances: tuple[_BlockPrice, ...]
    gpus: tuple[_GpuPrice, ...]

    def prices(self, works: _Works) -> KeptPrices:
        f.refuse_twice((p.point for p in self.points), "price of point", "points", key="point")
        f.refuse_twice((each.gpu for each in self.gpus), "price of GPU", "gpus", key="gpu")
        _require_points([part.point for part in self.points], works, "points", key="point")
        instances: dict[tuple[str, str], Fraction] = {}
        for index, each in enumerate(self.instances):
            if (block := (each.gpu, each.profile)) in instances:
                what = f"{{}} is a second price of {each.profile}"
                raise f.refusal("one", "instances", index, what=what)
            instances[block] = each.price
        return KeptPrices(
            tuple((works[part.point], part.price) for part in self.points),
            FrozenMap(instances),
            FrozenMap({part.gpu: part.price for part in self.gpus}),
        )

    @classmethod
    def describe(cls, prices: KeptPrices, names: _Names) -> Self:
        return cls.from_fields(
            points=[_PointPrice.from_fields(point=names[w], price=p) for w, p in prices.works],
            instances=[
                _BlockPrice.from_fields(gpu=gpu, profile=profile, price=price)
                for (gpu, profile), price in sorted(prices.blocks.items())
            ],
            gpus=[_GpuPrice.from_fields(gpu=g, price=p) for g, p in sorted(prices.gpus.items())],
        )


def _require_points(names: Iterable[str], works: _Works, *at: str, key: str = "") -> None:
    for index, name in enumerate(names):
        f.refuse_unknown(name, "point", works, *at, index, *([key] if key else []))


class _KeptPart(m.Part):
    count: f.Count
    most: f.Count
    proof: Proof
    of: Literal["counts", "target"]
    prices: _KeptPricesPart | None

    def kept(self, works: _Works) -> Kept:
        with f.blaming("prices"):
            prices = None if self.prices is None else self.prices.prices(works)
        return Kept(self.count, self.most, self.proof, self.of == "target", prices)


class _FrozenPart(m.Part):
    kind: Literal["frozen"]
    of: Literal["counts", "target"]
    stays: tuple[f.Text, ...]
    never: tuple[f.Text, ...]

    def proof(self, works: _Works) -> Frozen:
        _require_points(self.stays, works, "stays")
        _require_points(self.never, works, "never")
        stays, never = (tuple(works[name] for name in part) for part in (self.stays, self.never))
        return Frozen(stays, never, self.of == "target")

    @classmethod
    def describe(cls, proof: Frozen, names: _Names) -> Self:
        stays, never = ([names[work] for work in part] for part in (proof.stays, proof.never))
        return cls.from_fields(kind="frozen", of=_OF[proof.places], stays=stays, never=never)


class _SparePart(m.Part):
    count: f.Count
    least: f.Count
    reason: f.Text
    borrowed: tuple[f.Text, ...]
    proof: _FrozenPart | None

    def spare(self, works: _Works) -> Spare:
        with f.blaming("proof"):
            proof = self.proof and self.proof.proof(works)
        return Spare(**{**dict(self), "proof": proof})


class _SidePart(m.Part):
    services: tuple[ServiceField, ...]
    nodes: tuple[NodePart, ...]

    @classmethod
    def describe(cls, deployment: Deployment, names: _Names) -> Self:
        nodes = [NodePart.describe(node, names) for node in deployment.nodes]
        return cls.from_fields(services=deployment.services, nodes=nodes)


class _ActionPart(m.Part):
    what: What
    node: f.Text
    index: f.Count
    removes: tuple[InstancePart, ...]
    adds: tuple[InstancePart, ...]
    after: tuple[f.Count, ...]
    mode: Mode | None
    is_temporary: f.Flag

    def action(self, works: _Works) -> Action:
        told = dict(self)
        for key in ("removes", "adds"):
            told[key] = f.build_each(told[key], lambda part: part.instance(works), key)
        return Action(**told)

    @classmethod
    def describe(cls, action: Action, names: _Names) -> Self:
        removes, adds = (
            [InstancePart.describe(each, names) for each in part]
            for part in (action.removes, action.adds)
        )
        return cls.from_object(action, removes=removes, adds=adds)


class _FloorPart(m.Part):
    MAKES: ClassVar[Any] = Floor
    rps: f.Exact
    reason: f.Text


class TransitionDocument(FleetDocument):
    """A transition between two deployments."""

    KIND: ClassVar[str] = "cms-transition"
    start: _SidePart
    target: _SidePart
    floors: dict[str, Annotated[Floor, m.Built(_FloorPart)]]
    actions: tuple[_ActionPart, ...]
    kept: _KeptPart
    spare: _SparePart

    def build(self, rule: QueueingRule | None = None) -> Transition:
        """Build the transition; whether it does what it says is for `check_transition`."""
        sides: dict[str, dict[str, Service]] = {}
        for key, part in (("start", self.start), ("target", self.target)):
            f.refuse_twice((each.name for each in part.services), "service", key, "services")
            sides[key] = {each.name: each for each in part.services}
        given = self.references(rule, sides["start"])
        self._require_services(given.services, {**sides["start"], **sides["target"]})
        for name in self.floors:
            f.refuse_unknown(name, "service", given.services, "floors", name, at_key=True)
        actions = f.build_each(self.actions, lambda part: part.action(given.works), "actions")
        for at, action in enumerate(actions):
            if not all(0 <= before < at for before in action.after):
                raise f.refusal("numbers of earlier actions", "actions", at, "after")
        with f.blaming("spare"):
            spare = self.spare.spare(given.works)
        with f.blaming("kept"):
            kept = self.kept.kept(given.works)
        start, target = (self._side(key, given) for key in ("start", "target"))
        found = Transition(start, target, FrozenMap(self.floors), actions, spare, kept)
        # What counts under the old limits alone may go, and not come.
        for work in beyond_limits(coming(found), given.services, given.rule):
            raise f.refusal(
                "work within the target's limits",
                what=f"{{}}: {work} comes or is in the target, and the limit of "
                f"{work.service!r} does not admit its point",
            )
        return found

    def _side(self, key: str, given: References) -> Deployment:
        part: _SidePart = getattr(self, key)
        nodes = f.build_each(part.nodes, lambda each: each.node(given), key, "nodes")
        with f.blaming(key):
            return Deployment(nodes, part.services, given.rule)

    def _require_services(
        self, counted: Mapping[str, Service], sides: Mapping[str, Service]
    ) -> None:
        """Points are counted by the limits that the target states, and by no others."""
        for name in sorted({*counted, *sides}):
            if counted.get(name) != sides.get(name):
                raise f.refusal(
                    "the services of the target, and those of the start that go", "services",
                    what=f"{{}}: {name!r} is another service there than in the target, or in the "
                    "start where the target has none",
                )  # fmt: skip

    @classmethod
    def from_object(cls, value: Transition, **other: Any) -> Self:
        """Describe a transition."""
        start, target = value.start, value.target
        sides = (each for side in (start, target) for _, each in side.instances())
        moved = (each for action in value.actions for each in (*action.removes, *action.adds))
        names = point_names(each.work for each in (*sides, *moved))
        frozen = value.spare.proof and _FrozenPart.describe(value.spare.proof, names)
        prices = value.kept.prices and _KeptPricesPart.describe(value.kept.prices, names)
        services = *start.services, *target.services
        devices, rule = {**start.devices, **target.devices}, target.rule or start.rule
        return cls.from_fields(
            start=_SidePart.describe(start, names),
            target=_SidePart.describe(target, names),
            floors=dict(sorted(value.floors.items())),
            actions=[_ActionPart.describe(action, names) for action in value.actions],
            kept=_KeptPart.from_object(value.kept, of=_OF[value.kept.places], prices=prices),
            spare=_SparePart.from_object(value.spare, proof=frozen),
            **cls.references_of(services, devices, rule, names),
        )


def write_transition(transition: Transition, path: StrPath) -> None:
    """Write a transition to a JSON file.

    `path`: The file; ``-`` is standard output.

    FileError if the file cannot be written.
    """
    write_document(lambda: transition_to_json(transition), path)


def read_transition(path: StrPath, *, rule: QueueingRule | None = None) -> Transition:
    """Read a transition from a JSON file.

    `path`: The file; ``-`` is standard input. `rule`: The rule of a transition that was made with a
    rule of one's own.

    FileError: With line and column, if the file is no transition or its parts contradict each
    other. Whether it does what it says is what `check_transition` says.
    """
    return transition_from_json(parse_document(path), rule=rule)


def transition_to_json(transition: Transition) -> dict[str, Any]:
    """Turn a transition into the document that :func:`read_transition` reads."""
    return TransitionDocument.from_object(transition).to_json()


def transition_from_json(
    document: Parsed | Mapping[str, Any], *, rule: QueueingRule | None = None
) -> Transition:
    """Turn a parsed document into a transition.

    `document`: Of a parsed one, errors have the line and column of the file it was read from.
    `rule`: The rule of a transition that was made with a rule of one's own.

    FileError if a part is missing or wrong.
    """
    found: Transition = m.build(TransitionDocument, document, rule=rule)
    return found
