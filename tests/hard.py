"""The theory's instances by name, as problems."""

from __future__ import annotations

from cms import Problem
from cms.plugin.registry import NamedProblem
from instances import hard

_KNOWN = {one.name: one for one in vars(hard).values() if isinstance(one, NamedProblem)}


def hard_problem(name: str) -> Problem:
    """Make the instance of this name."""
    return _KNOWN[name].make()
