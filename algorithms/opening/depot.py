"""Machines opened as they are needed, and the blocks on them that nobody has yet."""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from cms.knapsack.pricing import common_denominator
from cms.problem.parts import Configuration, SizeBoundedConfigurations

from .best_fit import best_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from cms.problem.problem import Problem

#: Larger numbers count as this where floats rank what to take next; what is counted is exact.
_CAP = 10**200
#: What costs nothing ranks as if it cost so little of the dearest machine: blocks of it still
#: differ in how many are needed.
_NOTHING = 1e-9
#: Configurations read between two looks at the budget.
_AT_ONCE = 2**12
#: What a block counts that a machine brings along for somebody else.
_BY_THE_WAY = 0.5
#: Rounds over all configurations, after which blocks are found type by type.
_MOST_ROUNDS = 400


class Depot:
    """Machines that are open, machines that may still be, and the blocks nobody has yet.

    Parameters
    ----------
    problem : Problem
    stopped : callable
        Asked every few thousand configurations, and in every round.

    Attributes
    ----------
    room : list of int or None
        How many more machines of each type there may be; None for any number.
    idle : list of k ints
        Blocks of open machines that nobody has.

    Examples
    --------
    >>> from cms import Problem
    >>> depot = Depot(Problem(configurations=Configuration({"a": 2, "b": 1})), lambda: False)
    >>> depot.take(0, 3), depot.idle, depot.machines()
    (3, [1, 2], {Configuration(2 x a + b on machine): 2})
    """

    def __init__(self, problem: Problem, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._k = len(problem.blocks)
        self._limits = [machine.limit for machine in problem.machine_types]
        dearest = max((machine.cost for machine in problem.machine_types), default=Fraction(0))
        self._costs = np.array(
            [
                max(float(m.cost / dearest), _NOTHING) if dearest else 1.0
                for m in problem.machine_types
            ]
        )
        self._exact = [machine.cost for machine in problem.machine_types]
        names = {machine.name: m for m, machine in enumerate(problem.machine_types)}
        index = dict(problem.block_index.items())
        self._sets: list[_Set] = []
        self._listed: list[Configuration] = []
        machine: list[int] = []
        shapes: list[int] = []
        blocks: list[int] = []
        self._number: list[int] = []
        for number, shape in enumerate(problem.configurations):
            if not number % _AT_ONCE and stopped():
                break
            at = names[shape.machine or ""]
            if isinstance(shape, SizeBoundedConfigurations):
                self._sets.append(_Set(shape, at, index))
                continue
            shapes += [len(self._listed)] * len(shape.blocks)
            blocks += map(index.__getitem__, shape.blocks)
            self._number += shape.blocks.values()
            self._listed.append(shape)
            machine.append(at)
        self._machine = np.array(machine, dtype=np.int64)
        self._shape = np.array(shapes, dtype=np.int64)
        self._block = np.array(blocks, dtype=np.int64)
        self._ranked = np.array([float(min(n, _CAP)) for n in self._number], dtype=np.float64)
        self._begin = np.searchsorted(self._shape, np.arange(len(self._listed) + 1))
        # The same entries by block.
        self._by_block = np.argsort(self._block, kind="stable")
        self._begin_of_block = np.searchsorted(self._block[self._by_block], np.arange(self._k + 1))
        self.reset()

    def reset(self, worth: Sequence[float] = (), *, costs: bool = True) -> None:
        """Close all machines.

        Parameters
        ----------
        worth : k floats, optional
            What ranks blocks; by default their prices.
        costs : bool, default True
            Whether machines that cost less rank higher.
        """
        self.room = list(self._limits)
        self.idle = [0] * self._k
        self._opened = [0] * len(self._listed)
        for shape in self._sets:
            shape.close()
        self._rank = self._costs if costs else np.ones(len(self._costs))
        self.worth = np.array(worth or self.prices())
        self.worth[self.worth == inf] = 0.0
        each = self.worth[self._block] * self._ranked
        self._total = np.bincount(self._shape, weights=each, minlength=len(self._listed))

    @property
    def limited(self) -> bool:
        """Whether some machine type has a limit."""
        return any(limit is not None for limit in self._limits)

    def machines(self) -> dict[Configuration, int]:
        """Return how many machines of each configuration are open."""
        found = {self._listed[c]: number for c, number in enumerate(self._opened) if number}
        for shape in self._sets:
            for configuration, number in shape.machines():
                found[configuration] = found.get(configuration, 0) + number
        return found

    def prices(self) -> list[float]:
        """Return each type's share of a machine that is full of it; infinite if there is none."""
        best = np.full(self._k, inf)
        costs = np.where([room == 0 for room in self.room], inf, self._rank)
        np.minimum.at(best, self._block, costs[self._machine[self._shape]] / self._ranked)
        for shape in self._sets:
            for i, most in shape.most.items():
                best[i] = min(best[i], costs[shape.machine] / min(most, _CAP))
        return list(best.tolist())

    def supply(self) -> list[float]:
        """Return about how many blocks of each type there can be at most."""
        most = np.zeros((len(self._limits), self._k))
        np.maximum.at(most, (self._machine[self._shape], self._block), self._ranked)
        for shape in self._sets:
            for i, number in shape.most.items():
                most[shape.machine, i] = max(most[shape.machine, i], min(number, _CAP))
        found = [float(min(blocks, _CAP)) for blocks in self.idle]
        for m, room in enumerate(self.room):
            if room != 0:
                more = inf if room is None else float(min(room, _CAP))
                for i in np.flatnonzero(most[m]).tolist():
                    found[i] += more * float(most[m, i])
        return found

    def take(self, i: int, number: int) -> int:
        """Take so many blocks of a type, or as many as there can be; return how many."""
        left = number - self._taken(i, number)
        while left > 0:
            at: int | _Set | None
            best, at = self._holder(i, left)
            for shape in self._sets:
                if i in shape.most and self.room[shape.machine] != 0:
                    most = shape.most[i]
                    score = self.worth[i] * min(left, most, _CAP) / self._rank[shape.machine]
                    if at is None or score > best:
                        best, at = score, shape
            if at is None:
                break
            if isinstance(at, _Set):
                some = min(left, self._allowed(at.machine, -(-left // at.most[i])) * at.most[i])
                self._use(at.machine, at.add(i, some))
                left -= some
            else:
                count = self._number[at]
                self._open(int(self._shape[at]), max(1, left // count))
                left -= self._taken(i, left)
        return number - left

    def _taken(self, i: int, number: int) -> int:
        """Take blocks of machines that are open."""
        got = min(number, self.idle[i])
        self.idle[i] -= got
        for shape in self._sets:
            got += shape.squeeze(i, number - got)
        return got

    def _holder(self, i: int, number: int) -> tuple[float, int | None]:
        """Return the listed configuration to open for some blocks: its score, and its entry."""
        part = self._by_block[self._begin_of_block[i] : self._begin_of_block[i + 1]]
        if not len(part):
            return 0.0, None
        shapes = self._shape[part]
        machines = self._machine[shapes]
        wanted = self.worth[i] * np.minimum(self._ranked[part], min(number, _CAP))
        gain = wanted + _BY_THE_WAY * (self._total[shapes] - wanted)
        score = np.where(self._full()[machines], -1.0, gain / self._rank[machines])
        at = int(np.argmax(score))
        return float(score[at]), int(part[at]) if score[at] >= 0 else None

    def _full(self) -> NDArray[np.bool_]:
        return np.array([room == 0 for room in self.room], dtype=np.bool_)

    def pack(self, load: Sequence[int]) -> bool:
        """Open machines until so many blocks of each type are idle, as far as limits allow.

        The machine that is worth most for its cost comes next, as many of it as stay worth that; or
        all come by best fit decreasing, where that costs less. False if stopped.
        """
        fresh = not any(shape.opened for shape in self._sets)
        fitted = self._fitted(load) if fresh and not self._listed and not self.limited else None
        if not self._packed(load):
            return False
        if fitted is not None and self._paid(fitted) < self._paid(self._sets):
            self._sets, self.idle = fitted, list(load)
        return True

    def _fitted(self, load: Sequence[int]) -> list[_Set] | None:
        """Pack by best fit, each type on the machines that are cheapest when full of it."""
        mine: list[dict[int, int]] = [{} for _ in self._sets]
        for i, need in enumerate(load):
            holders = [at for at, shape in enumerate(self._sets) if i in shape.most]
            if need and not holders:
                return None
            if need:
                at = min(
                    holders,
                    key=lambda at: (
                        self._rank[self._sets[at].machine] / min(self._sets[at].most[i], _CAP)
                    ),
                )
                mine[at][i] = need
        return [shape.fitted(part) for shape, part in zip(self._sets, mine, strict=True)]

    def _paid(self, sets: Sequence[_Set]) -> Fraction:
        return sum((self._exact[shape.machine] * shape.opened for shape in sets), Fraction(0))

    def _packed(self, load: Sequence[int]) -> bool:
        for _ in range(_MOST_ROUNDS):
            missing = [max(0, need - have) for need, have in zip(load, self.idle, strict=True)]
            if not any(missing):
                return True
            if self._stopped():
                return False
            score, c = self._best_listed(missing)
            chosen, content = None, {}
            for shape in self._sets:
                if self.room[shape.machine] != 0:
                    tried = shape.content(missing)
                    gain = sum(self.worth[i] * min(n, _CAP) for i, n in tried.items())
                    if tried and (
                        (chosen is None and c < 0) or gain / self._rank[shape.machine] > score
                    ):
                        score, chosen, content = gain / self._rank[shape.machine], shape, tried
            if chosen is not None:
                number = self._allowed(chosen.machine, _copies(content, missing))
                self._use(chosen.machine, number)
                chosen.open(content, number)
                for i, n in content.items():
                    self.idle[i] += n * number
            elif c >= 0:
                self._open(c, _copies(self._content(c), missing))
            else:
                return True
        for i, need in enumerate(load):
            if self._stopped():
                return False
            if self.idle[i] < need:
                taken = self.take(i, need)  # idle ones among them
                self.idle[i] += taken
        return True

    def _best_listed(self, missing: Sequence[int]) -> tuple[float, int]:
        """Return the listed configuration worth most for its cost, and how much; -1 if none is."""
        if not self._listed:
            return 0.0, -1
        wanted = np.array([float(min(n, _CAP)) for n in missing])
        each = self.worth[self._block] * np.minimum(self._ranked, wanted[self._block])
        gain = np.bincount(self._shape, weights=each, minlength=len(self._listed))
        score = gain / self._rank[self._machine]
        useful = np.bincount(self._shape, weights=wanted[self._block] > 0, minlength=len(score)) > 0
        score[self._full()[self._machine] | ~useful] = -1.0
        at = int(np.argmax(score))
        return float(score[at]), at if score[at] >= 0 else -1

    def _content(self, c: int) -> dict[int, int]:
        part = range(int(self._begin[c]), int(self._begin[c + 1]))
        return {int(self._block[e]): self._number[e] for e in part}

    def _open(self, c: int, number: int) -> None:
        """Open machines of a listed configuration, as far as the limit goes."""
        machine = int(self._machine[c])
        number = self._allowed(machine, number)
        self._use(machine, number)
        self._opened[c] += number
        for i, n in self._content(c).items():
            self.idle[i] += n * number

    def _allowed(self, machine: int, number: int) -> int:
        room = self.room[machine]
        return number if room is None else min(number, room)

    def _use(self, machine: int, number: int) -> None:
        room = self.room[machine]
        if room is not None:
            self.room[machine] = room - number


class _Set:
    """Machines of a size-bounded set; one of them may have room for more blocks."""

    def __init__(
        self, shape: SizeBoundedConfigurations, machine: int, index: Mapping[str, int]
    ) -> None:
        self.machine = machine
        blocks = [block for block in shape.sizes if shape.largest_count(block)]
        #: How many blocks of a type a machine has that is full of it.
        self.most = {index[block]: shape.largest_count(block) for block in blocks}
        numbers, _ = common_denominator([shape.capacity, *(shape.sizes[block] for block in blocks)])
        self._capacity = numbers[0]
        by_size = sorted(zip(numbers[1:], blocks, strict=True), key=lambda pair: -pair[0])
        self._sizes = {index[block]: size for size, block in by_size}
        self._names = {index[block]: block for block in blocks}
        self._shape = shape
        self.close()

    def fitted(self, load: Mapping[int, int]) -> _Set:
        """Return the same set with its blocks packed by best fit."""
        other = copy(self)
        other.close()
        found = best_fit(self._sizes, self._capacity, self._shape.max_blocks, load)
        for content, number in found.items():
            other.open(dict(content), number)
        return other

    @property
    def opened(self) -> int:
        """How many machines there are."""
        return sum(self._opened.values()) + bool(self._last)

    def close(self) -> None:
        """Forget all machines."""
        self._opened: dict[tuple[tuple[int, int], ...], int] = {}
        self._last: dict[int, int] = {}
        self._left, self._slots = 0, 0

    def machines(self) -> Iterator[tuple[Configuration, int]]:
        """Iterate over the configurations of the machines, and how many there are."""
        last = [(tuple(self._last.items()), 1)] if self._last else []
        for content, number in [*self._opened.items(), *last]:
            blocks = {self._names[i]: n for i, n in content}
            yield Configuration(blocks, self._shape.machine), number

    def content(self, missing: Sequence[int]) -> dict[int, int]:
        """Fill a machine with missing blocks, the largest first."""
        left, slots = self._capacity, self._shape.max_blocks
        found = {}
        for i, size in self._sizes.items():
            fits = min(missing[i], left // size)
            if slots is not None:
                fits = min(fits, slots)
                slots -= fits
            if fits > 0:
                found[i] = fits
                left -= fits * size
        return found

    def open(self, content: dict[int, int], number: int) -> None:
        """Open machines with these blocks."""
        key = tuple(content.items())
        self._opened[key] = self._opened.get(key, 0) + number

    def squeeze(self, i: int, number: int) -> int:
        """Put blocks on the machine that has room; return how many."""
        if i not in self._sizes or number <= 0:
            return 0
        fits = min(number, self._left // self._sizes[i])
        if self._shape.max_blocks is not None:
            fits = min(fits, self._slots)
        if fits > 0:
            self._last[i] = self._last.get(i, 0) + fits
            self._left -= fits * self._sizes[i]
            self._slots -= fits
        return max(0, fits)

    def add(self, i: int, number: int) -> int:
        """Put blocks on machines of their own; return how many these are."""
        full, rest = divmod(number, self.most[i])
        if full:
            self.open({i: self.most[i]}, full)
        if not rest:
            return full
        left = self._capacity - rest * self._sizes[i]
        if self._last and self._left >= left:
            self.open({i: rest}, 1)
        else:
            if self._last:
                self.open(self._last, 1)
            self._last, self._left = {i: rest}, left
            self._slots = (self._shape.max_blocks or 0) - rest
        return full + 1


def _copies(content: dict[int, int], missing: Sequence[int]) -> int:
    """Return how many equal machines stay worth as much as the first."""
    needed = [(missing[i], n) for i, n in content.items() if missing[i] > 0]
    if any(left < n for left, n in needed):
        return 1
    return min(left // n for left, n in needed)
