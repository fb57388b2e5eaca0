"""The inner problem of greedy: the best single machine, which is Maximum Budgeted Allocation.

Job j bids ``bids[i, j]`` for a block of type i, at most its budget, and pays at most its budget in
all (theory 2.1). Once the run's budget has ended, what is known by then is returned.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.knapsack.pricing import common_denominator

from ..aggregated.pseudoforest import bipartite_graph
from ..solvers.linear import LinearProgram
from ..solvers.simplex import cheapest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..aggregated.pseudoforest import Edge

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

_NOISE = 1e-9
#: Nodes of the exact search between two looks at the clock.
_NODES = 1_000


def exact(
    blocks: Sequence[int], bids: Floats, budgets: Floats, budget: Budget | None = None
) -> Whole:
    """Find the best allocation, shape (k, m), by depth-first search; factor 1."""
    k, m = bids.shape
    # Types of large bids first: they decide most. Within a type, jobs of large bids first.
    order = sorted(range(k), key=lambda i: -bids[i].max(initial=0))
    units = [i for i in order for _ in range(blocks[i])]
    rest = [Counter(units[at:]).items() for at in range(len(units))]
    rows, left = bids.tolist(), budgets.tolist()
    ranked = [sorted(range(m), key=lambda j, row=row: -row[j]) for row in rows]  # type: ignore[misc]
    given = [[0] * m for _ in rows]
    best_value, best = -1.0, [row[:] for row in given]
    nodes, ended = 0, False

    def descend(at: int, start: int, value: float) -> None:
        """Give the next block to a job that its type ranks ``start`` or later."""
        nonlocal best_value, best, nodes, ended
        nodes += 1
        if value > best_value:
            best_value, best = value, [row[:] for row in given]
        if at == len(units):
            return
        # What the blocks left can add at most: each as if it were the only one.
        most = sum(count * max(map(min, rows[i], left), default=0.0) for i, count in rest[at])
        if value + most <= best_value * (1 + 1e-15):
            return
        if ended or (not nodes % _NODES and budget is not None and budget.stopped):
            ended = True
            return
        i = units[at]
        again = at + 1 < len(units) and units[at + 1] == i
        for rank in range(start, m):
            j = ranked[i][rank]
            gain = min(rows[i][j], left[j])
            if gain <= 0:
                continue
            given[i][j] += 1
            left[j] -= gain
            descend(at + 1, rank if again else 0, value + gain)
            left[j] += gain
            given[i][j] -= 1
        # Or no further block of this type.
        descend(at + units[at:].count(i), 0, value)

    descend(0, 0, 0.0)
    return np.array(best, dtype=np.int64).reshape(k, m)


def assignment(
    blocks: Sequence[int], bids: Floats, budgets: Floats, budget: Budget | None = None
) -> Floats:
    """Solve the assignment linear program: blocks in parts, each job paying within its budget.

    All 0 if stopped. Its integrality gap is 3/4 (arXiv:1403.7519).
    """
    k, m = bids.shape
    pairs = [(i, j) for i in range(k) if blocks[i] for j in range(m) if bids[i, j] > 0]
    # The variables are parts of the most that a job can use: floats between 0 and 1.
    most = [min(float(blocks[i]), float(budgets[j]) / float(bids[i, j])) for i, j in pairs]
    worth = [number * float(bids[pair]) for number, pair in zip(most, pairs, strict=True)]
    gains = [each / max(worth) for each in worth]
    # A row a job and a row a type: parts of what there is of it, which add up to at most 1.
    rows: dict[tuple[str, int], dict[int, float]] = {}
    for at, (i, j) in enumerate(pairs):
        rows.setdefault(("job", j), {})[at] = worth[at] / float(budgets[j])
        rows.setdefault(("type", i), {})[at] = most[at] / float(blocks[i])
    limits = [terms for _, terms in sorted(rows.items())]
    program = LinearProgram()
    for gain in gains:
        program.variable(-gain)  # minimising what is lost is maximising what is gained
    for terms in limits:
        program.row([(at, -part) for at, part in terms.items()], low=-1.0)
    answer = program.solve(budget)
    values = _exactly(gains, limits, budget) if answer is None else answer.values
    parts = np.zeros((k, m))
    for pair, part, number in zip(pairs, values, most, strict=False):
        parts[pair] = max(0.0, part) * number
    parts = _settled(parts)
    # Within the solver's tolerance a type may give more than there is.
    over = parts.sum(axis=1) / np.maximum(1.0, np.array(blocks, dtype=float))
    return np.asarray(parts / np.maximum(1.0, over)[:, None])


def _exactly(
    gains: Sequence[float], limits: Sequence[dict[int, float]], budget: Budget | None
) -> list[float]:
    """Solve the assignment program where numbers are too far apart for floats; [] if stopped.

    The parts are the prices of the dual program, which exact numbers, in a common step, solve from
    the start that its costs of 1 give.
    """
    parts = [Fraction(terms.get(at, 0)) for at in range(len(gains)) for terms in limits]
    numbers, scale = common_denominator([*parts, *map(Fraction, gains)])
    size = len(limits)
    exactly = cheapest(
        [Fraction(1)] * size,
        [numbers[at * size : (at + 1) * size] for at in range(len(gains))],
        numbers[len(parts) :],
        stopped=lambda: budget is not None and budget.stopped,
    )
    # A row that was scaled up has a price that is as much lower.
    return [] if exactly is None else [float(price * scale) for price in exactly.prices]


def _settled(parts: Floats) -> Floats:
    """Make parts that are whole but for noise exactly whole."""
    nearest = np.rint(parts)
    return np.where(np.abs(parts - nearest) < _NOISE, nearest, parts)


def _divided(
    blocks: Sequence[int], bids: Floats, budgets: Floats, budget: Budget | None
) -> tuple[Whole, Whole, Floats]:
    """Return the program's whole blocks, how many are left, and the parts that want those."""
    parts = assignment(blocks, bids, budgets, budget)
    whole = np.floor(parts)
    # Large counts would leave floats no digits for the parts: these are rounded by themselves.
    rest, given = parts - whole, whole.astype(np.int64)
    for i, number in enumerate(blocks):
        over = int(given[i].sum()) - number
        if over > 0:
            given[i, int(given[i].argmax())] -= over
    left = np.array(blocks, dtype=np.int64) - given.sum(axis=1)
    total = rest.sum(axis=1)
    rest *= np.minimum(1.0, left / np.maximum(total, _NOISE))[:, None]
    return given, left, rest


def independent(
    blocks: Sequence[int], bids: Floats, budgets: Floats, budget: Budget | None = None
) -> Whole:
    """Round the assignment program block by block; factor 1 - 1/e.

    Drawn by its part, block b brings the part Z_b of what a job pays at most, and ``E min(1, sum
    Z_b) >= 1 - prod (1 - E Z_b) >= (1 - 1/e) min(1, sum E Z_b)``. Instead of drawing, each block in
    turn goes where it lowers the weighted products most: no more is left of them than on average.
    """
    given, left, rest = _divided(blocks, bids, budgets, budget)
    each = np.minimum(1.0, bids / budgets)
    numbers = np.minimum(left, np.ceil(rest.sum(axis=1) - _NOISE).astype(np.int64))
    brought = rest / np.maximum(1, numbers)[:, None] * each
    # What each job misses beside the blocks given, which count as one variable.
    missed = budgets * np.maximum(0.0, 1.0 - (given * each).sum(axis=0))
    # And what the draws of the types after each leave of that, on average.
    after = np.cumprod(((1.0 - brought) ** numbers[:, None])[::-1], axis=0)[::-1]
    for i, number in enumerate(numbers.tolist()):
        if budget is not None and budget.stopped:
            break
        later = after[i + 1] if i + 1 < len(after) else 1.0
        for waiting in range(number - 1, -1, -1):
            gain = missed * each[i] * later * (1.0 - brought[i]) ** waiting
            gain[rest[i] <= 0] = 0.0
            j = int(gain.argmax())
            if gain[j] > 0:
                given[i, j] += 1
                missed[j] *= 1.0 - each[i, j]
    return given


def dependent(
    blocks: Sequence[int], bids: Floats, budgets: Floats, budget: Budget | None = None
) -> Whole:
    """Round the assignment program along paths; factor 3/4."""
    given, left, rest = _divided(blocks, bids, budgets, budget)
    rounding = PathRounding(bids, budgets, (given * bids).sum(axis=0))
    rounded = np.rint(rounding.rounded(rest, budget)).astype(np.int64)
    if (rounded.sum(axis=1) > left).any():
        raise AssertionError(f"more blocks given than the {left.tolist()} there are")
    return given + rounded


class PathRounding:
    """Rounds parts of blocks to whole ones along cycles and paths, keeping 3/4 of their worth.

    ``already`` is what other blocks are worth to each job. A move along a cycle or path of open
    edges (block type, job), whose parts are not whole, keeps what every job in between is given, in
    bids, and every type's total within its next whole number. On a cycle one direction lowers no
    bid; on a path two, drawn in proportion to the other's length, change nothing on average.

    A job that is an end has one open edge, of part z and bid b, beside whole blocks worth L, and T
    = L + b z <= budget B in all. Rounded up with probability z it has L (1 - z) + min(B, L + b) z
    on average, at least T (1 - z + z^2) >= 3/4 T, as b <= B. Others still have T. So the
    *potential*, the first for jobs with one open edge and 3/4 T for those with more, does not fall
    on average, and one direction does not lower it: that one is taken (Srinivasan, APPROX 2008,
    doi:10.1007/978-3-540-85363-3_20).
    """

    def __init__(self, bids: Floats, budgets: Floats, already: Floats) -> None:
        self._bids, self._budgets, self._already = bids, budgets, already

    def rounded(self, parts: Floats, budget: Budget | None = None) -> Floats:
        """Return whole blocks, as floats; if stopped, parts are rounded down."""
        parts = _settled(parts)
        while (parts != np.rint(parts)).any():
            if budget is not None and budget.stopped:
                return np.floor(parts)
            opened = np.argwhere(parts != np.rint(parts)).tolist()
            graph = bipartite_graph((i, j) for i, j in opened)
            cycle = _cycle(graph)
            changes = self._along(cycle or _path(graph))
            back = {edge: -change for edge, change in changes.items()}
            ways = [changes, back]
            if cycle:
                # The total of the type where the cycle begins must not rise.
                ways = [back if changes[cycle[0]] + changes[cycle[-1]] > 0 else changes]
            parts = max((_moved(parts, way) for way in ways), key=self.potential)
        return parts

    def potential(self, parts: Floats) -> float:
        """Return what the rounding of the parts is worth at least."""
        opened = parts != np.rint(parts)
        worth = self._already + (parts * self._bids).sum(axis=0)
        # Of a job with one open edge, or with none: the edge's part and bid.
        at = opened.argmax(axis=0), np.arange(opened.shape[1])
        z, bids = parts[at] - np.floor(parts[at]), self._bids[at]
        low = worth - z * bids
        single = np.minimum(self._budgets, low) * (1 - z)
        single += np.minimum(self._budgets, low + bids) * z
        several = 0.75 * np.minimum(self._budgets, worth)
        return float(np.where(opened.sum(axis=0) > 1, several, single).sum())

    def _along(self, path: Sequence[Edge]) -> dict[Edge, float]:
        """Return changes along a path that keep the totals of what is in between."""
        changes = {path[0]: 1.0}
        for edge, following in itertools.pairwise(path):
            change = changes[edge]
            if edge[0] == following[0]:  # over a type: as many blocks
                changes[following] = -change
            else:  # over a job: as much in bids
                changes[following] = -change * float(self._bids[edge] / self._bids[following])
        return changes


def _moved(parts: Floats, changes: dict[Edge, float]) -> Floats:
    """Change parts until the first of them is whole."""
    goals = {
        e: np.floor(parts[e]) + 1 if up > 0 else np.ceil(parts[e]) - 1 for e, up in changes.items()
    }
    step = min((goals[e] - parts[e]) / change for e, change in changes.items() if change)
    parts = parts.copy()
    for edge, change in changes.items():
        parts[edge] += step * change
    return _settled(parts)


def _edges_of(nodes: Sequence[tuple[str, int]]) -> list[Edge]:
    pairs = (sorted(pair, reverse=True) for pair in itertools.pairwise(nodes))
    return [(one[1], other[1]) for one, other in pairs]


def _cycle(graph: Any) -> list[Edge]:
    """Return the edges of a cycle, from one of its types on; none if there is none."""
    import networkx as nx

    nodes = next(iter(nx.cycle_basis(graph)), [])
    start = 1 if nodes and nodes[0][0] != "type" else 0
    return _edges_of([*nodes[start:], *nodes[: start + 1]])


def _path(graph: Any) -> list[Edge]:
    """Return the edges of a path between two ends of a forest."""
    import networkx as nx

    first, *others = sorted(node for node in graph if graph.degree(node) == 1)
    paths = nx.single_source_shortest_path(graph, first)
    return _edges_of(next(paths[node] for node in others if node in paths))


INNER = {"exact": exact, "independent": independent, "dependent": dependent}
