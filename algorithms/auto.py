"""The default method."""

from __future__ import annotations

from dataclasses import dataclass

from .price_and_branch import PriceAndBranch, PriceAndBranchOptions


@dataclass(frozen=True)
class AutoOptions(PriceAndBranchOptions):
    """``auto`` has no options: name a method to set its own."""


class Auto(PriceAndBranch):
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
