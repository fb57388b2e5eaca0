"""GPUs as bars of slices: of plans, deployments and differences, schedules, and co-location."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, groupby
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from ...values.frozen import FrozenMap
from ...values.words import count, decimal
from ..serving.operating_point import mps_share
from ..serving.plan import placed_instances
from .page import PER_CENT, Bar, Bars, Box

if TYPE_CHECKING:
    from ...problem.machine_problem import MachineProblem
    from ...schedule.schedule import Schedule
    from ..deployment import FleetGpu, GpuDifference, Instance
    from ..hardware import Gpu
    from ..serving import Instances, OperatingPoint, Plan, PlanGroup

#: Layouts of a plan that a terminal draws with all words in them
MOST_LARGE = 16
#: Bars that it draws, one a line where there are more than large ones
MOST_LINES = 40
#: Further bars that a page draws, without words
MOST_SMALL = 960
#: Blocks of a machine that is drawn: more would fill memory.
MOST_BOXES = 200


def list_bars(
    bars: Sequence[Bar], head: str, note: str = "", *, large: bool, most: int = MOST_LINES,
    what: str = "more layout",
) -> Iterator[Bars]:  # fmt: skip
    """Yield bars below a head, those beyond the most small, below a line that counts them."""
    yield Bars(bars[:most], head, note, "large" if large else "line")
    if rest := bars[most:]:
        gpus = count(sum(bar.count for bar in rest), "GPU")
        said = f"... and {count(len(rest), what)} on {gpus}"
        yield Bars(rest[:MOST_SMALL], said, size="small")


def draw_plan(plan: Plan) -> Iterator[Bars]:
    """Yield the distinct GPUs of a plan, a part for each type, the most frequent first."""
    places = {service.name: place for place, service in enumerate(plan.serving.services)}
    found: Counter[tuple[str, int, tuple[Box, ...]]] = Counter()
    for group in plan.groups:
        gpu = plan.serving.gpu_of(group.gpu)
        shared = any(mps_share(instances.profile) is not None for instances in group.instances)
        slices = PER_CENT if shared else gpu.memory_slices
        found[gpu.key, slices, fill_gaps(_placed(gpu, group, places), slices)] += group.count

    def rank(bar: Bar) -> tuple[object, ...]:
        look = [(-box.width, box.place if box.service else len(places)) for box in bar.boxes]
        return bar.slices, -bar.count, look

    for gpu in plan.serving.gpus:
        own = [Bar(*key, number) for key, number in found.items() if key[0] == gpu.key]
        for shared in (False, True):
            if alike := sorted((bar for bar in own if bar.shared is shared), key=rank):
                gpus = sum(bar.count for bar in alike)
                note = ", shared by MPS (a bar is 100 % of a GPU)"
                if not shared:
                    used = [(bar.count, gpu.profile(box.profile)) for bar in alike
                            for box in bar.boxes if box.service]  # fmt: skip
                    compute, memory = sum(n * p.compute for n, p in used), gpus * gpu.memory_slices
                    note = (
                        f", {compute:,} of {gpus * gpu.compute_slices:,} compute and "
                        f"{sum(n * p.memory for n, p in used):,} of {memory:,} memory slices serve"
                    )
                head = f"{decimal(gpus)} x {gpu.key}"
                yield from list_bars(alike, head, note, large=len(alike) <= MOST_LARGE)


def _placed(gpu: Gpu, group: PlanGroup, places: Mapping[str, int]) -> Iterator[Box]:
    """Place instances, or line up the shares under MPS; an unused one is no process, not drawn."""
    if not any(mps_share(instances.profile) is not None for instances in group.instances):
        for placed, instances in placed_instances(gpu, group):
            yield _box(placed.start, gpu.profile(placed.profile).memory, instances, places)
        return
    at = 0
    used = [instances for instances in group.instances if instances.serves]
    for instances in sorted(used, key=lambda own: -(mps_share(own.profile) or 0)):
        for _ in range(instances.count):
            width = mps_share(instances.profile) or 0
            yield _box(at, width, instances, places)
            at += width


def fill_gaps(boxes: Iterable[Box], slices: int, state: str = "") -> tuple[Box, ...]:
    """Return boxes by their starts, with free ones, or of a state, between and behind them."""
    filled, at = [], 0
    for box in (*boxes, Box(slices, 0)):
        filled += [Box(at, box.start - at, state=state)] if box.start > at else []
        filled += [box] if box.width else []
        at = box.start + box.width
    return tuple(filled)


def _box(start: int, width: int, instances: Instances, places: Mapping[str, int]) -> Box:
    serves, cycle = instances.serves, instances.duty_cycle_ms
    if not serves:
        return Box(start, width, instances.profile)
    first = serves[0].service
    if len(serves) == 1 or cycle is None:
        how = format_setting(serves[0].point)
        return Box(start, width, instances.profile, first, places[first], how)
    slots, at = [], Fraction(0)
    for one in serves:  # each as wide as the time it takes
        begin, at = at, at + 1000 * (one.length_ms or Fraction(0)) / cycle
        how = format_setting(one.point, brief=True)
        wide = round(at) - round(begin)
        slots.append(Box(round(begin), wide, "", one.service, places[one.service], how))
    how = f"duty cycle {decimal(cycle)} ms"
    return Box(start, width, instances.profile, first, places[first], how, slots=tuple(slots))


def format_setting(point: OperatingPoint, *, brief: bool = False) -> str:
    """Write how an instance runs: ``p=2 b=16``; in brief without a single process."""
    batch = f"b={point.batch}"
    return batch if brief and point.processes == 1 else f"p={point.processes} {batch}"


@dataclass(frozen=True, slots=True)
class Folded:
    """GPUs that look alike: one bar, or two of GPUs that change, and their common mode."""

    bars: tuple[Bar, ...]
    gpus: tuple[FleetGpu, ...]
    note: str = ""

    @property
    def places(self) -> list[tuple[str, int]]:
        """Their nodes and indices."""
        return [(card.node, card.index) for card in self.gpus]

    @property
    def times(self) -> str:
        """How many they are, before a name; nothing of a single one."""
        return f"{decimal(len(self.gpus))} × " if len(self.gpus) > 1 else ""


def fold(gpus: Iterable[FleetGpu], places: Mapping[str, int]) -> tuple[Folded, ...]:
    """Draw GPUs, those that look alike once: the most frequent first."""
    return fold_alike((card, (draw_gpu(card, places),), str(card.mode)) for card in gpus)


def fold_differences(
    differences: Iterable[GpuDifference], places: Mapping[str, int]
) -> tuple[Folded, ...]:
    """Draw GPUs before and after, with the fate of each instance."""
    modes = ("MIG off -> MIG on", "MIG on -> MIG off")
    drawn = []
    for each in differences:
        restarted = list(zip(*each.restarted, strict=True)) or [(), ()]
        before = {"kept": each.kept, "deleted": each.deleted, "restarted": restarted[0]}
        after = {"kept": each.kept, "created": each.created, "restarted": restarted[1]}
        bars = tuple(
            draw_gpu(gpu, places, {_look(one): mark for mark, own in marked.items() for one in own})
            for gpu, marked in ((each.now, before), (each.then, after))
        )
        drawn.append((each.then, bars, modes[each.now.is_cut] * each.changes_mode))
    return fold_alike(drawn)


def fold_alike(drawn: Iterable[tuple[FleetGpu, tuple[Bar, ...], str]]) -> tuple[Folded, ...]:
    """Draw GPUs, each with its bars and a note, once where these are alike."""
    found: dict[tuple[str, tuple[Bar, ...]], list[tuple[FleetGpu, tuple[Bar, ...]]]] = {}
    for card, bars, note in drawn:
        # pods of one namespace look alike: each has a name of its own
        look = tuple(
            replace(bar, boxes=tuple(
                replace(box, owner=re.sub(r"^(\S* [^/]*)/.*", r"\1/*", box.owner, flags=re.S))
                for box in bar.boxes
            ))
            for bar in bars
        )  # fmt: skip
        found.setdefault((note, look), []).append((card, bars))
    folded = []
    for (note, look), alike in found.items():
        several = any(bars != alike[0][1] for _, bars in alike)
        bars = look if several else alike[0][1]
        counted = tuple(replace(bar, count=len(alike)) for bar in bars)
        folded.append(Folded(counted, tuple(card for card, _ in alike), note))
    return tuple(sorted(folded, key=lambda each: (-len(each.gpus), each.places[0])))


def _look(each: Instance) -> tuple[object, ...]:
    return each.profile, each.start, each.work


def draw_gpu(
    card: FleetGpu, places: Mapping[str, int], marks: Mapping[tuple[object, ...], str] = FrozenMap()
) -> Bar:
    """Draw one GPU: its instances, with their marks, and the free slices between them."""
    from ..deployment import Mode, StartSource

    def box(start: int, width: int, instance: Instance) -> Box:
        state = "" if instance.state == "running" else str(instance.state).replace("_", " ")
        found = Box(start, width, instance.profile, owner=instance.owner or "", state=state,
                    mark=marks.get(_look(instance), ""))  # fmt: skip
        if instance.work is None or instance.owner is not None:
            return found
        name, how = instance.work.service, format_setting(instance.work.point)
        return replace(found, service=name, place=places[name], point=how)

    slices, held = card.gpu.memory_slices, card.instances
    if card.mode is Mode.MPS:
        shares, at, nth = list[Box](), 0, Counter[str]()
        turns = Counter(each.place for each in held if each.start is not None)
        for each in sorted(held, key=lambda own: (-(mps_share(own.profile) or 0), own.order)):
            # of those that take turns each has a part
            share, among = mps_share(each.profile) or 0, turns[each.place] or 1
            number = nth[each.place]
            nth[each.place] += each.start is not None
            width = share * (number + 1) // among - share * number // among
            shares.append(box(at, width, each))
            at += width
        return Bar(card.gpu.key, PER_CENT, fill_gaps(shares, PER_CENT))
    named = ", ".join(f"{number} x {name}" for name, number in sorted(card.counts.items()))
    boxes = [box(each.start or 0, card.gpu.profile(each.profile).memory, each) for each in held
             if card.mode is Mode.MIG]  # fmt: skip
    if card.mode is Mode.FIXED:
        owners = ", ".join(sorted({each.owner or "" for each in held}))
        boxes = [Box(0, slices, (named if card.is_cut else "") or "fixed", owner=owners)]
    elif card.mode is Mode.WHOLE and held:
        times = f"{len(held)} x " if len(held) > 1 else ""
        boxes = [replace(box(0, slices, held[0]), profile=f"{times}{held[0].profile}")]
    elif card.start_source is StartSource.UNKNOWN or any(each.start is None for each in held):
        boxes = [Box(0, slices, named, owner="starts not known", state="unknown")]
    return Bar(card.gpu.key, slices, fill_gaps(boxes, slices))


def draw_machines(
    schedule: Schedule, most: int, problem: MachineProblem | None = None
) -> list[Bar]:
    """Return bars of the groups with most machines, the largest first: a box a block.

    Where the problem is given, boxes are as wide as the blocks are large. A machine of more than
    200 blocks has no bar.
    """
    places: dict[str, int] = {}
    bars = []
    # Most machines first; a stable sort, so that equal runs print equal reports.
    order = np.argsort(-schedule.columns.group_count, kind="stable")[:most]
    for group in (schedule.groups[index] for index in order.tolist()):
        shape = group.configuration
        if sum(shape.blocks.values()) > MOST_BOXES:
            continue
        sizes = dict.fromkeys(shape.blocks, Fraction(1))  # of a listed configuration
        capacity = Fraction(sum(shape.blocks.values()))
        if problem is not None and problem.own(shape) not in problem.listed_configurations:
            bounded = next(problem.sets_with(shape))
            sizes, capacity = dict(bounded.sizes), bounded.capacity
        # Whole numbers, so that the boxes of a bar cannot fail to meet.
        scale = lcm(*(size.denominator for size in chain(sizes.values(), (capacity,))))
        boxes, at = [], 0
        for block, held in shape.blocks.items():
            given = [content for (own, content), number in group.assignment.items()
                     if own == block for _ in range(number)]  # fmt: skip
            for content in (*given, *[None] * (held - len(given))):
                name, width = None if content is None else str(content), int(sizes[block] * scale)
                place = places.setdefault(name, len(places)) if name else 0
                boxes.append(Box(at, width, block, name, place))
                at += width
        whole = int(capacity * scale)
        bars.append(Bar(shape.machine or "", whole, fill_gaps(boxes, whole), group.count))
    return bars


def format_gpus(places: Iterable[tuple[str, int]], most: int = 10**9) -> str:
    """Write the names of GPUs in short: numbers in a row as ranges, nodes in a row likewise.

    GPUs beyond `most` characters are counted.
    """
    ordered = sorted(places, key=lambda place: (_natural(place[0]), *place))
    runs: list[tuple[list[str], list[int]]] = []
    for node, own in groupby(ordered, key=lambda place: place[0]):
        indices = [index for _, index in own]
        if runs and runs[-1][1] == indices and _follows(runs[-1][0][-1], node):
            runs[-1][0].append(node)
        else:
            runs.append(([node], indices))
    shown: list[str] = []
    length, left = 0, len(ordered)
    for nodes, indices in runs:
        named = ",".join(nodes) if len(nodes) < 3 else f"{nodes[0]}...{nodes[-1]}"
        ranks = groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0])
        ends = [[number for _, number in run] for _, run in ranks]
        text = ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends)
        text = f"{named}/{text}"
        if shown and length + len(text) > most:
            shown.append(f"... ({count(left, 'more GPU')})")
            break
        shown.append(text)
        length += len(text) + 2
        left -= len(nodes) * len(indices)
    return ", ".join(shown)


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Return what names are sorted by, so that node-9 comes before node-10."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return [(0, int(part)) if part[0] in "0123456789" else (1, part) for part in parts]


def _follows(one: str, other: str) -> bool:
    """Whether a name has the number after that of another one at its end."""
    (stem, first), (same, second) = (
        re.fullmatch(r"(.*?)([0-9]{0,18})", name, re.DOTALL).groups()  # type: ignore[union-attr]
        for name in (one, other)
    )
    counts_up = stem == same and first and second and int(second) == int(first) + 1
    return bool(counts_up) and len(first) <= len(second)
