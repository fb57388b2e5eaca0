"""MIG-serving's fast algorithm, and what both algorithms count: services and filled machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, prod
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem
from cms.knapsack.pricing import common_denominator
from cms.plugin.algorithm import Named, Support
from cms.presolver.presolve import presolve
from cms.schedule.schedule import MachineGroup, Schedule
from cms.values.fields import CheckedFields

from ..integer_problem import Tables, without_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget, Claim
    from cms.problem.problem import Problem

#: Jobs that are looked at together when the best machine for all of them is wanted.
_PLACES = 6
#: Numbers in the table of the ways to hand out blocks to these, at most.
_MOST_NUMBERS = 2_000_000
#: Machines are opened one by one: beyond this number a run takes minutes.
_MOST_MACHINES = 20_000
#: Blocks of a machine, so that int64 holds what it gives.
_MOST_BLOCKS = 1_000
#: Binary digits of a demand. What a million blocks give, each cut at the demand, is still an int64.
_DIGITS = 40


@dataclass(frozen=True)
class MigServingFastOptions(CheckedFields):
    """Options of :class:`MigServingFast`; but for the score as in a public re-implementation.

    Parameters
    ----------
    score : {"capped", "plain"}, default "capped"
        "capped": a machine counts up to what is missing (not published); "plain": up to all.
    mixed : int, default 3
        Different jobs on one machine, at most; 2 to 3 in MIG-serving.
    last_mile : number, default 1/10
        Once no job is missing a larger part, one job more is mixed, and scores are capped.
    """

    score: str = "capped"
    mixed: int = 3
    last_mile: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        self._one_of("score", ("capped", "plain"))
        self._whole("mixed", least=1, most=5)
        self._number("last_mile", most=1)


class Filled(NamedTuple):
    """A machine with its blocks handed out: (block type, job, number), and (job, amount), in order.

    A block that would give its job nothing is left idle.
    """

    shape: int
    blocks: tuple[tuple[int, int, int], ...]
    gives: tuple[tuple[int, int], ...]

    def serve(self, left: list[int] | NDArray[np.int64], times: int = 1) -> None:
        """Take what the machine gives off what jobs lack; with -1 put it back."""
        for j, amount in self.gives:
            left[j] -= times * amount


class Services:
    """The jobs and machines of a reduced problem, in int64.

    Demands of more than 40 binary digits are rounded up, and their supply down: schedules that meet
    these meet the problem's own. `prices` are the configurations' costs in a common step, `utility`
    (n, k) is the part of a job's demand that a block satisfies, at most 1.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.needs: list[int] = []
        self.supply: list[list[int]] = []
        for demand, row in zip(tables.demands.tolist(), tables.supply.tolist(), strict=True):
            shift = max(0, demand.bit_length() - _DIGITS)
            self.needs.append(-(-demand >> shift))
            self.supply.append([amount >> shift for amount in row])
        self.utility = np.array(self.supply, dtype=np.float64).reshape(tables.n, tables.k)
        self.utility /= np.array(self.needs, dtype=np.float64).reshape(tables.n, 1)
        self.prices, _ = common_denominator(tables.costs)

    @property
    def alone(self) -> list[Fraction]:
        """How many machines each job would fill by itself, of those that pay it best."""
        found = []
        demands, supply = self.tables.demands.tolist(), self.tables.supply.tolist()
        for demand, mine in zip(demands, supply, strict=True):
            # Of machines that cost the same the one that gives most: most problems have few costs.
            best: dict[int, int] = {}
            for row, price in zip(self.tables.counts, self.prices, strict=True):
                best[price] = max(best.get(price, 0), sum(map(mul, row, mine)))
            _, most = max((Fraction(amount, price), amount) for price, amount in best.items())
            found.append(Fraction(demand, most))
        return found

    def filled(self, shape: int, blocks: Iterable[tuple[int, int, int]]) -> Filled:
        """Hand out a machine's blocks: (block type, job, number), added up by type and job."""
        held: Counter[tuple[int, int]] = Counter()
        gives: Counter[int] = Counter()
        for i, j, number in blocks:
            if amount := self.supply[j][i]:
                held[i, j] += number
                gives[j] += number * amount
        useful = sorted((i, j, number) for (i, j), number in held.items() if number)
        return Filled(shape, tuple(useful), tuple(sorted(x for x in gives.items() if x[1])))

    def free(self, shape: int, blocks: Iterable[tuple[int, int, int]]) -> list[int]:
        """Return the blocks of each type that a configuration has beside these."""
        free = list(self.tables.counts[shape])
        for i, _, number in blocks:
            free[i] -= number
        return free

    def missing(self, machines: Iterable[Filled]) -> list[int]:
        """Return what jobs lack; a negative number is what they have too much."""
        left = list(self.needs)
        for machine in machines:
            machine.serve(left)
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


def patterns(
    shapes: Sequence[Sequence[int]], places: int, mixed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """List the ways to hand out all blocks of each configuration, to at most `mixed` places.

    Return the configurations (rows,), and how many blocks of each type each place gets (rows,
    places, k): floats, for products, of small whole numbers.
    """
    rows, tables = [], []
    for at, shape in enumerate(shapes):
        for used in range(1, min(mixed, places) + 1):
            every = product(*(_shares(count, used) for count in shape))
            ways = [way for way in every if all(map(any, zip(*way, strict=True)))]
            taken = np.array(ways, dtype=np.float64).reshape(-1, len(shape), used)
            for chosen in combinations(range(places), used):
                table = np.zeros((len(ways), places, len(shape)))
                table[:, chosen] = taken.transpose(0, 2, 1)
                tables.append(table)
                rows += [at] * len(ways)
    return np.array(rows, dtype=np.int64), np.concatenate(tables)


def _shares(count: int, used: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide equal blocks among `used` takers, most for the first first."""
    if used == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for rest in _shares(count - first, used - 1):
            yield (first, *rest)


def count_patterns(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> int:
    """Count the rows of :func:`patterns` without listing them."""
    # Inclusion and exclusion: none of those chosen goes without.
    return sum(
        (-1) ** out
        * comb(places, used)
        * comb(used, out)
        * prod(comb(count + used - out - 1, count) for count in shape if count)
        for shape in shapes
        for used in range(1, min(mixed, places) + 1)
        for out in range(used)
    )


def fitting(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> int:
    """Return how many jobs can be looked at together, at most `places`; 0 if not even one."""
    k = len(shapes[0]) if shapes else 0
    while places and count_patterns(shapes, places, mixed) * places * k > _MOST_NUMBERS:
        places -= 1
    return places


class Candidates:
    """The best machines to open next, by the score of :class:`MigServingFast`."""

    def __init__(self, services: Services, options: MigServingFastOptions) -> None:
        self._services, self._mixed = services, options.mixed
        self._capped = options.score == "capped"
        self._nearly = np.array([int(need * options.last_mile) for need in services.needs])
        counts = services.tables.counts
        self._patterns = cache(lambda places, mixed: patterns(counts, places, mixed))
        self._places = fitting(counts, _PLACES, self._mixed + 1)
        # What a block of each type is worth to the jobs, then all of the type that a machine has.
        most = np.array([max(column) for column in zip(*counts, strict=True)]).reshape(-1, 1)
        self._worth = np.vstack([services.utility.T, services.utility.T * most])
        self._needs = np.array(services.needs, dtype=np.float64)
        costs = services.tables.costs
        self._costs = np.array([float(cost / min(costs)) for cost in costs])

    def fast(self, budget: Budget | None = None) -> list[Filled] | None:
        """Open the machine of the highest score until nothing is missing; None if stopped."""
        left = np.array(self._services.needs, dtype=np.int64)
        opened: list[Filled] = []
        while (left > 0).any():
            if budget is not None and budget.stopped:
                return None
            jobs = self.shortlist(left, capped=self._capped)
            [machine] = self.top(jobs, left, keep=1, capped=self._capped)
            opened.append(machine)
            if len(opened) > _MOST_MACHINES:
                why = "machines of little use are far cheaper than others; use auto or greedy"
                many = f"it would open more than {_MOST_MACHINES} machines one by one"
                raise UnsupportedProblem(f"{many}, because {why}")
            machine.serve(left)
        return opened

    def top(
        self,
        jobs: Sequence[int],
        missing: Sequence[int] | NDArray[np.int64],
        *,
        keep: int,
        capped: bool = True,
    ) -> list[Filled]:
        """Return `keep` machines of the highest scores for a few unfinished jobs, best first."""
        late = self._late(missing)
        shapes, counts = self._patterns(len(jobs), self._mixed + late)
        left = np.array([missing[j] for j in jobs], dtype=np.float64) / self._needs[list(jobs)]
        # (rows, places): what each way gives each job
        parts = np.einsum("rpi,pi->rp", counts, self._services.utility[list(jobs)])
        if capped or late:
            np.minimum(parts, left, out=parts)
        scores = parts @ left
        scores /= self._costs[shapes]
        # Ways that differ in blocks that give nothing are one machine: some more than wanted.
        some = min(len(scores), 4 * keep)
        order = np.argpartition(-scores, some - 1)[:some] if some < len(scores) else range(some)
        best: dict[Filled, None] = {}
        for r in sorted(order, key=lambda r: (-scores[r], r)):
            table = counts[r]
            blocks = [(int(i), jobs[p], int(table[p, i])) for p, i in np.argwhere(table)]
            machine = self._services.filled(int(shapes[r]), blocks)
            if machine.gives:
                best[machine] = None
            if len(best) == keep:
                break
        return list(best)

    def shortlist(self, missing: NDArray[np.int64], *, capped: bool) -> list[int]:
        """Choose six jobs, in order, for which one block, or all of a type, counts most.

        Types take turns. They are fewer where the table of ways would be too large.
        """
        places = self._places
        open_jobs = np.flatnonzero(missing > 0)
        if len(open_jobs) <= places:
            return [int(j) for j in open_jobs]
        left = missing[open_jobs] / self._needs[open_jobs]
        values = self._worth[:, open_jobs]
        if capped or self._late(missing):
            np.minimum(values, left, out=values)
        values *= left
        # The best few of each row, best first; of equals the first.
        few = np.argpartition(values, -places, axis=1)[:, -places:].tolist()
        ranked = [
            sorted(best, key=lambda j, row=row: (-row[j], j))  # type: ignore[misc]
            for row, best in zip(values, few, strict=True)
        ]
        turns = dict.fromkeys(j for turn in zip(*ranked, strict=True) for j in turn)
        return sorted(int(open_jobs[j]) for j in list(turns)[:places])

    def _late(self, missing: Sequence[int] | NDArray[np.int64]) -> bool:
        """Whether this is the last mile."""
        return bool((np.asarray(missing) <= self._nearly).all())


class Run:
    """What both algorithms need of a problem."""

    def __init__(self, problem: Problem, options: MigServingFastOptions) -> None:
        self._reduction = presolve(problem)
        self.services = Services(Tables.of(self._reduction.problem))
        self.candidates = Candidates(self.services, options)

    def fast(self, budget: Budget) -> list[Filled] | None:
        """Return the fast algorithm's machines; None if stopped, or if there are none that do."""
        # the driver knows where there is no schedule
        return None if self.services.tables.unservable else self.candidates.fast(budget)

    def claim(self, machines: Sequence[Filled], part: str) -> Named:
        """Turn machines into a schedule of the user's problem."""
        return Named(self._reduction.restore(self.services.schedule(machines)), part)


class ByScores:
    """What both algorithms take; nothing is proved of them."""

    def support(self, problem: Problem, options: MigServingFastOptions) -> Support:
        """Refuse limits, machines without a cost, and what is too much to be done one by one."""
        general = without_limits(problem)
        if not general:
            return general
        free = [machine.name for machine in problem.machine_types if not machine.cost]
        if free:
            reason = f"machine type {free[0]!r} costs nothing, and scores are divided by costs"
            return Support(False, f"{reason}; use auto")
        small = presolve(problem).problem
        # Jobs by themselves fill these machines, and none needs more than one of its own on top;
        # with costs far apart it can be more, which the run then tells.
        machines = len(small.job_names)
        if 0 < machines <= _MOST_MACHINES:
            tables = Tables.of(small)
            if tables.unservable:
                return Support(True)
            blocks = max(sum(row) for row in tables.counts)
            jobs = min(tables.n, options.mixed + 1)
            if blocks > _MOST_BLOCKS or fitting(tables.counts, jobs, jobs) < jobs:
                reason = (
                    f"the ways to hand out the blocks of a machine (up to {blocks}, of {tables.k} "
                    f"types) to {jobs} jobs are all scored; at most {_MOST_BLOCKS} blocks and a "
                    f"table of {_MOST_NUMBERS} numbers are tried; choose mixed smaller, or auto"
                )
                return Support(False, reason)
            machines += sum(map(int, Services(tables).alone))
        if machines > _MOST_MACHINES:
            reason = f"it would open up to {machines} machines one by one, at most {_MOST_MACHINES}"
            other = "use auto or greedy, which open equal machines at once"
            return Support(False, f"{reason} are tried; {other}")
        return Support(True)

    def guarantee(self, problem: Problem, options: MigServingFastOptions) -> None:
        """Return None: nothing is proved of it."""


class MigServingFast(ByScores):
    """MIG-serving's fast algorithm: the machine of the highest score, again and again.

    A machine's score is the sum, over jobs, of the part of the demand that is missing times the
    part that the machine satisfies, divided by the machine's cost (MIG-serving knows one cost). A
    machine is opened, what is missing is counted anew, and so on until nothing is. At most a few
    different jobs share a machine; in the last mile, when no job is missing much, one more.

    All ways to hand out a machine's blocks to six jobs are scored at once (fewer where the ways are
    too many for a table): those to which a block of some type, or all of it on a machine, are worth
    most. Up to six unfinished jobs the best machine is found exactly.

    Notes
    -----
    **Guarantee.** None: the source states none, and plain scores can open a whole machine for each
    job.

    **Running time.** One step a machine; a step costs O(n k), and the product of some thousand ways
    with six jobs. So 1,000 services take about a second, and fleets of more than about 20,000
    machines are refused.

    References
    ----------
    Tan, Li, Zhang, Cao, Qi, Liu, Zhu, Guo: Serving DNN Models with Multi-Instance GPUs: A Case of
    the Reconfigurable Machine Scheduling Problem, arXiv:2109.11067.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solve(problem, method="mig_serving_fast").machine_count
    2
    """

    name = "mig_serving_fast"
    options_type = MigServingFastOptions

    def run(
        self, problem: Problem, options: MigServingFastOptions, budget: Budget
    ) -> Iterator[Claim]:
        """Yield one schedule."""
        run = Run(problem, options)
        if (machines := run.fast(budget)) is not None:
            yield run.claim(machines, "fast algorithm")
