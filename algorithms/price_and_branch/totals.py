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
from math import ceil, floor
from typing import TYPE_CHECKING

from cms.certificate.certificate import LARGEST_DEPTH, next_below, round_up
from cms.certificate.conditions import Condition

from ..prices.jobs import Jobs
from ..prices.points import PricePoint
from ..prices.search import PriceSearch
from ..prices.sharded_jobs import AnyJobs, listed
from ..solvers.floats import near
from .blend import Blend, Blends, Total
from .branchable import branchable
from .machine_sums import weighted_sums
from .open_nodes import Open, Tried, fractional, whole_machines
from .quantities import BLOCKS, TYPES, Split
from .tree import Grower, Node, leaves
from .whole_schedules import WholeSchedules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.certificate.certificate import Certificate
    from cms.certificate.quantity import Quantity
    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem
    from cms.reduction.reduction import Reduction
    from cms.schedule.schedule import Schedule

    from ..prices.points import Share

#: A node whose program costs so small a part of a step beyond the cutoff is not closed yet.
_MARGIN = 1e-4
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
#: Fleets at nodes for which schedules are looked for.
_MOST_FLEETS = 12
#: Whole fleets are looked for again with so many times the options, and so many more nodes.
_MORE, _MORE_NODES = 1.2, 20
#: Jobs are alike if there are so many of a kind on average, of so many kinds at most.
_ALIKE, _MOST_KINDS = 8, 128


def alike(jobs: AnyJobs) -> bool:
    """Whether jobs are few kinds, many of each, so that totals are what to branch on.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.prices.jobs import Jobs
    >>> twins = [Job(str(number), 4, {"a": 2}) for number in range(8)]
    >>> alike(Jobs(Problem(configurations=Configuration({"a": 1}), jobs=twins)))
    True
    """
    return len(jobs) <= _MOST_KINDS and jobs.problem.n_jobs >= _ALIKE * len(jobs)


def prove_by_totals(
    problem: Problem,
    budget: Budget,
    cost: Fraction,
    *,
    most_nodes: int,
    known: tuple[Reduction, PriceSearch] | None = None,
) -> Iterator[Certificate | Schedule]:
    """Prove that no schedule is cheaper, or find one, where jobs are :func:`alike`.

    Parameters
    ----------
    problem : Problem
        As the user gave it.
    budget : Budget
    cost : Fraction
        Of the best schedule known.
    most_nodes : int
        Linear programs before it gives up.
    known : tuple of Reduction and PriceSearch, optional
        A reduction that serves below branches, and a search for its prices that has run.

    Yields
    ------
    Certificate or Schedule
        Certificates whose bounds rise by whole cost steps, and schedules that are cheaper and
        cheaper.

    Examples
    --------
    Three jobs that need two of three blocks each, in pairs: 3/2 machines by prices alone.

    >>> from cms import Configuration, Job, MachineType, Problem
    >>> from cms.solving.driver import RunBudget
    >>> from cms.solving.ledger import Ledger
    >>> given = Problem(
    ...     configurations=[
    ...         *(Configuration({a: 1, b: 1}, "m") for a, b in ("xy", "yz", "xz")),
    ...         Configuration({"x": 1, "y": 1, "z": 2}, "other"),
    ...     ],
    ...     jobs=[Job(name, 1, {name: 1}) for name in "xyz"],
    ...     machine_types=[MachineType("m"), MachineType("other", cost="5/2")],
    ... )
    >>> ledger = Ledger(given, "demo", trusted=True, clock=lambda: 0.0)
    >>> budget = RunBudget(ledger, seed=0, threads=1, started=0.0, seconds=float("inf"))
    >>> for claim in prove_by_totals(given, budget, Fraction(5, 2), most_nodes=10):
    ...     print(type(claim).__name__, *([claim.cost(given)] if hasattr(claim, "cost") else []))
    Schedule 2
    BlockPrices
    Branch
    """
    if known is None:
        given = branchable(problem)
        search = PriceSearch(Jobs(given.problem), budget)
        for _ in search.run():
            pass
    else:
        given, search = known
    for _ in search.refine():
        pass
    jobs = listed(search.jobs)
    if problem.cost_step and len(jobs) and search.best is not None and not budget.stopped:
        yield from _Tree(given, jobs, search, search.best, budget, cost).run(most_nodes)


class _Tree:
    """A tree of branches on totals.

    Parameters
    ----------
    given : Reduction
        A :func:`branchable` one.
    jobs : Jobs
        Of its problem.
    search : PriceSearch
        At its end, without branches.
    point : PricePoint
        Its best.
    budget : Budget
    cost : Fraction
        Of the best schedule known.
    """

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
        self._region = search.region
        self._blends = Blends(jobs, self._region, budget)
        self._schedules = WholeSchedules(given, jobs, self._region, self._blends, point, budget)
        self._grower = Grower(given, jobs, budget, free_machines=False, short=False)
        self._original = given.original
        self._step = given.original.cost_step
        self._unit = self._region.unit
        self._worth = [near(cost / self._unit) for cost in self._region.costs]
        self._sums: list[list[int]] = []
        self._fleets: set[tuple[int, ...]] = set()
        self._root = Node((), point, [], 0)
        self._gains: dict[tuple[Total, int], tuple[float, int]] = {}
        self._totals: dict[Quantity, Total] = {}
        self.nodes = 0
        self._chosen_before = search.options
        for share in search.shares:
            self._blends.add_option(share.group, self._option(search, share))

    @staticmethod
    def _option(search: PriceSearch, share: Share) -> tuple[int, ...]:
        """Return what a share's kind takes; few kinds are a group each."""
        return tuple(search.options[share.number][share.group].tolist())

    def _better(self, schedule: Schedule | None) -> Iterator[Schedule]:
        """Yield a schedule if it is better than the best one known."""
        if schedule is not None:
            cost = schedule.cost(self._original)
            if cost < self._cost:
                self._cost = cost
                yield schedule

    def run(self, most: int) -> Iterator[Certificate | Schedule]:
        """Yield schedules that are cheaper and cheaper, and a certificate at the end.

        Parameters
        ----------
        most : int
            Nodes before it gives up.
        """
        told, told_at = self._budget.lower_bound, 0
        root = Open(self._root, ())
        blend = self._solved(root)
        tried = Tried(Fraction(-1), 0, 0)
        if blend is not None:
            yield from self._whole_fleets()
            tried = self._tried
            blend = self._solved(root)
        if blend is not None:
            self._add_sums(blend)
            blend = self._solved(root)
        waiting: list[tuple[int, int, float, int, Open, Blend]] = []
        if blend is not None:
            self._push(waiting, root, blend)
        while waiting and self.nodes < most and not self._budget.stopped:
            steps, *_, node, blend = heapq.heappop(waiting)
            whole = whole_machines(blend)
            if whole or steps * self._step > round_up(node.node.point.bound, self._step):
                priced = self._priced(node, blend)
                if priced is None:
                    continue
                if self._steps(priced.value) < steps:
                    self._push(waiting, node, priced)
                    continue
                blend = priced
                whole = whole_machines(blend)
            if self._worth_another_try(tried, whole=whole):
                # Whether this much will do is for a program to find out.
                tried = self._tried
                yield from self._whole_fleets()
                if self._cost <= tried.least:
                    break
                self._push(waiting, node, blend)
                continue
            if whole:
                yield from self._of_fleet(blend)
                if self._beyond(blend.value):
                    self._push(waiting, node, blend)
                    continue
            if self.nodes >= _SUMS_AGAIN * len(self._sums) and len(self._sums) < _MOST_SUMS:
                # Below branches machines are worth other parts of each other.
                known = len(self._sums)
                self._add_sums(blend)
                again = self._solved(node) if len(self._sums) > known else None
                blend = again or blend
            chosen = self._chosen(node, blend)
            if chosen is None:
                yield from self._better(self._schedules.whole(blend, self._cost))
                if not self._beyond(blend.value):
                    break  # no proof gets past this node
                self._push(waiting, node, blend)
                continue
            for child, found in chosen:
                self._push(waiting, child, found)
            # A certificate now and then; checking one takes time in proportion to its leaves.
            if self.nodes >= 2 * told_at and waiting and waiting[0][0] * self._step > told:
                for certificate in self._last(told):
                    told, told_at = round_up(self._bound, self._step), self.nodes
                    yield certificate
        yield from self._last(told)

    @property
    def _tried(self) -> Tried:
        return Tried(round_up(self._bound, self._step), self._blends.known, self.nodes)

    def _worth_another_try(self, tried: Tried, *, whole: bool) -> bool:
        """Whether no fleet costs as little as where whole ones were looked for, or much is new."""
        now = self._tried
        more = now.known >= _MORE * tried.known and now.nodes >= _MORE_NODES + 2 * tried.nodes
        return (whole and now.least > tried.least) or more

    def _whole_fleets(self) -> Iterator[Schedule]:
        least = round_up(self._bound, self._step)
        yield from self._better(self._schedules.first(self._cost, least, self._chosen_before))

    def _of_fleet(self, blend: Blend) -> Iterator[Schedule]:
        """Look for a schedule with the machines of a blend, if these have not been tried."""
        fleet = [round(blend.totals.get((True, m), 0.0)) for m in range(len(self._worth))]
        if tuple(fleet) not in self._fleets and len(self._fleets) < _MOST_FLEETS:
            self._fleets.add(tuple(fleet))
            yield from self._better(self._schedules.of_fleet(fleet, self._cost))

    def _add_sums(self, blend: Blend) -> None:
        """Let sums of machines be totals, weighted by what these are worth in parts of one.

        A cut of Chvátal and Gomory is a branch on such a sum, of which one side is empty: where
        all machines of which there may be more are worth a whole number of parts, costs are too.
        """
        types = len(self._worth)
        worth = [-empty for empty in blend.machines]
        for (machines, at), dual in blend.duals.items():
            if machines and at >= types and dual:
                worth = [w - n * dual for w, n in zip(worth, self._sums[at - types], strict=True)]
        step, gap = near(self._step / self._unit), self._worth_of_gap(blend)
        for weights in weighted_sums(blend, worth, step, gap):
            if [*weights] not in self._sums:
                self._blends.add_sum(weights)
                self._sums.append([*weights])

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

    def _push(
        self,
        waiting: list[tuple[int, int, float, int, Open, Blend]],
        node: Open,
        blend: Blend,
    ) -> None:
        """Nodes come the lowest bound in whole steps first, of these the deepest."""
        steps = self._steps(blend.value)
        number = node.node.number
        heapq.heappush(waiting, (steps, -len(node.node.path), blend.value, number, node, blend))

    def _steps(self, value: float) -> int:
        return ceil(value * near(self._unit / self._step) - _MARGIN)

    def _solved(self, node: Open) -> Blend | None:
        self.nodes += 1
        return self._blends.solved(node.bounds)

    @staticmethod
    def _take(node: Node, point: PricePoint | None) -> None:
        if point is not None and point.bound > node.point.bound:
            node.point = point

    def _priced(self, node: Open, blend: Blend) -> Blend | None:
        """Bring up what is missing at a node; None if it is closed."""
        for _ in range(_ROUNDS):
            if blend.known == self._blends.known:
                point, new = self._blends.proved(blend, node.node.path, node.totals, self._cutoff)
                self._take(node.node, point)
                if node.node.point.bound > self._cutoff:
                    return None
                if not new:
                    break
            again = self._solved(node)
            if again is None:
                break
            blend = again
        return blend

    def _chosen(self, node: Open, blend: Blend) -> list[tuple[Open, Blend]] | None:
        """Split a node by what seems to help most; None if nothing is left to split by."""
        if len(node.node.path) >= LARGEST_DEPTH:
            return None
        found = fractional(blend)
        if not found:
            return None
        order = sorted(found, key=lambda total: (-self._guess(total, found[total]), total))
        best: tuple[float, Total, list[tuple[Open, Blend]]] | None = None
        for total in order[:_TRIED]:
            known = min(self._gains.get((total, sign), (0.0, 0))[1] for sign in (-1, 1))
            if known >= _KNOWN:
                if best is None:
                    sides = self._sides(node, blend, total, found[total])
                    return None if sides is None else self._split(node, total, found, sides)
                continue
            sides = self._sides(node, blend, total, found[total])
            if sides is None:
                continue
            score = 1.0
            for _, side in sides:
                score *= max(_LEAST_GAIN, side.value - blend.value)
            if best is None or score > best[0]:
                best = score, total, sides
            if all(self._beyond(side.value) for _, side in sides):
                break
        if best is None:
            return None
        return self._split(node, best[1], found, best[2])

    def _guess(self, total: Total, value: float) -> float:
        """What a branch on a total may gain, by what it gained; what nobody tried comes first."""
        score = 1.0
        for sign, away in ((-1, value - floor(value)), (1, ceil(value) - value)):
            gained, times = self._gains.get((total, sign), (0.0, 0))
            score *= max(_LEAST_GAIN, (gained / times if times else _UNKNOWN) * away)
        return score

    def _sides(
        self, node: Open, blend: Blend, total: Total, value: float
    ) -> list[tuple[Open, Blend]] | None:
        """Solve both sides of a branch; None if the solver failed."""
        sides = []
        quantity = self._blends.quantity(total)
        self._totals[quantity] = total
        for sign, whole in ((-1, floor(value)), (1, floor(value) + 1)):
            condition = Condition(quantity, sign, whole)
            point = node.node.point
            zeros = (*point.vector.multipliers, Fraction(0))
            above = point._replace(vector=point.vector._replace(multipliers=zeros))
            child = Open(
                Node((*node.node.path, condition), above, [], self.nodes),
                (*node.totals, total),
            )
            side = self._solved(child)
            if side is None:
                return None
            gained, times = self._gains.get((total, sign), (0.0, 0))
            away = abs(whole - value)
            gain = min(side.value - blend.value, self._worth_of_gap(blend))
            self._gains[total, sign] = gained + gain / away, times + 1
            sides.append((child, side))
        return sides

    def _worth_of_gap(self, blend: Blend) -> float:
        """More than what is missing is no better."""
        return max(near((self._cutoff + self._step) / self._unit) - blend.value, _LEAST_GAIN)

    def _split(
        self,
        node: Open,
        total: Total,
        found: dict[Total, float],
        sides: list[tuple[Open, Blend]],
    ) -> list[tuple[Open, Blend]]:
        rank = TYPES if total[0] else BLOCKS
        node.node.split = Split(self._blends.quantity(total), floor(found[total]), rank, 0.0)
        below, above = (child.node for child, _ in sides)
        node.node.children = below, above
        return sides
