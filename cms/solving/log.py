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

LOGGER = logging.getLogger("cms")


def run_log(
    problem: AnyProblem, method: str, arguments: Arguments
) -> tuple[Callable[[Incumbent], object], Callable[[Solution], object]]:
    """Log what is asked; return what to call with each improvement and with the solution.

    The former passes improvements on to the caller's own ``on_improvement``.
    """
    pass_on = arguments.on_improvement or (lambda line: None)
    if not LOGGER.isEnabledFor(logging.INFO):
        return pass_on, lambda solution: None

    def improved(line: Incumbent) -> None:
        LOGGER.info("%s", log_line(line, line.seconds))
        pass_on(line)

    def ended(solution: Solution) -> None:
        LOGGER.info("%s (%s)", verdict(solution), circumstances(solution))

    seconds = arguments.limits.seconds
    until = "no time limit" if math.isinf(seconds) else f"time limit {seconds:g} s"
    sizes, seed = _sizes(problem), arguments.seed
    LOGGER.info("%s: %s, %s, seed %d", printable(method), sizes, until, seed)
    LOGGER.info("%s", log_head())
    return improved, ended


def _sizes(problem: AnyProblem) -> str:
    if not isinstance(problem, MachineProblem):
        return type(problem).__name__
    blocks, types = count(len(problem.blocks), "block"), problem.machine_types
    return f"{count(len(problem.job_names), 'job')}, {blocks}, {count(len(types), 'machine type')}"
