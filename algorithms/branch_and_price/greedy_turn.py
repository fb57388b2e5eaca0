"""Greedy's schedules in a run, as far as they come in a part of its time."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named
from cms.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction


class WrappedBudget:
    """A budget that says what another one says, where a subclass says nothing else."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self._budget, name)


class TimeShare(WrappedBudget):
    """A part of the time that is left of a budget: all of it where that has no limit.

    Native code in it ends by the limits it is given: ``on_stop`` calls when the budget itself ends.
    """

    def __init__(self, budget: Budget, part: float) -> None:
        super().__init__(budget)
        self._end = monotonic() + part * budget.remaining()

    @property
    def stopped(self) -> bool:
        """Whether the part is used up, too."""
        return self._budget.stopped or monotonic() >= self._end

    def remaining(self) -> float:
        """Return the seconds left of the part."""
        return max(0.0, min(self._budget.remaining(), self._end - monotonic()))


#: Jobs times block types up to which greedy has a turn, the part of the time that is left that it
#: may take, and the part after which it is not to be put off any longer.
_MOST_BLOCKS, _TIME, _LATE = 20_000, 0.2, 0.1


class GreedyTurn:
    """Greedy's turn, which comes once, and only where it takes little of the time."""

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
                share = cast("Budget", TimeShare(self._budget, _TIME))
                for claim in greedy.run(self._problem, options, share):
                    yield Named(claim.claim, f"greedy: {claim.part}")
