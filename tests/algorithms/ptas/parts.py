"""Runs of the PTAS as one of the distribution's own algorithms, as it is once registered."""

from __future__ import annotations

from typing import Any

from algorithms.ptas import Ptas
from cms import Problem, Schedule, Solution
from cms.solving.driver import Arguments
from cms.solving.solve import run_checked
from cms.testing.checks import Observation


def run(problem: Problem, **options: Any) -> Solution:
    """Solve a problem; the solver's word counts."""
    arguments = Arguments(options=options, time_limit=None, threads=1)
    return run_checked(Ptas(), True, problem, arguments)


def watch(problem: Problem, **options: Any) -> Observation:
    """Solve a problem and note every claim."""
    return Observation(Ptas(), True, problem, options=options, time_limit=None, threads=1)


def schedules(seen: Observation) -> list[Schedule]:
    """The schedules a run claimed."""
    return [claim for claim in seen.claims if isinstance(claim, Schedule)]


def sources(solution: Solution) -> list[str]:
    """Which parts of the run improved something."""
    return [line.source for line in solution.history]
