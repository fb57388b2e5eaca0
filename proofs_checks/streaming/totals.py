"""What a certificate asks of all jobs together, added up shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from proofs_checks.checker.certificate import Leaf
from proofs_checks.checker.knapsacks import integers

from .pricing import paid_by
from .problem import Folder, Rows, Shard
from .stored import exact_sum


class Totals:
    """The ``Jobs`` of a certificate: all that its leaves ask is known after one pass."""

    def __init__(self, folder: Folder, leaves: Sequence[Leaf]) -> None:
        self._folder = folder
        self._numbers = {int(name[1:]) for leaf in leaves for name in leaf.special}
        self._paid = {(tuple(leaf.price.values()), leaf.special): 0 for leaf in leaves}
        self._used = {i: 0 for leaf in leaves for i in leaf.proper}
        self._unserved = False
        self.wanted: set[str] = set()

    def add(self, shard: Shard, rows: Rows) -> None:
        """Take the jobs of a shard in."""
        for number in self._numbers:
            if number in shard.jobs:
                self._folder.jobs.keep(number, rows.row(number - shard.jobs.start))
        for prices, special in self._paid:
            numbers = [int(name[1:]) for name in special]
            places = {number - shard.jobs.start for number in numbers if number in shard.jobs}
            self._paid[prices, special] += paid_by(rows, integers(prices)[1], places)
        served = rows.demand == 0
        for at, i in enumerate(self._folder.head.blocks):
            supply = rows.supply[:, at]
            gives = supply > 0
            served |= gives
            if i not in self.wanted and (gives & (rows.demand > 0)).any():
                self.wanted.add(i)
            if i in self._used:
                self._used[i] += exact_sum(-(-rows.demand[gives] // supply[gives]))
        self._unserved = self._unserved or not served.all()
        for row in rows.wide.values():
            for i, f in zip(self._folder.head.blocks, row.supply, strict=True):
                if f and row.demand:
                    self.wanted.add(i)
                if f and i in self._used:
                    self._used[i] += -(-row.demand // f)
            self._unserved = self._unserved or bool(row.demand and not any(row.supply))

    def worth(self, prices: Sequence[Fraction], special: frozenset[str]) -> Fraction:
        """Return what was added up."""
        return integers(prices)[0] * self._paid[tuple(prices), special]

    def use(self, block: str) -> int:
        """Return what was added up."""
        return self._used[block]

    def unserved(self) -> bool:
        """Return whether there was such a job."""
        return self._unserved
