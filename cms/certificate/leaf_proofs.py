"""What the leaves of a certificate prove, in exact arithmetic, each one once.

A leaf's proof depends on its prices and on those branches above it whose multiplier is not 0. So
leaves that have both in common are evaluated together, wherever in the tree they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from ..knapsack.pricing import common_denominator, price_jobs
from .conditions import Condition, Prices, Worth, prices_of_jobs, refuse_breaches, refuse_misfits

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..problem.machine_problem import MachineProblem


class Proved(NamedTuple):
    """A lower bound, and whether there is no schedule at all."""

    value: Fraction
    infeasible: bool


class CheckStopped(Exception):
    """A check was given up."""


class LeafProofs:
    """The proofs of one certificate's leaves, for one problem.

    ``stopped`` is asked before every leaf, and within passes over the jobs; once it is true,
    CheckStopped is raised.
    """

    def __init__(
        self,
        problem: MachineProblem,
        stopped: Callable[[], bool] | None = None,
        undisturbed: int = 0,
    ) -> None:
        self._problem, self._stopped, self._undisturbed = problem, stopped, undisturbed
        self._proved: dict[Hashable, Proved] = {}

    def of(self, leaf: Any, path: tuple[Condition, ...]) -> Proved:
        """Evaluate a leaf below the conditions of a path, whose quantities the problem has."""
        if self._stopped is not None and self._stopped():
            raise CheckStopped
        refuse_misfits(self._problem, leaf, path)
        pairs = zip(path, leaf.multipliers, strict=True)
        used = tuple((condition, multiplier) for condition, multiplier in pairs if multiplier)
        key = type(leaf), leaf.numbers(), used
        if key not in self._proved:
            self._proved[key] = self._evaluated(leaf, path)
        return self._proved[key]

    def _evaluated(self, leaf: Any, path: tuple[Condition, ...]) -> Proved:
        problem = self._problem
        holds_at_no_cost = refuse_breaches(problem, leaf, path)
        worth = leaf.jobs_worth(problem, path, self._stopped, self._undisturbed)
        if worth is None:
            raise CheckStopped
        value = worth.total
        for name, price in leaf.limit_prices.items():
            value -= price * (problem.machine_type(name).limit or 0)
        for condition, multiplier in zip(path, leaf.multipliers, strict=True):
            value += condition.sign * multiplier * condition.value
        return Proved(value, worth.unservable or (holds_at_no_cost and value > 0))


def cheapest_options(
    problem: MachineProblem,
    leaf: Prices,
    path: tuple[Condition, ...],
    stopped: Callable[[], bool] | None,
    undisturbed: int,
) -> Worth | None:
    """Return what the jobs' cheapest options cost at a leaf's prices; None if it was stopped."""
    job_prices, special = prices_of_jobs(problem, leaf, path)
    scaled, denominator = common_denominator(
        [*job_prices, *(price for vector in special.values() for price in vector)]
    )
    k = len(job_prices)
    own = {j: scaled[(number + 1) * k : (number + 2) * k] for number, j in enumerate(special)}
    found = paid(problem, scaled[:k], own, stopped, undisturbed)
    return None if found is None else Worth(Fraction(found.total, denominator), found.unservable)


class Paid(NamedTuple):
    """What all jobs pay at least at whole prices, and whether some job cannot be served."""

    total: int
    unservable: bool


@singledispatch
def paid(
    problem: Any,
    prices: Sequence[int],
    special: Mapping[int, Sequence[int]],
    stopped: Callable[[], bool] | None,
    undisturbed: int,
) -> Paid | None:
    """Price all jobs of a problem; None if it was stopped."""
    found = price_jobs(
        problem.rows, prices, special=special, stopped=stopped, undisturbed=undisturbed
    )
    return None if found is None else Paid(found.total, bool(found.unservable))
