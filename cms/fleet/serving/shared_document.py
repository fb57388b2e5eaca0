"""What plan documents say of services that share instances in time, and of interference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...files import fields as f
from ...files import model as m
from ...files.problems import EmbeddedProblem
from ...files.solutions import SolutionDocument
from ...problem.parts import Block
from ...solving.solution import Solution
from ...time_sharing.duty_cycle import DutyCycleRule
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from .document_parts import (
    PointPart,
    agree,
    allowed_configurations,
    read_whole_keys,
    require_problem,
)
from .interference import Interference, Pair
from .neighbours import NeighbourServing, classes_in, pose_beside
from .operating_point import OperatingPoint
from .time_sharing import Headroom, SharedServing, TimeSharing, amount_of

if TYPE_CHECKING:
    from .plan import Plan


class _HeadroomPart(m.Part):
    name: f.Text
    overheads_ms: dict[str, f.Exact] | None

    def build(self) -> Headroom:
        table = self.overheads_ms
        overheads = None if table is None else read_whole_keys(table, "a batch", "overheads_ms")
        return Headroom(self.name, overheads)

    @classmethod
    def from_object(cls, value: Headroom, **other: Any) -> Self:
        table = value.overheads_ms
        overheads = table and {str(batch): ms for batch, ms in table.items()}
        return cls.from_fields(name=value.name, overheads_ms=overheads)


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
            found: dict[Pair, Fraction] = {}
            for index, part in enumerate(self.pairs):
                pair = Pair(*(getattr(part, key) for key in Pair._fields))
                if pair in found:
                    raise f.refusal("one a pair", index, what=f"{{}} is the second of {pair}")
                found[pair] = part.slowdown
            serving = pose_beside(solo, Interference(found), self.classes)
        wanted = self.of_plan(serving, None)
        why = {
            "kinds": "by how much they slow others",
            "pairs": "those of this plan's batches by their GPUs' keys, and >= 1",
        }
        found, follows = self.to_json(*why), wanted.to_json(*why)
        for key in why:
            agree(found[key], follows[key], why[key], "sharing", "interference", key)
        return serving


class SharedPoint(PointPart):
    """A point that a mix may have, with the length of its slot."""

    service: f.Text
    block: f.Text
    gpu: f.Text
    length_ms: f.Exact
    supply_rps: None  # what it counts for depends on the mix

    @classmethod
    def all(cls, serving: SharedServing) -> list[Self]:
        """Describe all points of a problem."""
        found = []
        for service, block in product(serving.services, serving.problem.blocks):
            for point in serving.points.get((service.name, block), ()):
                posed = serving.problem.job(service.name).point(block, amount_of(point))
                assert posed is not None  # the problem was made of the points
                found.append(cls.from_object(
                    point, service=service.name, block=block, gpu=serving.instance_of(block)[0],
                    length_ms=1000 * posed.length, supply_rps=None,
                ))  # fmt: skip
        return found


class SharingPart(m.Part):
    """The terms on which services share instances in time."""

    _TERMS: ClassVar = ("rule", "max_services", "splits", "headroom", "latency_margin")
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
        own = {key: getattr(serving.sharing, key) for key in cls._TERMS}
        return cls.from_fields(kind="time", interference=told, **own)

    def serving(
        self, points: Sequence[SharedPoint], problem: TimeSharedProblem, **common: Any
    ) -> SharedServing:
        """Build what a plan was made from; its problem must be what follows from the rest."""
        sharing = TimeSharing(**{key: getattr(self, key) for key in self._TERMS})
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
        if self.interference is None:
            require_problem(problem, wanted, "problem")
            return solo
        serving = self.interference.serving(solo)
        require_problem(problem, serving.problem, "problem")
        outer = "sharing", "interference", "outer", "problem"
        require_problem(self.interference.outer.problem, serving.outer, *outer)
        return serving
