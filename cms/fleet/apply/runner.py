"""One loop over a transition's units as their waits allow; every state is observed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial

from ...errors import CmsError
from .frontier import PER_NODE, Frontier
from .journal import Journal
from .shell import ActionFailed, Shell
from .tool import Look, Tool, Turn, Worker
from .units import Seat, Unit

__all__ = ["Outcome", "Runner"]

#: Looks at a listing that may lag behind the command that changed it.
_LOOKS = 5
_POLL_SECONDS = 0.2
_NEVER = {"start": "does not become ready", "stop": "does not end"}


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
        frontier = Frontier(self.units, self.journal.ended, self.parallel)
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
        began = time.monotonic()
        fault = ""
        try:
            self._do(unit)
        except CmsError as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 (nothing may be lost of what is under way)
            fault = f"{type(error).__name__}: {error}"
        seconds = round(time.monotonic() - began, 3)
        told = {"node": unit.node, "action": str(unit), "seconds": seconds}
        if fault:
            self.journal.note(unit.number, "failed", **told, said=fault)
        else:
            self.journal.note(unit.number, "done", **told, uuids=self._uuids(unit))
        self.tell(
            f"{'FAILED' if fault else 'done'} {unit} ({seconds:.1f} s){fault and ': '}{fault}"
        )
        return fault

    def _uuids(self, unit: Unit) -> dict[str, str]:
        found = {}
        for action in unit.actions:
            card = next(c for c in unit.afters if c.index == action.index)
            for each in action.adds:
                place = self.tool.find(Seat(card, each, 0)) if each.start is not None else None
                if place is not None and place.uuid:
                    found[f"{card.name}:{each.place}"] = place.uuid
        return found

    def _do(self, unit: Unit) -> None:
        phase, loose = self.journal.phases.get(unit.number), self.journal.head.loose
        begun = phase is not None or bool(unit.gpus & loose)
        look = self.tool.look(unit, begun=begun)  # refuses before anything is begun
        if phase is None:
            self.journal.note(unit.number, "begun", node=unit.node, action=str(unit))
        if look is not Look.AFTER and (unit.partitions or phase != "changed"):
            self.tool.close(unit)
            if phase not in ("stopped", "changed"):
                self._await_work("stop", unit.stops)
            self.journal.note(unit.number, "stopped")
            if unit.partitions:
                self._change(unit, None if unit.stops else look)
        self.journal.note(unit.number, "changed")
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
