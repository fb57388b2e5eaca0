"""The tree of a branch-and-price search, the reduction for it, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.certificate.certificate import BlockPrices, Branch, Certificate
from cms.problem.problem import Problem
from cms.reduction.reduction import Reduction, held_blocks, let_stand_in
from cms.reduction.replacement import NOTHING_REPLACED, replaced
from cms.running.stopping import never

from ..prices.points import PricePoint
from ..prices.region import Region
from ..prices.search import PriceSearch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.certificate.conditions import Condition
    from cms.plugin.algorithm import Budget

    from ..prices.jobs import Jobs
    from .candidates import Split


def branchable(problem: Problem, *, fewer: bool = False) -> Reduction:
    """Leave out what cannot matter below any branch.

    Below a branch on machines or blocks a configuration that another beats may be worth more than
    that one; so all of them stay as the user gave them, each once, and every certificate of the
    smaller problem holds for the original after :meth:`Reduction.restore_prices`. What goes are
    jobs without demand, supply beyond it, and blocks that serve no job or that no machine can have.
    """
    jobs = np.flatnonzero(problem.rows.wants)
    rows = problem.rows.select(jobs, range(len(problem.blocks)), cut=True)
    held = set(held_blocks(problem.configurations))
    useful: list[int] = np.flatnonzero(problem.serving_blocks()).tolist()
    kept = [i for i in useful if problem.blocks[i] in held]
    replacement = replaced(problem, kept, never) if fewer else NOTHING_REPLACED
    kept = [i for i in kept if i not in replacement.gone]
    small = Problem._rebuild(
        tuple(problem.blocks[i] for i in kept),
        tuple(dict.fromkeys(problem.configurations)),
        problem.machine_types,
        tuple(problem.job_names[j] for j in jobs.tolist()),
        rows.select(np.arange(len(jobs)), kept),
    )
    lost = tuple(problem.blocks[i] for i in useful if problem.blocks[i] not in held)
    reduction = Reduction(problem, small, lost, (), replacement)
    let_stand_in(reduction, small)
    return reduction


#: Decimal digits a leaf's numbers are tried with, in the region's unit.
_DIGITS = (2, 3, 4, 6, 9, 12, 16)
#: Numbers over a smaller denominator are short as they are.
_SHORT = 10_000


@dataclass(slots=True, eq=False)
class Node:
    """A node: the branches above it, the best prices found there, what it could be split by."""

    path: tuple[Condition, ...]
    point: PricePoint
    splits: list[Split]
    number: int
    split: Split | None = None
    children: tuple[Node, ...] = ()
    leaf: _Leaf | None = field(default=None, repr=False)


class _Leaf(NamedTuple):
    """A leaf's prices; the multipliers under their branch's depth, zeros left out."""

    bound: Fraction
    prices: BlockPrices
    multipliers: dict[int, Fraction]


class _Fork(NamedTuple):
    """A branch at a depth. ``depths`` are those of branches that some leaf below makes use of."""

    node: Node
    below: _Part
    above: _Part
    depths: frozenset[int]
    bound: Fraction


_Part = _Leaf | _Fork


class Grower:
    """Makes certificates of trees."""

    def __init__(
        self,
        given: Reduction,
        jobs: Jobs,
        budget: Budget,
        *,
        free_machines: bool,
        short: bool = True,
    ) -> None:
        self._given, self._jobs, self._budget = given, jobs, budget
        self._free, self._short = free_machines, short

    def certificate(self, root: Node, above: Fraction) -> Certificate:
        """Return the certificate of a tree.

        Leaves are written in short numbers as far as their bounds stay beyond ``above``.
        """
        return _named(self._part(root, above), ())

    def _part(self, node: Node, above: Fraction) -> _Part:
        if not node.children:
            if node.leaf is None or node.leaf.bound <= above < node.point.bound:
                node.leaf = self._leaf(node, above)
            return node.leaf
        below, more = (self._part(child, above) for child in node.children)
        depth = len(node.path)
        # A side that makes no use of the branch holds without it, for both.
        alone = [part for part in (below, more) if depth not in _depths(part)]
        if alone:
            return max(alone, key=_bound)
        depths = (_depths(below) | _depths(more)) - {depth}
        return _Fork(node, below, more, depths, min(_bound(below), _bound(more)))

    def _leaf(self, node: Node, above: Fraction) -> _Leaf:
        region = Region(self._given.problem, node.path, free_machines=self._free)
        point = self._shortened(node, above) if self._short else node.point
        used = {at: value for at, value in enumerate(point.vector.multipliers) if value}
        worth = point.bound - region.constant(point.vector)
        prices = self._given.restore_prices(region.leaf(point.vector), worth)
        return _Leaf(point.bound, prices, used)

    def _shortened(self, node: Node, above: Fraction) -> PricePoint:
        """Return a node's prices in few digits, if they still prove more than ``above``."""
        vector = node.point.vector
        values = (*vector.prices, *vector.multipliers)
        longest = max((value.denominator for value in (*values, *vector.limit_prices)), default=1)
        if longest <= _SHORT or node.point.bound <= above:
            return node.point
        search = PriceSearch(self._jobs, self._budget, node.path, free_machines=self._free)
        signs = [1] * len(vector.prices) + [condition.sign for condition in node.path]
        for digits in _DIGITS:
            grid = 10**digits
            # Towards where machines are worth less, so that nothing has to be scaled.
            numbers = [
                sign * floor(sign * value * grid / search.region.unit)
                for value, sign in zip(values, signs, strict=True)
            ]
            found = search.evaluate(numbers, grid)
            if found is None:
                break
            if found[0].bound > above:
                return found[0]
        return node.point


def leaves(root: Node) -> Iterator[Node]:
    """Iterate over the nodes without children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.children)
        if not node.children:
            yield node


def _depths(part: _Part) -> frozenset[int]:
    return frozenset(part.multipliers) if isinstance(part, _Leaf) else part.depths


def _bound(part: _Part) -> Fraction:
    return part.bound


def _named(part: _Part, depths: tuple[int, ...]) -> Certificate:
    """Write a part as a certificate; ``depths`` are those of the branches kept above it."""
    if isinstance(part, _Leaf):
        multipliers = [part.multipliers.get(depth, Fraction(0)) for depth in depths]
        leaf = part.prices
        return BlockPrices(leaf.prices, leaf.limit_prices, multipliers, leaf.proper)
    split = part.node.split
    if split is None:
        raise AssertionError("a node with children but without a split")
    below = (*depths, len(part.node.path))
    return Branch(
        split.quantity, split.at_most, _named(part.below, below), _named(part.above, below)
    )
