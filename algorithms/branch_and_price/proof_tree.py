"""What a branch-and-price search branches on a problem for, and the certificate of its tree."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import BlockPrices, Branch, Certificate
from cms.presolver.presolve import PresolvedProblem, let_stand_in
from cms.presolver.replacement import NOTHING_REPLACED, replaced
from cms.problem.parts import held_blocks
from cms.problem.problem import Problem
from cms.running.stopping import never

from ..prices.region import PricePoint, Region

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.certificate.price_conditions import Condition


def branchable(problem: Problem, *, fewer: bool = False) -> PresolvedProblem:
    """Leave out what cannot matter below any branch.

    Below a branch on machines or blocks a configuration that another beats may be worth more than
    that one; so all of them stay as the user gave them, each once, and every certificate of the
    smaller problem holds for the original after :meth:`PresolvedProblem.restore_prices`. What goes
    are jobs without demand, supply beyond it, and blocks that serve no job or that no machine can
    have. With ``fewer`` blocks go that smaller ones replace, too: then certificates may branch on
    machines of types, and on nothing else.
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
        *problem.machine_parts[2:],
        tuple(problem.job_names[j] for j in jobs.tolist()),
        rows.select(np.arange(len(jobs)), kept),
    )
    lost = tuple(problem.blocks[i] for i in useful if problem.blocks[i] not in held)
    reduction = PresolvedProblem(problem, small, lost, (), replacement)
    let_stand_in(reduction, small)
    return reduction


def is_branchable(reduction: PresolvedProblem, *, fewer: bool) -> bool:
    """Whether a reduction left out no more than :func:`branchable` does: blocks of sets alone."""
    if reduction.replacement.gone and not fewer:
        return False
    before = reduction.original
    sets = dict.fromkeys(before.size_bounded_configurations)
    kept = reduction.problem.size_bounded_configurations
    return len(kept) == len(sets) and not before.listed_configurations


@dataclass(slots=True, eq=False)
class Node:
    """A node: the branches above it, and the best prices found there."""

    path: tuple[Condition, ...]
    point: PricePoint
    children: tuple[Node, ...] = ()

    def leaves(self) -> Iterator[Node]:
        """Iterate over the nodes below without children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            waiting += reversed(node.children)
            if not node.children:
                yield node


def build_certificate(given: PresolvedProblem, root: Node, *, free_machines: bool) -> Certificate:
    """Write the tree of a :func:`branchable` problem as a certificate of the original one."""

    def write(node: Node, depths: tuple[int, ...]) -> Certificate:
        """Write a node; ``depths`` are those of the branches kept above it."""
        vector, at = node.point.vector, len(node.path)
        if node.children:
            condition = node.children[0].path[at]
            sides = (write(child, (*depths, at)) for child in node.children)
            return Branch(condition.quantity, condition.value, *sides)
        region = Region(given.problem, node.path, free_machines=free_machines)
        worth = node.point.bound - region.constant(vector)
        leaf = given.restore_prices(region.leaf(vector), worth)
        multipliers = [vector.multipliers[depth] for depth in depths]
        return BlockPrices(leaf.prices, leaf.limit_prices, multipliers, leaf.proper)

    return write(_pruned(root)[1], ())


def _pruned(node: Node) -> tuple[Fraction, Node, frozenset[int]]:
    """Return the bound of a tree, the tree without useless branches, and which a leaf makes use of.

    These are depths, of the branches above.
    """
    if not node.children:
        used = {at for at, value in enumerate(node.point.vector.multipliers) if value}
        return node.point.bound, node, frozenset(used)
    depth, sides = len(node.path), [*map(_pruned, node.children)]
    # A side that makes no use of the branch holds without it, for both.
    alone = [side for side in sides if depth not in side[2]]
    if alone:
        return max(alone, key=lambda side: side[0])
    bounds, children, depths = zip(*sides, strict=True)
    return min(bounds), Node(node.path, node.point, children), depths[0].union(*depths) - {depth}
