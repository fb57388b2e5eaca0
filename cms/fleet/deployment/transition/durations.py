"""How long it takes: seconds of each action, and when each begins if all goes by them.

All in whole milliseconds. The seconds are assumptions until someone has measured his own; what is
proved of a transition holds whatever they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from heapq import heapify, heappop, heappush
from math import ceil
from operator import add
from typing import Any, cast

from pydantic import create_model

from ....errors import InvalidOption
from ....files import fields as f
from ....files import model as m
from ....files.source import StrPath, read_source
from ....values.numbers import exact
from ...hardware.yaml_text import read_yaml_or_json
from ...serving.operating_point import COLD_START
from ..instance import Mode
from ..model import Deployment
from .model import Action, Floor, Transition, What, all_slots
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
        coming = _NOTHING
        for point in (each.work.point for each in action.prepared if each.work is not None):
            own, what = point.extra.get(COLD_START), f"{COLD_START} of {point}"
            coming = max(coming, exact(own, what, error=InvalidOption) if own else usual_s)
        alone = {What.CREATE: self.partition_s, What.DELETE: self.delete_s, What.SWITCH: _NOTHING}
        if action.what in alone:
            return alone[action.what], coming
        before = self.stop_s if any(each.work for each in action.removes) else _NOTHING
        if action.what is What.REPARTITION:
            is_reset = needs_reset and action.mode is not None
            before += self.reset_s if is_reset else self.repartition_s
        return before, coming


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
    start, actions = transition.start, transition.actions
    plan = Timed.of(start, actions, durations or Durations(), max_parallel, by_node=by_node)
    begin_s = tuple(Fraction(at, 1000) for at in plan.begin)
    end_s = tuple(Fraction(at, 1000) for at in map(add, plan.begin, plan.takes))
    least = find_least(start, actions, transition.floors, plan)
    return Schedule(begin_s, end_s, Fraction(least, 1000))


@dataclass(frozen=True)
class Timed:
    """Actions as the scheduler sees them; times are in milliseconds."""

    takes: list[int]
    begin: list[int]  # each as soon as it may, the most urgent first
    gpu: list[int]  # the GPU of which an action is a change of the cut; < 0 if it is none
    jobs: list[list[int]]  # actions that begin together, on nodes that are drained
    parallel: int

    @property
    def end(self) -> int:
        """When all has ended."""
        return max(map(add, self.begin, self.takes), default=0)

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
        """Take the durations of actions, and schedule them."""
        cards = {(card.node, card.index): (at, card) for at, card in enumerate(start.gpus())}
        parts, gpu, takes = [], [], [0] * len(actions)
        for at, action in enumerate(actions):
            number, card = cards[action.gpu]
            reset = bool(card.gpu.mode_change_needs_reset)
            parts.append(durations.parts(action, needs_reset=reset))
            is_cut = card.mode is Mode.MIG and action.what is not What.RESTART
            gpu.append(number if is_cut or action.mode is not None else ~at)
        cut = {(each.node, each.after) for each in actions if each.what is What.REPARTITION}
        together: dict[object, list[int]] = {}  # on a drained node, all that waits for the same
        for at, action in enumerate(actions):
            own = action.node, action.after
            together.setdefault(own if by_node and own in cut else at, []).append(at)
        jobs = list(together.values())
        for job in jobs:  # a node takes work again once all of its GPUs are cut
            closed = max(parts[at][0] for at in job)
            for at in job:
                takes[at] = ceil(1000 * (closed + parts[at][1]))
        number_of = {at: number for number, job in enumerate(jobs) for at in job}
        parallel = max_parallel or max(1, len(takes))
        begin = _list_schedule(
            [max(takes[at] for at in job) for job in jobs],
            [gpu[job[0]] if len(job) == 1 else ~job[0] for job in jobs],
            [{number_of[b] for at in job for b in actions[at].after} for job in jobs],
            parallel,
        )
        begin = [begin[number_of[at]] for at in range(len(takes))]
        return cls(takes, begin, gpu, jobs, parallel)


def _list_schedule(
    takes: Sequence[int], gpu: Sequence[int], after: Sequence[Collection[int]], parallel: int
) -> list[int]:
    """Return when each job begins: the longest tail first, on a GPU one after the other."""
    follows: list[list[int]] = [[] for _ in takes]
    for at, needed in enumerate(after):
        for before in needed:
            follows[before].append(at)
    load, tail = Counter[int](), [0] * len(takes)
    for at in reversed(range(len(takes))):  # what is left on its GPU cannot run beside it
        tail[at] = takes[at] + max((tail[b] for b in follows[at]), default=0)
        tail[at] = max(tail[at], takes[at] + load[gpu[at]])
        load[gpu[at]] += takes[at]
    waits, begin, now = [len(needed) for needed in after], [0] * len(takes), 0
    ready = [(-tail[at], at) for at, count in enumerate(waits) if not count]
    heapify(ready)
    queued, busy = defaultdict[int, list[tuple[int, int]]](list), set[int]()
    running: list[tuple[int, int]] = []
    while ready or running:
        while ready and len(running) < parallel:
            _, at = each = heappop(ready)
            if gpu[at] in busy:
                heappush(queued[gpu[at]], each)
                continue
            busy.add(gpu[at])
            begin[at] = now
            heappush(running, (now + takes[at], at))
        now = running[0][0]
        while running and running[0][0] == now:
            _, at = heappop(running)
            busy.discard(gpu[at])
            if queued[gpu[at]]:
                heappush(ready, heappop(queued[gpu[at]]))
            for b in follows[at]:
                waits[b] -= 1
                if not waits[b]:
                    heappush(ready, (-tail[b], b))
    return begin


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
    busiest = Counter[int]()  # by GPU, when it has done its work
    for begin, at in sorted((end[at] - takes[at], at) for at in range(len(end))):
        busiest[plan.gpu[at]] = max(busiest[plan.gpu[at]], begin) + takes[at]
    last = [
        _find_end(sum(removed.values()) - slack, added, end)
        + min((takes[at] for at in removed), default=0)
        for slack, removed, added in services
    ]
    # of what begins together the longest counts
    shared = -(-sum(max(takes[at] for at in job) for job in plan.jobs) // plan.parallel)
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
        slots = all_slots(card.gpu, action.adds)
        found.append([b for b, old in gone if slots & old])
        first = (each for each in action.removes if each in card.instances)
        gone.append((at, all_slots(card.gpu, first)))
    return found
