"""The GPUs of a deployment as bars true to the hardware; equal ones are folded into one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ..deployment.difference import GpuDifference
from ..deployment.instance import Instance, Mode, Seen, State
from ..deployment.model import FleetGpu
from ..serving.operating_point import mps_share
from .bars import Bar, Cell

__all__ = ["Folded", "fold", "fold_differences", "gpu_bar", "names"]

_PER_CENT = 100
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class Folded:
    """GPUs that look alike.

    Parameters
    ----------
    bars : tuple of Bar
        One, or two of a GPU that changes: before and after.
    gpus : tuple of FleetGpu
        By node and index.
    note : str
        What else is alike: ``MIG on -> MIG off``.
    """

    bars: tuple[Bar, ...]
    gpus: tuple[FleetGpu, ...]
    note: str = ""

    @property
    def places(self) -> list[tuple[str, int]]:
        """Their nodes and indices."""
        return [(card.node, card.index) for card in self.gpus]


def fold(gpus: Iterable[FleetGpu]) -> tuple[Folded, ...]:
    """Draw GPUs, those that look alike once: the most frequent first.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> held = (Instance("3g.40gb", 4),)
    >>> cards = [FleetGpu("a", index, gpu("a100-80gb"), instances=held) for index in range(3)]
    >>> (alike,) = fold(cards)
    >>> alike.bars[0].count, names(alike.places)
    (3, 'a/0-2')
    """
    return _folded((card, (gpu_bar(card),), str(card.mode)) for card in gpus)


def fold_differences(differences: Iterable[GpuDifference]) -> tuple[Folded, ...]:
    """Draw GPUs before and after, with what becomes of each instance."""
    return _folded((each.then, _before_and_after(each), _modes(each)) for each in differences)


def _modes(each: GpuDifference) -> str:
    """What becomes of MIG mode, where anything does."""
    if not each.changes_mode:
        return ""
    return " -> ".join("MIG on" if card.is_cut else "MIG off" for card in (each.now, each.then))


def _folded(drawn: Iterable[tuple[FleetGpu, tuple[Bar, ...], str]]) -> tuple[Folded, ...]:
    found: dict[tuple[str, tuple[Bar, ...]], list[tuple[FleetGpu, tuple[Bar, ...]]]] = {}
    for card, bars, note in drawn:
        look = tuple(replace(bar, cells=_without_names(bar.cells)) for bar in bars)
        found.setdefault((note, look), []).append((card, bars))
    folded = []
    for (note, look), alike in found.items():
        several = any(bars != alike[0][1] for _, bars in alike)
        shown = look if several else alike[0][1]
        bars = tuple(replace(bar, count=len(alike)) for bar in shown)
        folded.append(Folded(bars, tuple(card for card, _ in alike), note))
    return tuple(sorted(folded, key=lambda each: (-len(each.gpus), each.places[0])))


def _without_names(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Pods of one namespace look alike: each has a name of its own."""
    return tuple(replace(cell, owner=_group(cell.owner)) if cell.owner else cell for cell in cells)


def _group(owner: str) -> str:
    kind, _, name = owner.partition(" ")
    space, slash, _ = name.partition("/")
    return f"{kind} {space}/*" if slash else owner


# --- one GPU --------------------------------------------------------------------------------------


def gpu_bar(card: FleetGpu, mark: Callable[[Instance], str] = lambda each: "") -> Bar:
    """Draw one GPU: its instances where they are, and what is between them."""
    if card.mode is Mode.MPS:
        return Bar(card.gpu.key, _PER_CENT, tuple(_shares(card, mark)))
    slices = card.gpu.memory_slices
    if card.mode is Mode.FIXED:
        counted = sorted(card.counts.items()) if card.is_cut else ()
        held = ", ".join(f"{count} x {name}" for name, count in counted) or "fixed"
        owners = ", ".join(sorted({each.owner or "" for each in card.instances}))
        cells: tuple[Cell, ...] = (Cell(0, slices, held, owner=owners),)
    elif card.mode is Mode.WHOLE:
        cells = (_whole(card, mark),)
    elif card.seen is Seen.UNKNOWN or any(each.start is None for each in card.instances):
        held = ", ".join(f"{count} x {name}" for name, count in sorted(card.counts.items()))
        cells = (Cell(0, slices, held, owner="starts not known", state="unknown"),)
    else:
        cells = tuple(_slices(card, mark))
    return Bar(card.gpu.key, slices, cells)


def _whole(card: FleetGpu, mark: Callable[[Instance], str]) -> Cell:
    slices = card.gpu.memory_slices
    if not card.instances:
        return Cell(0, slices)
    cell = _cell(0, slices, card.instances[0], mark)
    number = len(card.instances)
    return replace(cell, profile=f"{number} x {cell.profile}") if number > 1 else cell


def _slices(card: FleetGpu, mark: Callable[[Instance], str]) -> Iterator[Cell]:
    at = 0
    for each in card.instances:
        start = each.start or 0
        if start > at:
            yield Cell(at, start - at)
        at = start + card.gpu.profile(each.profile).memory
        yield _cell(start, at - start, each, mark)
    if at < card.gpu.memory_slices:
        yield Cell(at, card.gpu.memory_slices - at)


def _shares(card: FleetGpu, mark: Callable[[Instance], str]) -> Iterator[Cell]:
    at = 0
    turns = Counter(each.place for each in card.instances if each.start is not None)
    nth: Counter[str] = Counter()
    for each in sorted(card.instances, key=lambda own: (-(mps_share(own.profile) or 0), own.order)):
        share, among, number = mps_share(each.profile) or 0, turns[each.place] or 1, nth[each.place]
        nth[each.place] += each.start is not None
        # those that take turns in a share have a part of it each
        width = share * (number + 1) // among - share * number // among
        yield _cell(at, width, each, mark)
        at += width
    if at < _PER_CENT:
        yield Cell(at, _PER_CENT - at)


def _cell(start: int, width: int, instance: Instance, mark: Callable[[Instance], str]) -> Cell:
    state = "" if instance.state is State.RUNNING else str(instance.state)
    work = instance.work
    if work is None or instance.owner is not None:
        return Cell(
            start, width, instance.profile,
            owner=instance.owner or "", state=state, mark=mark(instance),
        )  # fmt: skip
    how = f"p={work.point.processes} b={work.point.batch}"
    return Cell(start, width, instance.profile, work.service, how, state=state, mark=mark(instance))


def _before_and_after(each: GpuDifference) -> tuple[Bar, ...]:
    before = _marks(
        ("kept", each.kept), ("deleted", each.deleted),
        ("restarted", [one for one, _ in each.restarted]),
    )  # fmt: skip
    after = _marks(
        ("kept", each.kept), ("created", each.created),
        ("restarted", [other for _, other in each.restarted]),
    )  # fmt: skip
    return gpu_bar(each.now, before), gpu_bar(each.then, after)


def _marks(*marked: tuple[str, Iterable[Instance]]) -> Callable[[Instance], str]:
    found: dict[tuple[str, int | None, object], str] = {}
    for mark, instances in marked:
        for each in instances:
            found[each.profile, each.start, each.work] = mark
    return lambda each: found.get((each.profile, each.start, each.work), "")


# --- names ----------------------------------------------------------------------------------------


def names(places: Iterable[tuple[str, int]], most: int = 10**9) -> str:
    """Write the names of GPUs in short: numbers in a row as ranges, nodes in a row likewise.

    Parameters
    ----------
    places : iterable of (str, int)
        Nodes and indices.
    most : int
        Characters; what does not fit is counted.

    Examples
    --------
    >>> names([("a", 0), ("a", 1), ("a", 2), ("a", 5), ("b", 3)])
    'a/0-2,5, b/3'
    >>> every = [(f"node-{n:02}", i) for n in range(1, 31) for i in range(8)]
    >>> names(every), names([*every, ("x", 1)], most=22)
    ('node-01...node-30/0-7', 'node-01...node-30/0-7, ... (1 more GPU)')
    """
    ordered = sorted(places, key=lambda place: (_natural(place[0]), *place))
    indices = {
        node: [index for _, index in own]
        for node, own in groupby(ordered, key=lambda place: place[0])
    }
    runs: list[tuple[list[str], list[int]]] = []
    for node, own in indices.items():
        if runs and runs[-1][1] == own and _follows(runs[-1][0][-1], node):
            runs[-1][0].append(node)
        else:
            runs.append(([node], own))
    parts: list[tuple[str, int]] = []
    for nodes, own in runs:
        named = nodes[0] if len(nodes) == 1 else f"{nodes[0]}...{nodes[-1]}"
        if len(nodes) == 2:
            named = f"{nodes[0]},{nodes[1]}"
        parts.append((f"{named}/{_ranges(own)}", len(nodes) * len(own)))
    shown, length = [], 0
    for place, (text, _) in enumerate(parts):
        if place and length + len(text) > most:
            rest = sum(count for _, count in parts[place:])
            shown.append(f"... ({rest:,} more GPU{'s' * (rest != 1)})")
            break
        shown.append(text)
        length += len(text) + 2
    return ", ".join(shown)


def _natural(name: str) -> list[tuple[int, int | str]]:
    """What names are sorted by, so that node-9 comes before node-10."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return [(0, int(part)) if part[0] in _DIGITS else (1, part) for part in parts]


def _follows(one: str, other: str) -> bool:
    stems = [name.rstrip(_DIGITS) for name in (one, other)]
    first, second = (name[len(stem) :] for name, stem in zip((one, other), stems, strict=True))
    if stems[0] != stems[1] or not (first and second):
        return False
    if len(second) > 18 or len(first) > len(second):
        return False
    return int(second) == int(first) + 1


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
