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
from typing import TYPE_CHECKING, NamedTuple

from cms.errors import UnsupportedProblem

from ..aggregated.program import repaired
from ..solvers.linear import LinearProgram
from .draws import Draws
from .factors import kappa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.plugin.algorithm import Budget

    from ..aggregated.program import Counts
    from ..aggregated.pseudoforest import Edge
    from ..tables.integers import Tables

#: Variables of LP*, beyond which it takes minutes.
MOST_VARIABLES = 60_000
#: Shares below this are the solver's noise.
_NOTHING = 1e-12
#: Jobs are left out of LP* if serving them alone costs less than this part of the whole, over n.
_CHEAP = 10**12
#: Edges by which it would cost so many units to serve a job are left out of LP*: it costs no more
#: than a unit, so that they carry no more than a part k / _FAR of a job's demand.
_FAR = 10**8
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
        alone = [_alone(tables, counts, j) for j in range(tables.n)]
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


def _alone(tables: Tables, counts: Sequence[Sequence[int]], j: int) -> Repair:
    demand, supply = tables.demands[j], tables.supply[j]
    ways = []
    for c, row in enumerate(counts):
        amount = min(demand, sum(a * f for a, f in zip(row, supply, strict=True)))
        if amount:
            number = -(-demand // amount)
            ways.append(Repair(c, number, number * tables.costs[c]))
    return min(ways, key=lambda way: (way.cost, way.shape))


class LpStarSolution(NamedTuple):
    """A solution of LP*: its machines are just enough for its shares.

    Attributes
    ----------
    value : Fraction
    machines : dict
        ``{configuration: machines}``.
    shares : dict
        ``{configuration: {(block type, job): part of the job's demand}}``.
    """

    value: Fraction
    machines: dict[int, Fraction]
    shares: dict[int, dict[Edge, float]]


def solve(paid: Paid, budget: Budget | None) -> LpStarSolution | None:
    """Solve LP*; None if stopped.

    The variables are parts of jobs' demands (or, where that is less, what these parts cost) and
    what is paid for each configuration, as parts of the unit: numbers between 0 and 1, however many
    machines or blocks there are.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> jobs = [Job(name, 1, {name: 1}) for name in "abcd"]
    >>> shapes = [Configuration({name: 10}) for name in "abcd"]
    >>> paid = Paid.of(Tables.of(Problem(configurations=shapes, jobs=jobs)))
    >>> round(float(solve(paid, None).value), 9)
    4.0
    """
    tables = paid.tables
    program = LinearProgram()
    opened: dict[int, int] = {}
    shares: dict[int, dict[Edge, int]] = {}
    needs: dict[int, dict[Edge, float]] = {}
    scale: dict[int, float] = {}
    serving: dict[int, list[tuple[int, float]]] = {j: [] for j in paid.jobs}
    for c in paid.shapes:
        if budget is not None and budget.stopped:
            return None
        cost = float(tables.costs[c] / paid.unit)
        x = opened[c] = program.variable(1.0)
        mine = needs[c] = _needs(paid, c)
        shares[c] = {edge: program.variable(0.0) for edge in mine}
        by_type: dict[int, list[tuple[int, float]]] = {}
        by_job: dict[int, list[tuple[int, float]]] = {}
        for (i, j), v in shares[c].items():
            # No coefficient is above 1.
            size = scale[v] = max(1.0, mine[i, j])
            by_type.setdefault(i, []).append((v, -mine[i, j] / size))
            by_job.setdefault(j, []).append((v, -cost / size))
            serving[j].append((v, 1.0 / size))
        for terms in (*by_type.values(), *by_job.values()):
            program.row([*terms, (x, 1.0)], low=0.0)
    for terms in serving.values():
        program.row(terms, low=1.0)
    answer = program.solve(budget)
    if answer is None:
        if budget is not None and budget.stopped:
            return None
        raise UnsupportedProblem(
            "the linear solver comes to no end of LP*, which has a solution (every job by itself): "
            'its numbers are too far apart for floats; take variant = "units" or "inflated"'
        )
    values = {v: max(0.0, answer.values[v]) / size for v, size in scale.items()}
    # Exactly the whole of every job, and then as many machines as that takes.
    total = {j: sum(values[v] for v, _ in terms) for j, terms in serving.items()}
    found: dict[int, dict[Edge, float]] = {}
    machines: dict[int, Fraction] = {}
    for c, mine_ in shares.items():
        parts = {edge: values[v] / total[edge[1]] for edge, v in mine_.items()}
        parts = {edge: part for edge, part in parts.items() if part > _NOTHING}
        if parts:
            found[c] = parts
            machines[c] = _paid_for(paid, c, parts, needs[c]) * paid.unit / tables.costs[c]
    value = sum((x * tables.costs[c] for c, x in machines.items()), Fraction(0))
    return LpStarSolution(value, machines, found)


def _needs(paid: Paid, c: int) -> dict[Edge, float]:
    """What it costs to serve jobs wholly by a type's blocks of a configuration, in units."""
    tables = paid.tables
    needs = {}
    for j in paid.jobs:
        for i, f in enumerate(tables.supply[j]):
            count = paid.counts[c][i]
            if f and count:
                need = tables.costs[c] * tables.demands[j] / (paid.unit * f * count)
                if need <= _FAR:
                    needs[i, j] = float(need)
    return needs


def _paid_for(paid: Paid, c: int, parts: dict[Edge, float], needs: dict[Edge, float]) -> Fraction:
    """What machines of a configuration cost that are enough for parts of jobs, in units."""
    cost = float(paid.tables.costs[c] / paid.unit)
    of_type: dict[int, float] = {}
    of_job: dict[int, float] = {}
    for (i, j), part in parts.items():
        of_type[i] = of_type.get(i, 0.0) + needs[i, j] * part
        of_job[j] = of_job.get(j, 0.0) + cost * part
    # A hair more than floats say.
    return Fraction(max(*of_type.values(), *of_job.values())) * (1 + Fraction(1, 10**12))


def round_machinewise(
    paid: Paid, fractional: LpStarSolution, budget: Budget | None
) -> Counts | None:
    """Round LP* by conditional expectations; None if stopped.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
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
