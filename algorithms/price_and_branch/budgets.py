"""Budgets that stand on another: for a part of its time, or with another best schedule."""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from cms.plugin.algorithm import Budget
    from cms.schedule.schedule import Schedule


class WrappedBudget:
    """A budget that says what another one says.

    Parameters
    ----------
    budget : Budget
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    @property
    def seed(self) -> int:
        """The budget's."""
        return self._budget.seed

    @property
    def threads(self) -> int:
        """The budget's."""
        return self._budget.threads

    @property
    def lower_bound(self) -> Fraction:
        """The budget's."""
        return self._budget.lower_bound

    @property
    def best(self) -> Schedule | None:
        """The budget's."""
        return self._budget.best

    @property
    def stopped(self) -> bool:
        """The budget's."""
        return self._budget.stopped

    def remaining(self) -> float:
        """Return the budget's."""
        return self._budget.remaining()

    def on_stop(self, cancel: Callable[[], object]) -> AbstractContextManager[None]:
        """Have it called as the budget does."""
        return self._budget.on_stop(cancel)


class TimeShare(WrappedBudget):
    """A part of the time that is left of a budget: all of it where that has no limit.

    Native code in it ends by the limits it is given: ``on_stop`` calls when the budget itself ends.

    Parameters
    ----------
    budget : Budget
    part : float
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
