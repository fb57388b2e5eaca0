"""Services in time on shares that slow one another: a problem to plan with, and one to bound with.

How long a batch takes depends on the mix on the rest of the GPU, so a block's name says what may be
beside it. A *kind* is a model in batches of some size. Kinds are ordered by how much they slow
others in the mean and divided into classes 1 to g; a mix is of the class of its highest kind. On a
block ``mps:60 (2 beside 1)`` a mix is of class 2 at most, and the mix on the rest of the GPU, on
``mps:40 (1 beside 2)``, is of class 1 at most. A block without such a remark has no neighbour.

Two problems have these blocks. In the **inner** one a batch takes as long as beside the worst of
what may be there, so its schedules meet every limit beside their neighbours. In the **outer** one
it takes as long as beside the best of its neighbour's class and all higher ones; a schedule that
meets the limits beside its neighbours keeps them there too, so what is proved to be needed there is
needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import chain, product
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption, InvalidProblem
from ...problem.parts import AnyConfiguration, Block, Configuration
from ...time_sharing.model import BatchPoint, TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.numbers import whole
from .interference import Interference, Pair, Slowdowns
from .measurements import InstanceKind
from .operating_point import mps_share
from .time_sharing import SharedServing, amount_of

DEFAULT_CLASSES = 3
#: A model, and how much of it is taken together.
Kind: TypeAlias = tuple[str, int]
_REMARK = re.compile(r" \(([0-9]+) beside ([0-9]+)\)")


@dataclass(frozen=True, slots=True)
class Side:
    """A share of a GPU and the one beside it, as blocks of the problem without interference.

    `kinds` and `beside` are what may be served in some mix on ``block`` and on ``other``, in order;
    `profile` is that of ``block``, `slowdowns` are the GPU's.
    """

    block: Block
    other: Block
    profile: str
    kinds: tuple[Kind, ...]
    beside: tuple[Kind, ...]
    slowdowns: Slowdowns

    def factor(self, own: Kind, other: Kind) -> Fraction:
        """Return by which factor a kind here takes longer beside another one."""
        return self.slowdowns.factor(own[0], self.profile, own[1], *other)


def find_pair(shape: AnyConfiguration) -> tuple[Block, Block] | None:
    """Return the two MPS shares that a configuration is; None if it has no two."""
    if not isinstance(shape, Configuration):
        return None
    blocks = [block for block, count in shape.blocks.items() for _ in range(count)]
    if len(blocks) != 2 or any(mps_share(_profile(block)) is None for block in blocks):
        return None
    return blocks[0], blocks[1]


def _profile(block: Block) -> str:
    """The profile in a block's name, before which a GPU's key may stand."""
    key, colon, profile = block.partition(":")
    return block if key == "mps" or not colon else profile


def kind_of(serving: SharedServing, service: str, block: Block, amount: Fraction) -> Kind:
    """Return the kind of a point; a share runs one process, so that its batch is the amount."""
    return serving.service(service).model, serving.point(service, block, amount).batch


def admitted(
    serving: SharedServing, service: str, block: Block
) -> Iterator[tuple[BatchPoint, Kind]]:
    """Iterate over the points of a service on a block that some mix may have, and their kinds.

    Whatever runs beside it, a batch takes as long as alone or longer: what is not admitted alone
    never is.
    """
    job, rule = serving.problem.job(service), serving.problem.rule
    for point in job.points.get(block, ()):
        if rule.admits(point.length, point.length, job.limit):
            yield point, kind_of(serving, service, block, point.amount)


def find_sides(serving: SharedServing, table: Mapping[str, Slowdowns]) -> list[list[Side]]:
    """Return the shares beside another, GPU by GPU; InvalidProblem if a pair was not measured."""
    names = serving.problem.job_names
    found = []
    for one in serving.gpus:
        pairs = [
            pair
            for shape in serving.problem.configurations
            if shape.machine == one.key
            if (pair := find_pair(shape)) is not None
        ]
        kinds = {
            block: tuple(sorted({kind for n in names for _, kind in admitted(serving, n, block)}))
            for pair in pairs
            for block in pair
        }
        ordered = dict.fromkeys(side for p, q in pairs for side in ((p, q), (q, p)))
        found.append([
            Side(p, q, serving.profile_of(p), kinds[p], kinds[q], table[one.key])
            for p, q in ordered
        ])  # fmt: skip
    missing = [
        (side, own, other)
        for side in chain(*found)
        for own, other in product(side.kinds, side.beside)
        if (own[0], side.profile, own[1], *other) not in side.slowdowns.factors
    ]
    if not missing:
        return found
    side, own, other = missing[0]
    on = sorted({profile for model, profile, *_ in side.slowdowns.factors if model == own[0]})
    first = Pair(own[0], side.slowdowns.gpu, side.profile, own[1], *other)
    raise InvalidProblem(
        "there are pairs of operating points that could stand side by side and have no measured "
        f"slowdown, {len(missing)} in all; the first: {first} (there are slowdowns of {own[0]} on "
        f"{', '.join(on) or 'no share of this GPU'}); measure the pairs, or leave the points out"
    )


def rank_kinds(sides: Collection[Side], classes: int) -> dict[Kind, int]:
    """Return the class of each kind on one GPU, from 1: those that slow others more are higher.

    What counts is the mean over all pairs that were measured. The order decides how close the two
    images are, never whether they hold. Each class has as many kinds as the next, or one more.
    """
    caused: dict[Kind, list[Fraction]] = {other: [] for side in sides for other in side.beside}
    for slowdowns in {id(side.slowdowns): side.slowdowns for side in sides}.values():
        for (_, _, _, model, batch), factor in slowdowns.factors.items():
            if (model, batch) in caused:
                caused[model, batch].append(factor)

    def mean(kind: Kind) -> Fraction:
        factors = caused[kind]
        return sum(factors, Fraction(0)) / len(factors) if factors else Fraction(1)

    ordered = sorted(caused, key=lambda kind: (mean(kind), kind))
    most = min(classes, len(ordered))
    return {kind: 1 + place * most // len(ordered) for place, kind in enumerate(ordered)}


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class NeighbourServing(SharedServing):
    """A problem of blocks that are shared in time and slowed by what is beside them.

    Its ``problem`` is the inner image: what solves it meets every limit beside its neighbours.

    Examples
    --------
    >>> from cms.fleet.serving import OperatingPoint, Pair, Service, build_problem
    >>> points = [OperatingPoint("m", "a100-80gb", "mps:50", 1, 8, 800, 10)]
    >>> table = Interference({Pair("m", "a100-80gb", "mps:50", 8, "m", 8): "1.5"})
    >>> terms = {"sharing": "time", "interference": table}
    >>> serving = build_problem([Service("a", "m", 300, 60)], points, **terms)
    >>> [str(shape) for shape in serving.problem.configurations]
    ['mps:50', '2 x mps:50 (1 beside 1)']
    """

    solo: SharedServing  #: the same without interference
    outer: TimeSharedProblem  #: a bound of its cost holds whatever is beside what
    #: The pairs of batches that were measured there, under the GPUs' keys; none is below 1.
    interference: Interference
    classes: int
    ranks: FrozenMap[tuple[str, str, int], int]  #: ``{(gpu, model, batch): class}``, from 1

    def instance_of(self, block: Block) -> InstanceKind:
        """Return the GPU's key and the profile behind a block, whatever is beside it."""
        return self.solo.instance_of(plain_block(block))


def plain_block(block: Block) -> Block:
    """Return a block's name without what it says of classes."""
    return _REMARK.sub("", block)


def classes_in(block: Block) -> tuple[int, int] | None:
    """Return the highest classes on a block and beside it; None if nothing is beside it."""
    found = _REMARK.search(block)
    return None if found is None else (int(found[1]), int(found[2]))


def pose_beside(solo: SharedServing, table: Interference, classes: int | None) -> NeighbourServing:
    """Pose the two images, under interference, of a problem whose GPUs are shared in pairs."""
    if not isinstance(table, Interference):
        raise InvalidOption(
            f"interference is {table!r}; expected an Interference, such as read_interference reads"
        )
    if solo.splits != "pairs":
        raise InvalidOption(
            f"splits is {solo.splits!r}, and what slows a batch is measured beside one other "
            "share; with interference expected 'pairs'"
        )
    most = DEFAULT_CLASSES if classes is None else classes
    most = whole(most, "the number of classes", least=1, error=InvalidOption)
    measured = _measured_there(solo, [table.on(one) for one in solo.gpus])
    sides = find_sides(solo, {one.key: measured.on(one) for one in solo.gpus})
    ranks = [rank_kinds(own, most) for own in sides]
    blocks = [block for own, rank in zip(sides, ranks, strict=True) for block in _blocks(own, rank)]
    shapes = list(_shapes(solo, blocks))
    inner = _image(solo, blocks, shapes, worst=True)
    points = {
        (job.name, block): tuple(
            point
            for point in solo.points.get((job.name, plain_block(block)), ())
            if job.point(block, amount_of(point)) is not None
        )
        for job in inner.jobs
        for block in job.points
    }
    kept = {each.name: getattr(solo, each.name) for each in fields(SharedServing)}
    each_gpu = zip(solo.gpus, ranks, strict=True)
    kinds = {(one.key, *kind): rank for one, own in each_gpu for kind, rank in own.items()}
    return NeighbourServing(
        **kept | {"problem": inner, "points": FrozenMap(points)}, solo=solo, classes=most,
        outer=_image(solo, blocks, shapes, worst=False), interference=measured,
        ranks=FrozenMap(kinds),
    )  # fmt: skip


def _measured_there(solo: SharedServing, slowdowns: Iterable[Slowdowns]) -> Interference:
    """Keep the pairs of batches that the problem has points of, as they count."""
    there = {
        (key, point.model, profile, point.batch)
        for (_, block), points in solo.points.items()
        for key, profile in [solo.instance_of(block)]
        for point in points
    }
    kinds = {(key, model, batch) for key, model, _, batch in there}
    return Interference(
        {
            Pair(model, one.gpu, profile, batch, other, taken): factor
            for one in slowdowns
            for (model, profile, batch, other, taken), factor in one.factors.items()
            if (one.gpu, model, profile, batch) in there and (one.gpu, other, taken) in kinds
        }
    )


class _Qualified(NamedTuple):
    """A share with the highest classes on it and beside it."""

    side: Side
    own: int
    other: int
    ranks: dict[Kind, int]

    @property
    def name(self) -> Block:
        return f"{self.side.block} ({self.own} beside {self.other})"

    @property
    def facing(self) -> Block:
        return f"{self.side.other} ({self.other} beside {self.own})"

    def factor(self, kind: Kind, *, worst: bool) -> Fraction:
        """Return the greatest factor of classes up to that beside, or the least from it on."""
        ranks, side = self.ranks, self.side
        if worst:
            return max(side.factor(kind, it) for it in side.beside if ranks[it] <= self.other)
        return min(side.factor(kind, it) for it in side.beside if ranks[it] >= self.other)


def _blocks(sides: Iterable[Side], ranks: dict[Kind, int]) -> Iterator[_Qualified]:
    """All pairs of classes that have a kind, on the share and beside it."""
    for side in sides:
        here, there = (sorted({ranks[k] for k in kinds}) for kinds in (side.kinds, side.beside))
        yield from (_Qualified(side, own, other, ranks) for own, other in product(here, there))


def _shapes(solo: SharedServing, blocks: Sequence[_Qualified]) -> Iterator[AnyConfiguration]:
    """Every configuration; of two shares each alone, and both for each two classes."""
    by_sides: dict[tuple[Block, Block], list[_Qualified]] = {}
    for one in blocks:
        by_sides.setdefault((one.side.block, one.side.other), []).append(one)
    alone = set[Block]()
    for shape in solo.problem.configurations:
        pair = find_pair(shape)
        if pair is None:
            yield shape
            continue
        new = [block for block in dict.fromkeys(pair) if block not in alone]
        yield from (Configuration({block: 1}, shape.machine) for block in new)
        alone.update(new)
        for one in by_sides.get(pair, ()):
            if one.name == one.facing:
                yield Configuration({one.name: 2}, shape.machine)
            elif pair[0] != pair[1] or one.own > one.other:
                yield Configuration({one.name: 1, one.facing: 1}, shape.machine)


def _image(
    solo: SharedServing,
    blocks: Sequence[_Qualified],
    shapes: Sequence[AnyConfiguration],
    *,
    worst: bool,
) -> TimeSharedProblem:
    """The problem on qualified blocks, every batch longer by its factor."""
    jobs = []
    for job in solo.problem.jobs:
        points: dict[Block, list[tuple[Fraction, Fraction]]] = {
            block: [(point.amount, point.length) for point in own]
            for block, own in job.points.items()
        }
        of = {one.side.block: [*admitted(solo, job.name, one.side.block)] for one in blocks}
        for one in blocks:
            points[one.name] = [
                (point.amount, point.length * one.factor(kind, worst=worst))
                for point, kind in of[one.side.block]
                if one.ranks[kind] <= one.own
            ]
        jobs.append(TimeSharedJob(job.name, job.demand, job.limit, points))
    alone = solo.problem
    return TimeSharedProblem(
        configurations=shapes, jobs=jobs, machine_types=alone.machine_types,
        group_limits=alone.group_limits, rule=alone.rule, max_jobs=alone.max_jobs,
    )  # fmt: skip
