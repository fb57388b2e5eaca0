"""MIG-serving's optimiser: a fast greedy, a tree search, and a genetic algorithm around both."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Named, Support
from cms.reduction.reduction import reduce

from ..tables.integers import Tables, without_limits
from .candidates import MOST_MACHINES, MOST_NUMBERS, Candidates, fitting
from .genetic import Genetic
from .options import MigServingFastOptions, MigServingOptions
from .services import Services
from .tree_search import TreeSearch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget, Claim
    from cms.problem.problem import Problem

    from .services import Filled

__all__ = ["MigServing", "MigServingFast", "MigServingFastOptions", "MigServingOptions"]

#: Blocks of a machine, so that int64 holds what it gives.
_MOST_BLOCKS = 1_000


class _ByScores:
    """What both algorithms take, and that nothing is proved of them."""

    def support(self, problem: Problem, options: MigServingFastOptions) -> Support:
        """Refuse limits, machines without a cost, and what is too much to be done one by one."""
        general = without_limits(problem)
        if not general:
            return general
        free = [machine.name for machine in problem.machine_types if not machine.cost]
        if free:
            reason = f"machine type {free[0]!r} costs nothing, and scores are divided by costs"
            return Support(False, f"{reason}; use auto")
        small = reduce(problem).problem
        if len(small.job_names) > MOST_MACHINES:
            return _too_many(len(small.job_names))
        tables = Tables.of(small)
        if tables.unservable or not tables.n:
            return Support(True)
        blocks = max(sum(row) for row in tables.counts)
        jobs = min(tables.n, options.mixed + 1)
        if blocks > _MOST_BLOCKS or fitting(tables.counts, jobs, jobs) < jobs:
            return Support(
                False,
                f"the ways to hand out the blocks of a machine (up to {blocks}, of {tables.k} "
                f"types) to {jobs} jobs are all scored; at most {_MOST_BLOCKS} blocks and a table "
                f"of {MOST_NUMBERS} numbers are tried; choose mixed smaller, or auto",
            )
        # Jobs by themselves fill so many machines, and none needs more than one of its own on top;
        # with costs far apart it can be more, which the run then tells.
        machines = sum(map(int, Services.of(tables).alone)) + tables.n
        return Support(True) if machines <= MOST_MACHINES else _too_many(machines)

    def guarantee(self, problem: Problem, options: MigServingFastOptions) -> None:
        """Return None: nothing is proved of it."""


class MigServingFast(_ByScores):
    """MIG-serving's fast algorithm: the machine of the highest score, again and again.

    A machine's score is the sum, over jobs, of the part of the demand that is missing times the
    part that the machine satisfies, divided by the machine's cost (MIG-serving knows one cost). A
    machine is opened, what is missing is counted anew, and so on until nothing is. At most a few
    different jobs share a machine; in the last mile, when no job is missing much, one more.

    All ways to hand out a machine's blocks to six jobs are scored at once (fewer jobs where the
    ways are too many for a table). Up to six unfinished jobs the best machine is therefore found
    exactly; with more of them the six are those to which a block of some type, or all blocks of a
    type on a machine, are worth most.

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
        run = _Run(problem, options)
        machines = run.fast(budget)
        if machines is not None:
            yield run.claim(machines, "fast algorithm")


class MigServing(_ByScores):
    """MIG-serving's optimiser: its fast algorithm, then a genetic one around a tree search.

    The fast deployment is the first of a population. In every round each deployment has a child:
    *mutation* exchanges the jobs of equal blocks on different machines; *crossover* erases some
    machines at random and has a Monte Carlo tree search serve what is then missing, with some
    chance after merging several blocks of a job into a larger one. The fittest stay: the cheapest,
    of equals those whose jobs have most too much. Every cheaper schedule is claimed at once; the
    search ends after ten rounds without one, or at the limit.

    Notes
    -----
    **Guarantee.** None: the source states none. It is never worse than ``mig_serving_fast`` with
    the same options, whose schedule is its first.

    **Running time.** A round has population x playouts random completions, each a step a machine
    that was erased; some 100 machines take seconds a round.

    References
    ----------
    As for :class:`MigServingFast`.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[
    ...         Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420}),
    ...         Job("vgg", 300, {"1g": 45, "3g": 140, "4g": 180}),
    ...     ],
    ... )
    >>> solve(problem, method="mig_serving").machine_count
    3
    """

    name = "mig_serving"
    options_type = MigServingOptions

    def run(self, problem: Problem, options: MigServingOptions, budget: Budget) -> Iterator[Claim]:
        """Yield the fast schedule, then better and better ones."""
        run = _Run(problem, options)
        machines = run.fast(budget)
        if machines is None:
            return
        yield run.claim(machines, "fast algorithm")
        if not machines:
            return
        random = Random(budget.seed)
        search = TreeSearch(run.services, run.candidates, options, random)
        genetic = Genetic(run.services, search, options, random)
        first = genetic.deployment(machines)
        if len(first.machines) < len(machines):
            yield run.claim(first.machines, "fast algorithm, what can go left out")
        for deployment, turn in genetic.improvements(first, budget):
            yield run.claim(deployment.machines, f"genetic algorithm, round {turn}")


class _Run:
    """What both algorithms need of a problem."""

    def __init__(self, problem: Problem, options: MigServingFastOptions) -> None:
        self._reduction = reduce(problem)
        self.services = Services.of(Tables.of(self._reduction.problem))
        self.candidates = Candidates(self.services, options)

    def fast(self, budget: Budget) -> list[Filled] | None:
        """Return the fast algorithm's machines; None if stopped, or if there are none that do."""
        # the driver knows where there is no schedule
        return None if self.services.tables.unservable else self.candidates.fast(budget)

    def claim(self, machines: Sequence[Filled], part: str) -> Named:
        """Turn machines into a schedule of the user's problem."""
        return Named(self._reduction.restore(self.services.schedule(machines)), part)


def _too_many(machines: int) -> Support:
    return Support(
        False,
        f"it would open up to {machines} machines one by one, at most {MOST_MACHINES} are tried; "
        "use auto or greedy, which open equal machines at once",
    )
