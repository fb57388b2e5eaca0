"""What plan documents say of services that share instances in time, and of interference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field

from ...checker.kinds import check
from ...files import fields as f
from ...files import model as m
from ...files.problems import EmbeddedProblem, problem_to_json
from ...files.solutions import SolutionDocument
from ...problem.parts import Block
from ...solving.solution import Solution
from ...time_sharing.duty_cycle import DutyCycleRule
from ...time_sharing.model import TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from .document_parts import PointPart, agree, read_whole_keys
from .gpus_used import list_configurations
from .headroom import Headroom
from .interference import Interference, Pair
from .neighbours import NeighbourServing, classes_in, pose_beside, rebuild_problem
from .operating_point import OperatingPoint
from .time_sharing import SharedServing, TimeSharing, amount_of

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

    def pair(self) -> Pair:
        return Pair(**{key: getattr(self, key) for key in Pair._fields})


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
        pairs = [
            _PairPart.from_fields(**pair._asdict(), slowdown=factor)
            for pair, factor in serving.interference.pairs.items()
        ]
        bound = _OuterPart.from_fields(problem=serving.outer, solution=outer)
        return cls.from_fields(classes=serving.classes, kinds=kinds, pairs=pairs, outer=bound)

    def serving(self, shared: SharedServing) -> NeighbourServing:
        """Make both images anew of the pairs; `shared` has the inner one. Refuse others."""
        with f.blaming("sharing", "interference", "pairs"):
            found: dict[Pair, Fraction] = {}
            for index, part in enumerate(self.pairs):
                if (pair := part.pair()) in found:
                    raise f.refusal("one a pair", index, what=f"{{}} is the second of {pair}")
                found[pair] = part.slowdown
            pairs = Interference(found)
            serving = pose_beside(_solo(shared), pairs, self.classes)
        why = "by the plan's points and pairs of batches"
        outer = ("sharing", "interference", "outer", "problem")
        for at, given, wanted in (
            (("problem",), shared.problem, serving.problem),
            (outer, self.outer.problem, serving.outer),
        ):
            if given != wanted:
                agree(problem_to_json(given), problem_to_json(wanted), why, *at)
                what = "{} is another problem"
                raise f.refusal(f"the one that follows {why}", *at, what=what)
        kinds = self.of_plan(serving, None).to_json()["kinds"]
        where = "sharing", "interference", "kinds"
        agree(self.to_json()["kinds"], kinds, "by how much they slow others", *where)
        if serving.interference != pairs:
            raise f.refusal(
                "those alone, as they count", "sharing", "interference", "pairs",
                what="{} has other pairs than those of batches of this plan, by its GPUs' keys and "
                f">= 1 ({len(pairs)}, and of those {len(serving.interference)})",
            )  # fmt: skip
        if {pair: own for pair, own in serving.points.items() if own} != dict(shared.points):
            raise f.refusal(
                "the same, as far as their classes may be there", "operating_points",
                what="{} has other points on blocks of two classes than on their shares",
            )  # fmt: skip
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
        for service in serving.services:
            for block in serving.problem.blocks:
                for point in serving.points.get((service.name, block), ()):
                    posed = serving.problem.job(service.name).point(block, amount_of(point))
                    assert posed is not None  # the problem was made of the points
                    found.append(
                        cls.from_fields(
                            service=service.name, block=block, gpu=serving.instance_of(block)[0],
                            length_ms=1000 * posed.length, supply_rps=None,
                            **cls.point_fields(point),
                        )
                    )  # fmt: skip
        return found


class SharingPart(m.Part):
    """The terms on which services share instances in time."""

    kind: Literal["time"]
    rule: DutyCycleRule
    max_services: f.AtLeastOne | None
    splits: Literal["pairs", "any"]
    headroom: Annotated[Headroom, m.Built(_HeadroomPart)] | None
    interference: _InterferencePart | None = f.omitted(None)

    @classmethod
    def of_plan(cls, plan: Plan) -> Self:
        """Describe the terms of a plan."""
        serving, told = plan.serving, None
        assert isinstance(serving, SharedServing)
        if isinstance(serving, NeighbourServing):
            told = _InterferencePart.of_plan(serving, plan.outer)
        terms = ("rule", "max_services", "splits", "headroom")
        own = {key: getattr(serving.sharing, key) for key in terms}
        return cls.from_fields(kind="time", interference=told, **own)

    def serving(
        self,
        points: Sequence[SharedPoint],
        planned: Sequence[Fraction],
        problem: TimeSharedProblem,
        **common: Any,
    ) -> SharedServing:
        """Build what a plan was made from; rules, caps and points must make the problem."""
        sharing = TimeSharing(self.rule, self.max_services, self.splits, self.headroom)
        for key, given in (("rule", problem.rule), ("max_services", problem.max_jobs)):
            if getattr(self, key) != given:
                told = "null" if given is None else given
                raise f.refusal(f"{told}, as in the problem", "sharing", key)
        of_block = _collect(points, problem)
        serving = SharedServing(problem=problem, sharing=sharing, points=of_block, **common)
        for index, (service, job) in enumerate(zip(serving.services, problem.jobs, strict=True)):
            for why, wanted in (
                ("as in the problem", job.demand),
                ("by the margin and the head-room", serving.planned_rps(service)),
            ):
                if planned[index] != wanted:
                    raise f.refusal(f"{shown(wanted)}, {why}", "services", index, "planned_rps")
            if service.latency_limit_ms != 1000 * job.limit:
                expected = f"{shown(1000 * job.limit)}, as in the problem"
                raise f.refusal(expected, "services", index, "latency_limit_ms")
        _refuse_other_points(points, serving)
        if self.interference is None:
            return serving
        return self.interference.serving(serving)

    def outer_solution(self, serving: NeighbourServing) -> Solution | None:
        """Return the solution of the problem that bounds; its schedule is checked."""
        assert self.interference is not None
        found = self.interference.outer.solution
        if found is not None and found.cost is not None:
            for violation in check(serving.outer, found.schedule):
                raise f.refusal(what=f"{{}} is not valid: {violation}")
        return found


def _collect(
    points: Sequence[SharedPoint], problem: TimeSharedProblem
) -> FrozenMap[tuple[str, Block], tuple[OperatingPoint, ...]]:
    """Collect the points of each service and block, by rising amounts."""
    found: dict[tuple[str, Block], list[OperatingPoint]] = {}
    for index, part in enumerate(points):
        with f.blaming("operating_points", index):
            f.refuse_unknown(part.service, "service", dict.fromkeys(problem.job_names), "service")
            f.refuse_unknown(part.block, "block", problem.block_index, "block")
            point, own = part.point(), found.setdefault((part.service, part.block), [])
            if own and amount_of(point) <= amount_of(own[-1]):
                raise f.refusal(
                    "one point an amount, by rising amounts",
                    what=f"{{}} takes {amount_of(point)} requests at a time, after one of "
                    f"{amount_of(own[-1])} of {part.service!r} on {part.block}",
                )
            own.append(point)
    return FrozenMap({pair: tuple(own) for pair, own in found.items()})


def _refuse_other_points(points: Sequence[SharedPoint], serving: SharedServing) -> None:
    """Refuse points that could not have made the problem, and a problem of others."""
    left = {
        (job.name, block, point.amount): point.length
        for job in serving.problem.jobs
        for block, own in job.points.items()
        for point in own
    }
    for index, part in enumerate(points):
        with f.blaming("operating_points", index):
            point = part.point()
            key = part.service, part.block, Fraction(amount_of(point))
            if key not in left:
                raise f.refusal(
                    "the points of the problem",
                    what=f"{{}}: the problem has no point of {part.service!r} on {part.block} that "
                    f"takes {amount_of(point)} requests",
                )
            length = 1000 * left.pop(key)
            lengths = {"as in the problem": length}
            if classes_in(part.block) is None:  # others are made anew of those on plain blocks
                lengths["by throughput, latency and head-room"] = serving.sharing.length_ms(point)
            for why, wanted in lengths.items():
                if part.length_ms != wanted:
                    raise f.refusal(f"{shown(wanted)}, {why}", "length_ms")
    for name, block, amount in left:
        raise f.refusal(
            "one, since the problem has it", "operating_points",
            what=f"{{}}: there is no point of service {name!r} on {block} that takes {amount} "
            "requests",
        )  # fmt: skip


def _solo(shared: SharedServing) -> SharedServing:
    """The problem without interference: what the image says of blocks without a neighbour."""
    problem = shared.problem
    plain = [block for block in problem.blocks if classes_in(block) is None]
    used = dict.fromkeys(map(shared.instance_of, plain))
    jobs = [
        TimeSharedJob(
            job.name, job.demand, job.limit, {b: own for b, own in job.points.items() if b in plain}
        )
        for job in problem.jobs
    ]
    shapes = list_configurations(shared.gpus, used, shared.splits)
    points = {pair: own for pair, own in shared.points.items() if pair[1] in plain}
    solo = rebuild_problem(problem, shapes, jobs)
    return replace(shared, problem=solo, points=FrozenMap(points))
