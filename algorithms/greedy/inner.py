"""The inner problem of greedy: the best single machine, which is Maximum Budgeted Allocation.

Blocks are to be given to jobs; job j bids ``bids[i, j]`` for a block of type i and pays at most its
budget in all (theory 2.1). Item greedy, factor 1/2, lives in ``steps``; here are the other three.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..linear.program import LinearProgram
from .paths import PathRounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: (blocks of each type (k,), bids (k, m), budgets (m,)) -> blocks given (k, m). Bids are cut at
#: the budgets.
Inner: TypeAlias = "Callable[[Sequence[int], NDArray[np.float64], NDArray[np.float64]], Given]"
Given: TypeAlias = "NDArray[np.int64]"

#: What each inner method guarantees, as a rational not above it (1 - 1/e is 0.6321...).
FACTORS = {
    "greedy": Fraction(1, 2),
    "independent": Fraction(632_120, 1_000_000),
    "dependent": Fraction(3, 4),
    "exact": Fraction(1),
}
_NOISE = 1e-9
#: Nodes of the exact search between two looks at the clock.
_NODES = 1_000


def exact(
    blocks: Sequence[int],
    bids: NDArray[np.float64],
    budgets: NDArray[np.float64],
    stopped: Callable[[], bool] = lambda: False,
) -> Given:
    """Find the best allocation by depth-first search; factor 1.

    Parameters
    ----------
    blocks : sequence of k ints
        How many there are of each type.
    bids : ndarray, shape (k, m)
        What one block of a type is worth to a job by itself; at most the job's budget.
    budgets : ndarray, shape (m,)
        What all blocks together are worth to a job at most.
    stopped : callable, optional
        Asked now and then; what is best so far is returned then.

    Returns
    -------
    ndarray of int64, shape (k, m)

    Examples
    --------
    Two blocks, two jobs; the best pair first would leave the second job with nothing.

    >>> exact([1, 1], np.array([[1.0, 0.9], [0.9, 0.0]]), np.array([1.0, 1.0]))
    array([[0, 1],
           [1, 0]])
    """
    k, m = bids.shape
    # Types of large bids first: they decide most. Within a type, jobs of large bids first.
    order = sorted((i for i in range(k) if blocks[i]), key=lambda i: -bids[i].max(initial=0))
    rows = [bids[i].tolist() for i in order]
    ranked = [sorted(range(m), key=lambda j, row=row: -row[j]) for row in rows]  # type: ignore[misc]
    numbers = [blocks[i] for i in order]
    left = budgets.tolist()
    given = [[0] * m for _ in order]
    best_value, best = -1.0, [row[:] for row in given]
    nodes, ended = 0, False

    def most(at: int, number: int) -> float:
        """What the blocks left can add at most: each as if it were the only one."""
        total = 0.0
        for later in range(at, len(order)):
            row, count = rows[later], number if later == at else numbers[later]
            if count:
                total += count * max(map(min, row, left), default=0.0)
        return total

    def descend(at: int, number: int, start: int, value: float) -> None:
        """Give the next of ``number`` blocks of a type to a job ranked ``start`` or later."""
        nonlocal best_value, best, nodes, ended
        nodes += 1
        if value > best_value:
            best_value, best = value, [row[:] for row in given]
        while at < len(order) and not number:
            at += 1
            start, number = 0, numbers[at] if at < len(order) else 0
        if at >= len(order) or value + most(at, number) <= best_value * (1 + 1e-15):
            return
        if ended or (not nodes % _NODES and stopped()):
            ended = True
            return
        row, ranks = rows[at], ranked[at]
        for rank in range(start, m):
            j = ranks[rank]
            gain = min(row[j], left[j])
            if gain <= 0:
                continue
            given[at][j] += 1
            left[j] -= gain
            descend(at, number - 1, rank, value + gain)
            left[j] += gain
            given[at][j] -= 1
        # Or no further block of this type.
        descend(at + 1, numbers[at + 1] if at + 1 < len(order) else 0, 0, value)

    descend(0, numbers[0] if order else 0, 0, 0.0)
    result = np.zeros((k, m), dtype=np.int64)
    for i, row in zip(order, best, strict=True):
        result[i] = row
    return result


def assignment(
    blocks: Sequence[int], bids: NDArray[np.float64], budgets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve the assignment linear program: blocks in parts, each job paying within its budget.

    Returns
    -------
    ndarray of float, shape (k, m)
        A vertex; its integrality gap is 3/4 (Chakrabarty and Goel, SIAM J. Comput. 2010; see
        arXiv:1403.7519).
    """
    k, m = bids.shape
    program = LinearProgram()
    scale = float(bids.max(initial=0)) or 1.0
    pairs = [(i, j) for i in range(k) if blocks[i] for j in range(m) if bids[i, j] > 0]
    # Minimising what is lost is maximising what is gained.
    number = {pair: program.variable(-float(bids[pair]) / scale) for pair in pairs}
    for i in range(k):
        mine = [(number[i, j], -1.0) for j in range(m) if (i, j) in number]
        if mine:
            program.at_least(mine, -float(blocks[i]))
    for j in range(m):
        mine = [(number[i, j], -float(bids[i, j]) / scale) for i in range(k) if (i, j) in number]
        if mine:
            program.at_least(mine, -float(budgets[j]) / scale)
    answer = program.solve(None)
    if answer is None:
        raise AssertionError("the assignment program has the solution 0 and a bounded value")
    parts = np.zeros((k, m))
    for pair, at in number.items():
        parts[pair] = max(0.0, answer.values[at])
    nearest = np.rint(parts)
    return np.where(np.abs(parts - nearest) < _NOISE, nearest, parts)


def independent(
    blocks: Sequence[int], bids: NDArray[np.float64], budgets: NDArray[np.float64]
) -> Given:
    """Round the assignment program block by block; factor 1 - 1/e.

    Every block of type i goes to job j with probability (its part of the type's blocks),
    independently of the others. Instead of drawing, each block in turn goes where the expected
    worth of all is largest, which is at least what drawing would be worth on average.

    Examples
    --------
    >>> independent([1, 1], np.array([[1.0, 0.9], [0.9, 0.0]]), np.array([1.0, 1.0])).sum()
    np.int64(2)
    """
    parts = assignment(blocks, bids, budgets)
    k, m = bids.shape
    given = np.floor(parts).astype(np.int64)
    fixed = [float(given[:, j] @ bids[:, j]) for j in range(m)]
    # Every block that is left, one by one: whom it may go to, and how probably.
    waiting: list[tuple[int, dict[int, float]]] = []
    for i in range(k):
        number = blocks[i] - int(given[i].sum())
        rest = parts[i] - given[i]
        jobs = {int(j): float(rest[j]) / number for j in np.flatnonzero(rest > 0)} if number else {}
        waiting += [(i, jobs)] * (number if jobs else 0)
    coming: list[list[tuple[float, float]]] = [[] for _ in range(m)]  # (bid, probability)
    for i, jobs in waiting:
        for j, probability in jobs.items():
            coming[j].append((float(bids[i, j]), probability))
    for i, jobs in waiting:
        for j in jobs:
            coming[j].pop(0)
        chosen, best = -1, 0.0
        for j in jobs:
            without = _expected(fixed[j], coming[j], float(budgets[j]))
            with_it = _expected(fixed[j] + float(bids[i, j]), coming[j], float(budgets[j]))
            if with_it - without > best:
                chosen, best = j, with_it - without
        if chosen >= 0:
            given[i, chosen] += 1
            fixed[chosen] += float(bids[i, chosen])
    return given


def _expected(fixed: float, coming: Sequence[tuple[float, float]], budget: float) -> float:
    """Return the mean of min(budget, what is fixed and what may come)."""
    chances = {fixed: 1.0}
    for bid, probability in coming:
        after: dict[float, float] = {}
        for value, chance in chances.items():
            more = min(budget, value + bid)
            after[value] = after.get(value, 0.0) + chance * (1 - probability)
            after[more] = after.get(more, 0.0) + chance * probability
        chances = after
    return sum(min(budget, value) * chance for value, chance in chances.items())


def dependent(
    blocks: Sequence[int], bids: NDArray[np.float64], budgets: NDArray[np.float64]
) -> Given:
    """Round the assignment program along paths; factor 3/4.

    See :class:`algorithms.greedy.paths.PathRounding`.

    Examples
    --------
    >>> dependent([1, 1], np.array([[1.0, 0.9], [0.9, 0.0]]), np.array([1.0, 1.0])).sum()
    np.int64(2)
    """
    parts = assignment(blocks, bids, budgets)
    rounding = PathRounding(parts, bids, budgets)
    given = np.floor(rounding.rounded() + 0.5).astype(np.int64)
    over = given.sum(axis=1) > np.array(blocks)
    if over.any():
        raise AssertionError(f"more blocks given than there are, of the types {over.nonzero()[0]}")
    return given


INNER: dict[str, Inner] = {"exact": exact, "independent": independent, "dependent": dependent}
