"""The linear program LP*, truncated machine by machine, and its randomised rounding without dice.

Theory 1.4 and 2.3: with N = min(n, s) the schedule costs at most (alpha + 2) LP*, where
alpha = kappa(N) / (1 - 1/e). The proof draws machines and blocks at random and serves jobs that are
left short by themselves; here every draw is replaced by the choice at which the proof's own bound
on what follows is smallest (the method of conditional expectations), so the bound holds for every
run and not only on average.

Machines are drawn in *groups*: as many copies of a configuration as together give no job more than
its demand count as one machine with so many times the blocks, since the proof asks no more of a
machine than that. So there are about 2 alpha groups of a configuration, however many machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, floor, log
from typing import TYPE_CHECKING

from ..aggregated.program import repaired
from .draws import Draws
from .factors import kappa
from .lp_star import LpStar
from .paid import variables

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget

    from ..aggregated.program import Counts
    from ..aggregated.pseudoforest import Edge
    from .lp_star import LpStarSolution
    from .paid import Paid

#: Variables of LP*, beyond which it takes minutes.
MOST_VARIABLES = 100_000
#: Up to so many all configurations take part at once.
_AT_ONCE = 3_000


def solve(paid: Paid, budget: Budget | None) -> LpStarSolution | None:
    """Solve LP*; None if stopped.

    The variables are parts of jobs' demands (or, where that is less, what these parts cost) and
    what is paid for each configuration, as parts of the unit: numbers between 0 and 1, however many
    machines or blocks there are.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.greedy.paid import Paid
    >>> from algorithms.tables.integers import Tables
    >>> jobs = [Job(name, 1, {name: 1}) for name in "abcd"]
    >>> shapes = [Configuration({name: 10}) for name in "abcd"]
    >>> paid = Paid.of(Tables.of(Problem(configurations=shapes, jobs=jobs)))
    >>> round(float(solve(paid, None).value), 9)
    4.0
    """
    every = variables(paid.tables) <= _AT_ONCE
    star = LpStar(paid)
    for c in paid.shapes if every else _first(paid):
        if budget is not None and budget.stopped:
            return None
        star.add(c)
    while True:
        answer = star.solve(budget)
        if answer is None:
            return None
        if every:
            return star.read(answer)
        found = star.missing(answer, budget)
        if found is None:
            return None
        if not found:
            return star.read(answer)
        for c in found:
            star.add(c)


def _first(paid: Paid) -> list[int]:
    """Return configurations with which every job can be served: those that do it alone."""
    allowed = set(paid.shapes)
    return sorted({paid.alone[j].shape for j in paid.jobs} & allowed)


def round_machinewise(
    paid: Paid, fractional: LpStarSolution, budget: Budget | None
) -> Counts | None:
    """Round LP* by conditional expectations; None if stopped.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.greedy.paid import Paid
    >>> from algorithms.tables.integers import Tables
    >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 2, {"a": 1})])
    >>> paid = Paid.of(Tables.of(problem))
    >>> machines, given = round_machinewise(paid, solve(paid, None), None)
    >>> given[0, 0] >= 2
    True
    """
    return Rounding(paid, fractional).counts(budget)


@dataclass(frozen=True)
class Group:
    """Some copies of a configuration, which together give no job more than its demand on average.

    Attributes
    ----------
    shape, copies : int
    draws : Draws
    missing : dict
        ``{job: bound on the mean of exp(-t min(1, what it gets))}``.
    """

    shape: int
    copies: int
    draws: Draws
    missing: dict[int, float]


class Rounding:
    """A rounding of LP*.

    Parameters
    ----------
    paid : Paid
    fractional : LpStarSolution

    Attributes
    ----------
    estimates : list of float
        What the proof's bound on the cost was after every decision, in units. It never rises, and
        ends at no less than the cost.
    """

    def __init__(self, paid: Paid, fractional: LpStarSolution) -> None:
        self._paid, self._fractional = paid, fractional
        # The exponent of the tail bound: t = ln kappa.
        self._t = log(float(kappa(paid.many)))
        self._parts = {
            (i, j): float(min(Fraction(1), Fraction(f, paid.tables.demands[j])))
            for j in paid.jobs
            for i, f in enumerate(paid.tables.supply[j])
            if f
        }
        self._weight = {j: float(paid.alone[j].cost / paid.unit) * exp(self._t) for j in paid.jobs}
        self._spent = 0.0
        self.estimates: list[float] = []

    def counts(self, budget: Budget | None) -> Counts | None:
        """Decide machines, then blocks, then serve those left short."""
        paid, weight = self._paid, self._weight
        sure: list[Group] = []
        perhaps: list[tuple[Group, float]] = []
        for c, x in self._fractional.machines.items():
            if budget is not None and budget.stopped:
                return None
            wanted = paid.alpha * x
            groups = self._groups(c, floor(wanted))
            for group in groups:
                for j, mean in group.missing.items():
                    weight[j] *= mean
            sure += groups
            perhaps.append((self._group(c, 1), float(wanted - floor(wanted))))
        for group, part in perhaps:
            for j, mean in group.missing.items():
                weight[j] *= 1.0 - part + part * mean
        self._spent = sum(self._cost(group) for group in sure)
        self._spent += sum(part * self._cost(group) for group, part in perhaps)
        self._note()
        for group, part in perhaps:
            saved = 0.0
            for j, mean in group.missing.items():
                weight[j] /= 1.0 - part + part * mean
                saved += weight[j] * (1.0 - mean)
            self._spent -= part * self._cost(group)
            if saved >= self._cost(group):
                sure.append(group)
                self._spent += self._cost(group)
                for j, mean in group.missing.items():
                    weight[j] *= mean
            self._note()
        given: dict[Edge, int] = {}
        machines = [0] * paid.tables.c
        for group in sure:
            if budget is not None and budget.stopped:
                return None
            machines[group.shape] += group.copies
            for edge, number in self._fill(group, budget).items():
                given[edge] = given.get(edge, 0) + number
            self._note()
        return self._served(machines, given)

    def _cost(self, group: Group) -> float:
        return float(group.copies * self._paid.tables.costs[group.shape] / self._paid.unit)

    def _note(self) -> None:
        self.estimates.append(self._spent + sum(self._weight.values()))

    def _groups(self, c: int, number: int) -> list[Group]:
        """Divide so many machines of a configuration into groups."""
        of_job: dict[int, Fraction] = {}
        for (_, j), share in self._fractional.shares[c].items():
            of_job[j] = of_job.get(j, Fraction(0)) + Fraction(share)
        # Each copy gives a job its share divided by the machines: so many copies, all it needs.
        copies = max(1, floor(self._fractional.machines[c] / max(of_job.values())))
        full, rest = divmod(number, copies)
        groups = [self._group(c, copies)] * full
        return [*groups, self._group(c, rest)] if rest else groups

    def _group(self, c: int, copies: int) -> Group:
        tables, each = self._paid.tables, copies / self._fractional.machines[c]
        blocks = {
            (i, j): each * Fraction(share) * tables.demands[j] / tables.supply[j][i]
            for (i, j), share in self._fractional.shares[c].items()
        }
        draws = Draws.of(blocks, [copies * count for count in self._paid.counts[c]])
        # exp(-t z) is convex: below its chord on [0, 1].
        low = exp(-self._t)
        missing = draws.missing(self._parts)
        bound = {j: low + (1.0 - low) * chance for j, chance in missing.items()}
        return Group(c, copies, draws, bound)

    def _fill(self, group: Group, budget: Budget | None) -> dict[Edge, int]:
        """Decide who gets the blocks of a group."""
        weight, parts = self._weight, self._parts
        for j, mean in group.missing.items():
            weight[j] /= mean
        given = group.draws.decided(parts, weight, budget)
        got: dict[int, float] = {}
        for edge, number in given.items():
            amount = float(min(Fraction(1), number * Fraction(parts[edge])))
            got[edge[1]] = min(1.0, got.get(edge[1], 0.0) + amount)
        for j, amount in got.items():
            weight[j] *= exp(-self._t * amount)
        return given

    def _served(self, opened: list[int], given: dict[Edge, int]) -> Counts:
        """Serve jobs that were left short, each by machines of its own."""
        tables = self._paid.tables
        machines = list(opened)
        blocks = dict(given)
        got = [0] * tables.n
        for (i, j), number in given.items():
            got[j] += number * tables.supply[j][i]
        for j, repair in enumerate(self._paid.alone):
            if got[j] >= tables.demands[j]:
                continue
            supply = tables.supply[j]
            machines[repair.shape] += repair.number
            for i, count in enumerate(self._paid.counts[repair.shape]):
                if count and supply[i]:
                    blocks[i, j] = blocks.get((i, j), 0) + count * repair.number
        return repaired(tables, machines, blocks)
