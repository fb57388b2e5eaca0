"""Machines opened as they are needed, and the blocks on them without a job."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf
from operator import ge
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import Configuration, SizeBoundedConfigurations
from cms.running.stopping import never

from ..prices.region import Bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cms.problem.machine_problem import MachineProblem

    from .shapes import Shapes

#: Larger numbers count as this where floats rank what to take next; what is counted is exact.
_CAP = 10**200
#: What costs nothing ranks as if it cost so little of the dearest machine: blocks of it still
#: differ in how many are needed.
_NOTHING = 1e-9
#: Configurations read between two looks at the budget.
_SHAPES_PER_LOOK = 2**12
#: Rounds over all configurations, after which blocks are found type by type.
_MAX_ROUNDS = 1_000


class Fleet:
    """Machines that are open, machines that may still be, and the blocks without a job."""

    def __init__(self, problem: MachineProblem, stopped: Callable[[], bool]) -> None:
        self._stopped, self._blocks = stopped, problem.blocks
        types = problem.machine_types
        self._names = [machine.name for machine in types]
        self._room = [machine.limit for machine in types]
        self.limited = any(room is not None for room in self._room)
        dearest = max((machine.cost for machine in types), default=Fraction(0)) or Fraction(1)
        self._costs = [max(float(m.cost / dearest), _NOTHING) for m in types]
        self.machines: dict[Configuration, int] = {}
        self.idle = [0] * len(self._blocks)
        index = problem.block_index
        self._sets: list[Bounded] = []
        # Of listed configurations: their type and contents, and all their numbers of blocks.
        self._listed: list[tuple[int, dict[int, int]]] = []
        entries: list[tuple[int, int, float]] = []
        for number, shape in enumerate(problem.configurations):
            if not number % _SHAPES_PER_LOOK and stopped():
                break
            m = self._names.index(shape.machine or "")
            if isinstance(shape, SizeBoundedConfigurations):
                self._sets.append(Bounded.of(problem, shape, m, proper=False))
                continue
            content = {index[block]: n for block, n in shape.blocks.items()}
            entries += [(len(self._listed), i, float(min(n, _CAP))) for i, n in content.items()]
            self._listed.append((m, content))
        table = np.array(entries, dtype=np.float64).reshape(-1, 3)
        self._shape, self._block = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        self._count = table[:, 2]
        self._type = np.array([m for m, _ in self._listed], dtype=np.int64)
        self._worth = np.array(self.prices())
        self._worth[self._worth == inf] = 0.0
        self._found: dict[int, list[tuple[float, int, dict[int, int]]]] = {}

    def prices(self, *, limited: bool = True) -> list[float]:
        """Return each type's share of a machine that is full of it; infinite if there is none.

        Of full machine types only if those are not to count.
        """
        best = np.full(len(self.idle), inf)
        costs = np.array(self._costs)
        if limited:
            costs[[room == 0 for room in self._room]] = inf
        np.minimum.at(best, self._block, costs[self._type[self._shape]] / self._count)
        for each in self._sets:
            for i, most in zip(each.columns, each.most, strict=True):
                if most:
                    best[i] = min(best[i], costs[each.machine] / min(most, _CAP))
        return list(best.tolist())

    def take(self, i: int, number: int) -> int:
        """Take some blocks of a type: idle ones, or else of machines opened for them."""
        if not self.idle[i]:
            self._add(i, number)
        got = min(number, self.idle[i])
        self.idle[i] -= got
        return got

    def _add(self, i: int, number: int) -> None:
        """Open machines for more blocks, the cheapest when full of these first."""
        if i not in self._found:
            holders = [(self._costs[m] / min(c[i], _CAP), m, c) for m, c in self._listed if i in c]
            holders += [
                (self._costs[each.machine] / min(most, _CAP), each.machine, {i: most})
                for each in self._sets
                for at, most in zip(each.columns, each.most, strict=True)
                if at == i and most
            ]
            self._found[i] = sorted(holders, key=lambda holder: holder[0])
        for _, m, content in self._found[i]:
            if number <= 0:
                break
            if self._room[m] != 0:
                number -= content[i] * self.open(m, content, -(-number // content[i]))

    def open(self, m: int, content: Mapping[int, int], number: int) -> int:
        """Open machines, as far as their limit goes; return how many."""
        room = self._room[m]
        if room is not None:
            number = min(number, room)
            self._room[m] = room - number
        blocks = {self._blocks[i]: n for i, n in content.items()}
        shape = Configuration(blocks, self._names[m])
        self.machines[shape] = self.machines.get(shape, 0) + number
        for i, n in content.items():
            self.idle[i] += n * number
        return number

    def pack(self, load: Sequence[int]) -> bool:
        """Open machines until ``load`` blocks of each type are idle, or limits are reached.

        The machine that is worth most for its cost comes next, as many of it as stay worth that: of
        a size-bounded set the one that first fit decreasing fills. False if stopped.
        """
        for _ in range(_MAX_ROUNDS):
            missing = [max(0, need - have) for need, have in zip(load, self.idle, strict=True)]
            if self._stopped():
                return False
            found = [self._best_listed(missing)] if self._listed else []
            for each in self._sets:
                if self._room[each.machine] != 0 and (content := _filling(each, missing)):
                    gain = sum(float(self._worth[i]) * min(n, _CAP) for i, n in content.items())
                    found.append((gain / self._costs[each.machine], each.machine, content))
            score, m, content = max(found, key=lambda each: each[0], default=(-1.0, 0, {}))
            if not any(missing) or score < 0:
                return True
            useful = [(missing[i], n) for i, n in content.items() if missing[i] > 0]
            self.open(m, content, max(1, min(left // n for left, n in useful)))
        for i, need in enumerate(load):
            self._add(i, need - self.idle[i])
        return True

    def _best_listed(self, missing: Sequence[int]) -> tuple[float, int, dict[int, int]]:
        """Return the listed configuration worth most for its cost: its score; -1 if none is."""
        wanted = np.array([float(min(n, _CAP)) for n in missing])
        each = self._worth[self._block] * np.minimum(self._count, wanted[self._block])
        gain = np.bincount(self._shape, weights=each, minlength=len(self._listed))
        score = gain / np.array(self._costs)[self._type]
        useful = np.bincount(self._shape, weights=wanted[self._block] > 0, minlength=len(score)) > 0
        full = np.array([room == 0 for room in self._room])
        score[full[self._type] | ~useful] = -1.0
        at = int(np.argmax(score))
        return float(score[at]), *self._listed[at]


def filled(
    shapes: Shapes, load: Sequence[int], around: Sequence[Fraction] = ()
) -> dict[Configuration, int] | None:
    """Return enough machines for blocks of any number; None if none within the limits are found.

    Those ``around`` which there are to be, rounded down, come first.
    """
    fleet = Fleet(shapes.problem, never)
    for m, counts, number in zip(shapes.types, shapes.counts, around, strict=False):
        fleet.open(m, {i: n for i, n in enumerate(counts) if n}, floor(number))
    fleet.pack(load)
    return fleet.machines if all(map(ge, fleet.idle, load)) else None


def _filling(bounded: Bounded, missing: Sequence[int]) -> dict[int, int]:
    """Fill a machine of a set with missing blocks, the largest first."""
    left, slots = bounded.packing.room, bounded.packing.slots
    found: dict[int, int] = {}
    sizes = zip(bounded.packing.weights, bounded.columns, strict=True)
    for size, i in sorted(sizes, key=lambda each: -each[0]):
        fits = min(missing[i], left // size, missing[i] if slots is None else slots)
        if fits > 0:
            found[i] = fits
            left -= fits * size
            slots = None if slots is None else slots - fits
    return found
