"""Services in time on shares that slow one another: a problem to plan with, and one to bound with.

How long a batch takes depends on the mix on the rest of the GPU, which no problem of blocks can
say; but a block's name can say what may be beside it. Kinds are cut into classes 1 to g. On a block
``mps:60 (2 beside 1)`` a mix is of class 2 at most, and the mix on the rest of the GPU, on
``mps:40 (1 beside 2)``, is of class 1 at most. A block without such a remark has no neighbour.

Two problems have these blocks, and differ in the lengths of batches. In the **inner** one a batch
takes as long as beside the worst of what may be there, so its schedules keep every limit beside
their neighbours. In the **outer** one it takes as long as beside the best of its neighbour's class
and all higher ones; a schedule that keeps the limits beside its neighbours keeps them there too,
each mix on the block of its own class, so that what is proved to be needed there is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption
from ...problem.parts import AnyConfiguration, Block, Configuration
from ...time_sharing.model import TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.numbers import whole
from .classes import Kind, Side, admitted, classes_of, pair_of, sides_of
from .interference import Interference, Pair, Slowdowns
from .measurements import InstanceKind
from .time_sharing import SharedServing, amount_of

DEFAULT_CLASSES = 3
_REMARK = re.compile(r" \(([0-9]+) beside ([0-9]+)\)")
#: What an image takes of the factors that a class of neighbours, or a better or worse one, causes.
_Factor = Callable[[Side, Kind, dict[Kind, int], int], Fraction]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class NeighbourServing(SharedServing):
    """A problem of blocks that are shared in time and slowed by what is beside them.

    Its ``problem`` is the inner image: what solves it keeps every limit beside its neighbours.

    Examples
    --------
    >>> from cms.fleet.serving import OperatingPoint, Pair, Service, as_problem
    >>> services = [Service("a", "m", 300, 60)]
    >>> points = [OperatingPoint("m", "a100-80gb", "mps:50", 1, 8, 800, 10)]
    >>> table = Interference({Pair("m", "a100-80gb", "mps:50", 8, "m", 8): "1.5"})
    >>> serving = as_problem(services, points, sharing="time", interference=table)
    >>> [str(shape) for shape in serving.problem.configurations]
    ['mps:50', '2 x mps:50 (1 beside 1)']
    >>> [str(serving.problem.job("a").points[block][0].length) for block in serving.problem.blocks]
    ['1/100', '3/200']
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
    """Pose the two images, under interference, of a problem whose GPUs are shared in pairs.

    There are at most so many classes on each GPU, :data:`DEFAULT_CLASSES` by default; more of them
    bring the images nearer to each other and make them larger. InvalidOption if GPUs are shared
    otherwise or `classes` is no number, InvalidProblem if a pair that may come about was not
    measured.
    """
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
    sides = sides_of(solo, {one.key: measured.on(one) for one in solo.gpus})
    ranks = [classes_of(own, most) for own in sides]
    blocks = [block for own, rank in zip(sides, ranks, strict=True) for block in _blocks(own, rank)]
    shapes = list(_shapes(solo, blocks))
    inner = _image(solo, blocks, shapes, _worst)
    points = {
        (name, block): tuple(
            point
            for point in solo.points.get((name, plain_block(block)), ())
            if job.point(block, amount_of(point)) is not None
        )
        for job in inner.jobs
        for name in [job.name]
        for block in job.points
    }
    return NeighbourServing(
        problem=inner,
        services=solo.services,
        gpus=solo.gpus,
        points=FrozenMap(points),
        warnings=solo.warnings,
        unservable=solo.unservable,
        max_processes=solo.max_processes,
        rate_margin=solo.rate_margin,
        sharing=solo.sharing,
        solo=solo,
        outer=_image(solo, blocks, shapes, _best),
        interference=measured,
        classes=most,
        ranks=FrozenMap(
            {
                (one.key, *kind): rank
                for one, own in zip(solo.gpus, ranks, strict=True)
                for kind, rank in own.items()
            }
        ),
    )


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


def _blocks(sides: Iterable[Side], ranks: dict[Kind, int]) -> Iterator[_Qualified]:
    """All pairs of classes that have a kind, on the share and beside it."""
    for side in sides:
        here = sorted({ranks[kind] for kind in side.kinds})
        there = sorted({ranks[kind] for kind in side.beside})
        for own in here:
            for other in there:
                yield _Qualified(side, own, other, ranks)


def _shapes(solo: SharedServing, blocks: Sequence[_Qualified]) -> Iterator[AnyConfiguration]:
    """Every configuration; of two shares each alone, and both for each two classes."""
    by_sides: dict[tuple[Block, Block], list[_Qualified]] = {}
    for one in blocks:
        by_sides.setdefault((one.side.block, one.side.other), []).append(one)
    alone: dict[Block, None] = {}
    for shape in solo.problem.configurations:
        pair = pair_of(shape)
        if pair is None:
            yield shape
            continue
        machine = shape.machine
        for block in pair:
            if block not in alone:
                alone[block] = None
                yield Configuration({block: 1}, machine)
        for one in by_sides.get(pair, ()):
            if one.name == one.facing:
                yield Configuration({one.name: 2}, machine)
            elif pair[0] != pair[1] or one.own > one.other:
                yield Configuration({one.name: 1, one.facing: 1}, machine)


def _image(
    solo: SharedServing,
    blocks: Sequence[_Qualified],
    shapes: Sequence[AnyConfiguration],
    factor: _Factor,
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
                (point.amount, point.length * factor(one.side, kind, one.ranks, one.other))
                for point, kind in of[one.side.block]
                if one.ranks[kind] <= one.own
            ]
        jobs.append(TimeSharedJob(job.name, job.demand, job.limit, points))
    return rebuild_problem(solo.problem, shapes, jobs)


def rebuild_problem(
    problem: TimeSharedProblem,
    configurations: Iterable[AnyConfiguration],
    jobs: Iterable[TimeSharedJob],
) -> TimeSharedProblem:
    """Return a problem of other blocks on the same terms."""
    return TimeSharedProblem(
        configurations=configurations, jobs=jobs, machine_types=problem.machine_types,
        rule=problem.rule, max_jobs=problem.max_jobs,
    )  # fmt: skip


def _worst(side: Side, own: Kind, ranks: dict[Kind, int], most: int) -> Fraction:
    """The greatest factor of a neighbour that is of a class up to this one."""
    return max(side.factor(own, other) for other in side.beside if ranks[other] <= most)


def _best(side: Side, own: Kind, ranks: dict[Kind, int], least: int) -> Fraction:
    """The least factor of a neighbour that is of this class or a higher one."""
    return min(side.factor(own, other) for other in side.beside if ranks[other] >= least)
