"""The default method."""

from __future__ import annotations

from .branch_and_price import BranchAndPrice


class Auto(BranchAndPrice):
    """Chooses the method: ``branch_and_price``, on every problem; it has no options of its own.

    The reference, ``cp_sat``, is not run beside it: ``branch_and_price`` asks CP-SAT itself where
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
