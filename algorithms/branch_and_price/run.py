"""One run of branch-and-price: a schedule, prices, and what closes the gap between the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cms.plugin.algorithm import Claim, Named
from cms.presolver.presolve import PresolvedProblem, presolve
from cms.problem.problem import Problem
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

    from cms.plugin.algorithm import Budget
    from cms.shards.problem import ShardedProblem
    from cms.time_sharing.problem import TimeSharedProblem

    from .closing import Closing


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
        reduction = presolve(problem, lambda: budget.stopped, fewer=True)
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


def _jobs_of(problem: Problem | ShardedProblem, budget: Budget) -> Jobs:
    """Return the jobs of a reduced problem: with a table of options, or, if that is long, without.

    Where most jobs are like others, the table is much shorter than there are jobs.
    """
    if isinstance(problem, Problem):
        jobs = Jobs(problem, lambda: budget.stopped)
        if jobs.ruled or len(jobs) <= max(jobs_module.MOST_LISTED, problem.n_jobs // 2):
            return jobs
    from ..prices.sharded_jobs import ShardedJobs

    return ShardedJobs(problem, lambda: budget.stopped, budget.threads)


def _claims(reduction: PresolvedProblem, jobs: Jobs, budget: Budget) -> Iterator[Claim]:
    """Yield certificates and schedules of the user's problem."""
    if budget.best is None:
        no_way = ray(reduction, jobs, budget)
        if no_way is not None:
            yield no_way
    search = PriceSearch(jobs, budget)
    closing: Closing | None = None
    for point in search.run():
        yield certificate(reduction, search, point)
        if closing is None:
            from .closing import Closing  # most of the package, which proved schedules do not need

            closing = Closing(reduction, search, budget)
        yield from closing.claims_between_passes()
    if closing is not None:
        yield from closing.claims()
