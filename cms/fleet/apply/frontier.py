"""Units that may begin: their waits have ended, and at most N nodes are under way."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from fractions import Fraction

from ..deployment.transition import Durations
from .units import Unit

__all__ = ["Frontier", "find_makespan"]

#: Units that are under way at once on a node, in the mean.
PER_NODE = 8


class Frontier:
    """What may begin next; the caller says what has ended. One unit at a time on a GPU.

    `done`: Units that have ended already. `parallel`: Nodes at once.
    """

    def __init__(self, units: Sequence[Unit], done: Collection[int], parallel: int) -> None:
        self.parallel = parallel
        self.left = {unit.number: unit for unit in units if unit.number not in done}
        self.running: dict[int, Unit] = {}
        self._waits = {at: len(unit.after - {*done}) for at, unit in self.left.items()}
        self._follow: dict[int, list[int]] = {}
        for at, unit in self.left.items():
            for before in unit.after:
                self._follow.setdefault(before, []).append(at)
        self._ready: dict[str, dict[int, Unit]] = {}
        for at, unit in self.left.items():
            if not self._waits[at]:
                self._ready.setdefault(unit.node, {})[at] = unit

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
        for at in self._follow.get(unit.number, ()) if is_done else ():
            self._waits[at] -= 1
            if not self._waits[at]:
                self._ready.setdefault(self.left[at].node, {})[at] = self.left[at]


def find_makespan(units: Sequence[Unit], durations: Durations, parallel: int) -> Fraction:
    """Return the expected seconds until all units have ended, with `parallel` nodes at once."""
    frontier, now, number = Frontier(units, (), parallel), Fraction(0), len(units)
    ends: list[tuple[Fraction, int, Unit]] = []
    while frontier.left or ends:
        for unit in frontier.begin():
            reset = {c.index: bool(c.gpu.mode_change_needs_reset) for c in unit.befores}
            takes = max(durations.of(a, needs_reset=reset[a.index]) for a in unit.actions)
            heapq.heappush(ends, (now + takes, number + unit.number, unit))
        now, _, unit = heapq.heappop(ends)
        frontier.end(unit, is_done=True)
    return now
