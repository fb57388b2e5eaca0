"""Plans between classes of GPUs and workloads, and prices that prove them.

Prices are longest paths from a node ``none``, for GPUs without work, to the offline classes. An
arc from k' to k is what an exchange gains: the most that w(o, k) exceeds w(o, k') by, over the GPUs
o that serve k' now. If no circle gains, these prices hold with equality on every pair in use: the
plan is optimal. A circle that gains is an exchange that improves the plan.
"""

from __future__ import annotations

from operator import itemgetter, mul
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cms.fleet.colocation.certificate import AssignmentPrices
from cms.fleet.colocation.problem import ColocationPlan
from cms.plugin.algorithm import Named
from cms.running.stopping import Stopped, look

from ..solvers.transport import Offers, best_transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cms.fleet.colocation.problem import ColocationProblem
    from cms.plugin.algorithm import Budget

#: Pairs looked at, and numbers worked on, between two looks at the clock.
_PAIRS, _NUMBERS = 1 << 13, 1 << 21
#: No exchange: so far below any that no path of prices comes up again.
_NO_WAY = -(1 << 61)
#: Sweeps after which the prices of a plan that is not optimal are looked at; more do not help.
_SWEEPS = (1, 2, 4, 8, 16)
#: How many GPUs and workloads each class has.
Counts: TypeAlias = tuple[list[int], list[int]]
#: How many workloads of a class (a column) there are on GPUs of a class (a row).
Plan: TypeAlias = dict[tuple[int, int], int]


def counts_of(problem: ColocationProblem) -> Counts:
    """Count the GPUs and workloads of each class."""
    return [each.count for each in problem.online], [each.count for each in problem.offline]


def named_plan(problem: ColocationProblem, plan: Plan) -> ColocationPlan:
    """Return a plan with the names of its classes."""
    online, offline = problem.online, problem.offline
    return ColocationPlan({(online[i].name, offline[j].name): n for (i, j), n in plan.items()})


def claim_plan(problem: ColocationProblem, plan: Plan, words: str) -> Named:
    """Claim a plan, and name the part of the method that found it."""
    made: Any = named_plan(problem, plan)  # `Named` is typed by problems of machines
    return Named(made, words)


def claim_prices(problem: ColocationProblem, prices: NDArray[np.int64], words: str) -> Named:
    """Claim what prices of the offline side prove."""
    made: Any = AssignmentPrices.of_offline(problem, prices.tolist())
    return Named(made, words)


def pairs_by_weight(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs that are worth something, the best first: positions in the flat table."""
    order = np.argsort(-weights, axis=None, kind="stable")
    return order[: int((weights > 0).sum())]


def filled(pairs: NDArray[np.int64], counts: Counts, stopped: Callable[[], bool]) -> Plan:
    """Go through pairs in their order, and put the most workloads on each that still fit."""
    left, wanted = map(list, counts)
    open_rows = np.array([n > 0 for n in left], dtype=np.bool_)
    open_columns = np.array([n > 0 for n in wanted], dtype=np.bool_)
    plan: Plan = {}
    width = len(wanted)
    for start in range(0, len(pairs), _PAIRS):
        look(stopped)
        if not (open_rows.any() and open_columns.any()):
            break
        some = pairs[start : start + _PAIRS]
        row, column = some // width, some % width
        useful = open_rows[row] & open_columns[column]
        for i, j in zip(row[useful].tolist(), column[useful].tolist(), strict=True):
            if count := min(left[i], wanted[j]):
                plan[i, j] = count
                left[i] -= count
                wanted[j] -= count
                open_rows[i], open_columns[j] = left[i] > 0, wanted[j] > 0
    return plan


def best_plan(weights: NDArray[np.int64], counts: Counts, budget: Budget) -> Plan:
    """Return a plan of the most value, by a flow between classes."""
    row, column = np.nonzero(weights > 0)
    givers, takers = (np.array(side, dtype=np.int64) for side in counts)
    flows = best_transport(Offers(givers, takers, row, column, weights[row, column]), budget)
    if flows is None:
        raise Stopped
    used = np.flatnonzero(flows)
    pairs = zip(row[used].tolist(), column[used].tolist(), strict=True)
    return dict(zip(pairs, flows[used].tolist(), strict=True))


def parted(counts: Counts, parts: int, seed: int) -> list[Counts]:
    """Draw GPUs and workloads one by one into parts of equal size; return each part's counts."""
    random = Random(f"parts {seed}")
    tables = []
    for side in counts:
        total = sum(side)
        part = np.empty(total, dtype=np.int64)
        part[shuffled(total, random)] = np.arange(total) * parts // max(total, 1)
        table = np.zeros((parts, len(side)), dtype=np.int64)
        np.add.at(table, (part, np.repeat(np.arange(len(side)), side)), 1)
        tables.append(table.tolist())
    return list(zip(*tables, strict=True))


def shuffled(number: int, random: Random) -> NDArray[np.int64]:
    """Return positions in random order.

    Only its random() is called, which is the same in every version of Python.
    """
    return np.argsort(np.array([random.random() for _ in range(number)]), kind="stable")


def exchanges(
    weights: NDArray[np.int64], plan: Plan, counts: Counts, stopped: Callable[[], bool]
) -> NDArray[np.int64]:
    """Return what an exchange gains, shape (K + 1, K + 1); the last node is ``none``.

    Weights (G, K) are negative where a pair is forbidden; the plan has allowed pairs only, of the
    GPUs and workloads that there are.
    """
    k = weights.shape[1]
    rows_left, columns_left = map(list, counts)
    for (i, j), n in plan.items():
        rows_left[i] -= n
        columns_left[j] -= n
    gains = np.full((k + 1, k + 1), _NO_WAY, dtype=np.int64)
    worth = np.where(weights < 0, _NO_WAY, weights)
    idle = worth[np.array([n > 0 for n in rows_left], dtype=np.bool_)]
    gains[k, :k] = np.maximum(idle.max(axis=0, initial=0), 0)
    gains[k, k] = 0
    pairs = sorted(plan, key=itemgetter(1))
    row, column = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    size = max(1, _NUMBERS // (k + 1))
    for start in range(0, len(row), size):
        look(stopped)
        some, of = row[start : start + size], column[start : start + size]
        now = worth[some, of]
        firsts = np.flatnonzero(np.diff(of, prepend=-1))
        more = np.maximum.reduceat(worth[some] - now[:, None], firsts, axis=0)
        at = of[firsts]
        gains[at, :k] = np.maximum(gains[at, :k], more)
        gains[at, k] = np.maximum(gains[at, k], np.maximum.reduceat(-now, firsts))
    waiting = np.flatnonzero([n > 0 for n in columns_left])
    gains[waiting, k] = np.maximum(gains[waiting, k], 0)
    return gains


def longest_paths(
    gains: NDArray[np.int64], stopped: Callable[[], bool], sweeps: int | None = None
) -> tuple[NDArray[np.int64], bool]:
    """Return the longest paths from ``none`` (K,) after some sweeps, and whether they are final.

    These prices then prove the plan optimal; without a circle that gains, K + 1 sweeps suffice.
    """
    length = np.zeros(len(gains), dtype=np.int64)
    for _ in range(len(gains) + 1 if sweeps is None else sweeps):
        look(stopped)
        longer = np.maximum((gains + length[:, None]).max(axis=0), length)
        if longer[-1] > 0:  # a circle through `none` gains
            break
        if (longer == length).all():
            return length[:-1], True
        length = longer
    return length[:-1], False


def prices_of(
    weights: NDArray[np.int64], plan: Plan, counts: Counts, stopped: Callable[[], bool]
) -> NDArray[np.int64]:
    """Return the offline side's prices, which prove a plan that is optimal."""
    return longest_paths(exchanges(weights, plan, counts, stopped), stopped)[0]


def rough_prices(
    weights: NDArray[np.int64], plan: Plan, counts: Counts, stopped: Callable[[], bool]
) -> NDArray[np.int64]:
    """Return the best prices of those on the way to the longest paths: any prove a bound."""
    gains = exchanges(weights, plan, counts, stopped)
    allowed = np.maximum(weights, 0)
    most = allowed.max(axis=0, initial=0)
    tried = [most, np.zeros_like(most)]
    tried += [np.minimum(longest_paths(gains, stopped, n)[0], most) for n in _SWEEPS]

    def bound(prices: NDArray[np.int64]) -> int:
        sides = (allowed - prices).max(axis=1, initial=0).tolist(), prices.tolist()
        return sum(sum(map(mul, *pair)) for pair in zip(counts, sides, strict=True))

    return min(tried, key=bound)
