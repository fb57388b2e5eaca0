"""What sharing is held against: scipy's assignment of single GPUs, and every plan there is."""

from __future__ import annotations

from itertools import product

from bench.colocation_figures.matching import best_value
from cms.checker.kinds import check
from cms.fleet.colocation import ColocationPlan, ColocationProblem
from instances.families.colocation import random_classes as drawn

__all__ = ["best_value", "drawn", "every_plan"]


def every_plan(problem: ColocationProblem) -> list[ColocationPlan]:
    """All plans of a tiny problem."""
    pairs = [(o, f) for o in problem.online for f in problem.offline]
    ranges = [range(min(o.count, f.count) + 1) for o, f in pairs]
    plans = (
        ColocationPlan({(o.name, f.name): n for (o, f), n in zip(pairs, counts, strict=True) if n})
        for counts in product(*ranges)
    )
    return [plan for plan in plans if not check(problem, plan)]
