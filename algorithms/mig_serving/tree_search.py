"""MIG-serving's slow algorithm: Monte Carlo tree search for the cheapest way to serve the rest."""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from .candidates import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from cms.plugin.algorithm import Budget

    from .candidates import Candidates
    from .options import MigServingOptions
    from .services import Filled, Services

#: Machines in the pools that are remembered; beyond, all are forgotten.
_MOST_POOLED = 100_000


class Path(NamedTuple):
    """Machines that serve all that was missing, and what they cost in steps."""

    machines: list[Filled]
    cost: int


class _Node:
    """A state of the search: what is missing once the machines on the way to it are open."""

    __slots__ = ("best", "edges", "missing", "most", "nodes", "spent", "total", "visits")

    def __init__(self, missing: list[int], spent: int) -> None:
        self.missing, self.spent = missing, spent
        self.edges: list[Filled] | None = None
        self.nodes: list[_Node] = []
        self.visits = self.total = self.best = self.most = 0


class TreeSearch:
    """Looks for the cheapest machines that serve what is missing.

    A node is what jobs lack, an edge a machine that is opened; a path from the root to a node where
    nothing is missing is a solution, and its cost is to be small. A node's edges are cut before it
    is expanded: of jobs drawn at random among those unfinished, the machines of the highest scores.
    """

    def __init__(
        self, services: Services, candidates: Candidates, options: MigServingOptions, random: Random
    ) -> None:
        self._services, self._candidates = services, candidates
        self._options, self._random = options, random
        self._drawn = fitting(services.tables.counts, options.drawn, options.mixed + 1)
        self._pools: dict[bytes, list[Filled]] = {}
        self._pooled = 0

    def best(self, missing: Sequence[int], budget: Budget | None = None) -> Path | None:
        """Return the cheapest solution of all playouts; None if stopped before the first ended."""
        root = _Node(list(missing), 0)
        best: Path | None = None
        for _ in range(self._options.playouts):
            machines, way = self._descend(root)
            rest = self.playout(way[-1].missing, budget)
            if rest is None:
                break
            cost = way[-1].spent + rest.cost
            if best is None or cost < best.cost:
                best = Path(machines + rest.machines, cost)
            for node in way:
                node.visits += 1
                node.total += cost
                node.best = cost if node.visits == 1 else min(node.best, cost)
                node.most = max(node.most, cost)
        return best

    def playout(self, missing: Sequence[int], budget: Budget | None = None) -> Path | None:
        """Open machines at random, of those good where this much is missing; None if stopped.

        What is known to be good is worked out once for all states that agree on how much of every
        job is missing, in so many steps. The machines serve all that is missing.
        """
        left, opened, cost = list(missing), [], 0
        needs, steps = self._services.needs, self._options.buckets
        levels = bytearray(
            -(-amount * steps // need) if amount > 0 else 0
            for amount, need in zip(left, needs, strict=True)
        )
        while any(levels):
            if budget is not None and budget.stopped:
                return None
            machine = self._random.choice(self._pool(bytes(levels), left))
            opened.append(machine)
            cost += self._services.prices[machine.shape]
            for j, amount in machine.gives:
                left[j] -= amount
                levels[j] = -(-left[j] * steps // needs[j]) if left[j] > 0 else 0
        return Path(opened, cost)

    def _descend(self, root: _Node) -> tuple[list[Filled], list[_Node]]:
        """Walk down to a node that was never visited, or where nothing is missing."""
        node, machines, way = root, [], [root]
        while node.visits:
            if node.edges is None:
                node.edges = self._good(node.missing)
            if not node.edges:
                break
            if len(node.nodes) < len(node.edges):
                machine = node.edges[len(node.nodes)]
                left = list(node.missing)
                for j, amount in machine.gives:
                    left[j] -= amount
                after = _Node(left, node.spent + self._services.prices[machine.shape])
                node.nodes.append(after)
            else:
                at = self._promising(node, root)
                machine, after = node.edges[at], node.nodes[at]
            machines.append(machine)
            way.append(after)
            node = after
        return machines, way

    def _promising(self, node: _Node, root: _Node) -> int:
        """Choose the child with the least lower confidence bound of its cost (UCB)."""
        spread = sqrt(log(node.visits))
        bounds = [self._part(after, root) - spread / sqrt(after.visits) for after in node.nodes]
        return bounds.index(min(bounds))

    def _part(self, node: _Node, root: _Node) -> float:
        """Return what is known of a node as a part of the range of costs seen, 0 the least.

        Costs are whole numbers of any size, their quotients small.
        """
        span = (root.most - root.best) or 1
        if self._options.backup == "mean":
            return (node.total - node.visits * root.best) / (node.visits * span)
        return (node.best - root.best) / span

    def _pool(self, levels: bytes, missing: Sequence[int]) -> list[Filled]:
        pool = self._pools.get(levels)
        if pool is None:
            if self._pooled > _MOST_POOLED:
                self._pools.clear()
                self._pooled = 0
            pool = self._pools[levels] = self._good(missing)
            self._pooled += len(pool)
        return pool

    def _good(self, missing: Sequence[int]) -> list[Filled]:
        """Return the machines of the highest scores for some unfinished jobs, drawn at random."""
        unfinished = [j for j, amount in enumerate(missing) if amount > 0]
        if not unfinished:
            return []
        drawn = sorted(self._random.sample(unfinished, min(self._drawn, len(unfinished))))
        return self._candidates.top(drawn, missing, keep=self._options.children)
