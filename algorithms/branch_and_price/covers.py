"""Machines that hold some blocks exactly, of all contents that a cheap enough fleet can use.

At prices of blocks, a fleet that costs no more than a target uses only contents that lack less of
their machine's cost than the target lies above the bound (theory 6.7), and all its machines
together lack no more than that. Near a good bound these contents can often be listed, and searched
through: what fewest of them hold is put on a machine first. Where there are too many, machines with
the dearest blocks are kept until there are few enough.
"""

from __future__ import annotations

from operator import itemgetter, mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..prices.region import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..prices.limits import Room
    from ..prices.region import Region

#: Contents of all sets, and steps of the search for those of one.
_MOST_CONTENTS, _STEPS = 3_000, 60_000
#: They are listed again once so few of the blocks are left.
_FEWER = 0.85
#: Machines that are put together before a search ends, times the contents there are and some.
_WORK = 60_000_000
#: Nodes between two questions whether time is up.
_ASK_EVERY = 1_000


class _Content(NamedTuple):
    """A machine, and what it lacks of what it could be worth."""

    lacks: int
    row: Row


def cover(
    region: Region,
    left: Sequence[int],
    prices: Sequence[int],
    allowed: Sequence[int],
    slack: int,
    room: Room,
    budget: Budget,
) -> tuple[list[Row], bool]:
    """Find machines of size-bounded sets that hold some blocks, and no others.

    None are found where there are none, as the second value says, or the search gave up.

    A machine is worth at most its type's ``allowed`` at these prices. The differences to
    that, summed over all machines, may be ``slack`` at most. ``room`` limits the machines.
    """
    left, room = list(left), room.copy()
    machines: list[Row] = []
    few = sum(left)
    while slack >= 0 and not budget.stopped:
        all_of_them = sum(left) <= few
        limit = _MOST_CONTENTS if all_of_them else 0
        contents, complete = _listed(region, left, prices, allowed, slack, room, limit)
        if complete:
            search = _Search(contents, left, room, budget)
            if search.run((1 << len(contents)) - 1, slack):
                return [*machines, *(contents[at].row for at in search.taken)], False
            return [], not machines and not search.gave_up
        if not contents:
            break
        if all_of_them:
            few = int(_FEWER * few)
        lacks, row = contents[0]
        machines.append(row)
        slack -= lacks
        left = [number - n for number, n in zip(left, row.counts, strict=True)]
        room.take(row.machine, 1)
    return [], slack < 0 and not machines


def _listed(
    region: Region,
    left: Sequence[int],
    prices: Sequence[int],
    allowed: Sequence[int],
    slack: int,
    room: Room,
    most_contents: int,
) -> tuple[list[_Content], bool]:
    """List contents that lack no more than the slack, those of the dearest blocks first.

    Also say whether these are all.
    """
    found: dict[_Content, None] = {}
    complete = True
    for bounded in region.bounded:
        m = bounded.machine
        if room.most(m) == 0:
            continue
        mine, most = ([of[i] for i in bounded.columns] for of in (prices, left))
        limit, least = max(0, most_contents - len(found)), allowed[m] - slack
        contents, all_of_them = bounded.packing.list_contents(mine, most, least, limit, _STEPS)
        for content in contents:
            lacks = allowed[m] - sum(map(mul, mine, content))
            found[_Content(lacks, region.row_of(bounded, content))] = None
        complete = complete and all_of_them
    dearest = itemgetter(*sorted(range(len(prices)), key=lambda i: -prices[i]))
    return sorted(found, key=lambda c: dearest(c.row.counts), reverse=True), complete


def _bits(of: NDArray[np.bool_]) -> int:
    """Return the number with these bits, the lowest first."""
    return int.from_bytes(np.packbits(of, bitorder="little").tobytes(), "little")


class _Search:
    """A search through contents, which are bits of one number."""

    def __init__(
        self, contents: Sequence[_Content], left: list[int], room: Room, budget: Budget
    ) -> None:
        self._contents, self._left, self._room, self._budget = contents, left, room, budget
        held = np.array([row.counts for _, row in contents], dtype=np.int64)
        held = held.reshape(len(contents), len(left))
        # For each block type and number n: the contents with more than n of these blocks.
        self._over = [
            [_bits(held[:, i] > n) for n in range(number + 1)] for i, number in enumerate(left)
        ]
        self._held = [[(i, n) for i, n in enumerate(row.counts) if n] for _, row in contents]
        self.taken: list[int] = []
        self._nodes, self._most = 0, _WORK // (100 + len(contents))

    @property
    def gave_up(self) -> bool:
        return self._nodes >= self._most

    def run(self, usable: int, slack: int) -> bool:
        """Put what is left on machines; say whether that worked out."""
        self._nodes += 1
        if not self._nodes % _ASK_EVERY and self._budget.stopped:
            self._nodes = self._most
        if self.gave_up:
            return False
        pairs = zip(self._over, self._left, strict=True)
        held = (usable & over[0] for over, number in pairs if number)
        waiting = min(held, key=int.bit_count, default=None)  # contents of the scarcest block type
        if waiting is None:
            return True
        while waiting:
            bit = waiting & -waiting
            waiting ^= bit
            at = bit.bit_length() - 1
            lacks, row = self._contents[at]
            if lacks <= slack and self._room.most(row.machine) != 0:
                fit = usable
                for i, n in self._held[at]:
                    self._left[i] -= n
                    fit &= ~self._over[i][self._left[i]]
                self._room.take(row.machine, 1)
                self.taken.append(at)
                if self.run(fit, slack - lacks):
                    return True
                self.taken.pop()
                self._room.take(row.machine, -1)
                for i, n in self._held[at]:
                    self._left[i] += n
            usable ^= bit  # with this content every way has been tried
        return False
