"""A tree of prices: where those of the root fall a little short, it branches on machines and jobs.

Branches are on how many machines take a configuration, then on how many blocks of a type have a job
in their mix. Each node has price functions of its own; the leaves make one certificate.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from cms.certificate.certificate import Branch, Certificate, round_up
from cms.certificate.price_conditions import Condition
from cms.certificate.quantity import BlocksOfJob, MachinesOfConfiguration

from ..solvers.floats import near
from .master import Master
from .prices import PriceSearch

if TYPE_CHECKING:
    from cms.certificate.quantity import Quantity
    from cms.plugin.algorithm import Budget

    from .master import Point

#: Nodes of a tree, linear programs of one, and branches above one another.
_NODES, _ROUNDS, _DEPTH = 120, 60, 24
#: Not to serve a demand, where branches leave no way to, costs this multiple of the cost.
_PENALTY = 100
#: What is closer to a whole number counts as one.
_WHOLE = 1e-5


class Tree:
    """Looks for a certificate that no schedule costs less than some cost.

    The root is a search whose columns, cuts and prices do not prove it.
    """

    def __init__(self, root: PriceSearch, budget: Budget) -> None:
        self._root, self._budget, self._nodes = root, budget, 0
        self._step = root.columns.problem.cost_step

    def proof(self, cost: Fraction) -> Certificate | None:
        """Return a certificate of a bound that rounds up to this cost; None if none is found.

        It may raise Stopped.
        """
        if not self._step or self._root.region.bounded or self._root.point is None:
            return None
        return self._split((), self._root.point, cost)

    def _proof(self, path: tuple[Condition, ...], cost: Fraction) -> Certificate | None:
        """Prove the cost below branches, by prices there or by branches further down."""
        self._nodes += 1
        if self._nodes > _NODES or len(path) > _DEPTH or self._budget.stopped:
            return None
        root, region = self._root, self._root.region.below(path)
        # Demands may go without being served.
        penalty = _PENALTY * near(cost / region.unit)
        master = Master(root.columns, region, penalty=penalty)
        master.add_steps(list(root.master.steps))
        search = PriceSearch(root.columns, region, self._budget, cost - self._step, master)
        for priced in search.prove(_ROUNDS):
            if round_up(priced.bound, self._step) >= cost:
                return priced.leaf
        return None if search.point is None else self._split(path, search.point, cost)

    def _split(
        self, path: tuple[Condition, ...], point: Point, cost: Fraction
    ) -> Certificate | None:
        """Prove the cost on either side of the branch on the most fractional quantity."""
        quantity, value = self._most_fractional(point)
        if quantity is None:
            return None
        at_most = floor(value)
        above = self._proof((*path, Condition(quantity, 1, at_most + 1)), cost)
        below = above and self._proof((*path, Condition(quantity, -1, at_most)), cost)
        return above and below and Branch(quantity, at_most, below, above)

    def _most_fractional(self, point: Point) -> tuple[Quantity | None, float]:
        """Return what is farthest from a whole number: configurations before blocks of jobs."""
        region, columns = self._root.region, self._root.columns
        machines: dict[Quantity, float] = defaultdict(float)
        blocks: dict[Quantity, float] = defaultdict(float)
        for row, amount in zip(region.rows, point.machines, strict=False):
            if row.shape is not None:
                machines[MachinesOfConfiguration(row.shape)] += amount
        names = columns.problem.job_names
        for column, amount in zip(columns.listed, point.mixes, strict=False):
            for job, _ in column.shares:
                quantity = BlocksOfJob(region.blocks[column.block], names[job])
                blocks[quantity] += amount
        for values in (machines, blocks):
            found = max(values, key=lambda each: _apart(values[each]), default=None)
            if found is not None and _apart(values[found]) > _WHOLE:
                return found, values[found]
        return None, 0.0


def _apart(value: float) -> float:
    """How far a number is from the nearest whole one."""
    return abs(value - round(value))
