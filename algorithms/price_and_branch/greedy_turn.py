"""Greedy's schedules in a run of price-and-branch, as far as they come in a part of its time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named
from cms.problem.problem import Problem

from .budgets import TimeShare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction

#: Jobs times block types up to which greedy has a turn, the part of the time that is left that it
#: may take, and the part after which it is not to be put off any longer.
_MOST_BLOCKS, _TIME, _LATE = 20_000, 0.2, 0.1


class GreedyTurn:
    """Greedy's turn, which comes once, and only where it takes little of the time.

    Parameters
    ----------
    reduction : Reduction
    budget : Budget
    """

    def __init__(self, reduction: Reduction, budget: Budget) -> None:
        self._problem, self._budget = reduction.original, budget
        small = reduction.problem
        few = small.n_jobs * len(small.blocks) <= _MOST_BLOCKS
        self._waits = few and isinstance(small, Problem)
        self._late = (1 - _LATE) * budget.remaining()

    def claims(self, *, if_late: bool = False) -> Iterator[Named]:
        """Yield greedy's claims, unless it had its turn, or may still be put off."""
        if not self._waits or (if_late and self._budget.remaining() >= self._late):
            return
        self._waits = False
        from ..greedy import Greedy, GreedyOptions

        greedy, options = Greedy(), GreedyOptions()
        if greedy.support(self._problem, options):
            # Numbers too far apart for it show in its run.
            with suppress(UnsupportedProblem):
                for claim in greedy.run(self._problem, options, TimeShare(self._budget, _TIME)):
                    yield Named(claim.claim, f"greedy: {claim.part}")
