"""Plans between classes of GPUs and workloads: filled pair by pair, split at random, or best."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cms.fleet.sharing.certificate import AssignmentPrices
from cms.fleet.sharing.plan import SharingPlan
from cms.plugin.algorithm import Named
from cms.running.stopping import Stopped, look

from ..solvers.transport import Offers, best_transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cms.fleet.sharing.problem import SharingProblem
    from cms.plugin.algorithm import Budget

#: Pairs looked at between two looks at the clock.
_AT_ONCE = 1 << 13


#: How many GPUs and workloads each class has.
Counts: TypeAlias = "tuple[list[int], list[int]]"


class Spread(NamedTuple):
    """A plan as arrays: the entry e puts ``amount[e]`` of the column on the row.

    Amounts may be of any size, so they are a list.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    amount: list[int]


def spread_of(entries: list[tuple[int, int, int]]) -> Spread:
    """Return entries (row, column, count) as arrays."""
    places = np.array([entry[:2] for entry in entries], dtype=np.int64).reshape(-1, 2)
    return Spread(places[:, 0], places[:, 1], [entry[2] for entry in entries])


def counts_of(problem: SharingProblem) -> Counts:
    """Return how many GPUs and workloads each class has."""
    return [each.count for each in problem.online], [each.count for each in problem.offline]


def named_plan(problem: SharingProblem, plan: Spread) -> SharingPlan:
    """Return a plan with the names of its classes."""
    online = [each.name for each in problem.online]
    offline = [each.name for each in problem.offline]
    counts: dict[tuple[str, str], int] = {}
    for i, j, n in zip(plan.row.tolist(), plan.column.tolist(), plan.amount, strict=True):
        counts[online[i], offline[j]] = counts.get((online[i], offline[j]), 0) + n
    return SharingPlan(counts)


def claim_plan(problem: SharingProblem, plan: Spread, words: str) -> Named:
    """Claim a plan, and name the part of the method that found it."""
    made: Any = named_plan(problem, plan)  # what `Named` takes is typed by problems of machines
    return Named(made, words)


def claim_prices(problem: SharingProblem, prices: NDArray[np.int64], words: str) -> Named:
    """Claim what prices of the offline side prove."""
    made: Any = AssignmentPrices.of_offline(problem, prices.tolist())
    return Named(made, words)


def pairs_by_weight(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs that are worth something, the best first: positions in the flat table."""
    order = np.argsort(-weights, axis=None, kind="stable")
    return order[: int((weights > 0).sum())]


def filled(pairs: NDArray[np.int64], counts: Counts, stopped: Callable[[], bool]) -> Spread:
    """Go through pairs in their order, and put on each as many workloads as there still can be."""
    left, wanted = map(list, counts)
    open_rows = np.array([n > 0 for n in left], dtype=np.bool_)
    open_columns = np.array([n > 0 for n in wanted], dtype=np.bool_)
    entries: list[tuple[int, int, int]] = []
    width = len(wanted)
    for start in range(0, len(pairs), _AT_ONCE):
        look(stopped)
        if not (open_rows.any() and open_columns.any()):
            break
        some = pairs[start : start + _AT_ONCE]
        row, column = some // width, some % width
        useful = open_rows[row] & open_columns[column]
        for i, j in zip(row[useful].tolist(), column[useful].tolist(), strict=True):
            if count := min(left[i], wanted[j]):
                entries.append((i, j, count))
                left[i] -= count
                wanted[j] -= count
                open_rows[i], open_columns[j] = left[i] > 0, wanted[j] > 0
    return spread_of(entries)


def best_plan(weights: NDArray[np.int64], counts: Counts, budget: Budget) -> Spread:
    """Return a plan of the most value, by a flow between classes."""
    row, column = np.nonzero(weights > 0)
    givers, takers = (np.array(side, dtype=np.int64) for side in counts)
    flows = best_transport(Offers(givers, takers, row, column, weights[row, column]), budget)
    if flows is None:
        raise Stopped
    used = np.flatnonzero(flows)
    return Spread(row[used], column[used], flows[used].tolist())


def parted(counts: Counts, parts: int, seed: int) -> list[Counts]:
    """Draw GPUs and workloads one by one into parts of equal size; return each part's counts."""
    random = Random(f"parts {seed}")
    sides = [_drawn(side, parts, random) for side in counts]
    return list(zip(*sides, strict=True))


def shuffled(number: int, random: Random) -> NDArray[np.int64]:
    """Return so many positions in random order.

    Only its random() is called, which is the same in every version of Python.
    """
    return np.argsort(np.array([random.random() for _ in range(number)]), kind="stable")


def _drawn(counts: list[int], parts: int, random: Random) -> list[list[int]]:
    total = sum(counts)
    part = np.empty(total, dtype=np.int64)
    part[shuffled(total, random)] = np.arange(total) * parts // max(total, 1)
    table = np.zeros((parts, len(counts)), dtype=np.int64)
    np.add.at(table, (part, np.repeat(np.arange(len(counts)), counts)), 1)
    return [[int(n) for n in row] for row in table]
