"""What a certificate says of schedules in which one job's blocks are chosen: exact reduced costs.

The bound of a leaf is what all jobs pay at its prices. A schedule that gives a job certain blocks
makes it pay for these, which is at least what its cheapest option costs: the difference is the
*reduced cost* of the choice, and every schedule with it costs at least the bound and that much more
(weak duality, theory 6.3). Below branches each leaf says so of its own part of the schedules, so
the least over the leaves holds for all. A reduced cost is a bound and no promise: there may be no
schedule that costs as little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InvalidOption
from ..knapsack.pricing import cheapest_option, common_denominator
from ..problem.parts import Block
from ..problem.rows import Row
from ..values.frozen import FrozenMap
from .certificate import Certificate, Leaf, proved_leaves
from .conditions import Condition, prices_of_jobs, refuse_breaches
from .quantity import BlocksOfJob

if TYPE_CHECKING:
    from ..problem.problem import Problem


class Given(NamedTuple):
    """What is said of the blocks that one job gets."""

    at_least: Mapping[Block, int] = FrozenMap()  # so many blocks of these types, or more
    without: frozenset[Block] = frozenset()  # none of these types


class Case(NamedTuple):
    """One leaf of a certificate, as one job sees it."""

    rest: Fraction  # what the leaf proves, less what this job pays
    prices: tuple[Fraction, ...]  # what the job pays for a block of each type
    # How many blocks of a type the job has at least and at most, by the branches above.
    within: Mapping[Block, tuple[int, int | None]] = FrozenMap()
    ray: bool = False  # whether a positive bound means that there is no schedule at all
    # How many blocks of a type the job may be able to use, so that the leaf's proper counts hold.
    room: Mapping[Block, int] = FrozenMap()


class OneJob:
    """What a certificate proves of every schedule in which one job's blocks are chosen."""

    def __init__(self, blocks: Sequence[Block], row: Row, cases: Iterable[Case]) -> None:
        self.blocks, self.row, self.cases = tuple(blocks), row, tuple(cases)

    @property
    def bound(self) -> Fraction | None:
        """What any schedule costs at least; None if there is none."""
        return self.bound_if(Given())

    def needed(self, block: Block) -> int | None:
        """Return how many blocks of one type serve the job by themselves; None if none do."""
        gives = self.row.supply[self.blocks.index(block)]
        return -(-self.row.demand // gives) if gives else None

    def bound_if(self, given: Given) -> Fraction | None:
        """Return what every schedule that gives it so costs at least; None if there is none."""
        for block, count in given.at_least.items():
            most = self.needed(block)
            if most is None or count > most:
                raise InvalidOption(
                    f"at least {count} blocks {block!r} are asked about; expected at most "
                    f"{most or 0}, which serve the job by themselves"
                )
        return self._least(self.row, given, checked=True)

    def bound_at(self, row: Row) -> Fraction | None:
        """Return what every schedule costs at least if the job's row were this one.

        It has the same denominator, or another: only ratios within the row count.
        """
        return self._least(row, Given(), checked=False)

    def _least(self, row: Row, given: Given, *, checked: bool) -> Fraction | None:
        least: Fraction | None = None
        for case in self.cases:
            if not self._may_be(case, given):
                continue
            paid = self._paid(case, row, given)
            if paid is None:
                return None
            value = case.rest + paid
            if not (checked or self._has_room(case, row)):
                value = Fraction(0)
            elif case.ray and value > 0:
                continue
            least = value if least is None else min(least, value)
        return least

    def _paid(self, case: Case, row: Row, given: Given) -> Fraction | None:
        """What the job pays at least; None if these blocks cannot serve it."""
        prices, denominator = common_denominator(case.prices)
        left, paid = row.demand, 0
        supply = list(row.supply)
        for at, block in enumerate(self.blocks):
            if block in given.without:
                supply[at] = 0
            elif count := given.at_least.get(block, 0):
                left -= count * supply[at]
                paid += count * prices[at]
        found = cheapest_option(prices, supply, left)
        return None if found is None else Fraction(paid + found.value, denominator)

    @staticmethod
    def _may_be(case: Case, given: Given) -> bool:
        """Whether the branches above a leaf leave room for what it gets."""
        for block, (low, high) in case.within.items():
            if high is not None and given.at_least.get(block, 0) > high:
                return False
            if low > 0 and block in given.without:
                return False
        return True

    def _has_room(self, case: Case, row: Row) -> bool:
        return all(
            -(-row.demand // gives) <= case.room[block]
            for block, gives in zip(self.blocks, row.supply, strict=True)
            if block in case.room and gives
        )


class ProvedLeaves:
    """The leaves of a certificate and what each proves: checked once, asked about many jobs."""

    def __init__(self, problem: Problem, certificate: Certificate) -> None:
        self._problem = problem
        self._leaves = [*proved_leaves(problem, certificate)]

    def __len__(self) -> int:
        return len(self._leaves)

    def job(self, name: str) -> OneJob:
        """Return what is proved about one job's choices; KeyError if there is none of this name."""
        problem, j = self._problem, self._problem.job_index(name)
        row = problem.rows.row(j)
        cases: dict[Case, None] = {}
        for leaf, path, proved in self._leaves:
            general, special = prices_of_jobs(problem, leaf, path)
            prices = tuple(special.get(j, general))
            ray = proved.infeasible and refuse_breaches(problem, leaf, path)
            cases[
                Case(
                    proved.value - _paid_at_most(prices, row), prices, _within(path, name), ray,
                    self._room(leaf, row),
                )
            ] = None  # fmt: skip
        return OneJob(problem.blocks, row, cases)

    def _room(self, leaf: Leaf, row: Row) -> FrozenMap[Block, int]:
        if not leaf.proper:
            return FrozenMap()
        useful = zip(self._problem.blocks, self._problem.useful_blocks(), row.supply, strict=True)
        return FrozenMap(
            {
                block: leaf.proper[block] - all_of_them + (-(-row.demand // gives) if gives else 0)
                for block, all_of_them, gives in useful
                if block in leaf.proper
            }
        )


def _paid_at_most(prices: Sequence[Fraction], row: Row) -> Fraction:
    """What a job pays at its cheapest, or a little more where the search for that ended early."""
    whole, denominator = common_denominator(prices)
    found = cheapest_option(whole, row.supply, row.demand)
    if found is None:
        return Fraction(0)
    paid = sum(price * n for price, n in zip(whole, found.option, strict=True))
    return Fraction(paid, denominator)


def _within(path: Iterable[Condition], job: str) -> FrozenMap[Block, tuple[int, int | None]]:
    found: dict[Block, tuple[int, int | None]] = {}
    for quantity, sign, value in path:
        if not (isinstance(quantity, BlocksOfJob) and quantity.job == job):
            continue
        low, high = found.get(quantity.block, (0, None))
        if sign > 0:
            low = max(low, value)
        else:
            high = value if high is None else min(high, value)
        found[quantity.block] = low, high
    return FrozenMap(found)
