"""A run of greedy over a problem's tables: which machines it opens, and whom they serve."""

from __future__ import annotations

import sys
from fractions import Fraction
from math import ceil, inf
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.knapsack.pricing import common_denominator

from ..integer_problem import look_at
from . import filling
from .inner import INNER
from .promises import usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..integer_problem import Counts, Tables

#: Compiling takes some seconds. It pays from this many jobs times block types times configurations
#: if this many seconds are left; from this many jobs on if there is time to load what was compiled.
_COMPILED_WORK, _COMPILATION_SECONDS, _COMPILED_JOBS, _LOADING_SECONDS = 500_000, 5.0, 5_000, 2.0
#: Numbers below this can be added and multiplied by small ones in int64.
_FITS = 2**61
#: Intended seconds between two checks of the clock, and the most steps between them.
_CLOCK_SECONDS, _MAX_STEPS = 0.1, 1 << 20
#: Larger block counts become this float; integers of at most this many bits have a finite float.
_LARGEST, _FLOAT_BITS = 1e300, 900
#: Jobs that are put into the search trees together.
_ROWS = 1_000
#: Costs are rounded to multiples of one over this in weights.
_GRID = 2**40


class Opening:
    """A run of greedy against ``(1 + delta)`` times the demands, until these themselves are met.

    A unit of a job's demand counts, by ``weights``: ``units`` 1, ``demands`` 1 / d_j, ``alone``
    what it costs where the job is served by itself.
    """

    def __init__(
        self,
        tables: Tables,
        inner: str,
        weights: str,
        delta: Fraction = Fraction(0),
        budget: Budget | None = None,
    ) -> None:
        self._budget = budget
        self._tables, self._inner = tables, inner
        whole, part = delta.denominator, delta.numerator
        n, k = tables.n, tables.k
        counts = [x for row in tables.counts for x in row]
        demands, supply = tables.demands, tables.supply
        self._largest = (whole + part) * max([int(demands.max(initial=0)), *counts], default=0)
        if self._largest >= _FITS:
            demands, supply = demands.astype(object), supply.astype(object)
        # Blocks of a type beyond what all jobs can use, inflated or not, would be idle.
        most = 1 + ceil(delta)
        self._usable = [
            [min(count, most * number) for count, number in zip(row, numbers, strict=True)]
            for row, numbers in zip(tables.counts, usable(tables), strict=True)
        ]
        self._size = 1 << max(0, n - 1).bit_length()
        leaves = np.full(2 * self._size, -1)
        leaves[self._size : self._size + n] = np.arange(n)
        picks = max(1, min(max((sum(row) for row in tables.counts), default=0), n * k + n + k))
        dearest = max(tables.costs, default=Fraction(0)) or Fraction(1)
        self._numbers: dict[str, Any] = {
            "counts": counts,
            "many": [float(min(x, _LARGEST)) for x in counts],
            "costs": [float(cost / dearest) for cost in tables.costs],
            "supply": (whole * supply).ravel(),
            "given": np.zeros(n * k, dtype=np.int64),
            "divisors": _divisors(tables, weights, whole, self._largest, budget),
            "residual": (whole + part) * demands,
            "done": part * demands,
            "gains": np.zeros(k * n),
            "best": np.tile(leaves, k),
            "machines": [0] * tables.c,
            "left": [0] * k,
            "amount": np.zeros(n, dtype=np.int64),
            "picks": np.zeros(3 * picks, dtype=np.int64),
            "gained": np.zeros(picks, dtype=np.int64),
            "tally": [n, 0],
        }

    def finish(self, most: Fraction | None = None) -> Counts | None:
        """Open machines until all jobs are met; None if dearer than ``most``. Raises Stopped."""
        tables, budget = self._tables, self._budget
        compiled = self._pays_to_compile()
        start, advance = filling.compiled() if compiled else (filling.start, None)
        # Weighing needs no more than floats.
        kinds = dict.fromkeys(("many", "costs", "divisors", "gains"), np.float64)
        arrays: dict[str, Any] = {}
        for name, values in self._numbers.items():
            look_at(budget)
            if compiled:
                arrays[name] = np.array(values, dtype=kinds.get(name, np.int64))
            else:
                arrays[name] = np.asarray(values, dtype=object).tolist()
        self._state = state = filling.State(tables.n, tables.k, self._size, **arrays)
        if advance is not None:
            advance(state, 0)  # loaded now, as long as there is time
        for first in range(0, tables.n, _ROWS):
            look_at(budget)
            start(state, first, min(first + _ROWS, tables.n))
        number = 1
        while state.tally[0]:
            look_at(budget)
            if advance is None:
                stuck = not self._open_one()
            else:
                # The clock says how often it is looked at, and nothing else.
                began = perf_counter()
                stuck = advance(state, number) < 0
                quick = perf_counter() - began < _CLOCK_SECONDS
                number = min(2 * number, _MAX_STEPS) if quick else max(1, number // 2)
            if stuck:
                raise AssertionError("no machine serves any job that is not met yet")
            if most is not None and tables.cost(list(map(int, state.machines))) > most:
                return None
        kind = tables.supply.dtype if max(state.given, default=0) < _FITS else object
        given = np.array(state.given, dtype=kind).reshape(tables.n, tables.k)
        return [int(x) for x in state.machines], given

    def _pays_to_compile(self) -> bool:
        """Whether there is a compiled loop for these numbers, and time to load it."""
        tables, budget = self._tables, self._budget
        if self._inner != "greedy" or self._largest >= _FITS:
            return False
        seconds = inf if budget is None else budget.remaining()
        if tables.n < _COMPILED_JOBS:
            work = tables.n * tables.k * tables.c
            return work >= _COMPILED_WORK and seconds > _COMPILATION_SECONDS
        while "numba" not in sys.modules and seconds < _LOADING_SECONDS:
            look_at(budget)  # in so little time no loop would come to its end
            sleep(_CLOCK_SECONDS / 2)
        return True

    def _open_one(self) -> bool:
        """Open the best machine, as ``filling.choose``, watching the clock; False if none gains."""
        state, picks = self._state, []
        fill = filling.fill if self._inner == "greedy" else self._filled()
        chosen, best = -1, 0.0
        bounds = [filling.bound(state, c) for c in range(self._tables.c)]
        for c in sorted(range(len(bounds)), key=lambda c: -bounds[c]):
            look_at(self._budget)
            if bounds[c] < best or not bounds[c]:
                break
            gained = filling.rate(fill(state, c), state.costs[c])
            if gained > best or (gained == best > 0 and c < chosen):
                chosen, best, picks = c, gained, state.picks[: 3 * state.tally[1]]
        if chosen >= 0:
            state.picks[: len(picks)] = picks
            state.tally[1] = len(picks) // 3
            state.machines[chosen] += filling.apply(state)
        return chosen >= 0

    def _filled(self) -> Any:
        """Return a function that fills a machine by another inner method, as ``filling.fill``."""
        state, allocate = self._state, INNER[self._inner]
        budgets = np.array([*map(filling.worth, state.residual, state.divisors)])
        bids = np.minimum(np.array(state.gains).reshape(state.k, state.n), budgets)

        def fill(state: filling.State, c: int) -> float:
            blocks = self._usable[c]
            jobs = _candidates(bids, blocks)
            mine, pay = bids[:, jobs], budgets[jobs]
            given = allocate(blocks, mine, pay, self._budget)
            chosen = np.argwhere(given).tolist()
            state.tally[1] = len(chosen)
            for at, (i, j) in enumerate(chosen):
                state.picks[3 * at : 3 * at + 3] = i, int(jobs[j]), int(given[i, j])
            return float(np.minimum((given * mine).sum(axis=0), pay).sum())

        return fill


def _divisors(tables: Tables, weights: str, whole: int, largest: int, budget: Budget | None) -> Any:
    """Return what a unit of each job's demand is divided by to be weighed."""
    if weights == "demands":
        return whole * tables.demands.astype(object)
    # A common divisor keeps floats from overflowing.
    unit = 1 << max(0, largest.bit_length() - _FLOAT_BITS)
    if weights == "units":
        return [unit] * tables.n
    costs, _ = common_denominator(tables.costs)
    dearest, cheapest = max(costs, default=1), min(filter(None, costs), default=1)
    kind: Any = tables.supply.dtype
    if largest * max([1, *map(max, tables.counts)]) * tables.k >= _FITS:
        kind = object
    table = np.array(tables.counts, dtype=kind).T
    shares = [Fraction(cheapest, cost) if cost else 0 for cost in costs]
    per_cost = np.array(shares, dtype=object if kind is object else float)
    found = []
    for first in range(0, tables.n, _ROWS):
        look_at(budget)
        demands = tables.demands[first : first + _ROWS].astype(kind)
        amounts = np.minimum(demands[:, None], tables.supply[first : first + _ROWS] @ table)
        best = np.argmax(amounts * per_cost, axis=1).tolist()
        for demand, row, at in zip(demands.tolist(), amounts.tolist(), best, strict=True):
            if any(amount for amount, cost in zip(row, costs, strict=True) if not cost):
                # Machines that cost nothing come before all others: the weight does not matter.
                found.append(unit * demand)
            else:
                found.append(unit * row[at] * (_GRID * dearest // costs[at]))
    return found


def _candidates(bids: NDArray[np.float64], blocks: Sequence[int]) -> NDArray[np.int64]:
    """Choose the jobs that a best filling needs no others than.

    Of s blocks one goes to one of the s jobs that bid most for it: if it went to another, one of
    those would have no block, and would pay at least as much.
    """
    rows = bids[np.array(blocks, dtype=object) > 0]
    order = np.argsort(-rows, axis=1, kind="stable")[:, : sum(blocks)]
    return np.unique(order[np.take_along_axis(rows, order, axis=1) > 0])
