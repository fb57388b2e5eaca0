"""Branching on totals where jobs are alike: many nodes, each a step of the simplex method.

Of hundreds of equal jobs none is worth a branch of its own. How many machines of each type there
are, and how many blocks, decides nearly all; and with few kinds of jobs the linear program over
options and contents is small. Below a branch it goes on from where it was; only where it costs more
than the best schedule are its prices made exact, which closes the node for good or brings up
options and contents that were missing. Branches are chosen by what branches on the same total
gained before (pseudocosts; Achterberg, Koch, Martin 2005, DOI 10.1016/j.orl.2004.04.002), those
that nobody tried first. Hundreds of fleets may cost the same: to settle how many blocks there are
of some type often rules out all of them at once, so blocks do not wait for whole machines.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from itertools import product
from math import ceil, floor, gcd
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.certificate.certificate import LARGEST_DEPTH, next_below, round_up
from cms.certificate.conditions import Condition

from ..prices.jobs import Jobs
from ..prices.search import PriceSearch
from ..solvers.floats import near
from .blend import Blend, Blends, Total
from .candidates import BLOCKS, TYPES, Split
from .certificates import Grower, Node, branchable, leaves
from .options import NearOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.certificate.certificate import Certificate
    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem
    from cms.reduction.reduction import Reduction

    from ..prices.points import PricePoint

#: How many machines there are of each type.
Fleet: TypeAlias = "dict[str, int]"
#: A node whose program costs so small a part of a step beyond the cutoff is not closed yet.
_MARGIN = 1e-4
#: Nearer to an integer than this counts as one where branches are chosen.
_NEAR = 1e-5
#: Totals that are tried on both sides at a node, as far as not known well enough already.
_TRIED, _KNOWN = 24, 2
#: What a side that gains nothing counts as, in the region's unit.
_LEAST_GAIN = 1e-6
#: What one unit of a total may be worth, in the region's unit, that no branch has been on yet.
_UNKNOWN = 10.0
#: Rounds of bringing up what is missing at a node.
_ROUNDS = 30
#: More weighted sums of machines come with so many nodes for each there is.
_SUMS_AGAIN, _MOST_SUMS = 4, 48
#: So many sums, of units down to so small a part of a machine, and about a cost step at least.
_SUMS, _MOST_PARTS, _MOST_WEIGHT, _FINEST = 12, 8, 1_000, 0.9
#: Fleets at nodes for which schedules are looked for.
_MOST_FLEETS = 12
#: Options of a kind to begin with: so many, of the first ones within so many cost steps.
_OPTIONS, _LISTED, _STEPS = 8, 60, 20


def prove_by_totals(
    problem: Problem, budget: Budget, cost: Fraction, *, most_nodes: int
) -> Iterator[Certificate | Fleet]:
    """Prove that no schedule is cheaper, where there are many jobs of each of few kinds."""
    given = branchable(problem)
    jobs = Jobs(given.problem)
    if not problem.cost_step or not len(jobs):
        return
    search = PriceSearch(jobs, budget)
    for _ in search.run():
        pass
    for _ in search.refine():
        pass
    if search.best is not None and not budget.stopped:
        yield from _Tree(given, jobs, search, search.best, budget, cost).run(most_nodes)


class _Open(NamedTuple):
    """A node that is to be split or closed, what its conditions are about, and its program's end.

    Nodes come the lowest bound in whole steps first, of these the deepest.
    """

    steps: int
    height: int
    value: float
    number: int
    node: Node
    totals: tuple[Total, ...]
    blend: Blend


class _Tree:
    """A tree of branches on totals; ``search`` is at its end, without branches."""

    def __init__(
        self,
        given: Reduction,
        jobs: Jobs,
        search: PriceSearch,
        point: PricePoint,
        budget: Budget,
        cost: Fraction,
    ) -> None:
        self._budget, self._cost = budget, cost
        self._step, self._unit = given.original.cost_step, search.region.unit
        self._names = [machine.name for machine in given.problem.machine_types]
        self._original = given.original
        self._fleets: list[Fleet] = []
        self._blends = Blends(jobs, search.region, budget)
        self._grower = Grower(given, jobs, budget, free_machines=False, short=False)
        self._sums: list[list[int]] = []
        self._types = len(search.region.costs)
        self._root = Node((), point, [], 0)
        self._gains: dict[tuple[Total, int], tuple[float, int]] = {}
        self._nodes = 0
        for share in search.shares:
            option = search.options[share.number][share.group]
            self._blends.add_option(share.group, tuple(option.tolist()))
        options = NearOptions(jobs, point)
        for kind in range(len(jobs)):
            for listed in options.some(kind, _STEPS * self._step, _LISTED)[:_OPTIONS]:
                self._blends.add_option(kind, listed)

    def run(self, most: int) -> Iterator[Certificate | Fleet]:
        told, told_at = self._budget.lower_bound, 0
        waiting: list[_Open] = []
        root = self._solved(self._root, ())
        if root is not None:
            self._add_sums(root.blend)
            heapq.heappush(waiting, self._again(root) or root)
        while waiting and self._nodes < most and not self._budget.stopped:
            node = heapq.heappop(waiting)
            whole = not any(machines for machines, _ in _fractional(node.blend))
            if whole or node.steps * self._step > round_up(node.node.point.bound, self._step):
                priced = self._priced(node)
                if priced is None:
                    continue
                if priced.steps < node.steps:
                    heapq.heappush(waiting, priced)
                    continue
                node = priced
            if whole and len(self._fleets) < _MOST_FLEETS:
                amounts = [node.blend.totals.get((True, m), 0.0) for m in range(self._types)]
                fleet = {n: round(x) for n, x in zip(self._names, amounts, strict=True)}
                if fleet not in self._fleets:
                    self._fleets.append(fleet)
                    yield fleet
                    best = self._budget.best
                    if best is not None:
                        self._cost = min(self._cost, best.cost(self._original))
                    if self._beyond(node.value):
                        heapq.heappush(waiting, node)
                        continue
            if self._nodes >= _SUMS_AGAIN * len(self._sums) and len(self._sums) < _MOST_SUMS:
                # Below branches machines are worth other parts of each other.
                self._add_sums(node.blend)
                node = self._again(node) or node
            children = self._split(node)
            if not children:
                break  # no proof gets past this node
            for child in children:
                heapq.heappush(waiting, child)
            # A certificate now and then; checking one takes time in proportion to its leaves.
            if self._nodes >= 2 * told_at and waiting and waiting[0].steps * self._step > told:
                for certificate in self._last(told):
                    told, told_at = round_up(self._bound, self._step), self._nodes
                    yield certificate
        yield from self._last(told)

    def _add_sums(self, blend: Blend) -> None:
        """Let sums of machines be totals, weighted by what these are worth in parts of one.

        A cut of Chvátal and Gomory is a branch on such a sum, of which one side is empty: where
        all machines of which there may be more are worth a whole number of parts, costs are too.
        """
        worth = [-empty for empty in blend.machines]
        for (machines, at), dual in blend.duals.items():
            if machines and at >= self._types and dual:
                weights = self._sums[at - self._types]
                worth = [w - n * dual for w, n in zip(worth, weights, strict=True)]
        step, gap = near(self._step / self._unit), self._worth_of_gap(blend)
        for weights in _weighted_sums(blend, worth, step, gap):
            if weights not in self._sums:
                self._blends.add_sum(weights)
                self._sums.append(weights)

    def _last(self, told: Fraction) -> Iterator[Certificate]:
        """Yield the certificate of the tree, if it says more than was told."""
        reached = min(round_up(self._bound, self._step), self._cost)
        if reached > told:
            yield self._grower.certificate(self._root, reached - self._step)

    @property
    def _bound(self) -> Fraction:
        return min(node.point.bound for node in leaves(self._root))

    @property
    def _cutoff(self) -> Fraction:
        return next_below(self._cost, self._step)

    def _beyond(self, value: float) -> bool:
        return value > near((self._cutoff + self._step * Fraction(_MARGIN)) / self._unit)

    def _solved(self, node: Node, totals: tuple[Total, ...]) -> _Open | None:
        """Solve the program at a node; None if the solver failed."""
        self._nodes += 1
        bounds: dict[Total, tuple[float, float]] = {}
        for total, condition in zip(totals, node.path, strict=True):
            low, high = bounds.get(total, (-float("inf"), float("inf")))
            if condition.sign < 0:
                high = min(high, float(condition.value))
            else:
                low = max(low, float(condition.value))
            bounds[total] = low, high
        blend = self._blends.solved(bounds)
        if blend is None:
            return None
        steps = ceil(blend.value * near(self._unit / self._step) - _MARGIN)
        return _Open(steps, -len(node.path), blend.value, self._nodes, node, totals, blend)

    def _again(self, node: _Open) -> _Open | None:
        return self._solved(node.node, node.totals)

    def _priced(self, node: _Open) -> _Open | None:
        """Bring up what is missing at a node; None if it is closed."""
        own = node.node
        for _ in range(_ROUNDS):
            if node.blend.known == self._blends.known:
                proved = self._blends.proved(node.blend, own.path, node.totals, self._cutoff)
                point, new = proved
                if point is not None and point.bound > own.point.bound:
                    own.point = point
                if own.point.bound > self._cutoff:
                    return None
                if not new:
                    break
            again = self._again(node)
            if again is None:
                break
            node = again
        return node

    def _split(self, node: _Open) -> tuple[_Open, ...]:
        """Split a node by what seems to help most; empty if nothing is left to split by."""
        if len(node.node.path) >= LARGEST_DEPTH:
            return ()
        found = _fractional(node.blend)
        best: tuple[float, Total, tuple[_Open, ...]] | None = None
        order = sorted(found, key=lambda total: (-self._guess(total, found[total]), total))
        for total in order[:_TRIED]:
            known = min(self._gains.get((total, sign), (0.0, 0))[1] for sign in (-1, 1))
            if known >= _KNOWN and best is not None:
                continue
            sides = self._sides(node, total, found[total])
            if not sides:
                continue
            score = 1.0
            for side in sides:
                score *= max(_LEAST_GAIN, side.value - node.value)
            if best is None or score > best[0]:
                best = score, total, sides
            if known >= _KNOWN or all(self._beyond(side.value) for side in sides):
                break
        if best is None:
            return ()
        _, total, sides = best
        rank = TYPES if total[0] else BLOCKS
        node.node.split = Split(self._blends.quantity(total), floor(found[total]), rank, 0.0)
        node.node.children = tuple(side.node for side in sides)
        return sides

    def _guess(self, total: Total, value: float) -> float:
        """What a branch on a total may gain, by what it gained; what nobody tried comes first."""
        score = 1.0
        for sign, away in ((-1, value - floor(value)), (1, ceil(value) - value)):
            gained, times = self._gains.get((total, sign), (0.0, 0))
            score *= max(_LEAST_GAIN, (gained / times if times else _UNKNOWN) * away)
        return score

    def _sides(self, node: _Open, total: Total, value: float) -> tuple[_Open, ...]:
        """Solve both sides of a branch; empty if the solver failed."""
        sides: tuple[_Open, ...] = ()
        point = node.node.point
        zeros = (*point.vector.multipliers, Fraction(0))
        above = point._replace(vector=point.vector._replace(multipliers=zeros))
        for sign, whole in ((-1, floor(value)), (1, floor(value) + 1)):
            condition = Condition(self._blends.quantity(total), sign, whole)
            child = Node((*node.node.path, condition), above, [], self._nodes)
            side = self._solved(child, (*node.totals, total))
            if side is None:
                return ()
            gained, times = self._gains.get((total, sign), (0.0, 0))
            gain = min(side.value - node.value, self._worth_of_gap(node.blend))
            self._gains[total, sign] = gained + gain / abs(whole - value), times + 1
            sides = (*sides, side)
        return sides

    def _worth_of_gap(self, blend: Blend) -> float:
        """More than what is missing is no better."""
        return max(near((self._cutoff + self._step) / self._unit) - blend.value, _LEAST_GAIN)


def _fractional(blend: Blend) -> dict[Total, float]:
    """Return the totals that are no whole numbers."""
    return {t: value for t, value in blend.totals.items() if abs(value - round(value)) > _NEAR}


def _weighted_sums(
    blend: Blend, worth: Sequence[float], step: float, gap: float
) -> list[list[int]]:
    """List weights of machine types that are ``worth`` this each; the best sums first.

    Bounds are to rise by ``gap``.
    """
    found: dict[tuple[int, ...], float] = {}
    for m, parts in product(range(len(worth)), range(1, _MOST_PARTS + 1)):
        value, unit = blend.totals.get((True, m), 0.0), worth[m] / parts
        if abs(value - round(value)) <= _NEAR or unit < _FINEST * step:
            continue
        weights = tuple(round(each / unit) for each in worth)
        if gcd(*weights) != 1 or sum(map(bool, weights)) < 2:
            continue
        if min(weights) < 0 or max(weights) > _MOST_WEIGHT:
            continue
        total = sum(n * blend.totals.get((True, at), 0.0) for at, n in enumerate(weights))
        found[weights] = min(unit * (ceil(total - _NEAR) - total), gap)
    best = sorted(found, key=lambda weights: (-found[weights], weights))
    return [[*weights] for weights in best[:_SUMS]]
