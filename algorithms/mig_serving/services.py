"""What a run of MIG-serving counts: services, what they still need, machines handed out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator
from cms.schedule.schedule import MachineGroup, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ..tables.integers import Tables

#: Binary digits of a demand. What a million blocks give, each cut at the demand, is still an int64.
_DIGITS = 40


class Filled(NamedTuple):
    """A machine with its blocks handed out: a GPU configuration, in MIG-serving's words.

    `blocks` are (block type, job, number), `gives` are (job, amount), both in order; a block that
    would give its job nothing is left idle.
    """

    shape: int
    blocks: tuple[tuple[int, int, int], ...]
    gives: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Services:
    """The jobs and machines of a reduced problem, in int64.

    Demands of more than 40 binary digits are rounded up, and their supply down: schedules that meet
    these meet the problem's own. `prices` are the configurations' costs in a common step, `utility`
    (n, k) is the part of a job's demand that a block satisfies, at most 1.
    """

    tables: Tables
    needs: list[int]
    supply: list[list[int]]
    prices: list[int]
    utility: NDArray[np.float64]

    @classmethod
    def of(cls, tables: Tables) -> Services:
        """Read the tables of a reduced problem."""
        needs, supply = [], []
        for demand, row in zip(tables.demands.tolist(), tables.supply.tolist(), strict=True):
            shift = max(0, demand.bit_length() - _DIGITS)
            needs.append(-(-demand >> shift))
            supply.append([amount >> shift for amount in row])
        utility = np.array(supply, dtype=np.float64).reshape(tables.n, tables.k)
        utility /= np.array(needs, dtype=np.float64).reshape(tables.n, 1)
        prices, _ = common_denominator(tables.costs)
        return cls(tables, needs, supply, prices, utility)

    @property
    def alone(self) -> list[Fraction]:
        """How many machines each job would fill by itself, of those that pay it best."""
        tables = self.tables
        found = []
        for demand, mine in zip(tables.demands.tolist(), tables.supply.tolist(), strict=True):
            # Of machines that cost the same the one that gives most: most problems have few costs.
            best: dict[int, int] = {}
            for row, price in zip(tables.counts, self.prices, strict=True):
                best[price] = max(best.get(price, 0), sum(map(mul, row, mine)))
            _, most = max((Fraction(amount, price), amount) for price, amount in best.items())
            found.append(Fraction(demand, most))
        return found

    def filled(self, shape: int, blocks: Iterable[tuple[int, int, int]]) -> Filled:
        """Hand out a machine's blocks: (block type, job, number), a pair at most once."""
        useful = sorted(one for one in blocks if one[2] and self.supply[one[1]][one[0]])
        gives: dict[int, int] = {}
        for i, j, number in useful:
            gives[j] = gives.get(j, 0) + number * self.supply[j][i]
        return Filled(shape, tuple(useful), tuple(sorted(gives.items())))

    def missing(self, machines: Iterable[Filled]) -> list[int]:
        """Return what jobs lack; a negative number is what they have too much."""
        left = list(self.needs)
        for machine in machines:
            for j, amount in machine.gives:
                left[j] -= amount
        return left

    def cost(self, machines: Iterable[Filled]) -> int:
        """Add up what machines cost, in steps."""
        return sum(self.prices[machine.shape] for machine in machines)

    def schedule(self, machines: Iterable[Filled]) -> Schedule:
        """Make the schedule of the reduced problem that has exactly these machines."""
        blocks, names = self.tables.problem.blocks, self.tables.problem.job_names
        return Schedule(
            MachineGroup(
                self.tables.shapes[machine.shape],
                {(blocks[i], names[j]): number for i, j, number in machine.blocks},
                count,
            )
            for machine, count in Counter(machines).items()
        )
