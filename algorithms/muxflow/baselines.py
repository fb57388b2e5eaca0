"""What MuxFlow is held against: greedy, at random, first fit, and nothing shared at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from cms.fleet.colocation.problem import ColocationProblem
from cms.plugin.algorithm import NoOptions, Support
from cms.running.stopping import Stopped

from .plans import counts_of, filled, named_plan, pairs_by_weight, shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cms.fleet.colocation.problem import ColocationPlan
    from cms.plugin.algorithm import Budget


class _Baseline(ABC):
    """A method that fills pairs of classes in some order, each with all that is left of both.

    Its running time is O(G K log(G K)) at most, whatever the counts.
    """

    name: str
    options_type = NoOptions
    takes = (ColocationProblem,)

    def support(self, problem: ColocationProblem, options: NoOptions) -> Support:
        """Take every problem."""
        return Support(True)

    def guarantee(self, problem: ColocationProblem, options: NoOptions) -> None:
        """Return None: nothing is promised about the loss."""
        del problem, options

    def run(
        self, problem: ColocationProblem, options: NoOptions, budget: Budget
    ) -> Iterator[ColocationPlan]:
        """Yield one plan."""
        pairs = self._pairs(problem.weights, budget.seed)
        with suppress(Stopped):
            yield named_plan(problem, filled(pairs, counts_of(problem), lambda: budget.stopped))

    @abstractmethod
    def _pairs(self, weights: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        """Return the pairs of classes, the first to fill first."""


class ColocationGreedy(_Baseline):
    """Fill the pairs of classes by falling weight.

    Notes
    -----
    **Guarantee.** Half of the most value: a pair that is taken keeps at most two others out, each
    worth no more. Promises are about the loss, so that none is stated.

    References
    ----------
    Avis: A survey of heuristics for the weighted matching problem, Networks 13, 1983, 475-493,
    doi:10.1002/net.3230130404.

    Examples
    --------
    >>> from cms.fleet.colocation import colocate
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> colocate(posed([1, 1], [1, 1], [[10, 9], [9, 0]]), "colocation_greedy").value
    10
    """

    name = "colocation_greedy"

    def _pairs(self, weights: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        return pairs_by_weight(weights)


class ColocationRandom(_Baseline):
    """Fill the allowed pairs of classes in random order: a baseline without a guarantee."""

    name = "colocation_random"

    def _pairs(self, weights: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        pairs = np.flatnonzero(weights >= 0)
        return pairs[shuffled(len(pairs), Random(f"sharing {seed}"))]


class ColocationFirstFit(_Baseline):
    """Give each online class, in its order, the first offline classes allowed: a baseline."""

    name = "colocation_first_fit"

    def _pairs(self, weights: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        return np.flatnonzero(weights >= 0)


class ColocationDedicated(_Baseline):
    """Share nothing: every GPU is its online service's alone; a baseline without a guarantee."""

    name = "colocation_dedicated"

    def _pairs(self, weights: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)
