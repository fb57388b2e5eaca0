"""Tasks that leave nothing out: what a solver proves about them is proved of the problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cms.plugin.algorithm import SolverBound

from ..prices.choices import no_choices
from ..prices.region import Region
from .options import NearOptions
from .program import Answer, Task, shortened
from .rounding import Box

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.plugin.algorithm import Budget

    from ..prices.points import PricePoint
    from ..prices.sharded_jobs import AnyJobs
    from .shapes import Shapes

#: Options of all kinds of jobs together, and of a single kind, beyond which they are not listed ...
_MOST_OPTIONS, _MOST_OPTIONS_A_KIND = 60_000, 5_000
#: ... nor if there are so many for each variable of the compact program, which then is decided
#: sooner (measured on instances.families with 10 to 120 jobs).
_OPTIONS_A_BLOCK = 10


def every_option(
    shapes: Shapes,
    jobs: AnyJobs,
    point: PricePoint,
    least: Fraction,
    target: Fraction,
    budget: Budget,
) -> Task | None:
    """Choose among all options and machines that a schedule up to the target can use (theory 6.7).

    Parameters
    ----------
    shapes : Shapes
        Complete ones.
    point : PricePoint
        Prices without branches; the better, the fewer options are left.
    least : Fraction
        A lower bound on the cost.
    target : Fraction
        The highest cost of interest.
    budget : Budget
        Once it is stopped, listing ends.

    Returns
    -------
    Task, or None if there are too many options for it to be a good one
    """
    if len(jobs) > _MOST_OPTIONS:
        return None  # of each kind there is an option
    slack = target - point.bound
    near = NearOptions(jobs, point)
    free: dict[int, list[tuple[int, ...]]] = {}
    most = min(_MOST_OPTIONS, _OPTIONS_A_BLOCK * jobs.problem.n_jobs * len(jobs.problem.blocks))
    total = 0
    for kind in range(len(jobs)):
        options = near.all_within(kind, slack, _MOST_OPTIONS_A_KIND)
        if options is None or budget.stopped:
            return None
        free[kind] = options
        total += len(options)
        if total > most:
            return None
    usable = [cost <= slack for cost in shapes.reduced_costs(point.vector, Region(jobs.problem))]
    return Task(no_choices(jobs.problem), free, (), least, target, usable=usable)


def every_block(
    jobs: AnyJobs, least: Fraction, target: Fraction | None, *, outer: bool = False
) -> Task:
    """Choose blocks for every job and machines: the compact program (theory 1.2).

    Parameters
    ----------
    least : Fraction
        A lower bound on the cost.
    target : Fraction or None
        The highest cost of interest.
    outer : bool, default False
        How rows of many digits are shortened; see :class:`Task`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.prices.jobs import Jobs
    >>> job = Job("x", 7, {"a": 3, "b": 8})
    >>> problem = Problem(configurations=Configuration({"a": 2, "b": 1}), jobs=[job])
    >>> every_block(Jobs(problem), Fraction(1), None).boxes
    [Box(kind=0, lows=(0, 0), highs=(3, 1))]
    """
    boxes: list[Box] = []
    for kind in range(len(jobs)):
        row = jobs.row(kind)
        if not outer:
            row = shortened(row)  # with less supply a job may need more blocks
        highs = tuple(-(-row.demand // f) if f else 0 for f in row.supply)
        boxes += [Box(kind, (0,) * len(highs), highs)] * jobs.weight(kind)
    return Task(no_choices(jobs.problem), {}, boxes, least, target, outer=outer)


def solver_bound(answer: Answer, task: Task, step: Fraction) -> SolverBound | None:
    """Return what CP-SAT's answer to such a task says about the problem.

    Parameters
    ----------
    task : Task
        Of :func:`every_option` or :func:`every_block`.
    step : Fraction
        Every cost is a multiple of it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.prices.jobs import Jobs
    >>> problem = Problem(configurations=Configuration({"a": 1}), jobs=[Job("x", 3, {"a": 1})])
    >>> task = every_block(Jobs(problem), Fraction(0), Fraction(2))
    >>> solver_bound(Answer("infeasible", None), task, Fraction(1))
    SolverBound(value=Fraction(3, 1), solver='CP-SAT')
    """
    if not answer.exact:
        return None
    beyond = None if task.target is None else task.target + step
    if answer.status == "infeasible":
        return SolverBound(beyond, "CP-SAT")
    if answer.bound is None or not step:
        return None
    # Of schedules dearer than the target the program knows nothing.
    return SolverBound(answer.bound if beyond is None else min(answer.bound, beyond), "CP-SAT")
