"""The inner problem of greedy: the best single machine, which is Maximum Budgeted Allocation.

Blocks are to be given to jobs; job j bids ``bids[i, j]`` for a block of type i and pays at most its
budget in all (theory 2.1). Item greedy, factor 1/2, lives in ``steps``; here are the other three.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from cms.knapsack.pricing import common_denominator

from ..solvers.linear import LinearProgram
from ..solvers.simplex import cheapest
from .draws import Draws
from .paths import PathRounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..aggregated.pseudoforest import Edge

Given: TypeAlias = "NDArray[np.int64]"


class Inner(Protocol):
    """A method that fills a machine; bids are cut at the budgets.

    Once the run's budget has ended, whatever is known by then is returned.
    """

    def __call__(
        self,
        blocks: Sequence[int],
        bids: NDArray[np.float64],
        budgets: NDArray[np.float64],
        budget: Budget | None = None,
    ) -> Given:
        """Return the blocks of each type given to each job."""
        ...


#: What each inner method guarantees, as a rational not above it (1 - 1/e is 0.6321...).
FACTORS = {
    "greedy": Fraction(1, 2),
    "independent": Fraction(632_120, 1_000_000),
    "dependent": Fraction(3, 4),
    "exact": Fraction(1),
}
#: What of a best machine floats may miss: sums and comparisons, and the tolerances within which
#: the assignment program is solved.
MISSED = {
    "greedy": Fraction(1, 10**9),
    "independent": Fraction(1, 10**5),
    "dependent": Fraction(1, 10**5),
    "exact": Fraction(1, 10**9),
}
_NOISE = 1e-9
#: Nodes of the exact search between two looks at the clock.
_NODES = 1_000


def exact(
    blocks: Sequence[int],
    bids: NDArray[np.float64],
    budgets: NDArray[np.float64],
    budget: Budget | None = None,
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
    budget : Budget or None
        Asked now and then; what is best so far is returned once it has ended.

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
        if ended or (not nodes % _NODES and budget is not None and budget.stopped):
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
    blocks: Sequence[int],
    bids: NDArray[np.float64],
    budgets: NDArray[np.float64],
    budget: Budget | None = None,
) -> NDArray[np.float64]:
    """Solve the assignment linear program: blocks in parts, each job paying within its budget.

    Returns
    -------
    ndarray of float, shape (k, m)
        Of no type more than there are. All 0 if stopped. The program's integrality gap is 3/4
        (Chakrabarty and Goel, SIAM J. Comput. 2010; see arXiv:1403.7519).
    """
    k, m = bids.shape
    pairs = [(i, j) for i in range(k) if blocks[i] for j in range(m) if bids[i, j] > 0]
    # The variables are parts of the most that a job can use: floats between 0 and 1.
    most = {(i, j): min(float(blocks[i]), float(budgets[j]) / float(bids[i, j])) for i, j in pairs}
    worth = {pair: most[pair] * float(bids[pair]) for pair in pairs}
    scale = max(worth.values(), default=1.0)
    # A row a type and a row a job: parts of what there is of it, which add up to at most 1.
    rows: dict[tuple[str, int], dict[Edge, float]] = {}
    for i, j in pairs:
        rows.setdefault(("type", i), {})[i, j] = most[i, j] / float(blocks[i])
        rows.setdefault(("job", j), {})[i, j] = worth[i, j] / float(budgets[j])
    gains = {pair: worth[pair] / scale for pair in pairs}
    limits = [terms for _, terms in sorted(rows.items())]
    parts = np.zeros((k, m))
    for pair, part in _most_gained(gains, limits, budget).items():
        parts[pair] = max(0.0, part) * most[pair]
    nearest = np.rint(parts)
    parts = np.where(np.abs(parts - nearest) < _NOISE, nearest, parts)
    for i, total in enumerate(parts.sum(axis=1)):
        # Within the solver's tolerance a type may give more than there is.
        if total > blocks[i]:
            parts[i] *= blocks[i] / total
    return parts


def _most_gained(
    gains: dict[Edge, float], limits: Sequence[dict[Edge, float]], budget: Budget | None
) -> dict[Edge, float]:
    """Choose parts of which each limit's terms add up to at most 1; none if stopped."""
    program = LinearProgram()
    # Minimising what is lost is maximising what is gained.
    number = {pair: program.variable(-gain) for pair, gain in gains.items()}
    for terms in limits:
        program.row([(number[pair], -part) for pair, part in terms.items()], low=-1.0)
    answer = program.solve(budget)
    if answer is not None:
        return {pair: answer.values[at] for pair, at in number.items()}
    # Numbers too far apart for floats: the parts are the prices of the dual program, which exact
    # numbers solve from the start that its costs of 1 give.
    columns = [
        common_denominator([Fraction(terms.get(pair, 0)) for terms in limits]) for pair in gains
    ]
    exactly = cheapest(
        [Fraction(1)] * len(limits),
        [numbers for numbers, _ in columns],
        [Fraction(gain) * scale for gain, (_, scale) in zip(gains.values(), columns, strict=True)],
        stopped=lambda: budget is not None and budget.stopped,
    )
    if exactly is None:
        return {}
    # A row that was scaled up has a price that is as much lower.
    return {
        pair: float(price * scale)
        for pair, price, (_, scale) in zip(gains, exactly.prices, columns, strict=True)
    }


def independent(
    blocks: Sequence[int],
    bids: NDArray[np.float64],
    budgets: NDArray[np.float64],
    budget: Budget | None = None,
) -> Given:
    """Round the assignment program block by block; factor 1 - 1/e.

    Jobs get the whole parts of what the program gives them. Every other block of type i goes to job
    j with probability (its part of these blocks), independently of the others. Instead of drawing,
    each block in turn goes where the bound on what all are worth is largest, which is at least what
    drawing would be worth on average; see :class:`algorithms.greedy.draws.Draws`.

    Examples
    --------
    >>> independent([1, 1], np.array([[1.0, 0.9], [0.9, 0.0]]), np.array([1.0, 1.0])).sum()
    np.int64(2)
    """
    parts = assignment(blocks, bids, budgets, budget)
    pairs = [(int(i), int(j)) for i, j in zip(*parts.nonzero(), strict=True)]
    draws = Draws.of({pair: float(parts[pair]) for pair in pairs}, blocks)
    each = {(i, j): min(1.0, float(bids[i, j] / budgets[j])) for i, j in pairs}
    given = np.zeros(parts.shape, dtype=np.int64)
    for pair, count in draws.decided(each, dict(enumerate(budgets.tolist())), budget).items():
        given[pair] = count
    return given


def dependent(
    blocks: Sequence[int],
    bids: NDArray[np.float64],
    budgets: NDArray[np.float64],
    budget: Budget | None = None,
) -> Given:
    """Round the assignment program along paths; factor 3/4.

    See :class:`algorithms.greedy.paths.PathRounding`.

    Examples
    --------
    >>> dependent([1, 1], np.array([[1.0, 0.9], [0.9, 0.0]]), np.array([1.0, 1.0])).sum()
    np.int64(2)
    """
    parts = assignment(blocks, bids, budgets, budget)
    whole = np.floor(parts)
    # Large counts would leave floats no digits for the parts: these are rounded by themselves.
    rest, given = parts - whole, whole.astype(np.int64)
    for i, number in enumerate(blocks):
        over = int(given[i].sum()) - number
        if over > 0:
            given[i, int(given[i].argmax())] -= over
        left, total = number - int(given[i].sum()), float(rest[i].sum())
        if total > left:
            rest[i] *= left / total
    rounding = PathRounding(rest, bids, budgets, (given * bids).sum(axis=0))
    given += np.floor(rounding.rounded(budget) + 0.5).astype(np.int64)
    over_all = given.sum(axis=1) > np.array(blocks)
    if over_all.any():
        types = over_all.nonzero()[0]
        raise AssertionError(f"more blocks given than there are, of the types {types}")
    return given


INNER: dict[str, Inner] = {"exact": exact, "independent": independent, "dependent": dependent}
