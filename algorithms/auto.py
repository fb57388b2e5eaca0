"""The default method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .price_and_branch import PriceAndBranch, PriceAndBranchOptions

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget, Claim, Support
    from cms.plugin.guarantee import Guarantee

    from .price_and_branch import Taken


@dataclass(frozen=True)
class AutoOptions:
    """``auto`` has no options: name a method to set its own."""


class Auto:
    """Chooses the method: ``price_and_branch``, on every problem of either kind.

    The reference, ``cp_sat``, is not run beside it: ``price_and_branch`` asks CP-SAT itself where
    its own proof ends short of the optimum.

    Notes
    -----
    **Guarantee** and **Running time**: those of the method it runs. It never uses a third party's
    algorithm, so installing a package does not change its answers.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"7g": 1}), jobs=[Job("a", 9, {"7g": 4})])
    >>> solve(problem).machine_count
    3
    """

    name = "auto"
    options_type = AutoOptions
    takes = PriceAndBranch.takes

    def __init__(self) -> None:
        self._method, self._options = PriceAndBranch(), PriceAndBranchOptions()

    def support(self, problem: Taken, options: AutoOptions) -> Support:
        """Ask the method."""
        return self._method.support(problem, self._options)

    def guarantee(self, problem: Taken, options: AutoOptions) -> Guarantee | None:
        """Ask the method."""
        return self._method.guarantee(problem, self._options)

    def run(self, problem: Taken, options: AutoOptions, budget: Budget) -> Iterator[Claim]:
        """Yield the method's claims."""
        return self._method.run(problem, self._options, budget)
