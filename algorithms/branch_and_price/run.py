"""One run of price-and-branch: a schedule, prices, and what closes the gap between the two."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Claim, Named
from cms.problem.problem import Problem
from cms.reduction.reduction import Reduction, reduce
from cms.running.stopping import Stopped
from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule

from ..prices import jobs as jobs_module
from ..prices.jobs import Jobs
from ..prices.passes import certificate
from ..prices.search import PriceSearch, ray
from .first import first_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.mixes.problem import TimeSharedProblem
    from cms.plugin.algorithm import Budget
    from cms.shards.problem import ShardedProblem

    from ..prices.sharded_jobs import AnyJobs
    from .closing import Closing

#: Jobs times block types up to which greedy has a turn, the part of the time that is left that it
#: may take, and the part after which it is not to be put off any longer.
_MOST_BLOCKS, _TIME, _LATE = 20_000, 0.2, 0.1


def claims(problem: Problem | ShardedProblem, budget: Budget) -> Iterator[Claim]:
    """Yield certificates and schedules of a problem: first of all a schedule, made at once."""
    if not isinstance(problem, Problem) and problem.n_jobs <= jobs_module.MOST_LISTED:
        from cms.shards.schedule import ShardedSchedule

        for claim in claims(problem.load(), budget):
            if isinstance(claim, Named) and isinstance(claim.claim, Schedule):
                claim = Named(ShardedSchedule.of(claim.claim, problem), claim.part)
            yield claim
        return
    if isinstance(problem, Problem):
        first = first_schedule(problem, lambda: budget.stopped)
        if first is not None:
            yield Named(first, "first schedule")
            del first
    try:
        reduction = reduce(problem, lambda: budget.stopped, fewer=True)
        yield from _claims(reduction, _jobs_of(reduction.problem, budget), budget)
    except Stopped:
        return


def claims_unshared(problem: TimeSharedProblem, budget: Budget) -> Iterator[Claim]:
    """Yield the claims of the plain problem, with a mix of one job in the place of each job.

    Certificates stay as they are: they are about blocks with one job.
    """
    mixes: dict[tuple[str, str], Mix] = {}
    for block in problem.blocks:
        for job, points in problem.usable_points(block).items():
            best = max(points, key=lambda p: (p.amount / p.length, -p.amount))
            mixes[block, job] = Mix({job: best.amount})
    for claim in claims(problem.unshared(), budget):
        if isinstance(claim, Named) and isinstance(claim.claim, Schedule):
            claim = Named(_shared(claim.claim, mixes), claim.part)
        yield claim


def _shared(schedule: Schedule, mixes: dict[tuple[str, str], Mix]) -> Schedule:
    return Schedule(
        MachineGroup(
            group.configuration,
            {(block, mixes[block, job]): count for (block, job), count in group.assignment.items()},
            group.count,
        )
        for group in schedule.groups
    )


def _jobs_of(problem: Problem | ShardedProblem, budget: Budget) -> AnyJobs:
    """Return the jobs of a reduced problem: with a table of options, or, if that is long, without.

    Where most jobs are like others, the table is much shorter than there are jobs.
    """
    if isinstance(problem, Problem):
        jobs = Jobs(problem, lambda: budget.stopped)
        if len(jobs) <= max(jobs_module.MOST_LISTED, problem.n_jobs // 2):
            return jobs
    from ..prices.sharded_jobs import ShardedJobs

    return ShardedJobs(problem, lambda: budget.stopped, budget.threads)


def _claims(reduction: Reduction, jobs: AnyJobs, budget: Budget) -> Iterator[Claim]:
    """Yield certificates and schedules of the user's problem."""
    greedy = GreedyTurn(reduction, budget)
    if budget.best is None:
        no_way = ray(reduction, jobs, budget)
        if no_way is not None:
            yield no_way
    search = PriceSearch(jobs, budget)
    closing: Closing | None = None
    for point in search.run():
        yield certificate(reduction, search, point)
        yield from greedy.claims(if_late=True)
        if closing is None:
            from .closing import Closing  # most of the package, which proved schedules do not need

            closing = Closing(reduction, search, budget, greedy)
        yield from closing.claims_between_passes()
    if closing is not None:
        yield from closing.claims()


class GreedyTurn:
    """Greedy's turn, which comes once, and only where it takes little of the time."""

    def __init__(self, reduction: Reduction, budget: Budget) -> None:
        self._problem, self._budget = reduction.original, budget
        small = reduction.problem
        few = small.n_jobs * len(small.blocks) <= _MOST_BLOCKS
        self._waits = few and isinstance(small, Problem)
        self._late = (1 - _LATE) * budget.remaining()

    def claims(self, *, if_late: bool = False) -> Iterator[Named]:
        """Yield greedy's claims, unless it had its turn, or may still be put off."""
        if not self._waits or (if_late and self._budget.remaining() >= self._late):
            return
        self._waits = False
        from ..greedy import Greedy, GreedyOptions

        greedy, options = Greedy(), GreedyOptions()
        if greedy.support(self._problem, options):
            # Numbers too far apart for it show in its run.
            with suppress(UnsupportedProblem):
                share = cast("Budget", _TimeShare(self._budget))
                for claim in greedy.run(self._problem, options, share):
                    yield Named(claim.claim, f"greedy: {claim.part}")


class _TimeShare:
    """A budget with a part of the time that is left of another one.

    Native code in it ends by the limits it is given: ``on_stop`` calls when the other one ends.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget, self._end = budget, monotonic() + _TIME * budget.remaining()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._budget, name)

    @property
    def stopped(self) -> bool:
        return self._budget.stopped or monotonic() >= self._end

    def remaining(self) -> float:
        return max(0.0, min(self._budget.remaining(), self._end - monotonic()))
