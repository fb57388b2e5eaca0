"""Branch and price on totals: many nodes, each a step of the simplex method.

How many machines of each type there are, of several types by weights, of a configuration, and how
many blocks decides nearly all. Below a branch the restricted master goes on from where it was; only
where it costs more than the best schedule are its prices made exact, which closes the node for good
or brings up columns that were missing. Branches are chosen by what branches on the same quantity
gained before (pseudocosts; Achterberg, Koch, Martin 2005, DOI 10.1016/j.orl.2004.04.002), those
without a pseudocost first. The tree of all leaves' prices is a certificate that is checked exactly.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

from cms.certificate.certificate import LARGEST_DEPTH, next_below, round_up
from cms.certificate.price_conditions import MOST_NAMED, Condition
from cms.certificate.quantity import MachinesOfType, MachinesWithBlocks

from ..prices.jobs import Jobs
from ..prices.master import block_sizes
from ..prices.search import PriceSearch
from ..solvers.floats import near
from .options import NearOptions
from .proof_tree import Node, branchable, build_certificate, is_branchable
from .restricted_master import (
    NodeSolution,
    RestrictedMaster,
    find_contents,
    find_jobs,
    find_sums,
    is_whole,
)
from .whole_fleets import NodeSchedules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.certificate.certificate import Certificate
    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem
    from cms.problem.problem import Problem
    from cms.schedule.schedule import Schedule

#: A node whose program costs so small a part of a step beyond the cutoff is not closed yet.
_MARGIN = 1e-4
#: Quantities that are tried on both sides at a node, as far as not known well enough already.
_TRIED, _KNOWN = 24, 2
#: What a side that gains nothing counts as, in the region's unit.
_LEAST_GAIN = 1e-6
#: What one unit of a quantity may be worth, in the region's unit, that no branch has been on yet.
_UNKNOWN = 10.0
#: Rounds of bringing up what is missing at a node.
_ROUNDS = 30
#: Nodes for each weighted sum of machines before more sums are added; most sums.
_SUMS_AGAIN, _MOST_SUMS = 4, 48
#: The search for whole fleets runs again once columns grew by this factor, and nodes to twice the
#: number of the last run and this many more.
_MORE, _MORE_NODES = 1.2, 20
#: Most open nodes whose bounds are proved for a certificate.
_MOST_SETTLED = 1_000
#: Options of a kind to begin with, of the first ones within some cost steps, where kinds are few.
_OPTIONS, _LISTED, _STEPS, _FEW_KINDS = 8, 60, 20, 500


def branch_and_price(
    problem: Problem,
    budget: Budget,
    cost: Fraction | None,
    *,
    node_limit: int,
    fewer: bool = False,
    known: tuple[PresolvedProblem, PriceSearch] | None = None,
) -> Iterator[Certificate | Schedule]:
    """Search for schedules cheaper than ``cost``, or prove that there are none.

    Yields certificates whose bounds rise by whole cost steps, and schedules that are cheaper and
    cheaper. Without a cost there is no schedule yet: a certificate then proves that there is none
    at all, and any schedule ends the search. What presolve removes can matter below a branch, so
    the problem is as the user gave it; with ``fewer`` blocks that smaller ones replace are left
    out, and only machines are branched on. ``known`` is a reduction with a search for its prices
    that has run, which serves where it left out nothing that matters.
    """
    free = cost is None
    if not free and not problem.cost_step:
        return
    if known is not None and is_branchable(known[0], fewer=fewer) and not free:
        given, search = known
    else:
        given = branchable(problem, fewer=fewer)
        search = PriceSearch(Jobs(given.problem), budget, free_machines=free)
        for _ in search.run():
            pass
    for _ in search.refine():
        pass
    # Its programs count blocks, in floats.
    countable = max(block_sizes(search.region), default=1) == 1
    if search.best is not None and countable and not budget.stopped:
        yield from _Tree(given, search, Node((), search.best), budget, cost).run(node_limit)


class _Open(NamedTuple):
    """A node that is to be split or closed, what its conditions are about, and its program's end.

    Nodes come the lowest bound in whole steps first, of these the deepest.
    """

    steps: int
    height: int
    value: float
    number: int
    node: Node
    quantities: tuple[int, ...]
    solution: NodeSolution


class _Tree:
    """A tree of branches; ``search`` is at its end, without branches."""

    def __init__(
        self,
        given: PresolvedProblem,
        search: PriceSearch,
        root: Node,
        budget: Budget,
        cost: Fraction | None,
    ) -> None:
        self._given, self._region, self._root, self._budget = given, search.region, root, budget
        self._cost, self._unit = cost, search.region.unit
        #: Without a schedule any bound above 0 is a proof that there is none.
        self._free = cost is None
        self._step = self._unit if cost is None else given.original.cost_step
        self._jobs = jobs = search.jobs
        self._master = RestrictedMaster(jobs, self._region, budget)
        self._schedules = NodeSchedules(given, search, root.point, self._master, budget)
        types, fewer = len(self._region.costs), bool(given.replacement.gone)
        # Machines that cost nothing can be rounded up, and their blocks with them.
        skipped = {types + i for i in self._region.free()}
        counting = self._region.room.counting
        skipped |= {m for m, c in enumerate(self._region.costs) if not c and not counting(m)}
        last = types if fewer else types + len(self._region.blocks)
        self._branchable = [at for at in range(last) if at not in skipped]
        self._types, self._sums, self._with_contents = types, 0, not fewer
        self._gains: dict[tuple[int, int], tuple[float, int]] = {}
        self._nodes = 0
        #: Bound, number of columns and number of nodes at the last search for whole fleets.
        self._last_search = Fraction(-1), 0, 0
        for share in search.shares:
            part = search.kinds_of_group(share.group)
            for kind, option in enumerate(search.options[share.number][part].tolist(), part.start):
                self._master.add_option(kind, tuple(option))
        if self._schedules.fleets is not None:
            for pick in self._schedules.fleets.options:
                self._master.add_option(*pick)
        elif len(jobs) <= _FEW_KINDS:
            options = NearOptions(jobs, root.point)
            for kind in range(len(jobs)):
                for option in options.some(kind, _STEPS * self._step, _LISTED)[:_OPTIONS]:
                    self._master.add_option(kind, option)

    def run(self, node_limit: int) -> Iterator[Certificate | Schedule]:
        told, told_at = self._budget.lower_bound, 0
        waiting: list[_Open] = []
        yield from self._find_whole_fleets(Fraction(0))
        root = self._solve(self._root, ())
        if root is not None:
            self._add_sums(root.solution)
            heapq.heappush(waiting, self._again(root) or root)
        while waiting and self._nodes < node_limit and not self._budget.stopped:
            node = heapq.heappop(waiting)
            if self._is_closed(node.node):
                continue
            whole = not any(at < self._types for at in self._fractional(node))
            if whole or node.steps > ceil(node.node.point.bound / self._step):
                priced = self._price(node)
                if priced is None:
                    continue
                if priced.steps < node.steps:
                    heapq.heappush(waiting, priced)
                    continue
                node = priced
            yield from self._find_whole_fleets(node.steps * self._step if whole else Fraction(-1))
            if whole:
                before = self._cost
                yield from self._accept(self._schedules.find(node.node, node.solution, before))
                if self._free and self._cost is not None:
                    return
                # With fine cost steps, exact prices may not prove the program's value.
                if self._is_beyond(node.value) and self._cost != before:
                    heapq.heappush(waiting, node)
                    continue
            if self._nodes >= _SUMS_AGAIN * self._sums and self._sums < _MOST_SUMS:
                # Below branches machines are worth other parts of each other.
                self._add_sums(node.solution)
                node = self._again(node) or node
            children = self._split(node)
            if not children:
                break  # no proof gets past this node
            for child in children:
                heapq.heappush(waiting, child)
            # A certificate now and then; checking one takes time in proportion to its leaves.
            if self._nodes >= 2 * told_at and waiting and waiting[0].steps * self._step > told:
                told_at = self._nodes
                for certificate in self._certificates(waiting, told):
                    told = round_up(self._bound, self._step)
                    yield certificate
        yield from self._certificates(waiting, told, last=True)

    def _find_whole_fleets(self, value: Fraction) -> Iterator[Schedule]:
        """Search for whole fleets if the bound rose since the last search, or columns grew much.

        ``value`` is a node's: unless it exceeds the last bound, the new one is not worked out.
        """
        if self._schedules.fleets is None:
            return
        bound, columns, nodes = self._last_search
        new = self._master.known >= _MORE * columns and self._nodes >= _MORE_NODES + 2 * nodes
        if new or value > bound:
            least = round_up(self._bound, self._step)
            if new or least > bound:
                self._last_search = least, self._master.known, self._nodes
                yield from self._accept(self._schedules.find_whole_fleets(least, self._cost))

    def _accept(self, schedules: Iterator[Schedule]) -> Iterator[Schedule]:
        """Yield schedules and keep the lowest cost; if there was none, stop after the first."""
        for schedule in schedules:
            yield schedule
            cost = schedule.cost(self._given.original)
            self._cost = cost if self._cost is None else min(cost, self._cost)
            if self._free:
                return

    def _certificates(
        self, waiting: list[_Open], told: Fraction, *, last: bool = False
    ) -> Iterator[Certificate]:
        """Yield the certificate of the tree, if it says more than was told."""
        for node in waiting if len(waiting) <= _MOST_SETTLED else ():
            if node.node.point.bound <= told < node.steps * self._step:
                self._price(node)  # prove what the program says
        free, bound = self._free, self._bound
        if (last and bound > 0) if free else min(round_up(bound, self._step), self._ceiling) > told:
            yield build_certificate(self._given, self._root, free_machines=free)

    @property
    def _bound(self) -> Fraction:
        return min(node.point.bound for node in self._root.leaves())

    @property
    def _ceiling(self) -> Fraction:
        return self._cost or Fraction(0)

    @property
    def _cutoff(self) -> Fraction:
        """A node with a bound beyond this needs no more work."""
        return next_below(self._ceiling, self._step) if self._cost else Fraction(0)

    def _is_closed(self, node: Node) -> bool:
        return node.point.bound > self._cutoff

    def _is_beyond(self, value: float) -> bool:
        return value > near((self._cutoff + self._step * Fraction(_MARGIN)) / self._unit)

    def _solve(self, node: Node, quantities: tuple[int, ...]) -> _Open | None:
        """Solve the program at a node; None if the solver failed."""
        self._nodes += 1
        bounds: dict[int, tuple[float, float]] = {}
        for at, condition in zip(quantities, node.path, strict=True):
            low, high = bounds.get(at, (-float("inf"), float("inf")))
            if condition.sign < 0:
                high = min(high, float(condition.value))
            else:
                low = max(low, float(condition.value))
            bounds[at] = low, high
        solution = self._master.solve(bounds)
        if solution is None:
            return None
        steps = ceil(solution.value * near(self._unit / self._step) - _MARGIN)
        return _Open(
            steps, -len(node.path), solution.value, self._nodes, node, quantities, solution
        )

    def _again(self, node: _Open) -> _Open | None:
        return self._solve(node.node, node.quantities)

    def _price(self, node: _Open) -> _Open | None:
        """Bring up what is missing at a node; None if it is closed."""
        own = node.node
        for _ in range(_ROUNDS):
            if node.solution.known == self._master.known:
                point, new = self._master.certify(node.solution, own.path, self._cutoff)
                if point is not None and point.bound > own.point.bound:
                    own.point = point
                if self._is_closed(own):
                    return None
                if not new:
                    break
            again = self._again(node)
            if again is None:
                break
            node = again
        return node

    def _add_sums(self, solution: NodeSolution) -> None:
        """Let sums of machines be quantities, weighted by what these are worth in parts of one."""
        worth = -solution.worth[: self._types]
        for quantity, dual in zip(self._master.quantities, solution.worth.tolist(), strict=False):
            if isinstance(quantity, MachinesOfType) and len(quantity.weights) > 1:
                worth -= [quantity.weights.get(name, 0) * dual for name in self._region.names]
        step, gap = near(self._step / self._unit), self._gap(solution)
        for weights in find_sums(solution.totals[: self._types], worth.tolist(), step, gap):
            named = {name: n for name, n in zip(self._region.names, weights, strict=True) if n}
            at = self._master.add_quantity(MachinesOfType(named))
            if at not in self._branchable:
                self._branchable.append(at)
                self._sums += 1

    def _fractional(self, node: _Open) -> dict[int, float]:
        """Return the quantities that are no whole numbers."""
        totals = node.solution.totals
        known = (at for at in self._branchable if at < len(totals))
        return {at: totals[at] for at in known if not is_whole(totals[at])}

    def _candidates(self, node: _Open) -> dict[int, float]:
        """Return what a node can be split by: contents where no total is, then blocks of a job."""
        found = self._fractional(node)
        named = sum(isinstance(c.quantity, MachinesWithBlocks) for c in node.node.path)
        if not found and self._with_contents and named < MOST_NAMED:
            for quantity in find_contents(self._region, node.solution):
                total = self._master.total(quantity, node.solution)
                if not is_whole(total):
                    found[self._master.add_quantity(quantity)] = total
        if self._with_contents and not any(at < self._types for at in found):
            totals = node.solution.totals
            for block, mean in find_jobs(self._jobs, self._region, node.solution).items():
                at = self._master.add_quantity(block)
                total = totals[at] if at < len(totals) else mean
                if not is_whole(total):
                    found[at] = total
        return found

    def _split(self, node: _Open) -> tuple[_Open, ...]:
        """Split a node by what seems to help most; empty if nothing is left to split by."""
        if len(node.node.path) >= LARGEST_DEPTH:
            return ()
        found = self._candidates(node)
        best: tuple[float, tuple[_Open, ...]] | None = None
        for at in sorted(found, key=lambda at: (-self._guess(at, found[at]), at))[:_TRIED]:
            known = min(self._gains.get((at, sign), (0.0, 0))[1] for sign in (-1, 1))
            if known >= _KNOWN and best is not None:
                continue
            sides = self._sides(node, at, found[at])
            if not sides:
                continue
            score = 1.0
            for side in sides:
                score *= max(_LEAST_GAIN, side.value - node.value)
            if best is None or score > best[0]:
                best = score, sides
            if known >= _KNOWN or all(self._is_beyond(side.value) for side in sides):
                break
        if best is None:
            return ()
        node.node.children = tuple(side.node for side in best[1])
        return best[1]

    def _guess(self, at: int, value: float) -> float:
        """What a branch may gain, by what branches gained; candidates never tried come first."""
        score = 1.0
        for sign, away in ((-1, value - floor(value)), (1, ceil(value) - value)):
            gained, times = self._gains.get((at, sign), (0.0, 0))
            score *= max(_LEAST_GAIN, (gained / times if times else _UNKNOWN) * away)
        return score

    def _sides(self, node: _Open, at: int, value: float) -> tuple[_Open, ...]:
        """Solve both sides of a branch; empty if the solver failed."""
        sides: tuple[_Open, ...] = ()
        point = node.node.point
        zeros = (*point.vector.multipliers, Fraction(0))
        above = point._replace(vector=point.vector._replace(multipliers=zeros))
        for sign, whole in ((-1, floor(value)), (1, floor(value) + 1)):
            condition = Condition(self._master.quantities[at], sign, whole)
            side = self._solve(Node((*node.node.path, condition), above), (*node.quantities, at))
            if side is None:
                return ()
            gained, times = self._gains.get((at, sign), (0.0, 0))
            gain = min(side.value - node.value, self._gap(node.solution))
            self._gains[at, sign] = gained + gain / abs(whole - value), times + 1
            sides = (*sides, side)
        return sides

    def _gap(self, solution: NodeSolution) -> float:
        """What is missing; to gain more is no better."""
        return max(near((self._cutoff + self._step) / self._unit) - solution.value, _LEAST_GAIN)
