"""Figures 7 and 8: random mixes of 3 to 10 models, at most three services on a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from statistics import median
from typing import NamedTuple

from bench.expected import Line
from cms import TimeSharedProblem, solve
from instances.families.time_sharing import random_mix

from .asked import Asked, Timed, timed

RULES = ("round_robin", "collect_then_run")
#: The heuristics, in the order of what they should need; the last two side by side.
HEURISTICS = ("mix_first_fit", "gpulet", "gpulet_sbp", "gpulet_guided")
#: Per cent that a certificate alone is to prove; CPU seconds in the median, and at most.
_PROVED, _MEDIAN, _WORST = 98, 0.5, 5.0
#: For each mix; to be stopped by it proves nothing.
_LIMIT = 60.0


class _Case(NamedTuple):
    """A mix and what is found of it."""

    seed: int
    problem: TimeSharedProblem
    timed: Timed

    @property
    def is_proved(self) -> bool:
        return self.timed.solution.proof == "checked"


def mixes(asked: Asked) -> Callable[[], list[_Case]]:
    """Return what solves the mixes of these figures, once for both."""

    @cache
    def solved() -> list[_Case]:
        tables, found = asked.tables, []
        for seed in asked.cases(200):
            problem = random_mix(seed, rule=RULES[seed % 2], tables=tables)
            found.append(_Case(seed, problem, timed(problem, time_limit=_LIMIT)))
        return found

    return solved


def proved(solved: Callable[[], list[_Case]]) -> Iterator[Line]:
    """Figure 7: nearly all are proved by a certificate alone, fast."""
    cases = solved()
    open_ones = [case.seed for case in cases if not case.is_proved]
    share = 100 * (len(cases) - len(open_ones)) / len(cases)
    seconds = [case.timed.seconds for case in cases]
    middle, worst = median(seconds), max(seconds)
    yield Line(
        "7", f"{len(cases)} mixes of 3 to 10 services, rules in turn, m = 3: proved by certificate",
        f">= {_PROVED} %; median < {_MEDIAN} CPU s, worst < {_WORST:g}",
        f"{share:.1f} %; {middle:.2f}, {worst:.1f}"
        + (f"; open: seeds {', '.join(map(str, open_ones))}" if open_ones else ""),
        share >= _PROVED and middle < _MEDIAN and worst < _WORST,
    )  # fmt: skip


def beside_heuristics(solved: Callable[[], list[_Case]]) -> Iterator[Line]:
    """Figure 8: no heuristic beats the bound, and the totals lie in order."""
    cases, below = solved(), []
    ours = sum(case.timed.solution.machine_count or 0 for case in cases)
    totals: list[int | None] = [ours]
    for method in HEURISTICS:
        total: int | None = 0
        for case in cases:
            found = solve(case.problem, method, time_limit=_LIMIT).machine_count
            if found is not None and found < case.timed.solution.lower_bound:
                below.append(f"{method} on {case.seed}")
            total = None if total is None or found is None else total + found
        totals.append(total)
    bound = sum(case.timed.solution.lower_bound for case in cases)
    first, gpulet, sbp, guided = totals[1:]
    known = [each for each in totals if each is not None]
    in_order = len(known) == len(totals) and ours < known[1] < known[2] < min(known[3:])
    yield Line(
        "8", f"{len(cases)} mixes: GPUs of ours, mix_first_fit, gpulet, SBP, guided",
        "none below the bound; ours < mix_first_fit < gpulet < SBP, guided",
        f"bound {bound}; {ours}, {first}, {gpulet}, {sbp}, {guided}"
        + (f"; below: {', '.join(below[:3])}" if below else ""),
        not below and in_order,
    )  # fmt: skip
