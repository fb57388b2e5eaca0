"""What a run found and how it went, in plain words: for reports, pages, pictures and logs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from ..problem.machine_problem import MachineProblem
from ..values.words import at_least, count, decimal, is_told_apart, money, percent, printable

if TYPE_CHECKING:
    from ..checker.kinds import AnyProblem
    from .driver import Arguments
    from .solution import Incumbent, Solution


def verdict(solution: Solution, machine: str = "machine", currency: str = "") -> str:
    """Say what was found and proved: ``12 GPUs, lower bound 12: optimal, proof checked``.

    `currency`: Of costs, which are then by the hour.
    """
    if solution.status == "infeasible":
        who = "proof checked" if solution.proof == "checked" else "on a solver's word alone"
        return f"infeasible, {who}"
    priced = bool(currency) or solution.cost != solution.machine_count
    least = money(solution.lower_bound, currency, math.floor)
    if solution.cost is None or solution.machine_count is None:
        bound = f"; any has a cost >= {least}"
        return "no schedule was found" + (bound if solution.lower_bound > 0 else "")
    found = count(solution.machine_count, machine, math.ceil)
    if priced:
        found += f"; {'' if currency else 'cost '}{money(solution.cost, currency)}"
    if is_told_apart(solution.cost, solution.lower_bound, currency):
        found += f", lower bound {least}"
    else:  # 4.601e26 GPUs and a bound of 4.6e26 would look like a gap
        found += f", proved the {'least' if priced else 'fewest'}"
    if solution.status == "optimal":
        if solution.proof == "checked":
            return f"{found}: optimal, proof checked"
        return f"{found}; optimal on a solver's word alone"
    claim = ""
    if solution.claimed_bound is not None and solution.claimed_bound > solution.lower_bound:
        claim = f" (a solver claims >= {money(solution.claimed_bound, currency, math.floor)})"
    gap, relative = solution.gap or Fraction(0), solution.relative_gap or Fraction(0)
    if priced or gap.denominator > 1:
        over = f"{money(gap, currency)} in cost"
    else:
        over = count(int(gap), machine, math.ceil)
    return f"{found}{claim}: at most {over} ({percent(relative, up=True)}) above the optimum"


_STOPPED = {
    "proved": "ended with a proof",
    "finished": "the method had finished",
    "gap": "the wanted gap was reached",
    "time_limit": "stopped at the time limit",
    "interrupted": "interrupted",
}


def circumstances(solution: Solution) -> str:
    """Say how the run went: ``auto, 0.21 s, ended with a proof``."""
    return f"{solution.method}, {solution.seconds:.2f} s, {_STOPPED[solution.stop_reason]}"


def log_head(what: str = "best") -> str:
    """Name the columns of a log; ``what`` is counted or paid."""
    return f"{'time':>9}  {what:>10}  {'bound':>10}  {'gap':>8}  last by"


def log_line(state: Incumbent | None, seconds: float) -> str:
    """Say the run's latest state, None before the first claim, and the seconds since its begin."""
    best, bound, gap, source = "-", "0", "-", ""
    if state is not None:
        source = state.source
        bound = at_least(state.lower_bound)
        if state.cost is not None:
            best = decimal(state.cost, rounding=math.ceil)
            if not is_told_apart(state.cost, state.lower_bound):
                bound = "the same"
            if state.cost > 0:
                gap = percent((state.cost - state.lower_bound) / state.cost, up=True)
        if state.claimed_bound is not None and state.claimed_bound > state.lower_bound:
            source += f" (a solver claims a bound of {at_least(state.claimed_bound)})"
    return f"{seconds:>8.1f}s  {best:>10}  {bound:>10}  {gap:>8}  {source}".rstrip()


def run_log(
    problem: AnyProblem, method: str, arguments: Arguments
) -> tuple[Callable[[Incumbent], object], Callable[[Solution], object]]:
    """Log what is asked; return what to call with each improvement and with the solution."""
    log, sizes, until = logging.getLogger("cms").info, type(problem).__name__, "no time limit"
    if isinstance(problem, MachineProblem):
        jobs, types = count(len(problem.job_names), "job"), problem.machine_types
        blocks = count(len(problem.blocks), "block")
        sizes = f"{jobs}, {blocks}, {count(len(types), 'machine type')}"
    if arguments.seconds < math.inf:
        until = f"time limit {arguments.seconds:g} s"
    log("%s: %s, %s, seed %d", printable(method), sizes, until, arguments.seed)
    log("%s", log_head())

    def improved(line: Incumbent) -> None:
        log("%s", log_line(line, line.seconds))
        arguments.on_improvement(line)

    def ended(solution: Solution) -> None:
        log("%s (%s)", verdict(solution), circumstances(solution))

    return improved, ended
