"""MuxFlow's matching of offline workloads to GPUs with online services: by classes, and proved."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.fleet.colocation.problem import FORBIDDEN, ColocationProblem
from cms.plugin.algorithm import Support
from cms.plugin.guarantee import Guarantee
from cms.running.stopping import Stopped
from cms.values.fields import CheckedFields
from cms.values.numbers import shown

from ..solvers.transport import fits
from .plans import (
    best_plan,
    claim_plan,
    claim_prices,
    counts_of,
    filled,
    pairs_by_weight,
    parted,
    prices_of,
    rough_prices,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget, Named

#: Sub-clusters that are told apart; GPUs, or workloads, that are drawn one by one into them.
_MOST_PARTS, _MOST_UNITS = 10_000, 2_000_000


@dataclass(frozen=True)
class MuxFlowOptions(CheckedFields):
    """Options of :class:`MuxFlow`.

    Parameters
    ----------
    parts : int, default 1
        Random sub-clusters of equal size, each matched by itself; the bound is for the whole.
    stay : int, default 0
        What it is worth, in millionths, that a workload stays where it runs; the gap says its cost.
    """

    parts: int = 1
    stay: int = 0

    def __post_init__(self) -> None:
        self._whole("parts", least=1, most=_MOST_PARTS)
        self._whole("stay", least=0, most=10**12)


class MuxFlow:
    """The plan of the most value for sharing GPUs, by one flow between classes, with its proof.

    First comes the greedy plan by weight, and what its prices prove; then a minimum-cost flow over
    classes and counts, and the exact prices of its plan, found as longest paths: these prove it.

    Notes
    -----
    **Guarantee.** The optimum, unless there are several ``parts`` or a worth of ``stay``.
    ``proofs_checks/assignment.py`` checks by machine that there are always prices that prove it.

    **Running time.** One flow of G K arcs, O((G + K) K) for the paths' lengths and O(K²) a sweep,
    of which there are some tens; whatever the counts. 10^6 GPUs in 1,000 online and 100 offline
    classes take a few tenths of a second.

    References
    ----------
    After MuxFlow (arXiv:2303.13803), which matches single GPUs with single workloads in
    sub-clusters. The flow is that of OR-tools; prices as longest paths are from Ahuja, Magnanti,
    Orlin: Network Flows, Prentice Hall 1993, chapter 9.

    Examples
    --------
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> from cms.fleet.colocation import colocate
    >>> solution = colocate(posed([1, 1], [1, 1], [[10, 9], [9, 0]]), "muxflow")
    >>> solution.value, solution.gap
    (18, 0)
    """

    name = "muxflow"
    options_type = MuxFlowOptions
    takes = (ColocationProblem,)

    def support(self, problem: ColocationProblem, options: MuxFlowOptions) -> Support:
        """Refuse counts so large that sums of them leave 61 bits, and parts of too many GPUs."""
        gpus, work = (sum(counts) for counts in counts_of(problem))
        classes, many = sum(problem.weights.shape), f"{shown(max(gpus, work))} GPUs or workloads"
        largest = int(problem.weights.max(initial=0)) + options.stay
        if not fits(gpus, work, classes, largest):
            too_many = f"in {classes} classes are more than the flow's 61 bits hold"
            return Support(False, f"{many} {too_many}; count in larger units")
        if options.parts > 1 and max(gpus, work) > _MOST_UNITS:
            drawn = f"are drawn one by one into {options.parts} parts; at most {_MOST_UNITS} are"
            return Support(False, f"{many} {drawn}; leave parts at 1")
        return Support(True)

    def guarantee(self, problem: ColocationProblem, options: MuxFlowOptions) -> Guarantee | None:
        """Return that it is optimal, where it is asked for that."""
        if options.parts > 1 or options.stay:
            return None
        return Guarantee(1, 0, "OPT", "Assignment prices")

    def run(
        self, problem: ColocationProblem, options: MuxFlowOptions, budget: Budget
    ) -> Iterator[Named]:
        """Yield plans and prices."""

        def stopped() -> bool:
            return budget.stopped

        counts, weights = counts_of(problem), np.array(problem.weights)
        for row, gpus in enumerate(problem.online):
            if gpus.running is not None:
                column = problem.offline_index[gpus.running]
                if weights[row, column] != FORBIDDEN:
                    weights[row, column] += options.stay
        sides, words = [counts], "flow"
        whole, found = Counter[tuple[int, int]](), []
        with suppress(Stopped):
            if options.parts > 1:
                sides = parted(counts, options.parts, budget.seed)
                words = f"flow in {options.parts} parts"
            elif not options.stay:
                greedy = filled(pairs_by_weight(weights), counts, stopped)
                yield claim_plan(problem, greedy, "greedy by weight")
                prices = rough_prices(weights, greedy, counts, stopped)
                yield claim_prices(problem, prices, "prices of the greedy plan")
            for side in sides:
                plan = best_plan(weights, side, budget)
                whole.update(plan)
                found.append(prices_of(weights, plan, side, stopped))
            yield claim_plan(problem, whole, words)
            middle = np.sort(np.stack(found), axis=0)[(len(found) - 1) // 2]
            yield claim_prices(problem, middle, f"prices of the {words}")
