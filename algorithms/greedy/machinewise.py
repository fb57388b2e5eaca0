"""The linear program LP*, truncated machine by machine, and its randomised rounding without dice.

Theory 1.4 and 2.3: with N = min(n, s) the schedule costs at most (alpha + 2) LP*, where
alpha = kappa(N) / (1 - 1/e). The proof draws machines and blocks at random and serves jobs that are
left short by themselves; here every draw is replaced by the choice at which the proof's own bound
on what follows is smallest (the method of conditional expectations), so the bound holds for every
run and not only on average.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb, exp, floor, log
from typing import TYPE_CHECKING, NamedTuple

from ..linear.aggregated import repaired
from ..linear.program import LinearProgram
from .factors import kappa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.algorithm import Budget

    from ..linear.aggregated import Counts
    from ..linear.pseudoforest import Edge
    from ..linear.tables import Tables

#: Variables of LP* (c n k), beyond which it takes minutes.
MOST_VARIABLES = 60_000
#: Shares below this are the solver's noise.
_NOTHING = 1e-9
#: 1 / (1 - 1/e), rounded up.
_INVERSE = Fraction(1_581_977, 1_000_000)


class Fractional(NamedTuple):
    """A solution of LP*.

    Attributes
    ----------
    value : float
    machines : list of c floats
    blocks : list of c dicts
        ``{(block type, job): blocks}`` on all machines of a configuration.
    """

    value: float
    machines: list[float]
    blocks: list[dict[Edge, float]]


def alpha(tables: Tables) -> Fraction:
    """Return kappa(N) / (1 - 1/e) with N = min(jobs, blocks of a machine), rounded up."""
    most = max((sum(row) for row in tables.counts), default=1)
    return kappa(max(1, min(tables.n, most))) * _INVERSE


def solve(tables: Tables, budget: Budget | None) -> Fractional | None:
    """Solve LP*; None if stopped.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.linear.tables import Tables
    >>> jobs = [Job(name, 1, {name: 1}) for name in "abcd"]
    >>> shapes = [Configuration({name: 10}) for name in "abcd"]
    >>> solve(Tables.of(Problem(configurations=shapes, jobs=jobs)), None).value
    4.0
    """
    unit = max(tables.costs, default=Fraction(1)) or Fraction(1)
    program = LinearProgram()
    opened = [program.variable(float(cost / unit)) for cost in tables.costs]
    shares: list[dict[Edge, int]] = []
    for x, row in zip(opened, tables.counts, strict=True):
        mine = {
            (i, j): program.variable(0.0)
            for j, supply in enumerate(tables.supply)
            for i, f in enumerate(supply)
            if f and row[i]
        }
        shares.append(mine)
        for i, count in enumerate(row):
            terms = [
                (v, -float(Fraction(tables.demands[j], tables.supply[j][i])))
                for (type_, j), v in mine.items()
                if type_ == i
            ]
            if terms:
                program.at_least([*terms, (x, float(count))], 0.0)
        of_job: dict[int, list[tuple[int, float]]] = {}
        for (_, j), v in mine.items():
            of_job.setdefault(j, []).append((v, -1.0))
        for terms in of_job.values():
            program.at_least([*terms, (x, 1.0)], 0.0)
    for j in range(tables.n):
        terms = [(v, 1.0) for mine in shares for (_, job), v in mine.items() if job == j]
        program.at_least(terms, 1.0)
    answer = program.solve(budget)
    if answer is None:
        return None
    blocks = [
        {
            (i, j): answer.values[v] * float(Fraction(tables.demands[j], tables.supply[j][i]))
            for (i, j), v in mine.items()
            if answer.values[v] > _NOTHING
        }
        for mine in shares
    ]
    machines = [max(0.0, answer.values[x]) for x in opened]
    return Fractional(answer.value * float(unit), machines, blocks)


class _Repair(NamedTuple):
    """Serving a job by itself: how many machines of which configuration, at what cost."""

    shape: int
    number: int
    cost: Fraction


def round_machinewise(
    tables: Tables, fractional: Fractional, budget: Budget | None
) -> Counts | None:
    """Round LP* by conditional expectations; None if stopped.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.linear.tables import Tables
    >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 2, {"a": 1})])
    >>> tables = Tables.of(problem)
    >>> round_machinewise(tables, solve(tables, None), None)
    ([1], {(0, 0): 2})
    """
    return _Rounding(tables, fractional).counts(budget)


class _Rounding:
    def __init__(self, tables: Tables, fractional: Fractional) -> None:
        self._tables, self._fractional = tables, fractional
        factor = alpha(tables)
        most = max((sum(row) for row in tables.counts), default=1)
        # The exponent of the tail bound: t = ln kappa.
        self._t = log(float(kappa(max(1, min(tables.n, most)))))
        self._wanted = [float(factor) * x for x in fractional.machines]
        self._repairs = [self._alone(j) for j in range(tables.n)]
        # The chance that a block of a type, on a machine of a configuration, goes to a job.
        self._chances: list[dict[int, dict[int, float]]] = []
        for c, blocks in enumerate(fractional.blocks):
            mine: dict[int, dict[int, float]] = {}
            for (i, j), number in blocks.items():
                there_are = tables.counts[c][i] * fractional.machines[c]
                if there_are > 0:
                    mine.setdefault(j, {})[i] = min(1.0, number / there_are)
            self._chances.append(mine)
        self._means = [
            {j: self._mean(c, j, 0.0, tables.counts[c]) for j in mine}
            for c, mine in enumerate(self._chances)
        ]

    def _alone(self, j: int) -> _Repair:
        """Find the cheapest way to serve a job by itself, on machines of one configuration."""
        tables = self._tables
        ways = []
        for c, row in enumerate(tables.counts):
            demand = tables.demands[j]
            amount = min(demand, sum(a * f for a, f in zip(row, tables.supply[j], strict=True)))
            if amount:
                number = -(-demand // amount)
                ways.append(_Repair(c, number, number * tables.costs[c]))
        return min(ways, key=lambda way: (way.cost, way.shape))

    def _mean(self, c: int, j: int, gained: float, left: Sequence[int]) -> float:
        """Return the mean of exp(-t min(1, what the machine gives to the job / its demand))."""
        tables = self._tables
        parts = [
            (left[i], chance, float(Fraction(tables.supply[j][i], tables.demands[j])))
            for i, chance in self._chances[c].get(j, {}).items()
            if left[i]
        ]
        mean = 0.0
        for numbers in itertools.product(*(range(count + 1) for count, _, _ in parts)):
            chance, amount = 1.0, gained
            for number, (count, p, f) in zip(numbers, parts, strict=True):
                chance *= comb(count, number) * p**number * (1 - p) ** (count - number)
                amount += number * f
            mean += chance * exp(-self._t * min(1.0, amount))
        return mean

    def counts(self, budget: Budget | None) -> Counts | None:
        """Decide machines, then blocks, then serve those left short."""
        tables = self._tables
        opened = [floor(x + _NOTHING) for x in self._wanted]
        # What remains to be expected of each job's shortage, as a factor of its repair's cost.
        weight = [float(repair.cost) * exp(self._t) for repair in self._repairs]
        for c, number in enumerate(opened):
            for j, mean in self._means[c].items():
                weight[j] *= mean**number
        parts = [max(0.0, x - number) for x, number in zip(self._wanted, opened, strict=True)]
        for c, part in enumerate(parts):
            for j, mean in self._means[c].items():
                weight[j] *= 1 - part + part * mean
        for c, part in enumerate(parts):
            if not part:
                continue
            saved = 0.0
            for j, mean in self._means[c].items():
                undecided = 1 - part + part * mean
                weight[j] /= undecided
                saved += weight[j] * (1 - mean)
            if saved >= float(tables.costs[c]):
                opened[c] += 1
                for j, mean in self._means[c].items():
                    weight[j] *= mean
        given: dict[Edge, int] = {}
        for c, number in enumerate(opened):
            for _ in range(number):
                if budget is not None and budget.stopped:
                    return None
                for edge in self._fill(c, weight):
                    given[edge] = given.get(edge, 0) + 1
        return self._served(opened, given)

    def _fill(self, c: int, weight: list[float]) -> list[Edge]:
        """Give a machine's blocks away, each where it is expected to save most."""
        tables = self._tables
        left, gained = list(tables.counts[c]), dict.fromkeys(self._means[c], 0.0)
        for j, mean in self._means[c].items():
            weight[j] /= mean
        edges = []
        for i in range(tables.k):
            while left[i]:
                left[i] -= 1
                chosen, most = -1, 0.0
                for j, chances in self._chances[c].items():
                    if i not in chances:
                        continue
                    amount = float(Fraction(tables.supply[j][i], tables.demands[j]))
                    without = self._mean(c, j, gained[j], left)
                    with_it = self._mean(c, j, gained[j] + amount, left)
                    if weight[j] * (without - with_it) > most:
                        chosen, most = j, weight[j] * (without - with_it)
                if chosen >= 0:
                    gained[chosen] += float(
                        Fraction(tables.supply[chosen][i], tables.demands[chosen])
                    )
                    edges.append((i, chosen))
        for j in self._means[c]:
            weight[j] *= exp(-self._t * min(1.0, gained[j]))
        return edges

    def _served(self, opened: list[int], given: dict[Edge, int]) -> Counts:
        """Serve jobs that were left short, each by machines of its own."""
        tables = self._tables
        machines = list(opened)
        blocks = dict(given)
        got = [0] * tables.n
        for (i, j), number in given.items():
            got[j] += number * tables.supply[j][i]
        for j, repair in enumerate(self._repairs):
            if got[j] >= tables.demands[j]:
                continue
            supply = tables.supply[j]
            machines[repair.shape] += repair.number
            for i, count in enumerate(tables.counts[repair.shape]):
                if count and supply[i]:
                    blocks[i, j] = blocks.get((i, j), 0) + count * repair.number
        return repaired(tables, machines, blocks)
