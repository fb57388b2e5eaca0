"""What LP* is about: jobs that cost something to serve, and machines worth opening."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator

from .factors import kappa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..tables.integers import Tables

#: Jobs are left out of LP* if serving them alone costs less than this part of the whole, over n.
_CHEAP = 10**12
#: 1 / (1 - 1/e), rounded up.
_INVERSE = Fraction(1_581_977, 1_000_000)


def usable(tables: Tables) -> list[list[int]]:
    """Return the blocks of each configuration, but of no type more than all jobs together can use.

    Neither the optimum nor LP* changes: ``f_ij y_ijC <= d_j x_C`` for every job.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> shape = Configuration({"a": 10**9})
    >>> usable(Tables.of(Problem(configurations=shape, jobs=[Job("x", 5, {"a": 2})])))
    [[3]]
    """
    most = [max((row[i] for row in tables.counts), default=0) for i in range(tables.k)]
    for i, count in enumerate(most):
        # Every job that a type serves can use one block at least.
        if count > 1:
            pairs = zip(tables.demands, tables.supply, strict=True)
            most[i] = sum(-(-d // row[i]) for d, row in pairs if row[i])
    return [[min(pair) for pair in zip(row, most, strict=True)] for row in tables.counts]


def variables(tables: Tables) -> int:
    """Count the shares of LP*: configurations, their block types, and the jobs these serve.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> jobs = [Job(name, 1, {name: 1}) for name in "abcd"]
    >>> shapes = [Configuration({name: 10, "a": 1}) for name in "abcd"]
    >>> variables(Tables.of(Problem(configurations=shapes, jobs=jobs)))
    7
    """
    jobs = [sum(1 for row in tables.supply if row[i]) for i in range(tables.k)]
    return sum(jobs[i] for row in tables.counts for i, count in enumerate(row) if count)


@dataclass(frozen=True)
class Paid:
    """What LP* is about: jobs that cost something to serve, and machines worth opening.

    Machines that cost nothing serve every job that they have a block for. No optimal schedule has a
    machine that costs more than serving every job by itself. And jobs that cost less than a
    millionth of a millionth of that, all together, are served by themselves. Without these the
    numbers of the program lie so close together that floats hold them.

    Attributes
    ----------
    tables : Tables
    counts : list of c lists of k ints
        As many blocks of each type as can be used.
    alone : list of n Repairs
        The cheapest way to serve each job by itself, on machines of one configuration.
    unit : Fraction
        What it costs to serve every job by itself.
    shapes, jobs : list of int
        Those in LP*.
    """

    tables: Tables
    counts: list[list[int]]
    alone: list[Repair]
    unit: Fraction
    shapes: list[int]
    jobs: list[int]

    @classmethod
    def of(cls, tables: Tables) -> Paid:
        """Read a problem without a job that nobody serves."""
        counts = usable(tables)
        alone = [*_alone(tables, counts)]
        unit = sum((repair.cost for repair in alone), Fraction(0))
        shapes = [c for c, cost in enumerate(tables.costs) if 0 < cost <= unit]
        jobs = [j for j, repair in enumerate(alone) if repair.cost * tables.n * _CHEAP > unit]
        return cls(tables, counts, alone, unit, shapes, jobs)

    @property
    def alpha(self) -> Fraction:
        """``kappa(N) / (1 - 1/e)`` with N = min(jobs, blocks of a machine), rounded up."""
        return kappa(self.many) * _INVERSE

    @property
    def many(self) -> int:
        """N, at least 1."""
        most = max((sum(self.counts[c]) for c in self.shapes), default=1)
        return max(1, min(len(self.jobs), most))

    @property
    def complete(self) -> bool:
        """Whether LP* is that of the whole problem: no machine was too dear to be in it."""
        return all(cost <= self.unit for cost in self.tables.costs)


class Repair(NamedTuple):
    """Serving a job by itself: how many machines of which configuration, at what cost."""

    shape: int
    number: int
    cost: Fraction


def _alone(tables: Tables, counts: Sequence[Sequence[int]]) -> Iterator[Repair]:
    """Yield the cheapest way to serve each job by itself, of equals the first."""
    costs, _ = common_denominator(tables.costs)
    # No block gives more than the demand.
    most = max([1, *tables.demands]) * max([1, *costs, *map(sum, counts)])
    kind = np.int64 if most < 2**62 else object
    table, prices = np.array(counts, dtype=kind), np.array(costs, dtype=kind)
    for demand, supply in zip(tables.demands, tables.supply, strict=True):
        amounts = np.minimum(demand, table @ np.array(supply, dtype=kind))
        ways = np.flatnonzero(amounts > 0)
        numbers = -(-demand // amounts[ways])
        at = int(np.argmin(numbers * prices[ways]))
        shape, number = int(ways[at]), int(numbers[at])
        yield Repair(shape, number, number * tables.costs[shape])
