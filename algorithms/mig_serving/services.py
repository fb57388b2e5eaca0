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

    Attributes
    ----------
    shape : int
        The configuration, by index.
    blocks : tuple of (block type, job, number)
        In order; a block that would give its job nothing is left idle.
    gives : tuple of (job, amount)
        What the jobs get, in order.
    """

    shape: int
    blocks: tuple[tuple[int, int, int], ...]
    gives: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Services:
    """The jobs and machines of a reduced problem, in int64.

    Demands of more than 40 binary digits are rounded up, and their supply down: schedules that meet
    these meet the problem's own.

    Attributes
    ----------
    tables : Tables
    needs : list of n ints
        Demands.
    supply : list of n lists of k ints
    prices : list of c ints
        The configurations' costs, as multiples of their common step.
    utility : ndarray of float, shape (n, k)
        The part of a job's demand that one block of a type satisfies, at most 1.
    """

    tables: Tables
    needs: list[int]
    supply: list[list[int]]
    prices: list[int]
    utility: NDArray[np.float64]

    @classmethod
    def of(cls, tables: Tables) -> Services:
        """Read the tables of a reduced problem.

        Examples
        --------
        >>> from cms import Configuration, Job, Problem
        >>> from algorithms.tables.integers import Tables
        >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 4, {"a": 1})])
        >>> Services.of(Tables.of(problem)).utility
        array([[0.25]])
        """
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
        """How many machines each job would fill by itself, in parts, of those that pay best.

        These are the ones that give it most for what they cost.

        Examples
        --------
        >>> from cms import Configuration, Job, Problem
        >>> from algorithms.tables.integers import Tables
        >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 5, {"a": 1})])
        >>> Services.of(Tables.of(problem)).alone
        [Fraction(5, 2)]
        """
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
        """Return what jobs lack; a negative number is what they have too much.

        Examples
        --------
        >>> from cms import Configuration, Job, Problem
        >>> from algorithms.tables.integers import Tables
        >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 5, {"a": 1})])
        >>> services = Services.of(Tables.of(problem))
        >>> services.missing([services.filled(0, [(0, 0, 2)])] * 2)
        [1]
        """
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

    def machines_of(self, schedule: Schedule, most: int) -> list[Filled] | None:
        """Read machines off a schedule of the user's problem.

        A machine is of the cheapest configuration here that has its blocks.

        Parameters
        ----------
        schedule : Schedule
        most : int
            Machines.

        Returns
        -------
        list of Filled, or None
            None if there are more, or if some are cut as none here, or if they do not serve all
            jobs in the numbers counted with here.
        """
        if schedule.machine_count > most:
            return None
        types = self.tables.problem.block_index
        jobs = {name: j for j, name in enumerate(self.tables.problem.job_names)}
        machines: list[Filled] = []
        for group in schedule.groups:
            given = [
                (types[block], jobs[job], number)
                for (block, job), number in group.assignment.items()
                if block in types and job in jobs
            ]
            need = [0] * self.tables.k
            for i, _, number in given:
                need[i] += number
            holding = [
                (self.prices[shape], shape)
                for shape, row in enumerate(self.tables.counts)
                if all(a <= b for a, b in zip(need, row, strict=True))
            ]
            if not holding:
                return None
            machines += [self.filled(min(holding)[1], given)] * group.count
        return None if any(left > 0 for left in self.missing(machines)) else machines
