"""Services in time on shares that slow one another: one problem plans, and another bounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import chain, product
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption, InvalidProblem, InvalidSchedule
from ...problem.parts import AnyConfiguration, Block, Configuration
from ...schedule.contents import Mix, shown_content
from ...schedule.faults import Violation
from ...schedule.schedule import MachineGroup, Schedule
from ...time_sharing.duty_cycle import DutyCycle, duty_cycle_of
from ...time_sharing.model import BatchPoint, TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.numbers import shown, whole
from .interference import Interference, Pair
from .measurements import InstanceKind
from .time_sharing import SharedServing

DEFAULT_CLASSES = 3
#: A model, and how much of it is taken together.
Kind: TypeAlias = tuple[str, int]
#: By a share and the one beside it: of each kind, how much longer it takes beside each kind there.
_Slowdowns: TypeAlias = dict[tuple[Block, Block], dict[Kind, dict[Kind, Fraction]]]
_SHARE = re.compile(r"(.*:)?mps:[0-9]+")
_REMARK = re.compile(r" \(([0-9]+) beside ([0-9]+)\)")


def find_pair(shape: AnyConfiguration) -> tuple[Block, Block] | None:
    """Return the two MPS shares that a configuration is; None if it has no two."""
    blocks = [*Counter(shape.blocks).elements()] if isinstance(shape, Configuration) else []
    if len(blocks) != 2 or not all(map(_SHARE.fullmatch, blocks)):
        return None
    return blocks[0], blocks[1]


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


def rank_kinds(table: Interference, kinds: Iterable[Kind], classes: int) -> dict[Kind, int]:
    """Return the class of each kind on one GPU, from 1: those that slow others more are higher.

    What counts is the mean over all pairs that were measured. The order decides how close the two
    images are, never whether they hold. Each class has as many kinds as the next, or one more.
    """
    caused: dict[Kind, list[Fraction]] = {kind: [] for kind in kinds}
    for pair, factor in table.pairs.items():
        if (kind := (pair.beside_model, pair.beside_batch)) in caused:
            caused[kind].append(factor)

    def mean(kind: Kind) -> Fraction:
        factors = caused[kind] or [Fraction(1)]
        return sum(factors, Fraction(0)) / len(factors)

    ordered = sorted(caused, key=lambda kind: (mean(kind), kind))
    most = min(classes, len(ordered))
    return {kind: 1 + place * most // len(ordered) for place, kind in enumerate(ordered)}


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class NeighbourServing(SharedServing):
    """A problem of blocks that are shared in time and slowed by what is beside them.

    How long a batch takes depends on the mix on the rest of the GPU, so a block's name says what
    may be beside it. A *kind*, a model in batches of some size, is of a class from 1 by how much it
    slows others in the mean; a mix is of the class of its highest kind. On a block ``mps:60 (2
    beside 1)`` a mix is of class 2 at most, and that on the rest of the GPU, on ``mps:40 (1 beside
    2)``, of class 1 at most. A block without such a remark has no neighbour.

    In the **inner** image, ``problem``, a batch takes as long as beside the worst of what may be
    there: its schedules meet every limit. In the **outer** one it takes as long as beside the best
    of its neighbour's class and all higher ones; a schedule that meets the limits beside its
    neighbours meets them there too, so what is proved to be needed there is needed.

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
    outer: TimeSharedProblem
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
    if (splits := solo.sharing.splits) != "pairs":
        raise InvalidOption(
            f"splits is {splits!r}, and what slows a batch is measured beside one other "
            "share; with interference expected 'pairs'"
        )
    most = DEFAULT_CLASSES if classes is None else classes
    most = whole(most, "the number of classes", least=1, error=InvalidOption)
    there = {
        (point.model, *solo.instance_of(block), point.batch)
        for (_, block), points in solo.points.items()
        for point in points
    }
    kinds = {(key, model, batch) for model, key, _, batch in there}
    measured = Interference({
        pair: factor
        for gpu in solo.gpus
        for pair, factor in table.on(gpu).pairs.items()
        if pair[:4] in there and (pair.device, *pair[4:]) in kinds
    })  # fmt: skip
    slowdowns, ranks = _find_slowdowns(solo, measured, most)
    shapes, slower = _list_shapes(solo, slowdowns, ranks)

    def image(which: int) -> TimeSharedProblem:
        """Pose the problem on shares with classes, every batch longer by its factor."""
        jobs = []
        for job in solo.problem.jobs:
            own: dict[Block, Iterable[tuple[Fraction, Fraction]]] = {**job.points}
            for block, factors in slower.items():
                own[block] = [
                    (point.amount, point.length * factors[kind][which])
                    for point, kind in admitted(solo, job.name, plain_block(block))
                    if kind in factors
                ]
            jobs.append(TimeSharedJob(job.name, job.demand, job.limit, own))
        machines = solo.problem
        return TimeSharedProblem(
            configurations=shapes, jobs=jobs, machine_types=machines.machine_types,
            group_limits=machines.group_limits, rule=machines.rule, max_jobs=machines.max_jobs,
        )  # fmt: skip

    inner = image(0)
    points = {
        (job.name, block): tuple(solo.point(job.name, plain_block(block), n) for n, _ in own)
        for job in inner.jobs
        for block, own in job.points.items()
    }
    kept = {each.name: getattr(solo, each.name) for each in fields(SharedServing)}
    return NeighbourServing(
        **kept | {"problem": inner, "points": FrozenMap(points)}, solo=solo, outer=image(1),
        interference=measured, classes=most, ranks=FrozenMap(ranks),
    )  # fmt: skip


def _find_slowdowns(
    solo: SharedServing, table: Interference, classes: int
) -> tuple[_Slowdowns, dict[tuple[str, str, int], int]]:
    """Return how much longer each kind takes beside each, and the classes of the kinds."""
    names, missing = solo.problem.job_names, list[Pair]()
    found, ranks = _Slowdowns(), dict[tuple[str, str, int], int]()
    for gpu in solo.gpus:
        shapes = (each for each in solo.problem.configurations if each.machine == gpu.key)
        pairs = [pair for shape in shapes if (pair := find_pair(shape)) is not None]
        sides = dict.fromkeys(side for pair in pairs for side in (pair, pair[::-1]))
        kinds = {
            block: sorted({kind for name in names for _, kind in admitted(solo, name, block)})
            for block, _ in sides
        }
        ranked = rank_kinds(table.on(gpu), chain.from_iterable(kinds.values()), classes)
        ranks |= {(gpu.key, *kind): place for kind, place in ranked.items()}
        for block, beside in sides:
            own = found[block, beside] = {kind: {} for kind in kinds[block]}
            for kind, near in product(kinds[block], kinds[beside]):
                batches = Pair(kind[0], gpu.key, solo.profile_of(block), kind[1], *near)
                if batches in table.pairs:
                    own[kind][near] = table.factor(batches)
                else:
                    missing.append(batches)
    if missing:
        model, device = missing[0][:2]
        on = sorted({pair.profile for pair in table.pairs if pair[:2] == (model, device)})
        raise InvalidProblem(
            "there are pairs of operating points that could stand side by side and have no "
            f"measured slowdown, {len(missing)} in all; the first: {missing[0]} (there are "
            f"slowdowns of {model} on {', '.join(on) or 'no share of this GPU'}); measure the "
            "pairs, or leave the points out"
        )
    return found, ranks


def _list_shapes(
    solo: SharedServing, slowdowns: _Slowdowns, ranks: Mapping[tuple[str, str, int], int]
) -> tuple[list[AnyConfiguration], dict[Block, dict[Kind, tuple[Fraction, Fraction]]]]:
    """Return every configuration, of two shares each alone, and both for each two classes.

    And how much longer a batch takes on a share with classes: beside the worst of classes up to its
    neighbour's, and beside the best from that on.
    """
    shapes, alone = list[AnyConfiguration](), set[Block]()
    slower = dict[Block, dict[Kind, tuple[Fraction, Fraction]]]()
    for shape in solo.problem.configurations:
        if (pair := find_pair(shape)) is None:
            shapes.append(shape)
            continue
        new = [block for block in dict.fromkeys(pair) if block not in alone]
        shapes += [Configuration({block: 1}, shape.machine) for block in new]
        alone.update(new)
        rank = {(m, batch): n for (gpu, m, batch), n in ranks.items() if gpu == shape.machine}
        both = ({rank[kind] for kind in slowdowns[side]} for side in (pair, pair[::-1]))
        for own, other in product(*map(sorted, both)):
            if pair[0] == pair[1] and own < other:
                continue
            sides = (pair, own, other), (pair[::-1], other, own)
            names = [f"{side[0]} ({high} beside {near})" for side, high, near in sides]
            shapes.append(Configuration(Counter(names), shape.machine))
            for name, (side, high, near) in zip(names, sides, strict=True):
                slower[name] = {
                    kind: (
                        max(by for beside, by in each.items() if rank[beside] <= near),
                        min(by for beside, by in each.items() if rank[beside] >= near),
                    )
                    for kind, each in slowdowns[side].items()
                    if rank[kind] <= high
                }
    return shapes, slower


# --- the exact check: it knows pairs and points, and nothing of classes -------------------------


class Held(NamedTuple):
    """A share of a GPU, a block of the problem without interference, and the mix it serves."""

    block: Block
    mix: Mix

    def __str__(self) -> str:
        return f"{shown_content(self.mix)} on {self.block}"


def neighbour_faults(serving: NeighbourServing, schedule: Schedule) -> tuple[Violation, ...]:
    """Say where a schedule violates a limit or a demand beside its neighbours.

    A slot takes its length without interference times the largest factor that a batch of the mix on
    the other share causes, or 1 if that share idles. What blocks say of classes is left aside.
    InvalidSchedule or InvalidProblem if a block holds no mix, or a point or pair was not measured.

    Examples
    --------
    >>> from cms.fleet.serving import Interference, OperatingPoint, Pair, Service, build_problem
    >>> points = [OperatingPoint("m", "a100-80gb", "mps:50", 1, 8, 800, 10)]
    >>> table = Interference({Pair("m", "a100-80gb", "mps:50", 8, "m", 8): "1.5"})
    >>> terms = {"sharing": "time", "interference": table}
    >>> serving = build_problem([Service("a", "m", 1200, 60)], points, **terms)
    >>> both = {("mps:50", Mix({"a": 8})): 2}
    >>> schedule = Schedule([MachineGroup(Configuration({"mps:50": 2}, "a100-80gb"), both, 1)])
    >>> print(*neighbour_faults(serving, schedule))
    job 'a' has 3200/3 of its demand served, needs 1200
    """
    problem = serving.solo.problem
    served = dict.fromkeys(problem.job_names, Fraction(0))
    found = []
    for g, group in enumerate(schedule.groups):
        for held, other in _held(group):
            cycle = _cycle_beside(serving, held, other)
            near = "nothing" if other is None else str(other)
            has = f"{held} beside {near}, in a duty cycle of {shown(cycle.length)}"
            for name, slack in cycle.slack.items():
                if slack < 0:
                    needs = f"{shown(-slack)} less for the limit of {name!r}"
                    found.append(Violation("cycle", f"group {g}", has, needs))
            for name, rate in cycle.rates.items():
                served[name] += rate * group.count
    for job in problem.jobs:
        if served[job.name] < job.demand:
            has = f"{shown(served[job.name])} of its demand served"
            found.append(Violation("demand", f"job {job.name!r}", has, shown(job.demand)))
    return tuple(found)


def _cycle_beside(serving: NeighbourServing, held: Held, other: Held | None) -> DutyCycle:
    """Return the cycle of a mix on a share, beside another mix on the rest of its GPU."""
    solo, (gpu, profile) = serving.solo, serving.solo.instance_of(held.block)
    kinds = [] if other is None else [_kind(solo, other, name) for name in other.mix]
    points = {}
    for name, amount in held.mix.items():
        model, batch = _kind(solo, held, name)
        pairs = (Pair(model, gpu, profile, batch, *kind) for kind in kinds)
        factors = [serving.interference.factor(pair) for pair in pairs]
        alone = solo.problem.job(name).point(held.block, amount)
        assert alone is not None  # it has a kind
        points[name] = BatchPoint(amount, alone.length * max(factors, default=Fraction(1)))
    limits = {name: solo.problem.job(name).limit for name in points}
    return duty_cycle_of(solo.problem.rule, points, limits)


def _kind(solo: SharedServing, held: Held, name: str) -> Kind:
    if name not in solo.problem.job_names:
        raise InvalidSchedule(f"{held} has the service {name!r}, which the plan does not have")
    try:
        return kind_of(solo, name, held.block, held.mix[name])
    except KeyError:
        raise InvalidSchedule(
            f"{held} takes {shown(held.mix[name])} of {name!r} at a time, which was not measured "
            "there"
        ) from None


def _held(group: MachineGroup) -> Iterator[tuple[Held, Held | None]]:
    """Iterate over what the shares of one machine hold, and what is beside each."""
    held = []
    for (block, content), count in group.assignment.items():
        if not isinstance(content, Mix):
            raise InvalidSchedule(f"block {block!r} is given to {content!r}; expected a Mix")
        held += [Held(plain_block(block), content)] * count
    blocks = Counter(group.configuration.blocks).elements()
    if find_pair(Configuration(Counter(map(plain_block, blocks)))) is None:
        yield from ((one, None) for one in held)
    elif len(held) <= 2:
        yield from zip(held, reversed(held) if len(held) == 2 else [None], strict=True)
    else:
        raise InvalidSchedule(f"a GPU in two has {len(held)} shares: {', '.join(map(str, held))}")
