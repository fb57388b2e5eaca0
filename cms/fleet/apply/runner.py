"""One loop over a transition's units as their waits allow; every state is observed."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from graphlib import TopologicalSorter

from ...errors import CmsError
from ..deployment.transition import Durations
from .journal import Journal
from .tool import ActionFailed, Look, Shell, Tool, Turn, Worker
from .units import Seat, Unit

#: Units that are under way at once on a node, in the mean.
PER_NODE = 8
#: Looks at a listing that may lag behind the command that changed it.
_LOOKS = 5
_POLL_SECONDS = 0.2
_NEVER = {"start": "does not become ready", "stop": "does not end"}


class _Frontier:
    """What may begin next; the caller says what has ended. One unit at a time on a GPU.

    `done`: Units that have ended already. `parallel`: Nodes at once.
    """

    def __init__(self, units: Sequence[Unit], done: Collection[int], parallel: int) -> None:
        self.parallel = parallel
        self.left = {unit.number: unit for unit in units if unit.number not in done}
        self.running: dict[int, Unit] = {}
        self._ready: dict[str, dict[int, Unit]] = {}
        self._order = TopologicalSorter({at: u.after - {*done} for at, u in self.left.items()})
        self._order.prepare()
        self._take_ready()

    def _take_ready(self) -> None:
        for at in self._order.get_ready():
            self._ready.setdefault(self.left[at].node, {})[at] = self.left[at]

    def begin(self, only: str = "", without: Collection[str] = ()) -> list[Unit]:
        """Return what begins now, on one node alone or on all but some."""
        nodes = dict.fromkeys(unit.node for unit in self.running.values())
        busy = {name for unit in self.running.values() for name in unit.gpus}
        found = []
        for node in [*nodes, *(node for node in self._ready if node not in nodes)]:
            if node in without or only not in ("", node):
                continue
            if node not in nodes and len(nodes) >= self.parallel:
                break
            for at, unit in [*self._ready.get(node, {}).items()]:
                if len(self.running) < PER_NODE * self.parallel and not unit.gpus & busy:
                    busy |= unit.gpus
                    nodes[node] = None
                    del self.left[at], self._ready[node][at]
                    self.running[at] = unit
                    found.append(unit)
            if not self._ready.get(node, True):
                del self._ready[node]
        return found

    def end(self, unit: Unit, *, is_done: bool) -> None:
        """Take note that a unit has ended; what waits for one that failed never begins."""
        del self.running[unit.number]
        if is_done:
            self._order.done(unit.number)
            self._take_ready()


def find_makespan(units: Sequence[Unit], durations: Durations, parallel: int) -> Fraction:
    """Return the expected seconds until all units have ended, with `parallel` nodes at once."""
    frontier, now, number = _Frontier(units, (), parallel), Fraction(0), len(units)
    ends: list[tuple[Fraction, int, Unit]] = []
    while frontier.left or ends:
        for unit in frontier.begin():
            reset = {c.index: bool(c.gpu.mode_change_needs_reset) for c in unit.befores}
            takes = max(durations.of(a, needs_reset=reset[a.index]) for a in unit.actions)
            heapq.heappush(ends, (now + takes, number + unit.number, unit))
        now, _, unit = heapq.heappop(ends)
        frontier.end(unit, is_done=True)
    return now


@dataclass
class Outcome:
    """How far it came: units by their state, and what failed of which."""

    done: int = 0
    left: int = 0
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def has_arrived(self) -> bool:
        """Whether all is done."""
        return not (self.left or self.failed)


@dataclass
class Runner:
    """Carries units out.

    `worker`: None if no work is started or stopped. `parallel`: Nodes at once. `max_failures`:
    Nodes that may fail before nothing further is begun. `tell`: Gets a line for each action.
    """

    units: tuple[Unit, ...]
    tool: Tool
    worker: Worker | None
    journal: Journal
    shell: Shell
    parallel: int = 1
    max_failures: int = 0
    cancel: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[str], None] = print

    def run(self) -> Outcome:
        """Carry out all that is left; what is under way is finished, whatever happens.

        The first node is changed alone: others follow once all that can be done there is done.
        """
        outcome = Outcome()
        frontier = _Frontier(self.units, self.journal.ended, self.parallel)
        canary = next(iter(frontier.left.values())).node if frontier.left else ""
        running: dict[Future[str], Unit] = {}
        bad: set[str] = set()
        with ThreadPoolExecutor(max_workers=PER_NODE * self.parallel) as pool:
            while True:
                stops = self.cancel.is_set() or len(bad) > self.max_failures or canary in bad
                for unit in () if stops else frontier.begin(canary, bad):
                    running[pool.submit(self._carry_out, unit)] = unit
                if not running:
                    if stops or not canary:
                        break
                    canary = ""  # nothing more can be done there before others are
                    continue
                ended, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in ended:
                    unit, fault = running.pop(future), future.result()
                    frontier.end(unit, is_done=not fault)
                    if fault:
                        outcome.failed[unit.number] = fault
                        bad.add(unit.node)
                    else:
                        outcome.done += 1
        outcome.left = len(frontier.left)
        return outcome

    def _carry_out(self, unit: Unit) -> str:
        """Carry out a unit; return why it failed, or nothing."""
        began, fault = time.monotonic(), ""
        try:
            self._do(unit)
        except Exception as error:  # noqa: BLE001 (nothing may be lost of what is under way)
            is_told = isinstance(error, CmsError)
            fault = str(error) if is_told else f"{type(error).__name__}: {error}"
        seconds = round(time.monotonic() - began, 3)
        told = {"node": unit.node, "action": str(unit), "seconds": seconds}
        more = {"said": fault} if fault else {"uuids": self._uuids(unit)}
        self.journal.note(unit.number, "failed" if fault else "done", **told, **more)
        word = "FAILED" if fault else "done"
        self.tell(f"{word} {unit} ({seconds:.1f} s){fault and ': '}{fault}")
        return fault

    def _uuids(self, unit: Unit) -> dict[str, str]:
        """Return the UUIDs of what was created, as far as they are known, by GPU and place."""
        cards = {card.index: card for card in unit.afters}
        added = ((cards[action.index], each) for action in unit.actions for each in action.adds)
        seats = [Seat(card, each, 0) for card, each in added if each.start is not None]
        found = {f"{seat.gpu.name}:{seat.instance.place}": self.tool.find(seat) for seat in seats}
        return {at: place.uuid for at, place in found.items() if place and place.uuid}

    def _do(self, unit: Unit) -> None:
        phase, loose = self.journal.phases.get(unit.number), self.journal.head.loose
        begun = phase is not None or bool(unit.gpus & loose)
        look = self.tool.look(unit, begun=begun)  # refuses before anything is begun
        if phase is None:
            self.journal.note(unit.number, "begun", node=unit.node, action=str(unit))
        if look is not Look.AFTER and (unit.partitions or phase != "changed"):
            if unit.partitions:
                self.tool.close(unit)
            if phase not in ("stopped", "changed"):
                self._await_work("stop", unit.stops)
            self.journal.note(unit.number, "stopped")
            if unit.partitions:
                self._change(unit, None if unit.stops else look)
        self.journal.note(unit.number, "changed")
        if unit.partitions:
            self.tool.open(unit)
        self._await_work("start", unit.starts)

    def _change(self, unit: Unit, look: Look | None) -> None:
        """Have the tool change the GPUs, twice where the first time was half of it."""
        look = look or self.tool.look(unit, begun=True)
        for _ in range(2):
            said = "" if look is Look.AFTER else self.tool.change(unit)
            for _ in range(_LOOKS):
                look = self.tool.look(unit, begun=True)
                if look is Look.AFTER:
                    return
                time.sleep(self.shell.pause_s)
        raise ActionFailed(f"the GPU is not as it should be afterwards; the tool said: {said}")

    def _await_work(self, what: Turn, seats: tuple[Seat, ...]) -> None:
        """Start or stop each work that is not so yet, and wait until it is."""
        worker, never = self.worker, _NEVER[what]
        if worker is None:
            return
        places = [(seat, self.tool.find(seat)) for seat in seats]
        waiting = [each for each in places if not worker.is_done(what, *each)]
        for each in waiting:
            worker.do(what, *each)
        for each in waiting:
            words = f"{each[0]} {never}; nothing is forced"
            self.shell.wait_until(partial(worker.is_done, what, *each), words)
