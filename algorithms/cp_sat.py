"""The reference: CP-SAT to proved optimality on small and middling problems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from cms.certificate.certificate import next_below, round_up
from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named
from cms.presolver.presolve import PresolvedProblem, presolve
from cms.values.fields import CheckedFields

from .branch_and_price.program import (
    Found,
    Task,
    every_block,
    every_option,
    improvements,
    round_off,
    schedule_of,
    solver_bound,
)
from .branch_and_price.shapes import Shapes
from .integer_problem import supported
from .prices.jobs import Jobs
from .prices.passes import certificate
from .prices.region import PricePoint
from .prices.search import PriceSearch, fractional, ray

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget, Claim, Support
    from cms.problem.problem import Problem

#: Maximal multisets of a size-bounded set that are listed one by one.
_MOST_SHAPES = 20_000
#: Jobs beyond which only prices and a first schedule are computed.
_MOST_JOBS = 20_000
#: CP-SAT's deterministic time (about seconds) for the machines of the first schedule.
_FIRST_EFFORT = 1.0


@dataclass(frozen=True)
class CpSatOptions(CheckedFields):
    """Options of :class:`CpSat`.

    Parameters
    ----------
    workers : int, default 1
        CP-SAT's workers. Runs with one worker are reproducible.
    """

    workers: int = 1

    def __post_init__(self) -> None:
        self._whole("workers", least=1, most=1024)


class CpSat:
    """CP-SAT on options of the jobs, between certified bounds; small problems end proved.

    Block prices come first: they certify the lower bound, and leave few options of each job that
    can matter. The fractional schedule behind them is rounded once. Then one integer program, over
    these options and the numbers of machines, is CP-SAT's alone until it is decided; where the
    options are too many it is the compact program, over the blocks of each job. A bound beyond that
    of the prices rests on CP-SAT's word.

    Notes
    -----
    **Guarantee.** None by a ratio. On small and middling problems a run ends ``OPTIMAL`` or
    ``INFEASIBLE``: on CP-SAT's word, or ``CHECKED`` where block prices reach the same value. It
    ends ``FEASIBLE`` or ``NO_SCHEDULE``, with a checked bound, beyond 20,000 jobs, or where numbers
    leave CP-SAT's 63 bits and rounding them, one way and the other, leaves a gap.

    **Running time.** Exponential in the worst case. The block prices cost about a dozen passes
    over the jobs.

    References
    ----------
    Perron, Furnon: OR-Tools, https://developers.google.com/optimization.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})],
    ... )
    >>> solution = solve(problem, method="cp_sat")
    >>> solution.machine_count, solution.status.value, solution.proof.value
    (2, 'optimal', 'checked')
    """

    name = "cp_sat"
    options_type = CpSatOptions

    def support(self, problem: Problem, options: CpSatOptions) -> Support:
        """Refuse what CP-SAT or the listing of configurations cannot take."""
        return supported(problem, problem, _MOST_SHAPES)

    def guarantee(self, problem: Problem, options: CpSatOptions) -> None:
        """Return None: what a run proves is in its status, not in a ratio."""

    def run(self, problem: Problem, options: CpSatOptions, budget: Budget) -> Iterator[Claim]:
        """Yield certificates, schedules and at last CP-SAT's bound."""
        yield from _Reference(presolve(problem), options.workers, budget).claims()


#: What CP-SAT is asked to decide; a program that is too large leaves it to the next. The rows of
#: the last are rounded so that what is proved of it holds for the problem.
_PROGRAMS = (
    "all options that can matter",
    "the compact program",
    "the compact program, rounded for proofs",
)


class _Reference:
    """A run on a reduced problem."""

    def __init__(self, reduction: PresolvedProblem, workers: int, budget: Budget) -> None:
        self._reduction, self._problem = reduction, reduction.problem
        self._workers, self._budget = workers, budget
        self._jobs = Jobs(self._problem)

    def claims(self) -> Iterator[Named]:
        """Yield claims about the problem the user gave."""
        jobs, budget = self._jobs, self._budget
        proof = ray(self._reduction, jobs, budget)
        if proof is not None:
            yield proof  # the driver ends the run here, unless rounding left nothing of the proof
        search = PriceSearch(jobs, budget)
        # To the very end: a fractional schedule that costs more leaves rounding no room.
        for point in chain(search.run(), search.refine()):
            yield certificate(self._reduction, search, point)
        if search.best is None or budget.stopped:
            return
        shapes = Shapes(self._problem, search.region.rows, _MOST_SHAPES)
        if not shapes.complete:
            raise UnsupportedProblem("the reduced problem has too many maximal configurations")
        yield from self._round(search, shapes)
        if self._problem.n_jobs <= _MOST_JOBS:
            yield from self._decide(shapes, search.best)

    def _schedule(self, shapes: Shapes, found: Found, part: str) -> Named:
        return Named(self._reduction.restore(schedule_of(shapes, self._jobs, found)), part)

    def _round(self, search: PriceSearch, shapes: Shapes) -> Iterator[Named]:
        """Round the fractional schedule once."""
        limits = {"effort": _FIRST_EFFORT, "workers": self._workers}
        found = round_off(search, shapes, fractional(search), self._budget, **limits)
        if isinstance(found, Found):
            yield self._schedule(shapes, found, "rounding")
        elif found is not None:
            yield Named(self._reduction.restore(found), "rounding")

    def _decide(self, shapes: Shapes, point: PricePoint) -> Iterator[Named]:
        """Look for anything better than the best schedule, until there is provably nothing."""
        for part in _PROGRAMS:
            task = self._task(part, shapes, point)
            if task is None:
                continue
            found = improvements(shapes, self._jobs, task, self._budget, self._workers)
            with closing(found) as items:
                for item in items:
                    if isinstance(item, Found):
                        yield self._schedule(shapes, item, part)
                        continue
                    word = solver_bound(item, task, self._problem.cost_step)
                    if word is not None:
                        yield Named(word, part)
                    if item.exact:
                        return

    def _task(self, part: str, shapes: Shapes, point: PricePoint) -> Task | None:
        """State what is left to decide; None if there is nothing, or no such program."""
        budget, step = self._budget, self._problem.cost_step
        least, target = max(round_up(point.bound, step), budget.lower_bound), None
        if budget.best is not None:
            cost = budget.best.cost(self._reduction.original)
            if not step or cost <= budget.lower_bound:
                return None
            target = next_below(cost, step)
        if budget.stopped:
            return None
        if part != _PROGRAMS[0]:
            return every_block(self._jobs, least, target, outer=part == _PROGRAMS[-1])
        if target is None:
            return None  # any option may matter
        return every_option(shapes, self._jobs, point, least, target, budget)
