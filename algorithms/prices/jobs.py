"""The jobs of a problem as pricing sees them: equal rows once, with a weight."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cms.knapsack.kinds import kinds
from cms.knapsack.pricing import COMPILED_FROM, largest_price
from cms.running.stopping import never

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cms.problem.problem import Problem

#: Prices are tried as multiples of 2**-40; on compiled rows of 2**-b, with b as large as fits.
_GRID_BITS = 40


class Jobs:
    """Kinds of jobs, i.e. equal rows (up to a factor), with how many there are of each.

    Parameters
    ----------
    problem : Problem
        Reduced.
    stopped : callable, optional
        Asked a few times a second; Stopped is raised if it says so.

    Attributes
    ----------
    rows : Rows
        One a kind.
    weights : ndarray of int64, shape (kinds,)
    kind_of : ndarray of int64, shape (n,)
    repeated : bool
        Whether some kind has several jobs.
    grid_bits : int
        Prices may be multiples of ``2 ** -grid_bits`` without overflow in compiled pricing.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> jobs = Jobs(
    ...     Problem(
    ...         configurations=Configuration({"a": 1}),
    ...         jobs=[Job("x", 4, {"a": 2}), Job("y", 3, {"a": 1}), Job("z", 2, {"a": 1})],
    ...     )
    ... )
    >>> len(jobs), jobs.weights, jobs.members(0)
    (2, array([2, 1]), array([0, 2]))
    """

    def __init__(self, problem: Problem, stopped: Callable[[], bool] = never) -> None:
        self.problem = problem
        self.rows, self.weights, _, self.kind_of = kinds(problem.rows, stopped)
        self.repeated = len(self.weights) < len(self.kind_of)
        self.grid_bits = _GRID_BITS
        if len(self.rows) >= COMPILED_FROM:
            bits = largest_price(self.rows).bit_length() - 1
            self.grid_bits = max(10, min(_GRID_BITS, bits))

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def by_kind(self) -> NDArray[np.int64]:
        """The jobs, those of one kind together."""
        if not self.repeated:
            return self.kind_of
        return np.argsort(self.kind_of, kind="stable")

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.weights)

    def members(self, kind: int) -> NDArray[np.int64]:
        """Return the jobs of a kind, in order."""
        end = int(self._ends[kind])
        return self.by_kind[end - int(self.weights[kind]) : end]
