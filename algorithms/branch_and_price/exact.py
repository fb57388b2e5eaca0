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
    """Choose among all options and machines that a schedule up to the target can use.

    None if these are too many for it to be a good program (theory 6.7).
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
    """Choose blocks for every job and machines: the compact program (theory 1.2)."""
    boxes: list[Box] = []
    for kind in range(len(jobs)):
        row = jobs.row(kind)
        if not outer:
            row = shortened(row)  # with less supply a job may need more blocks
        highs = tuple(-(-row.demand // f) if f else 0 for f in row.supply)
        boxes += [Box(kind, (0,) * len(highs), highs)] * jobs.weight(kind)
    return Task(no_choices(jobs.problem), {}, boxes, least, target, outer=outer)


def solver_bound(answer: Answer, task: Task, step: Fraction) -> SolverBound | None:
    """Return what CP-SAT's answer to such a task says about the problem."""
    if not answer.exact:
        return None
    beyond = None if task.target is None else task.target + step
    if answer.status == "infeasible":
        return SolverBound(beyond, "CP-SAT")
    if answer.bound is None or not step:
        return None
    # Of schedules dearer than the target the program knows nothing.
    return SolverBound(answer.bound if beyond is None else min(answer.bound, beyond), "CP-SAT")
