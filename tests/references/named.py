"""The theory's instances and the small ones, by name."""

from __future__ import annotations

from cms import Problem
from cms.plugin.registry import NamedProblem
from instances import hard, small

EVERY = {
    one.name: one
    for module in (hard, small)
    for one in vars(module).values()
    if isinstance(one, NamedProblem)
}
#: Those whose numbers floats cannot hold.
HUGE = {small.HUGE_DEMAND.name, small.HUGE_FLEET.name}
#: The theory's alone.
HARD = {one.name for one in vars(hard).values() if isinstance(one, NamedProblem)}


def named_problem(name: str) -> Problem:
    """Make the instance of this name."""
    problem: Problem = EVERY[name].make()
    return problem
