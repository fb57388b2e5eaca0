"""Whole machines for whole jobs; only what is on which machine may be in parts.

Where many jobs are alike and many machines are cut at will, a fractional packing into whole
machines nearly always is as good as a whole one: how many machines of each type there are, and how
many jobs of a kind take which option, is all that is hard. That is a program of up to some thousand
whole numbers, which SCIP solves (theory 6.6). Below branches that settle the numbers of machines it
finds what all jobs take, and so do dives; where kinds are few, or no machine is cut at will, a
neighbourhood search does.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from heapq import nsmallest
from itertools import chain
from math import floor
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from cms.certificate.certificate import next_below, round_up

from ..prices.fraction import Fractional
from ..prices.limits import Limit, Room
from ..prices.taken_options import choices_of
from ..solvers.floats import near
from ..solvers.linear import MixedProgram
from .dive import MOST_UNDECIDED, Diver
from .mixture_rounding import Pick, Rounded, Undecided
from .neighbourhood import Neighbourhood, Rung
from .options import NearOptions
from .program import Found, schedule_of
from .shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem
    from cms.schedule.schedule import Schedule

    from ..prices.jobs import Jobs
    from ..prices.region import PricePoint
    from ..prices.search import PriceSearch
    from ..prices.taken_options import Choices
    from .dive import Dived
    from .proof_tree import Node
    from .restricted_master import NodeSolution, RestrictedMaster

#: Most kinds of jobs for these programs; most for which they run before neighbourhood searches;
#: jobs a kind, on average, from which on jobs count as alike.
MAX_KINDS, FEW_KINDS, _ALIKE = 1_500, 128, 8
#: Options of lowest reduced cost: the most of all kinds together; how many are listed of a kind,
#: within how many cost steps of its cheapest. Then, of each kind anyway: number, listed, steps.
_WIDE, _WIDE_LISTED, _WIDE_STEPS = 1_500, 200, 5
_EACH, _LISTED, _STEPS = 8, 60, 20


def alike(jobs: Jobs) -> bool:
    """Whether jobs are few kinds, many of each."""
    return len(jobs) <= FEW_KINDS and jobs.problem.n_jobs >= _ALIKE * len(jobs)


#: Programs: SCIP's nodes, whether jobs are whole, and whether only a schedule at the bound will do;
#: the nodes for a fleet that is known. Dives for the machines of jobs that have chosen.
_PROGRAMS = ((200, False, False), (60, True, True), (400, True, False))
_NODES, _DIVES = 300, slice(6)


class WholeFleet(NamedTuple):
    """How many machines of each type, and what jobs take, if they were whole."""

    machines: tuple[int, ...]
    choices: Choices | None


class WholeFleets:
    """Programs over the options that fit together at the prices of a search."""

    def __init__(self, search: PriceSearch, point: PricePoint, jobs: Jobs, budget: Budget) -> None:
        self._jobs, self._region, self._budget = jobs, search.region, budget
        sets = Counter(i for each in self._region.bounded for i in each.columns)
        listed = (row.counts for row in self._region.rows if row.shape is not None)
        sets.update(i for counts in listed for i, n in enumerate(counts) if n)
        # Of blocks that are in one set and nothing else: which set, and the size.
        self._sizes = {
            i: (number, size)
            for number, each in enumerate(self._region.bounded)
            for i, size in zip(each.columns, each.packing.weights, strict=True)
            if sets[i] == 1
        }
        self.options = dict.fromkeys(self._list(search, point))
        self._contents = dict.fromkeys(self._region.rows)

    def extend(self, master: RestrictedMaster) -> None:
        """Add the options and contents found at the nodes of a tree, those with large blocks, too.

        With them 39 of 40 cluster fleets of 14,000 jobs are proved in 20 s, without them 36.
        """
        self.options |= dict.fromkeys(master.options)
        self._contents |= dict.fromkeys(master.contents)

    def _smallest(self, picks: Sequence[Pick]) -> list[Pick]:
        """Leave out each option that another equals but for one smaller block of the same set."""

        def rest_and_size(pick: Pick) -> Iterator[tuple[tuple[int, int, tuple[int, ...]], int]]:
            kind, option = pick
            for i, n in enumerate(option):
                if n and i in self._sizes:
                    number, size = self._sizes[i]
                    yield (kind, number, (*option[:i], n - 1, *option[i + 1 :])), size

        least: dict[tuple[int, int, tuple[int, ...]], int] = {}
        for rest, size in chain.from_iterable(map(rest_and_size, picks)):
            least[rest] = min(size, least.get(rest, size))
        return [p for p in picks if all(size == least[rest] for rest, size in rest_and_size(p))]

    def _list(self, search: PriceSearch, point: PricePoint) -> Iterator[Pick]:
        """List options of all kinds that fit together: what some pass took, and cheap ones.

        Of hundreds of jobs some take what costs a little more, for how all that is taken adds up to
        whole machines (theory 6.7).
        """
        step, near = self._jobs.problem.cost_step, NearOptions(self._jobs, point)
        ranked: list[tuple[int, Pick]] = []
        for kind in range(len(self._jobs)):
            if self._budget.stopped:
                return
            taken = dict.fromkeys(tuple(passed[kind].tolist()) for passed in search.options)
            some = near.some(kind, _STEPS * step, _LISTED)
            wide = near.some(kind, _WIDE_STEPS * step, _WIDE_LISTED)
            found = self._smallest([(kind, option) for option in {*some, *taken, *wide}])
            priced = sorted((near.price(option), option) for _, option in found)
            for at, (price, option) in enumerate(priced):
                if at < _EACH or option in taken:
                    yield kind, option
                ranked.append((price - priced[0][0], (kind, option)))
        yield from (pick for _, pick in nsmallest(_WIDE, ranked))

    def improve(self, diver: Diver, least: Fraction, cost: Fraction) -> Iterator[Dived]:
        """Yield schedules that cost less than ``cost``, and less and less, down to ``least``."""
        step, before = self._jobs.problem.cost_step, cost
        if len(self.options) == len(self._jobs):
            return  # cutting stock: no job has a choice
        for nodes, whole_jobs, at_bound in _PROGRAMS:
            target = least if at_bound else next_below(cost, step)
            if target < least or (nodes == _PROGRAMS[-1][0] and cost < before):
                return  # the tree finds what is better by so little
            found = self.find(least=least, target=target, nodes=nodes, whole_jobs=whole_jobs)
            if found is None and not whole_jobs:
                return  # where jobs in parts found nothing, whole ones hardly will
            for dived in self.cut(diver, found, cost):
                cost = dived.cost
                yield dived

    def cut(self, diver: Diver, found: WholeFleet | None, cost: Fraction | None) -> Iterator[Dived]:
        """Yield schedules of a fleet; of one for jobs in parts another program makes these whole.

        Few fleets need more than the cheapest one that does for jobs in parts.
        """
        if found is not None and found.choices is None:
            found = self.of_fleet(found.machines)
        if found is not None and found.choices is not None:
            start = Undecided(found.choices, {})
            yield from diver.dives(start, self.cost(found.machines), cost, _DIVES)

    def of_fleet(self, machines: Sequence[int]) -> WholeFleet | None:
        """Choose for machines of which the number of each type is known."""
        cost = self.cost(machines)
        return self.find(least=cost, target=cost, nodes=_NODES, machines=machines)

    def find(
        self,
        *,
        least: Fraction,
        target: Fraction,
        nodes: int,
        machines: Sequence[int] | None = None,
        whole_jobs: bool = True,
    ) -> WholeFleet | None:
        """Choose a fleet that costs from ``least`` to ``target``, within ``nodes`` of SCIP's tree.

        It has at most ``machines`` of each type.
        """
        jobs, region, program = self._jobs, self._region, MixedProgram()
        step = jobs.problem.cost_step
        if self._budget.stopped or target > step * 2**50:  # floats do not tell such costs apart
            return None
        steps = [near(cost / step) for cost in region.costs]
        most = [float("inf")] * len(steps) if machines is None else map(float, machines)
        bought = [
            program.variable(cost, high=high, whole=True)
            for cost, high in zip(steps, most, strict=True)
        ]
        for limit in region.limits if machines is None else ():
            counted = [(bought[m], near(n, limit.size)) for m, n in limit.weights.items()]
            program.row(counted, high=near(limit.at_most, limit.size))
        needs: list[list[tuple[int, float]]] = [[] for _ in region.blocks]
        mine: list[list[tuple[int, float]]] = [[(machine, 1.0)] for machine in bought]
        for row in self._contents:
            variable = program.variable()
            mine[row.machine].append((variable, -1.0))
            for i, n in enumerate(row.counts):
                if n:
                    needs[i].append((variable, float(n)))
        weights = [jobs.weight(kind) for kind in range(len(jobs))]
        choose: list[list[tuple[int, float]]] = [[] for _ in weights]
        picks: dict[Pick, int] = {}
        for kind, option in self.options:
            variable = program.variable(high=float(weights[kind]), whole=whole_jobs)
            picks[kind, option] = variable
            choose[kind].append((variable, 1.0))
            for i, n in enumerate(option):
                if n:
                    needs[i].append((variable, -float(n)))
        for weight, terms in zip(weights, choose, strict=True):
            program.row(terms, low=float(weight), high=float(weight))
        for terms in (*needs, *mine):
            program.row(terms, low=0.0)
        paid = [(at, cost) for at, cost in zip(bought, steps, strict=True) if cost]
        program.row(paid, low=near(least / step), high=float(floor(target / step)))
        values, _ = program.search(self._budget, nodes=nodes)
        if values is None:
            return None
        found = tuple(round(values[at]) for at in bought)
        if not whole_jobs:
            return WholeFleet(found, None)
        taken = [(kind, option, round(values[at])) for (kind, option), at in picks.items()]
        counts = [0] * len(jobs)
        for kind, _, number in taken:
            counts[kind] += number
        if counts != weights:
            return None  # there are more of them than floats can count
        return WholeFleet(found, choices_of(taken, len(region.blocks)))

    def cost(self, machines: Sequence[int]) -> Fraction:
        """Return the cost of a number of machines of each type."""
        pairs = zip(machines, self._region.costs, strict=True)
        return sum((number * cost for number, cost in pairs), Fraction(0))


def _group_by_kind(picks: Iterable[Pick]) -> dict[int, list[tuple[int, ...]]]:
    found: dict[int, list[tuple[int, ...]]] = {}
    for kind, option in picks:
        found.setdefault(kind, []).append(option)
    return found


#: Most fleets to search schedules for; every how many nodes a fleet is tried again.
_MOST_FLEETS, _TRY_EVERY = 12, 8
#: Up to this number of kinds, a neighbourhood at a node frees all of them at once.
_ALL_FREE = 100
_RUNGS = (Rung(400, 15, 100, 400), Rung(40, 15, 100), Rung(60, 15, 100))
_ALL_RUNGS = (Rung(_ALL_FREE, 40, 100),)
#: What part of the root's prices is added to a node's.
_LEANING = Fraction(1, 64)
#: Dives within the fleet of a node, and the most options that all kinds have in them.
_FLEET_DIVES, _MOST_OPTIONS = 8, 8_000
#: The part of the kinds that chooses in dives after the first; how many options each chooses among.
_CHOOSING, _FEW_OPTIONS = 0.8, 6
#: Reduced costs below this, in the region's unit, count as 0.
_NOTHING = 1e-6


class NodeSchedules:
    """Looks for schedules where branches have settled how many machines of each type there are.

    What jobs take at a node's prices then fits together as it never did at the root.
    """

    def __init__(
        self,
        given: PresolvedProblem,
        search: PriceSearch,
        point: PricePoint,
        master: RestrictedMaster,
        budget: Budget,
    ) -> None:
        self._given, self._jobs, self._search, self._budget = given, search.jobs, search, budget
        self._root, self._master = point, master
        self._diver = Diver(self._jobs, search.region, budget)
        self._random = np.random.default_rng(budget.seed)
        self._tried: set[tuple[int, ...]] = set()
        self._asked = 0
        few = len(self._jobs) <= FEW_KINDS and self._jobs.problem.cost_step > 0
        programs = few and search.region.bounded
        self.fleets = WholeFleets(search, point, self._jobs, budget) if programs else None

    def find_whole_fleets(self, least: Fraction, cost: Fraction | None) -> Iterator[Schedule]:
        """Yield schedules of whole fleets, where jobs are alike and sets are cut at will."""
        if cost is not None and self.fleets is not None and alike(self._jobs):
            self.fleets.extend(self._master)
            for dived in self.fleets.improve(self._diver, least, cost):
                yield self._given.restore(dived.schedule(self._jobs))

    def find(self, node: Node, solution: NodeSolution, cost: Fraction | None) -> Iterator[Schedule]:
        """Yield schedules that cost less and less: for each fleet once, and now and then."""
        region = self._search.region
        machines = tuple(map(round, solution.totals[: len(region.costs)]))
        self._asked += 1
        again = not region.bounded and not self._asked % _TRY_EVERY
        if not again and (machines in self._tried or len(self._tried) >= _MOST_FLEETS):
            return
        self._tried.add(machines)
        for dived in self._cut(solution, machines, cost) if region.bounded else ():
            cost = dived.cost
            yield self._given.restore(dived.schedule(self._jobs))
        few = len(self._jobs) <= _ALL_FREE and not alike(self._jobs)
        if few or not region.bounded:
            yield from self._near(node, solution, cost, _ALL_RUNGS if few else _RUNGS)

    def _cut(
        self, solution: NodeSolution, machines: Sequence[int], cost: Fraction | None
    ) -> Iterator[Dived]:
        """Yield schedules within numbers of machines of each type, which are cut at will."""
        region = self._search.region.below(())
        least = sum((m * c for m, c in zip(machines, region.costs, strict=True)), Fraction(0))
        if not alike(self._jobs) and (cost is None or least < cost):
            there = enumerate(zip(machines, region.costs, strict=True))
            mine = [Limit(region.names[m], {m: 1}, n) for m, (n, cost) in there if cost]
            region.room = Room([*region.limits, *mine])
            diver = Diver(self._jobs, region, self._budget)
            for start in self._starts(solution):
                for dived in diver.dives(start, least, cost, slice(1)):
                    cost = dived.cost
                    yield dived
                if cost == least or self._budget.stopped:
                    break
        if self.fleets is not None and (cost is None or least < cost):
            self.fleets.extend(self._master)
            yield from self.fleets.cut(self._diver, self.fleets.of_fleet(machines), cost)

    def _starts(self, solution: NodeSolution) -> Iterator[Undecided]:
        """Let all kinds choose among options of no reduced cost; then most, drawn at random."""
        jobs, random, prices = self._jobs, self._random, np.array(solution.prices)
        taken = _group_by_kind(solution.options)
        paid = solution.paid + _NOTHING
        others = _group_by_kind(
            p for p in self._master.options if paid[p[0]] > np.array(p[1]) @ prices
        )
        if sum(map(len, others.values())) > _MOST_OPTIONS or len(jobs) > MOST_UNDECIDED:
            return
        for number in range(_FLEET_DIVES):
            free = random.random(len(jobs)) < (_CHOOSING if number else 1.0)
            choosing = {}
            for kind, own in taken.items():
                if free[kind] or len(own) > 1:
                    more = others.get(kind, [])
                    order = random.permutation(len(more))[:_FEW_OPTIONS].tolist()
                    choosing[kind] = (*dict.fromkeys((*own, *(more[at] for at in order))),)
            rows = [(k, own[0], jobs.weight(k)) for k, own in taken.items() if k not in choosing]
            yield Undecided(choices_of(rows, len(prices)), choosing)

    def _near(
        self, node: Node, solution: NodeSolution, cost: Fraction | None, rungs: Sequence[Rung]
    ) -> Iterator[Schedule]:
        """Free the kinds that the solution mixes options of, and some others.

        Where a fleet is more than enough, blocks that are short at the root cost nothing, and many
        options cost the same. Part of the root's prices, added to a node's, tells them apart.
        """
        jobs, region, point = self._jobs, self._search.region.below(node.path), node.point
        shapes = Shapes(jobs.problem, [*dict.fromkeys((*region.rows, *solution.contents))])
        machines = [(row, Fraction(x)) for row, x in solution.contents.items()]
        given = point, shapes, Fractional([], machines), self._random
        pairs = zip(point.vector.prices, self._root.vector.prices, strict=True)
        prices = tuple(price + first * _LEANING for price, first in pairs)
        leaning = point._replace(vector=point.vector._replace(prices=prices))
        neighbourhood = Neighbourhood(jobs, region, *given, leaning)
        taken = _group_by_kind(sorted(solution.options, key=lambda p: -solution.options[p]))
        rows = [(kind, own[0], jobs.weight(kind)) for kind, own in taken.items()]
        origin: Rounded | Found = Rounded(choices_of(rows, len(region.blocks)), ())
        failed = number = 0
        while failed < len(rungs) and not self._budget.stopped:
            target = None if cost is None else next_below(cost, shapes.step)
            if target is not None and target < point.bound:
                break
            if target is not None and rungs is _RUNGS and not number % len(rungs):
                # Few options and machines are left for a schedule that costs no more than this
                # fleet at its best, and programs of few are quick.
                target = min(target, round_up(point.bound, shapes.step))
            found, _ = neighbourhood.look(
                rungs[number % len(rungs)],
                origin,
                least=point.bound,
                target=target,
                budget=self._budget,
                taken=taken,
            )
            number, failed = number + 1, failed + 1
            if found is not None:
                origin, taken, cost, failed = found, {}, found.cost, 0
                yield cast("Schedule", self._given.restore(schedule_of(shapes, jobs, found)))
