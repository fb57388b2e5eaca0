"""What a price search proves, as claims about the problem the user gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cms.plugin.algorithm import Named

from .points import PricePoint
from .search import PriceSearch

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction

    from .sharded_jobs import AnyJobs


def certificate(reduction: Reduction, search: PriceSearch, point: PricePoint) -> Named:
    """Name the prices that a search without branches on machines came to.

    Parameters
    ----------
    reduction : Reduction
        Its reduced problem is the one searched.
    point : PricePoint
        One of the search's.
    """
    worth = point.bound - search.region.constant(point.vector)
    prices = reduction.restore_prices(search.region.leaf(point.vector), worth)
    what = "ray" if search.region.free_machines else "block prices"
    return Named(prices, f"{what}, {search.passes} pass{'' if search.passes == 1 else 'es'}")


def ray(reduction: Reduction, jobs: AnyJobs, budget: Budget) -> Named | None:
    """Prove that the limits are too low for any schedule, if block prices alone can.

    Parameters
    ----------
    jobs : Jobs or ShardedJobs
        Of the reduced problem.

    Examples
    --------
    >>> from cms import Configuration, Job, MachineType, Problem
    >>> from cms.solving.driver import RunBudget
    >>> from cms.solving.ledger import Ledger
    >>> from cms import reduce
    >>> from algorithms.prices.jobs import Jobs
    >>> problem = Problem(
    ...     configurations=Configuration({"a": 2}),
    ...     machine_types=[MachineType("machine", limit=1)],
    ...     jobs=[Job("x", 3, {"a": 1})],
    ... )
    >>> ledger = Ledger(problem, "demo", trusted=True, clock=lambda: 0.0)
    >>> budget = RunBudget(ledger, seed=0, threads=1, end=float("inf"))
    >>> small = reduce(problem)
    >>> ray(small, Jobs(small.problem), budget).claim.proves_infeasible(problem)
    True
    """
    if all(machine.limit is None for machine in reduction.problem.machine_types):
        return None
    search = PriceSearch(jobs, budget, free_machines=True)
    for point in search.run():
        if point.bound > 0:
            return certificate(reduction, search, point)
    return None
