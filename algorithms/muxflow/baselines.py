"""What MuxFlow is held against: greedy, at random, first fit, and nothing shared at all."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from cms.fleet.sharing.plan import SharingPlan
from cms.fleet.sharing.problem import SharingProblem
from cms.plugin.algorithm import Support
from cms.running.stopping import Stopped

from .filling import counts_of, filled, named, pairs_by_weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.plugin.guarantee import Guarantee


@dataclass(frozen=True)
class NoOptions:
    """It has none."""


class _Baseline:
    """A method that makes one plan of any problem, and promises nothing about the loss."""

    takes = (SharingProblem,)

    def support(self, problem: SharingProblem, options: NoOptions) -> Support:
        """Take every problem."""
        return Support(True)

    def guarantee(self, problem: SharingProblem, options: NoOptions) -> Guarantee | None:
        """Return None: nothing is promised about the loss."""
        return None


def _in_order(
    problem: SharingProblem, pairs: NDArray[np.int64], budget: Budget
) -> Iterator[SharingPlan]:
    """Yield the plan that fills pairs of classes in this order."""
    with suppress(Stopped):
        yield named(problem, filled(pairs, *counts_of(problem), lambda: budget.stopped))


class SharingGreedy(_Baseline):
    """Fill the pairs of classes by falling weight, each with all that is left of both.

    Notes
    -----
    **Guarantee.** Half of the most value: a pair that is taken keeps at most two others out, each
    worth no more. Promises are about the loss, so that none is stated.

    **Running time.** O(G K log(G K)), whatever the counts.

    References
    ----------
    Avis: A survey of heuristics for the weighted matching problem, Networks 13, 1983, 475-493,
    doi:10.1002/net.3230130404.

    Examples
    --------
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> share(posed([1, 1], [1, 1], [[10, 9], [9, 0]]), "sharing_greedy").value
    10
    """

    name = "sharing_greedy"
    options_type = NoOptions

    def run(
        self, problem: SharingProblem, options: NoOptions, budget: Budget
    ) -> Iterator[SharingPlan]:
        """Yield one plan."""
        yield from _in_order(problem, pairs_by_weight(problem.weights), budget)


class SharingRandom(_Baseline):
    """Fill the allowed pairs of classes in random order, each with all that is left of both.

    Notes
    -----
    **Guarantee.** None.

    **Running time.** O(G K log(G K)), whatever the counts.

    References
    ----------
    A baseline; ours.

    Examples
    --------
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> share(posed([1], [1], [[7]]), "sharing_random").value
    7
    """

    name = "sharing_random"
    options_type = NoOptions

    def run(
        self, problem: SharingProblem, options: NoOptions, budget: Budget
    ) -> Iterator[SharingPlan]:
        """Yield one plan."""
        pairs, random = np.flatnonzero(problem.weights >= 0), Random(f"sharing {budget.seed}")
        # Only its random() is called, which is the same in every version of Python.
        order = np.argsort(np.array([random.random() for _ in pairs]), kind="stable")
        yield from _in_order(problem, pairs[order], budget)


class SharingFirstFit(_Baseline):
    """Give each online class, in its order, the first offline classes that may run there.

    Notes
    -----
    **Guarantee.** None.

    **Running time.** O(G K), whatever the counts.

    References
    ----------
    A baseline; ours.

    Examples
    --------
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> share(posed([1, 1], [1, 1], [[1, 9], [9, 5]]), "sharing_first_fit").value
    6
    """

    name = "sharing_first_fit"
    options_type = NoOptions

    def run(
        self, problem: SharingProblem, options: NoOptions, budget: Budget
    ) -> Iterator[SharingPlan]:
        """Yield one plan."""
        yield from _in_order(problem, np.flatnonzero(problem.weights >= 0), budget)


class SharingDedicated(_Baseline):
    """Share nothing: every GPU is its online service's alone.

    Notes
    -----
    **Guarantee.** None.

    **Running time.** None worth saying.

    References
    ----------
    A baseline; ours.

    Examples
    --------
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> share(posed([1], [1], [[7]]), "sharing_dedicated").value
    0
    """

    name = "sharing_dedicated"
    options_type = NoOptions

    def run(
        self, problem: SharingProblem, options: NoOptions, budget: Budget
    ) -> Iterator[SharingPlan]:
        """Yield one plan."""
        yield SharingPlan()
