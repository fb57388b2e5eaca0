"""The matching of single GPUs with single workloads, as MuxFlow poses it: a row a GPU."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from cms.fleet.colocation.problem import ColocationProblem
from cms.plugin.algorithm import NoOptions, Support
from cms.plugin.guarantee import Guarantee
from cms.running.stopping import Stopped
from cms.values.numbers import shown

from .plans import best_plan, claim_plan, claim_prices, counts_of, prices_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget, Named

#: GPUs, and workloads: the square of it are the arcs.
MOST_GPUS = 1_500


class ColocationDense:
    """Match GPUs and workloads one by one, in one flow: what counting classes saves.

    The plan is told, and proved, in classes.

    Notes
    -----
    **Guarantee.** The optimum, as for ``muxflow``.

    **Running time.** One flow of n² arcs for n GPUs and n workloads, of which there are at most
    1,500.

    References
    ----------
    MuxFlow (arXiv:2303.13803) poses this problem. Kuhn: The Hungarian method for the assignment
    problem, Naval Research Logistics Quarterly 2, 1955, 83-97, doi:10.1002/nav.3800020109; the
    flow is that of OR-tools. ``proofs_checks/assignment.py`` checks that prices prove it.

    Examples
    --------
    >>> from cms.fleet.colocation import colocate
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> colocate(posed([1, 1], [1, 1], [[10, 9], [9, 0]]), "colocation_dense").value
    18
    """

    name = "colocation_dense"
    options_type = NoOptions
    takes = (ColocationProblem,)

    def support(self, problem: ColocationProblem, options: NoOptions) -> Support:
        """Refuse more GPUs or workloads than a table of single ones can have."""
        most = max(sum(counts) for counts in counts_of(problem))
        if most > MOST_GPUS:
            many = f"{shown(most)} GPUs or workloads have a row or column each"
            return Support(False, f"{many}; at most {MOST_GPUS} do; use muxflow")
        return Support(True)

    def guarantee(self, problem: ColocationProblem, options: NoOptions) -> Guarantee:
        """Return that it is optimal."""
        return Guarantee(1, 0, "OPT", "Assignment prices")

    def run(
        self, problem: ColocationProblem, options: NoOptions, budget: Budget
    ) -> Iterator[Named]:
        """Yield the plan, and the prices that prove it."""
        classes = counts_of(problem)
        of_row, of_column = (np.repeat(np.arange(len(side)), side) for side in classes)
        single = problem.weights[of_row][:, of_column]
        with suppress(Stopped):
            units = best_plan(single, ([1] * len(of_row), [1] * len(of_column)), budget)
            plan = dict(Counter((int(of_row[i]), int(of_column[j])) for i, j in units))
            yield claim_plan(problem, plan, "flow of single GPUs")
            prices = prices_of(problem.weights, plan, classes, lambda: budget.stopped)
            yield claim_prices(problem, prices, "prices of the flow")
