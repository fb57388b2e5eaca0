"""How long it takes: seconds of each action, and when each begins if all goes by them.

All in whole milliseconds. The seconds are assumptions until someone has measured his own; what is
proved of a transition holds whatever they are.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import ceil
from typing import Any, cast

from pydantic import create_model

from ....errors import InvalidOption
from ....files import fields as f
from ....files import model as m
from ....files.source import StrPath, read_source
from ....values.numbers import exact
from ...hardware.yaml_text import read_yaml_or_json
from ...serving.operating_point import COLD_START, OperatingPoint
from ..instance import Mode
from ..model import Deployment
from .model import Action, Floor, Transition, What, slots_of
from .replay import list_changes

_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds of what actions are made of.

    `partition_s`: Making a GPU instance and its compute instance. `start_s`: Starting work on it,
    where the point has no `cold_start_s` of its own. `delete_s`: Draining, stopping, destroying.
    `stop_s`: Draining and stopping, where something else starts in the same place. `repartition_s`,
    `reset_s`: Cutting a whole GPU anew, or changing its mode; with a reset, where its device needs
    one. `prepare_s`: Preparing a process for a share beside those that serve, where the point has
    no `cold_start_s` of its own: 10 to 15 s as gpulet (S. Choi et al., USENIX ATC '22) is
    remembered to say. What needs no new process takes no time.

    Examples
    --------
    >>> Durations().delete_s, Durations(delete_s="12.5").delete_s
    (Fraction(40, 1), Fraction(25, 2))
    """

    partition_s: Fraction = Fraction(5)
    start_s: Fraction = Fraction(75)
    delete_s: Fraction = Fraction(40)
    stop_s: Fraction = Fraction(30)
    repartition_s: Fraction = Fraction(60)
    reset_s: Fraction = Fraction(120)
    prepare_s: Fraction = Fraction(15)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = exact(getattr(self, each.name), f"duration {each.name}", error=InvalidOption)
            object.__setattr__(self, each.name, value)

    def of(self, action: Action, *, needs_reset: bool = False) -> Fraction:
        """Return the seconds of an action."""
        return sum(self.parts(action, needs_reset=needs_reset), _NOTHING)

    def parts(self, action: Action, *, needs_reset: bool = False) -> tuple[Fraction, Fraction]:
        """Return the seconds until what is added can start, and those that it takes to start."""
        usual_s = self.prepare_s if action.what is What.SWITCH else self.start_s
        works = (each.work for each in action.prepared if each.work is not None)
        coming = max((_start_s(work.point, usual_s) for work in works), default=_NOTHING)
        alone = {What.CREATE: self.partition_s, What.DELETE: self.delete_s, What.SWITCH: _NOTHING}
        if action.what in alone:
            return alone[action.what], coming
        before = self.stop_s if any(each.work for each in action.removes) else _NOTHING
        if action.what is What.REPARTITION:
            is_reset = needs_reset and action.mode is not None
            before += self.reset_s if is_reset else self.repartition_s
        return before, coming


def _start_s(point: OperatingPoint, usual_s: Fraction) -> Fraction:
    if (own := point.extra.get(COLD_START)) in (None, ""):
        return usual_s
    return exact(own, f"{COLD_START} of {point}", error=InvalidOption)


#: Any of the durations, in seconds.
_DurationsPart: Any = create_model(
    "_DurationsPart", __base__=m.Part,
    **cast("Any", {each.name: (f.Exact, f.left_out()) for each in fields(Durations)}),
)  # fmt: skip


def read_durations(path: StrPath) -> Durations:
    """Read durations from a JSON or YAML file: an object of those of :class:`Durations`.

    `path`: ``-`` is standard input. What it leaves out keeps its default.

    FileError if it is no such object.
    """
    document, *others = read_yaml_or_json(read_source(path, holds="durations"), holds="durations")
    if others:
        raise others[0].error("a second document begins here", expected="one of durations")
    durations: Durations = m.read_as(document, build_durations)
    return durations


def build_durations(value: Any) -> Durations:
    """Build durations from an object of a document, part of which may be left out."""
    given = m.read_part(_DurationsPart, value)
    return Durations(**{key: getattr(given, key) for key in given.model_fields_set})


@dataclass(frozen=True)
class Schedule:
    """When each action begins and ends.

    `begin_s`, `end_s`: By action. `least_s`: In no order, and with any parallelism allowed, do
    these actions take less: the busiest GPU, the longest chain of actions that no order avoids, or
    all of them shared out.
    """

    begin_s: tuple[Fraction, ...]
    end_s: tuple[Fraction, ...]
    least_s: Fraction

    @property
    def makespan_s(self) -> Fraction:
        """The seconds until all is done."""
        return max(self.end_s, default=_NOTHING)


def schedule(
    transition: Transition,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    *,
    by_node: bool = False,
) -> Schedule:
    """Say when each action begins, if each begins as soon as it may, the most urgent first.

    `max_parallel`: Maximum number of actions at once. `by_node`: Whether a node is drained to have
    a GPU of it cut anew: all that happens on it then begins together and counts as one action, and
    nothing starts there before all of it is cut. Default False.

    Returns
    -------
    Schedule
        One change of the cut at a time on a GPU; restarts in place change none.
    """
    if max_parallel is not None and max_parallel < 1:
        raise InvalidOption(f"max_parallel is {max_parallel}; expected 1 or more")
    plan = Timed.of(
        transition.start, transition.actions, durations or Durations(), max_parallel,
        by_node=by_node,
    )  # fmt: skip
    begin = plan.begin([action.after for action in transition.actions])
    end = [at + takes for at, takes in zip(begin, plan.takes, strict=True)]
    return Schedule(
        tuple(Fraction(at, 1000) for at in begin),
        tuple(Fraction(at, 1000) for at in end),
        Fraction(find_least(transition.start, transition.actions, transition.floors, plan), 1000),
    )


@dataclass(frozen=True)
class Timed:
    """Actions as the scheduler sees them."""

    takes: list[int]  # milliseconds
    gpu: list[int]  # the GPU of which an action is a change of the cut; -1 if it is none
    parallel: int
    #: Actions that begin together, on nodes that are drained.
    turns: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        start: Deployment,
        actions: Sequence[Action],
        durations: Durations,
        max_parallel: int | None,
        *,
        by_node: bool = False,
    ) -> Timed:
        """Take the durations of actions."""
        cards = {(card.node, card.index): card for card in start.gpus()}
        numbers = {place: number for number, place in enumerate(cards)}
        parts, gpu = [], []
        for action in actions:
            card = cards[action.gpu]
            reset = bool(card.gpu.mode_change_needs_reset)
            parts.append(durations.parts(action, needs_reset=reset))
            is_cut = card.mode is Mode.MIG and action.what is not What.RESTART
            gpu.append(numbers[action.gpu] if is_cut or action.mode is not None else -1)
        turns = _list_turns(actions) if by_node else []
        for turn in turns:  # the node takes work again once all of its GPUs are cut
            closed = max(parts[at][0] for at in turn)
            for at in turn:
                parts[at] = closed, parts[at][1]
        takes = [ceil(1000 * (before + coming)) for before, coming in parts]
        return cls(takes, gpu, max_parallel or max(1, len(takes)), turns)

    def end(self, begin: Sequence[int]) -> int:
        """Return when all has ended."""
        return max((at + takes for at, takes in zip(begin, self.takes, strict=True)), default=0)

    def begin(self, after: Sequence[Sequence[int]]) -> list[int]:
        """Return when each action begins: a list schedule, the longest tail first."""
        if self.turns:
            return self._together(after)
        count = len(self.takes)
        follows: list[list[int]] = [[] for _ in range(count)]
        for at, needed in enumerate(after):
            for before in needed:
                follows[before].append(at)
        load: dict[int, int] = {}
        tail = [0] * count
        for at in range(count - 1, -1, -1):
            longest = max((tail[b] for b in follows[at]), default=0)
            gpu = self.gpu[at]
            if gpu >= 0:  # what is left on its GPU cannot run beside it
                longest = max(longest, load.get(gpu, 0))
                load[gpu] = load.get(gpu, 0) + self.takes[at]
            tail[at] = self.takes[at] + longest
        waits = [len(needed) for needed in after]
        ready: list[tuple[int, int]] = [(-tail[at], at) for at in range(count) if not waits[at]]
        heapq.heapify(ready)
        queued: dict[int, list[tuple[int, int]]] = {}
        busy: set[int] = set()
        begin = [0] * count
        running: list[tuple[int, int]] = []
        now = 0
        while ready or running:
            while ready and len(running) < self.parallel:
                each = heapq.heappop(ready)
                at = each[1]
                gpu = self.gpu[at]
                if gpu in busy:
                    heapq.heappush(queued.setdefault(gpu, []), each)
                    continue
                if gpu >= 0:
                    busy.add(gpu)
                begin[at] = now
                heapq.heappush(running, (now + self.takes[at], at))
            now = running[0][0]
            while running and running[0][0] == now:
                _, at = heapq.heappop(running)
                busy.discard(gpu := self.gpu[at])
                if queued.get(gpu):
                    heapq.heappush(ready, heapq.heappop(queued[gpu]))
                for b in follows[at]:
                    waits[b] -= 1
                    if not waits[b]:
                        heapq.heappush(ready, (-tail[b], b))
        return begin

    def _together(self, after: Sequence[Sequence[int]]) -> list[int]:
        """Schedule each turn as one action: as long as its longest, on no GPU of others."""
        leads = {at: turn for turn in self.turns for at in turn}
        own = [turn for at in range(len(after)) if (turn := leads.get(at, [at]))[0] == at]
        number = {at: new for new, turn in enumerate(own) for at in turn}
        begin = Timed(
            [max(self.takes[at] for at in turn) for turn in own],
            [-1 if len(turn) > 1 else self.gpu[turn[0]] for turn in own],
            self.parallel,
        ).begin([sorted({number[b] for at in turn for b in after[at]}) for turn in own])
        return [begin[number[at]] for at in range(len(after))]


def _list_turns(actions: Sequence[Action]) -> list[list[int]]:
    """Return what is done together on nodes that are drained: all there waits for the same."""
    own: dict[object, list[int]] = {}
    for at, action in enumerate(actions):
        own.setdefault((action.node, action.after), []).append(at)
    return [
        turn for turn in own.values() if any(actions[at].what is What.REPARTITION for at in turn)
    ]  # fmt: skip


# --- how long it takes at least, in whatever order ------------------------------------------------


def find_least(
    start: Deployment, actions: Sequence[Action], floors: Mapping[str, Floor], plan: Timed
) -> int:
    """Return milliseconds that these actions take in any order.

    From each action's earliest end, which is the least solution of these rules:

    - a creation comes after the deletions in its slots;
    - a deletion that its service's floor cannot miss at the beginning comes after as much has come
      as lacks, the earliest first: whichever do come before it, the last of them ends no sooner;
    - on a GPU one change of the cut ends before the next begins.

    All actions that take from a service, together, wait likewise for what lacks after all of them.
    """
    changes = list_changes(actions)
    services = [
        (start.capacity(name) - floor.rps, *changes[name])
        for name, floor in floors.items()
        if floor.rps > 0
    ]
    takes, end = plan.takes, list(plan.takes)
    blockers = _list_blockers(start, actions)
    changed = True
    while changed:  # from below: each round is a bound, and few are needed
        changed = False
        ready = [max((end[b] for b in before), default=0) for before in blockers]
        for slack, removed, added in services:
            for at, rps in removed.items():
                others = {other: more for other, more in added.items() if other != at}
                ready[at] = max(ready[at], _find_end(rps - slack, others, end))
        for at, when in enumerate(ready):
            if when + takes[at] > end[at]:
                end[at], changed = when + takes[at], True
    busiest: dict[int, int] = {}  # by GPU, when it has done its work
    for begin, at in sorted((end[at] - takes[at], at) for at in range(len(end))):
        if (gpu := plan.gpu[at]) >= 0:
            busiest[gpu] = max(busiest.get(gpu, 0), begin) + takes[at]
    last = [
        _find_end(sum(removed.values()) - slack, added, end)
        + min((takes[at] for at in removed), default=0)
        for slack, removed, added in services
    ]
    # of what begins together the longest counts
    beside = sum(sum(own) - max(own) for own in ([takes[at] for at in turn] for turn in plan.turns))
    shared = -(-(sum(takes) - beside) // plan.parallel)
    return max(shared, *busiest.values(), *last, *end, 0)


def _find_end(lack: Fraction, added: Mapping[int, Fraction], end: Sequence[int]) -> int:
    """Return when as much has come as lacks at the earliest."""
    for at in sorted(added, key=end.__getitem__) if lack > 0 else ():
        if (lack := lack - added[at]) <= 0:
            return end[at]
    return 0  # nothing lacks; or it is no transition, and nothing is claimed


def _list_blockers(start: Deployment, actions: Sequence[Action]) -> list[list[int]]:
    """Return, for each action that adds, those that remove what was in its slots at the start."""
    cards = {(card.node, card.index): card for card in start.gpus()}
    left: dict[tuple[str, int], list[tuple[int, int]]] = {}
    found: list[list[int]] = []
    for at, action in enumerate(actions):
        card, gone = cards[action.gpu], left.setdefault(action.gpu, [])
        slots = 0
        for each in action.adds:
            slots |= slots_of(card, each)
        found.append([b for b, old in gone if slots & old])
        gone += [(at, slots_of(card, old)) for old in action.removes if old in card.instances]
    return found
