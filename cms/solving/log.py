"""The log of a run, for whoever wants one: the logger ``cms`` of Python's ``logging``.

A library says nothing by itself: all is said at level INFO, which ``logging`` drops until a program
asks for it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..problem.machine_problem import MachineProblem
from ..values.words import count, printable
from .words import circumstances, log_head, log_line, verdict

if TYPE_CHECKING:
    from ..referee.kinds import AnyProblem
    from .arguments import Arguments
    from .solution import Incumbent, Solution

__all__ = ["LOGGER", "RunLog", "run_log"]

LOGGER = logging.getLogger("cms")


class RunLog:
    """One run in the log: what is asked, a line an improvement, what was found.

    Its instance is an ``on_improvement``, which passes improvements on.

    Parameters
    ----------
    problem : Problem
        Or of another kind; of a third party's kind nothing is asked.
    method : str
    arguments : Arguments
    """

    def __init__(self, problem: AnyProblem, method: str, arguments: Arguments) -> None:
        self._pass_on = arguments.on_improvement
        limit = arguments.limits.seconds
        until = "no time limit" if math.isinf(limit) else f"time limit {limit:g} s"
        LOGGER.info(
            "%s: %s, %s, seed %d", printable(method), _sizes(problem), until, arguments.seed
        )
        LOGGER.info("%s", log_head())

    def __call__(self, incumbent: Incumbent) -> None:
        """Write a line, and pass the improvement on."""
        LOGGER.info("%s", log_line(incumbent, incumbent.seconds))
        if self._pass_on is not None:
            self._pass_on(incumbent)

    @staticmethod
    def end(solution: Solution) -> None:
        """Write what was found."""
        LOGGER.info("%s (%s)", verdict(solution), circumstances(solution))


def run_log(
    problem: AnyProblem, method: str, arguments: Arguments
) -> tuple[Callable[[Incumbent], object], Callable[[Solution], object]]:
    """Return what to call with each improvement and with the solution.

    Where nobody listens to the log that is the caller's own ``on_improvement``, and nothing.
    """
    if not LOGGER.isEnabledFor(logging.INFO):
        return arguments.on_improvement or _nothing, _nothing
    log = RunLog(problem, method, arguments)
    return log, log.end


def _sizes(problem: AnyProblem) -> str:
    if not isinstance(problem, MachineProblem):
        return type(problem).__name__
    jobs, types = (
        count(len(problem.job_names), "job"),
        count(len(problem.machine_types), "machine type"),
    )
    return f"{jobs}, {count(len(problem.blocks), 'block')}, {types}"


def _nothing(found: object) -> None:
    del found
