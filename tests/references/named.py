"""The theory's instances and the small ones, by name."""

from __future__ import annotations

from cms import Problem
from instances import hard, small

EVERY = hard.PROBLEMS | small.PROBLEMS
#: Those whose numbers floats cannot hold.
HUGE = {small.HUGE_DEMAND.name, small.HUGE_FLEET.name}
#: The theory's alone.
HARD = set(hard.PROBLEMS)


def named_problem(name: str) -> Problem:
    """Make the instance of this name."""
    problem: Problem = EVERY[name].make()
    return problem
