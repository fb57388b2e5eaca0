"""Dependent rounding of an assignment along cycles and paths, without losing a quarter.

Blocks are in parts; an edge (block type, job) is open while its part is not whole. The rounding
keeps every type's total within its next whole number and moves along one cycle or path of open
edges at a time, such that every job in between keeps what it is given in all (in bids).

* A cycle is opened by changing all of its edges so that all jobs, and all types but one, keep their
  totals; of the two directions the one that lowers that type's total is free. Nobody loses.
* A path from one end of a tree to another can be changed in two directions. Drawn in proportion to
  the other's length neither changes anything on average.

A job that is an end has a single open edge, of part z and bid b, beside whole blocks worth L; it
was given T = L + b z <= budget B in all. Rounded up with probability z it has
L (1 - z) + min(B, L + b) z on average, which is at least T (1 - z + z^2) >= 3/4 T, as b <= B and
T <= B. A job with two open edges or more still has T. So the *potential*, the first for jobs with
one open edge and 3/4 T for jobs with more, does not fall on average, and one of the two directions
does not lower it: that one is taken (conditional expectations; the idea of such roundings is
Srinivasan's, APPROX 2008, doi:10.1007/978-3-540-85363-3_20).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregated.pseudoforest import bipartite_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..aggregated.pseudoforest import Edge

#: Parts so near to a whole number are whole.
_WHOLE = 1e-9


class PathRounding:
    """Rounds parts of blocks to whole ones, keeping 3/4 of their worth.

    ``parts`` (k, m) are feasible for the assignment program; ``already`` is what other blocks,
    which are whole, are worth to each job.
    """

    def __init__(
        self,
        parts: NDArray[np.float64],
        bids: NDArray[np.float64],
        budgets: NDArray[np.float64],
        already: NDArray[np.float64] | None = None,
    ) -> None:
        self._parts, self._bids, self._budgets = parts.copy(), bids, budgets
        self._already = np.zeros(bids.shape[1]) if already is None else already

    def rounded(self, budget: Budget | None = None) -> NDArray[np.float64]:
        """Return whole blocks, as floats; if stopped, parts are rounded down."""
        while True:
            edges = self._open()
            if not edges:
                return self._parts
            if budget is not None and budget.stopped:
                return np.floor(self._parts)
            graph = bipartite_graph(edges)
            cycle = _cycle(graph)
            if cycle is not None:
                self._move(self._around(cycle))
                continue
            changes = self._along(_path(graph))
            before, results = self._parts, []
            for sign in (1.0, -1.0):
                self._parts = before.copy()
                self._move({edge: sign * change for edge, change in changes.items()})
                results.append((self.potential(), self._parts))
            self._parts = max(results, key=lambda result: result[0])[1]

    def _open(self) -> list[Edge]:
        parts = self._parts
        nearest = np.rint(parts)
        # Whole but for noise: exactly whole from here on.
        np.copyto(parts, nearest, where=np.abs(parts - nearest) < _WHOLE)
        return [(int(i), int(j)) for i, j in zip(*np.nonzero(parts != nearest), strict=True)]

    def potential(self) -> float:
        """Return what the rounding of the parts is worth at least."""
        self._open()
        opened = self._parts != np.rint(self._parts)
        worth = self._already + (self._parts * self._bids).sum(axis=0)
        # Of a job with one open edge, or with none: the edge's part and bid.
        at = opened.argmax(axis=0), np.arange(opened.shape[1])
        z, bids = self._parts[at] - np.floor(self._parts[at]), self._bids[at]
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

    def _around(self, cycle: Sequence[Edge]) -> dict[Edge, float]:
        """Return changes around a cycle, from a type on, that lower or keep this type's total."""
        changes = self._along(cycle)
        total = changes[cycle[0]] + changes[cycle[-1]]
        return {edge: -change for edge, change in changes.items()} if total > 0 else changes

    def _move(self, changes: dict[Edge, float]) -> None:
        """Change parts until the first of them is whole."""
        steps = []
        for edge, change in changes.items():
            part = float(self._parts[edge])
            if change:
                goal = np.floor(part) + 1 if change > 0 else np.ceil(part) - 1
                steps.append((goal - part) / change)
        for edge, change in changes.items():
            self._parts[edge] += min(steps) * change


def _edges_of(nodes: Sequence[tuple[str, int]]) -> list[Edge]:
    pairs = (sorted(pair, reverse=True) for pair in itertools.pairwise(nodes))
    return [(one[1], other[1]) for one, other in pairs]


def _cycle(graph: Any) -> list[Edge] | None:
    """Return the edges of a cycle, from one of its types on; None if there is none."""
    import networkx as nx

    basis = nx.cycle_basis(graph)
    if not basis:
        return None
    nodes = basis[0]
    start = next(at for at, node in enumerate(nodes) if node[0] == "type")
    return _edges_of([*nodes[start:], *nodes[: start + 1]])


def _path(graph: Any) -> list[Edge]:
    """Return the edges of a path between two ends of a forest."""
    import networkx as nx

    first, *others = sorted(node for node in graph if graph.degree(node) == 1)
    paths = nx.single_source_shortest_path(graph, first)
    return _edges_of(next(paths[node] for node in others if node in paths))
