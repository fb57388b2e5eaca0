"""What machines give to one job at a time, and what is to be paid for them at least."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem.parts import Configuration

    from .hosting import Hosting


class Saturated(NamedTuple):
    """Jobs with a demand, and what each configuration gives them when it serves nobody else.

    Attributes
    ----------
    demands : dict of str to Fraction
        Of the jobs that have one.
    gives : dict of str to list of Fraction
        For each of these jobs, what each configuration gives it.
    unservable : bool
        Whether some job gets nothing from any.
    """

    demands: dict[str, Fraction]
    gives: dict[str, list[Fraction]]
    unservable: bool

    @classmethod
    def of(cls, hosting: Hosting, shapes: Sequence[Configuration]) -> Saturated:
        """Add up what the blocks of configurations give, each serving the job alone."""
        demands = {job.name: job.demand for job in hosting.problem.jobs if job.demand}
        gives = {
            job: [
                sum(
                    (
                        number * hosting.saturated[job].get(block, Fraction(0))
                        for block, number in shape.blocks.items()
                    ),
                    Fraction(0),
                )
                for shape in shapes
            ]
            for job in demands
        }
        return cls(demands, gives, any(not any(row) for row in gives.values()))


def least_cost(hosting: Hosting, shapes: Sequence[Configuration], saturated: Saturated) -> Fraction:
    """Return a cost below which there is no schedule.

    A unit of a job's rate is priced at what it costs on the configuration that gives the job most
    for its cost. A block is worth no more than to one job alone, since a mix gives an average of
    what its jobs would get alone, each for its part of the frame. So all demands cost no less than
    they are worth, at the rate of the configuration that is worth most for its cost.

    Raises
    ------
    ValueError
        If a job cannot be served.

    Examples
    --------
    >>> from cms import Configuration, TimeSharedJob, TimeSharedProblem
    >>> from algorithms.mixes.hosting import Hosting
    >>> jobs = [TimeSharedJob(name, 250, 1, {"all": [(1, "0.01")]}) for name in ("a", "b")]
    >>> problem = TimeSharedProblem(configurations=Configuration({"all": 1}), jobs=jobs)
    >>> hosting = Hosting(problem)
    >>> shapes = problem.listed_configurations
    >>> least_cost(hosting, shapes, Saturated.of(hosting, shapes))
    Fraction(5, 1)
    """
    if saturated.unservable:
        raise ValueError("a job cannot be served by any of the configurations")
    costs = [hosting.problem.machine_type(shape.machine).cost for shape in shapes]
    prices = {
        job: min(cost / give for cost, give in zip(costs, row, strict=True) if give)
        for job, row in saturated.gives.items()
    }
    dearest = {
        block: max(
            (prices[job] * hosting.saturated[job].get(block, 0) for job in prices),
            default=Fraction(0),
        )
        for block in hosting.problem.blocks
    }
    worths = [
        sum((number * dearest[block] for block, number in shape.blocks.items()), Fraction(0))
        for shape in shapes
    ]
    rate = min(
        (cost / worth for cost, worth in zip(costs, worths, strict=True) if worth),
        default=Fraction(0),
    )
    return rate * sum(
        (demand * prices[job] for job, demand in saturated.demands.items()), Fraction(0)
    )
