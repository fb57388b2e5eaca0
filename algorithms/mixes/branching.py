"""A tree of prices: where those of the root fall a little short, it branches on machines and turns.

Branches are on how many machines take a configuration, then on how many blocks of a type have a job
in their mix, then on how many of these have long turns of it. Each node has price functions of its
own; the leaves make one certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from cms.certificate.certificate import Branch, Certificate, round_up
from cms.certificate.conditions import Condition
from cms.certificate.quantity import BlocksOfJob, MachinesOf
from cms.problem.parts import Configuration

from ..solvers.floats import near
from .master import Master
from .prices import PriceSearch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.certificate.quantity import Quantity
    from cms.mixes.prices import MixPrices
    from cms.plugin.algorithm import Budget

    from .master import Point

#: Nodes of a tree, linear programs of one, and branches above one another.
_NODES, _ROUNDS, _DEPTH = 120, 60, 24
#: Not to serve a demand, where branches leave no way to, costs so many times the cost.
_PENALTY = 100
#: What is closer to a whole number counts as one.
_WHOLE = 1e-5


@dataclass(slots=True, eq=False)
class _Node:
    """A node: the branches above it, and what proves its bound or splits it."""

    path: tuple[Condition, ...]
    leaf: MixPrices | None = None
    split: tuple[Quantity, int] | None = None
    children: list[_Node] = field(default_factory=list)


class Tree:
    """Looks for a certificate that no schedule costs less than some cost.

    Parameters
    ----------
    root : PriceSearch
        Whose columns, cuts and prices do not prove it.
    budget : Budget
    """

    def __init__(self, root: PriceSearch, budget: Budget) -> None:
        self._root, self._budget = root, budget
        self._step = root.columns.problem.cost_step

    def proof(self, cost: Fraction) -> Certificate | None:
        """Return a certificate of a bound that rounds up to this cost; None if none is found.

        Raises
        ------
        Stopped
        """
        if not self._step or self._root.region.bounded:
            return None
        top, region = _Node(()), self._root.region
        #: One linear program for all nodes, in which demands may go without being served.
        self._master = Master(
            self._root.columns, region, penalty=_PENALTY * near(cost / region.unit)
        )
        self._master.add_steps(list(self._root.master.steps))
        waiting, nodes = [top], 0
        while waiting:
            node = waiting.pop()
            nodes += 1
            if nodes > _NODES or len(node.path) > _DEPTH or self._budget.stopped:
                return None
            if not self._settled(node, cost):
                return None
            waiting += node.children
        return _certificate(top)

    def _settled(self, node: _Node, cost: Fraction) -> bool:
        """Prove the cost below a node's branches, or split it; False if neither can be done."""
        if node.path:
            region = self._root.region.below(node.path)
            root, known = self._root, cost - self._step
            search = PriceSearch(
                root.columns, region, root.guessers, self._budget, known, self._master
            )
            for priced in search.prove(_ROUNDS):
                if round_up(priced.bound, self._step) >= cost:
                    node.leaf = priced.leaf
                    return True
            point = search.point
        else:
            point = self._root.point
        if point is None:
            return False
        for quantity, value in self._fractions(point):
            at_most = floor(value)
            node.split = quantity, at_most
            node.children = [
                _Node((*node.path, Condition(quantity, -1, at_most))),
                _Node((*node.path, Condition(quantity, 1, at_most + 1))),
            ]
            return True
        return False

    def _fractions(self, point: Point) -> Iterator[tuple[Quantity, float]]:
        """Iterate over the quantities that are no whole numbers, the best to branch on first."""
        region, columns = self._root.region, self._root.columns
        machines: dict[Configuration, float] = {}
        for row, amount in zip(region.rows, point.machines, strict=False):
            if row.shape is not None:
                machines[row.shape] = machines.get(row.shape, 0.0) + amount
        yield from sorted(
            ((MachinesOf(shape), x) for shape, x in machines.items() if _apart(x) > _WHOLE),
            key=lambda pair: -_apart(pair[1]),
        )
        blocks: dict[tuple[int, int], float] = {}
        for column, amount in zip(columns.listed, point.mixes, strict=False):
            for job, _ in column.shares:
                blocks[column.block, job] = blocks.get((column.block, job), 0.0) + amount
        names = columns.problem.job_names
        found: list[tuple[Quantity, float]] = [
            (BlocksOfJob(region.blocks[i], names[job]), x)
            for (i, job), x in blocks.items()
            if _apart(x) > _WHOLE
        ]
        yield from sorted(found, key=lambda pair: -_apart(pair[1]))
        yield from sorted(self._turns(point), key=lambda pair: -_apart(pair[1]))

    def _turns(self, point: Point) -> Iterator[tuple[Quantity, float]]:
        """Iterate over how many blocks have turns of a job with so much or longer, if fractional.

        Two mixes of the same jobs differ in the amount of one of them.
        """
        columns, names = self._root.columns, self._root.columns.problem.job_names
        used: dict[tuple[int, int], dict[Fraction, float]] = {}
        for column, x in zip(columns.listed, point.mixes, strict=False):
            if x > _WHOLE:
                for job, _ in column.shares:
                    own = used.setdefault((column.block, job), {})
                    amount = column.mix[names[job]]
                    own[amount] = own.get(amount, 0.0) + x
        for (i, job), amounts in used.items():
            for least in sorted(amounts)[1:]:
                x = sum(own for amount, own in amounts.items() if amount >= least)
                if _apart(x) > _WHOLE:
                    yield BlocksOfJob(self._root.region.blocks[i], names[job], least), x


def _apart(value: float) -> float:
    """How far a number is from the nearest whole one."""
    return abs(value - round(value))


def _certificate(node: _Node) -> Certificate:
    if node.leaf is not None:
        return node.leaf
    if node.split is None:
        raise AssertionError("a node without a leaf and without a split")
    below, above = map(_certificate, node.children)
    return Branch(*node.split, below, above)
