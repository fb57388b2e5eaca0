"""A run of greedy over a problem's tables: which machines it opens, and whom they serve."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import steps
from .inner import INNER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.plugin.algorithm import Budget

    from ..aggregated.program import Counts
    from ..tables.integers import Tables

#: With this many jobs compiling pays, which takes some seconds; or with so many jobs times block
#: types times configurations, if so many seconds are left.
_COMPILED_FROM, _COMPILED_WORK, _COMPILING = 5_000, 500_000, 5.0
#: Numbers below this can be added and multiplied by small ones in int64.
_FITS = 2**61
#: Seconds between two looks at the clock that are aimed at.
_WISHED = 0.1
#: The most steps between them.
_MOST_STEPS = 1 << 20
#: Counts of blocks that are larger are this as floats.
_LARGEST = 1e300
#: Jobs put into the trees at once.
_ROWS = 1_000
#: The largest number that is surely no infinity as a float, in bits.
_FLOAT_BITS = 900


class Opened:
    """A run of greedy.

    Parameters
    ----------
    tables : Tables
        Some block serves every job.
    inner : str
        How a single machine is filled: "greedy", "independent", "dependent" or "exact".
    delta : Fraction
        Greedy runs against ``(1 + delta)`` times the demands, until the demands themselves are met.
    by_job : bool
        Whether a job's demand is its unit (weights 1 / d_j); otherwise every unit of demand counts
        the same.
    seconds : float
        What there is time for: without it nothing is compiled that need not be, with the same
        outcome.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}), jobs=[Job("bert", 5, {"half": 1})]
    ... )
    >>> run = Opened(Tables.of(problem), "greedy", Fraction(0), by_job=False)
    >>> run.finish(None, None)
    ([3], {(0, 0): 5})
    """

    def __init__(
        self, tables: Tables, inner: str, delta: Fraction, *, by_job: bool, seconds: float = inf
    ) -> None:
        self._tables, self._inner = tables, inner
        whole, part = delta.denominator, delta.numerator
        self._supply = [whole * f for row in tables.supply for f in row]
        self._targets = [(whole + part) * d for d in tables.demands]
        self._done = [part * d for d in tables.demands]
        divisors = [whole * d for d in tables.demands]
        if not by_job:
            # Weights 1; a common divisor keeps floats from overflowing.
            longest = max((d.bit_length() for d in self._targets), default=0)
            divisors = [1 << max(0, longest - _FLOAT_BITS)] * tables.n
        fits = max([*self._targets, *(x for row in tables.counts for x in row)], default=0) < _FITS
        work = tables.n * tables.k * tables.c
        slow = work >= _COMPILED_WORK and seconds > _COMPILING
        many = tables.n >= _COMPILED_FROM or slow
        self._compiled = inner == "greedy" and fits and many
        self._state = self._start(divisors)

    def _start(self, divisors: Sequence[int]) -> steps.State:
        tables = self._tables
        n, k, c = tables.n, tables.k, tables.c
        size = 1
        while size < n:
            size *= 2
        most_blocks = max((sum(row) for row in tables.counts), default=0)
        picks = max(1, min(most_blocks, n * k + n + k))
        best = ([-1] * size + list(range(n)) + [-1] * (size - n)) * k
        numbers: dict[str, list[Any]] = {
            "counts": [x for row in tables.counts for x in row],
            "many": [float(min(x, _LARGEST)) for row in tables.counts for x in row],
            "costs": _as_floats(tables.costs),
            "supply": self._supply,
            "divisors": list(divisors),
            "done": self._done,
            "residual": list(self._targets),
            "gains": [0.0] * (k * n),
            "best": best,
            "given": [0] * (n * k),
            "machines": [0] * c,
            "left": [0] * k,
            "amount": [0] * n,
            "picks": [0] * (3 * picks),
            "gained": [0] * picks,
            "tally": [n, 0],
        }
        if self._compiled:
            # Weighing needs no more than floats.
            kinds = dict.fromkeys(("many", "costs", "divisors", "gains"), np.float64)
            arrays = {
                name: np.array(values, dtype=kinds.get(name, np.int64))
                for name, values in numbers.items()
            }
            return steps.State(n, k, size, **arrays)
        return steps.State(n, k, size, **numbers)

    def finish(self, most: Fraction | None, budget: Budget | None) -> Counts | None:
        """Open machines until all jobs are met.

        Parameters
        ----------
        most : Fraction or None
            Give up once this is spent.
        budget : Budget or None

        Returns
        -------
        machines, given
            Or None if stopped or too dear.
        """
        state, tables = self._state, self._tables
        start, advance = steps.compiled() if self._compiled else (steps.start, steps.advance)
        for first in range(0, tables.n, _ROWS):
            if budget is not None and budget.stopped:
                return None
            start(state, first, min(first + _ROWS, tables.n))
        number = 1
        while state.tally[0]:
            if budget is not None and budget.stopped:
                return None
            if self._compiled:
                # The clock says how often it is looked at, and nothing else.
                began = perf_counter()
                stuck = advance(state, number) < 0
                number = _more_or_fewer(number, perf_counter() - began)
            elif self._inner == "greedy":
                stuck = not self._step(budget)
            else:
                stuck = not self._open_one(budget)
            if stuck:
                raise AssertionError("no machine serves any job that is not met yet")
            if most is not None and tables.cost(list(map(int, state.machines))) > most:
                return None
        given = {
            (i, j): int(state.given[j * tables.k + i])
            for j in range(tables.n)
            for i in range(tables.k)
            if state.given[j * tables.k + i]
        }
        return [int(x) for x in state.machines], given

    def _step(self, budget: Budget | None) -> bool:
        """Do a step of the plain loop, looking at the clock between two configurations.

        As ``steps.choose`` does; with a hundred block types that takes seconds.
        """
        state = self._state
        first = steps.top(state)
        if first < 0:
            return False
        chosen, best = steps.consider(state, first, -1, 0.0)
        for c in range(self._tables.c):
            if budget is not None and budget.stopped:
                return True
            if c != first:
                chosen, best = steps.consider(state, c, chosen, best)
        steps.take(state, chosen)
        return True

    def _open_one(self, budget: Budget | None) -> bool:
        """Open the best machine by another inner method; False if nothing gains anything."""
        state, tables = self._state, self._tables
        k, n = tables.k, tables.n
        allocate = INNER[self._inner]
        budgets = np.array(
            [steps.worth(r, d) for r, d in zip(state.residual, state.divisors, strict=True)]
        )
        bids = np.minimum(np.array(state.gains).reshape(k, n), budgets)
        largest = bids.max(axis=1, initial=0.0)
        useful = _useful(bids, budgets)
        found: tuple[float, int, list[tuple[int, int, int]]] | None = None
        for c, counts in enumerate(tables.counts):
            if budget is not None and budget.stopped:
                return True
            cost = state.costs[c]
            row = [n if n <= use else int(use) for n, use in zip(counts, useful, strict=True)]
            most = sum(count * float(bid) for count, bid in zip(row, largest, strict=True))
            if found and steps.rate(most, cost) * (1.0 + 1e-12) <= found[0]:
                continue
            jobs = _candidates(bids, row)
            mine, pay = bids[:, jobs], budgets[jobs]
            given = allocate(row, mine, pay, budget)
            gain = float(np.minimum((given * mine).sum(axis=0), pay).sum())
            rate = steps.rate(gain, cost)
            if gain > 0 and (found is None or rate > found[0]):
                picks = [
                    (int(i), int(jobs[at]), int(given[i, at]))
                    for i, at in zip(*given.nonzero(), strict=True)
                ]
                found = rate, c, picks
        if found is None:
            return False
        _, c, picks = found
        for at, pick in enumerate(picks):
            state.picks[3 * at : 3 * at + 3] = pick
        state.tally[1] = len(picks)
        state.machines[c] += steps.apply(state)
        return True


def _as_floats(costs: Sequence[Fraction]) -> list[float]:
    """Costs as multiples of the dearest."""
    dearest = max(costs, default=Fraction(0)) or Fraction(1)
    return [float(cost / dearest) for cost in costs]


def _more_or_fewer(number: int, seconds: float) -> int:
    """Return how many steps to do at once after so many took so long."""
    if seconds < _WISHED:
        return min(2 * number, _MOST_STEPS)
    return max(1, number // 2) if seconds > 2 * _WISHED else number


def _useful(bids: Any, budgets: Any) -> list[float]:
    """Return how many blocks of each type all jobs together can use on one machine, at most."""
    numbers = np.zeros(bids.shape)
    with np.errstate(over="ignore"):  # infinitely many are no fewer than there are
        np.divide(budgets[None, :], bids, out=numbers, where=bids > 0)
    # A quotient of floats may be a hair below a whole number.
    return [float(x) for x in np.ceil(numbers * (1.0 + 1e-12)).sum(axis=1)]


def _candidates(bids: Any, blocks: Sequence[int]) -> Any:
    """Choose the jobs that a best filling needs no others than.

    Of s blocks one of type i goes to one of the s jobs that bid most for it: if it went to another,
    one of those s jobs would have no block, and would pay at least as much for this one.
    """
    s = sum(blocks)
    chosen: set[int] = set()
    for i, number in enumerate(blocks):
        if number:
            order = np.argsort(-bids[i], kind="stable")[:s]
            chosen.update(int(j) for j in order if bids[i, j] > 0)
    return np.array(sorted(chosen), dtype=np.int64)
