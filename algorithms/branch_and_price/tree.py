"""Exact closing by branching on machines and blocks, with prices at every leaf.

Where block prices alone do not reach the optimum, or do not show that there is no schedule, the
schedules are split in two by an integer that each of them has (machines of a type or configuration,
blocks of a type, blocks given to one job) and that the fractional solution behind the best prices
leaves fractional. Below, the branches' multipliers join the prices. The tree of all leaves' prices
is a certificate that is checked exactly, without believing any solver.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from cms.certificate.certificate import LARGEST_DEPTH, next_below, round_up
from cms.certificate.conditions import Condition
from cms.certificate.first import first_certificate

from ..prices.jobs import Jobs
from ..prices.points import PricePoint, Warm
from ..prices.region import Region
from ..prices.search import PriceSearch
from .candidates import SUMS, TYPES, Mixture, Split, mixture, schedule_of, splits
from .certificates import Grower, Node, branchable, leaves
from .column_pool import Pool
from .node_schedules import NodeSchedules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cms.certificate.certificate import Certificate
    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem
    from cms.schedule.schedule import Schedule

#: Machine types by their place, and how many machines there are of each.
Fleet: TypeAlias = "tuple[tuple[int, int], ...]"
#: Splits of each rank that are tried where the totals of machine types are whole already.
_TRIED = 2
#: Weighted sums that are tried beside the total of one machine type.
_SUMS_TRIED = 3
#: A schedule for a fleet not seen before is looked for at one in so many nodes.
_TRY_EVERY = 8
#: What a side that gains nothing counts as, as a part of what is missing.
_LEAST_GAIN = Fraction(1, 1000)


def prove_cost(
    problem: Problem,
    budget: Budget,
    cost: Fraction | None = None,
    *,
    most_nodes: int,
    fewer: bool = False,
) -> Iterator[Certificate | Schedule]:
    """Prove that no schedule is cheaper, or find one."""
    if problem.cost_step:
        yield from _Search(
            problem, budget, cost, most_nodes, free_machines=False, fewer=fewer
        ).run()


def prove_infeasible(
    problem: Problem, budget: Budget, *, most_nodes: int, fewer: bool = False
) -> Iterator[Certificate | Schedule]:
    """Prove that there is no schedule at all, or find one."""
    yield from _Search(problem, budget, None, most_nodes, free_machines=True, fewer=fewer).run()


class _Search:
    """A search: nodes are split the lowest bound first."""

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        cost: Fraction | None,
        most_nodes: int,
        *,
        free_machines: bool,
        fewer: bool,
    ) -> None:
        self._problem, self._budget = problem, budget
        self._cost, self._most = cost, most_nodes
        self._free = free_machines
        self._given = branchable(problem, fewer=fewer)
        self._jobs = Jobs(self._given.problem)
        self._pool, self._schedules = Pool(self._jobs), NodeSchedules(self._jobs, budget)
        self._grower = Grower(self._given, self._jobs, budget, free_machines=free_machines)
        self._step = problem.cost_step
        self._nodes = self._whole = 0
        self._fleets: set[Fleet] = set()
        self._dived: set[Fleet] = set()
        self._found: list[Schedule] = []

    def run(self) -> Iterator[Certificate | Schedule]:
        lost = first_certificate(self._problem)
        if lost.proves_infeasible(self._problem):
            yield lost
            return
        if not len(self._jobs):
            return
        root = self._evaluated(())
        if root is None:
            return
        self._schedules.root = root.point
        waiting: list[tuple[Fraction, int, Fraction, int, Node]] = []
        # What no later certificate can exceed, and what is known already.
        most: Fraction | None = None
        told, told_at = self._budget.lower_bound, 0
        fresh: tuple[Node, ...] = (root,)
        while True:
            for node in fresh:
                # Of nodes worth the same whole steps the deepest: schedules are down there.
                worth = node.point.bound
                rank = self._rounded(worth), -len(node.path), worth, node.number
                heapq.heappush(waiting, (*rank, node))
            for schedule in self._found:
                yield schedule
                if self._free:
                    return
            self._found.clear()
            while waiting and self._closed(waiting[0][-1]):
                heapq.heappop(waiting)
            if not waiting or self._nodes >= self._most or self._budget.stopped:
                break
            bound = waiting[0][0] if most is None else min(most, waiting[0][0])
            # A certificate now and then; checking one takes time in proportion to its leaves.
            if not self._free and bound > told and self._nodes >= 2 * told_at:
                told, told_at = bound, self._nodes
                yield self._grower.certificate(root, told - self._step)
            node = heapq.heappop(waiting)[-1]
            fresh = self._children(node)
            if not fresh:
                # No proof gets past this node, but a schedule may still get down to it.
                if self._given.replacement.gone:
                    break
                worth = self._rounded(node.point.bound)
                most = worth if most is None else min(most, worth)
        yield from self._last(root, told)

    def _last(self, root: Node, told: Fraction) -> Iterator[Certificate]:
        """Yield the certificate of the whole tree, if it says more than was told."""
        bound = min(node.point.bound for node in leaves(root))
        if self._free:
            if bound > 0:
                yield self._grower.certificate(root, Fraction(0))
            return
        # Every leaf beyond the cutoff rounds up to the cost.
        reached = self._rounded(bound)
        if self._cost is not None:
            reached = min(reached, self._cost)
        if reached > told:
            yield self._grower.certificate(root, reached - self._step)

    def _rounded(self, bound: Fraction) -> Fraction:
        return bound if self._free else round_up(bound, self._step)

    def _cutoff(self) -> Fraction | None:
        """A node with a bound beyond this needs no more work."""
        if self._free:
            return Fraction(0)
        return None if self._cost is None else next_below(self._cost, self._step)

    def _closed(self, node: Node) -> bool:
        cutoff = self._cutoff()
        return cutoff is not None and node.point.bound > cutoff

    def _evaluated(
        self,
        path: tuple[Condition, ...],
        parent: Node | None = None,
        options: list[NDArray[Any]] | None = None,
    ) -> Node | None:
        """Search for the best prices below branches; None if it was stopped before any."""
        self._nodes += 1
        warm = None
        if parent is not None and options:
            vector, more = parent.point.vector, len(path) - len(parent.path)
            zeros = (Fraction(0),) * more
            point = PricePoint(
                vector._replace(multipliers=(*vector.multipliers, *zeros)), parent.point.bound
            )
            warm = Warm(point, options)
        search = PriceSearch(
            self._jobs,
            self._budget,
            path,
            free_machines=self._free,
            cutoff=self._cutoff(),
            warm=warm,
        )
        for _ in search.run():
            pass
        if search.best is None:
            return None
        self._pool.add(search, 0 if warm is None else len(warm.options))
        node = Node(path, search.best, [], self._nodes)
        if not self._closed(node):
            self._look(node, search, parent)
        return node

    def _look(self, node: Node, search: PriceSearch, parent: Node | None) -> None:
        """Find what to branch on next, and schedules."""
        if not search.shares:
            # The linear program failed; what was fractional above still is a valid choice.
            node.splits = [] if parent is None else _undecided(parent.splits, node.path)
            return
        found = mixture(search)
        cutoff = self._cutoff()
        gap = None if cutoff is None or self._free else max(cutoff - node.point.bound, self._step)
        node.splits = _undecided(splits(search, found, gap), node.path)
        if self._given.replacement.gone:
            node.splits = [split for split in node.splits if split.rank in (TYPES, SUMS)]
        elif not node.splits:
            self._keep(schedule_of(search, found, self._problem, self._budget, self._cost))
        if self._closed(node):
            return  # that was as cheap as a schedule below can be
        if node.splits and node.splits[0].rank == TYPES:
            return
        fleet = _fleet(found)
        wanted, fresh = self._worth_a_try(fleet), fleet not in self._dived
        if wanted or fresh:
            self._dived.add(fleet)
            self._keep(self._schedules.of_fleet(search, dict(fleet), self._cost))
        if wanted and not self._closed(node):
            self._keep(self._schedules.schedule(search, self._cost))

    def _worth_a_try(self, fleet: Fleet) -> bool:
        """Whether to look for a schedule at a node with whole numbers of machines of each type.

        Each such fleet once, but not more often than every so many nodes; and now and then anyway.
        """
        self._whole += 1
        every = _TRY_EVERY if self._schedules.thorough else 1
        fresh = fleet not in self._fleets and every * len(self._fleets) <= self._whole
        if fresh:
            self._fleets.add(fleet)
        if not self._schedules.thorough:
            return fresh or self._whole % _TRY_EVERY == 0
        return fresh or self._whole & (self._whole - 1) == 0

    def _keep(self, schedule: Schedule | None) -> None:
        if schedule is None:
            return
        cost = schedule.cost(self._problem)
        if self._cost is None or cost < self._cost:
            self._cost = cost
            self._found.append(schedule)

    def _children(self, node: Node) -> tuple[Node, ...]:
        """Split a node by what seems to help most; an empty tuple if nothing can."""
        if not node.splits or len(node.path) >= LARGEST_DEPTH:
            return ()
        cutoff = self._cutoff()
        reach = None if cutoff is None or self._free else cutoff + self._step - node.point.bound
        region = Region(self._given.problem, node.path, free_machines=self._free)
        options = self._pool.near(region, node.point.vector, reach)
        best: tuple[Fraction, Split, tuple[Node, ...]] | None = None
        for split in _candidates(node.splits):
            children = []
            for sign, value in ((-1, split.at_most), (1, split.at_most + 1)):
                condition = Condition(split.quantity, sign, value)
                child = self._evaluated((*node.path, condition), node, options)
                if child is None:
                    return ()
                children.append(child)
            gain = self._gain(node, children)
            if best is None or gain > best[0]:
                best = gain, split, tuple(children)
            if all(self._closed(child) for child in children):
                break
        if best is None:
            return ()
        node.split, node.children = best[1], best[2]
        node.splits = []
        return node.children

    def _gain(self, node: Node, children: list[Node]) -> Fraction:
        """What a split brings: the product of both sides' gains, as parts of what is missing."""
        cutoff = self._cutoff()
        gain = Fraction(1)
        for child in children:
            if cutoff is not None and child.point.bound > cutoff:
                continue
            rise = child.point.bound - node.point.bound
            missing = self._step if cutoff is None else cutoff - node.point.bound
            part = rise / missing if missing > 0 else Fraction(0)
            gain *= max(_LEAST_GAIN, min(part, Fraction(1)))
        return gain


def _fleet(found: Mixture) -> Fleet:
    """Return how many machines of each type there are, where that is a whole number."""
    totals: dict[int, Any] = {}
    for row, amount in found.machines:
        totals[row.machine] = totals.get(row.machine, 0) + amount
    return tuple(sorted((machine, round(total)) for machine, total in totals.items()))


def _undecided(found: list[Split], path: tuple[Condition, ...]) -> list[Split]:
    """Leave out what branches above have decided, should inexact numbers bring it up again."""
    decided = {(c.quantity, c.sign): c.value for c in path}
    for condition in path:
        key = condition.quantity, condition.sign
        tighter = min if condition.sign < 0 else max
        decided[key] = tighter(decided[key], condition.value)
    return [
        split
        for split in found
        if decided.get((split.quantity, -1), split.at_most + 1) > split.at_most
        and decided.get((split.quantity, 1), split.at_most) <= split.at_most
    ]


def _candidates(found: list[Split]) -> list[Split]:
    """Choose the splits to try: of machine types the best total and sums, or of each other rank.

    Where costs are fine, totals of machine types decide nearly everything.
    """
    ranks: dict[int, list[Split]] = {}
    for split in sorted(found, key=lambda split: -split.weight):
        ranks.setdefault(split.rank, []).append(split)
    if TYPES in ranks:
        return ranks[TYPES][:1] + ranks.get(SUMS, [])[:_SUMS_TRIED]
    return [split for rank in sorted(ranks) for split in ranks[rank][:_TRIED]]
