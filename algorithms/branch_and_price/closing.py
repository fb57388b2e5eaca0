"""From the best prices to a schedule that meets them: rounding, dives, programs and branches."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cms.certificate.certificate import next_below, round_up
from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Claim, Named
from cms.problem.problem import Problem

from ..prices.fraction import Fractional
from ..prices.passes import certificate
from ..prices.search import fractional
from .dive import MOST_UNDECIDED, Diver
from .mixture_rounding import Undecided, rounded
from .neighbourhood import FIRST_RUNGS, Neighbourhood, Rung
from .open_machines import filled
from .program import (
    Found,
    Task,
    close,
    every_block,
    every_option,
    round_off,
    schedule_of,
    solver_bound,
)
from .shapes import Shapes
from .whole_fleets import FEW_KINDS, MAX_KINDS, WholeFleets, alike

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem

    from ..prices.region import PricePoint
    from ..prices.search import PriceSearch

_LADDER = (
    Rung(60, 15, 200),
    Rung(200, 20, 500),
    Rung(60, 60, 500),
    Rung(300, 40, 1000),
    Rung(60, 400, 1000),
)
#: The ladder is climbed this often, with other free jobs each time.
_CLIMBS = 4
#: Dives before other programs, and after the first of these.
_FIRST_DIVES, _MORE_DIVES = slice(6), slice(6, 40)
#: In a long search one comes earlier.
_PASSES_BEFORE_A_DIVE, _ONE_DIVE = 32, slice(1)
#: Smaller compact programs find as much as whole fleets do.
_MIN_BLOCKS = 1_000
#: Kinds of jobs from which on the ladder comes before the tree.
_CLIMB_FIRST = 4_000
#: SCIP's nodes for the first program after rounding.
_FIRST_NODES = 100
#: CP-SAT's for its word on what a schedule costs at least.
_EXACT_EFFORT = 60.0
#: Limits of a tree: nodes times kinds of jobs, and nodes.
_TREE_WORK, _TREE_NODES = 2_000_000, 20_000
#: The same for the first tree, where costs have a fine step, before programs that take longer.
_FIRST_TREE_NODES, _FIRST_TREE_WORK = 2_000, 200_000
#: Bits of the largest demand with which branches are tried.
_LONGEST = 200
#: Variables of the compact program, beyond which it is not tried.
_MOST_BLOCKS = 5_000
#: ... and up to which it is tried first of all; SCIP's nodes then.
_SMALL, _SMALL_NODES = 400, 2_000

#: Jobs times block types up to which greedy has a turn, the part of the time that is left that it
#: may take, and the part after which it is not to be put off any longer.
_MOST_FOR_GREEDY, _TIME, _LATE = 20_000, 0.2, 0.1


class Closing:
    """Closes the gap between the prices of a search on a reduced problem and its schedules."""

    def __init__(self, reduction: PresolvedProblem, search: PriceSearch, budget: Budget) -> None:
        self._reduction, self._problem, self._budget = reduction, reduction.problem, budget
        self._search, self._jobs = search, search.jobs
        self._greedy = _GreedyTurn(reduction, budget)
        self._step = self._problem.cost_step
        self._random = np.random.default_rng(budget.seed)
        sets = self._problem.size_bounded_configurations
        self._diver = Diver(self._jobs, search.region, budget) if sets else None
        self._dived_early = False
        # The best answer of a program, to go on from.
        self._best: Found | None = None
        self._branched: set[bool] = set()
        self._compact_size = self._problem.n_jobs * len(self._problem.blocks)

    def claims_between_passes(self) -> Iterator[Claim]:
        """Yield schedules while a search goes on, where its end may be far."""
        search = self._search
        yield from self._greedy.claims(if_late=True)
        if not self._jobs.listed and search.passes == 1 and self._cost is None:
            # Cover what all buy at the first prices with machines: of very many jobs an answer.
            shapes = Shapes(self._problem, search.region.rows)
            alone = Fractional([[(0, Fraction(1))]] * search.n_groups, [])
            choices = rounded(search, alone, self._budget.seed).choices
            machines = filled(shapes, choices.load())
            if machines is not None:
                yield self._named(choices.schedule(self._jobs, machines), "first prices")
        if self._diver and not self._dived_early and search.passes >= _PASSES_BEFORE_A_DIVE:
            # Prices may take long for their last digits, which a schedule does not need.
            self._dived_early = True
            yield from self._dive(self._diver, fractional(search), _ONE_DIVE)

    def claims(self) -> Iterator[Claim]:
        """Yield schedules and certificates from the end of a search on, the cheap means first."""
        search, diver = self._search, self._diver
        if self._met():
            return
        mixture = fractional(search)
        many = diver is not None and self._jobs.listed and alike(self._jobs)
        if diver is None:
            shapes = Shapes(self._problem, search.region.rows)
            yield from self._round(shapes, mixture, "rounding")
        else:
            yield from self._dive(diver, mixture, _ONE_DIVE if many else _FIRST_DIVES)
            if many and self._cost is None:
                yield from self._dive(diver, mixture, _FIRST_DIVES)
            yield from self._greedy.claims(if_late=True)
        if self._met():
            return
        for point in search.refine():
            yield certificate(self._reduction, search, point)
            yield from self._greedy.claims(if_late=True)
        if self._met():
            return
        mixture = fractional(search)
        if diver is not None:
            if not many and len(self._jobs) <= FEW_KINDS and self._compact_size > _MIN_BLOCKS:
                yield from self._whole_fleets(diver)
            if not many:
                yield from self._dive(diver, mixture, _FIRST_DIVES)
            elif self._cost is not None:
                yield from self._tree()
            if self._met():
                return
            shapes = Shapes(self._problem, [*search.region.rows, *diver.used])
        yield from self._round(shapes, mixture, "rounding, refined")
        yield from self._close(shapes, mixture)

    def _dive(self, diver: Diver, mixture: Fractional, which: slice) -> Iterator[Claim]:
        """Dive for schedules with any contents, not only those that prices brought up."""
        start = Undecided.of(self._search, mixture) if self._jobs.listed else None
        if start is None or len(start.open) > MOST_UNDECIDED:
            whole = rounded(self._search, mixture, self._budget.seed, most_boxes=0).choices
            start = Undecided(whole, {})
        for dived in diver.dives(start, self._least, self._cost, which):
            yield self._named(dived.schedule(self._jobs), "diving")

    def _named(self, schedule: Any, part: str) -> Claim:
        return Named(self._reduction.restore(schedule), part)

    def _close(self, shapes: Shapes, mixture: Fractional) -> Iterator[Claim]:
        """Close the gap, by the cheap means first."""
        if self._met():
            return
        yield from self._greedy.claims()
        region = self._search.region
        fine, fewer = self._step < region.unit, bool(self._reduction.replacement.gone)
        small = self._jobs.listed and shapes.complete and self._compact_size <= _SMALL
        if small and not self._met():
            # All jobs and all blocks: what takes SCIP less than a first look at some of them.
            compact = every_block(self._jobs, self._least, self._target)
            answer = close(shapes, self._jobs, compact, self._budget, nodes=_SMALL_NODES)
            yield from self._claim(shapes, answer.found, _part(compact))
            if fewer:
                yield from self._tree(fewer=True)
                yield from self._word(shapes)
                fewer = False
        given = self._jobs, region, self._point, shapes, mixture, self._random
        near = Neighbourhood(*given)
        yield from self._climb(near, shapes, mixture, 0, FIRST_RUNGS[:2])
        if self._diver is not None and len(self._jobs) > FEW_KINDS:
            yield from self._whole_fleets(self._diver)
        if fine and self._cost is not None:
            # Costs that differ by less than a machine are reached by few fleets, which branches
            # tell apart; no program finds what the fleet it has in sight cannot do.
            yield from self._tree(_FIRST_TREE_NODES, fewer=fewer)
        yield from self._climb(near, shapes, mixture, 0, FIRST_RUNGS[0 if fine else 2 :])
        if self._diver is not None:
            yield from self._dive(self._diver, mixture, _MORE_DIVES)
        climbs = [self._climb(near, shapes, mixture, n + 1, _LADDER) for n in range(_CLIMBS)]
        decided = [self._tree(fewer=fewer), self._tree(), self._word(shapes)]
        # Of many kinds of jobs a node of the tree takes longer than a neighbourhood search.
        early = len(self._jobs) >= _CLIMB_FIRST
        for stage in (*climbs, *decided) if early else (*decided, *climbs):
            yield from stage

    @property
    def _point(self) -> PricePoint:
        if self._search.best is None:
            raise AssertionError("a gap is closed where there are prices")
        return self._search.best

    @property
    def _least(self) -> Fraction:
        return max(round_up(self._point.bound, self._step), self._budget.lower_bound)

    def _met(self) -> bool:
        """Whether there is nothing left to look for, or no time."""
        cost = self._cost
        if self._budget.stopped or self._search.best is None:
            return True
        return cost is not None and cost <= self._least

    @property
    def _cost(self) -> Fraction | None:
        best = self._budget.best
        return None if best is None else best.cost(self._reduction.original)

    @property
    def _target(self) -> Fraction | None:
        """The highest cost of interest; None if there is no schedule yet."""
        cost = self._cost
        return None if cost is None else next_below(cost, self._step)

    def _claim(self, shapes: Shapes, found: Found | None, part: str) -> Iterator[Claim]:
        if found is None:
            return
        if self._best is None or found.cost < self._best.cost:
            self._best = found
        cost = self._cost
        if cost is None or found.cost < cost:
            yield self._named(schedule_of(shapes, self._jobs, found), part)

    def _round(self, shapes: Shapes, mixture: Fractional, part: str) -> Iterator[Claim]:
        found = round_off(self._search, shapes, mixture, self._budget, nodes=_FIRST_NODES)
        if isinstance(found, Found):
            yield from self._claim(shapes, found, part)
        elif found is not None:
            yield self._named(found, part)

    def _climb(
        self,
        near: Neighbourhood,
        shapes: Shapes,
        mixture: Fractional,
        climb: int,
        ladder: Sequence[Rung],
    ) -> Iterator[Claim]:
        """Free a few dozen jobs, then more, until the bound is met (theory 6.6)."""
        if not self._step or self._met():
            return
        start = rounded(self._search, mixture, self._budget.seed + climb)
        for number, rung in enumerate(ladder):
            if self._met():
                return
            least, target = self._least, self._target
            origin = self._best if number % 2 and self._best is not None else start
            found, free = near.look(rung, origin, least=least, target=target, budget=self._budget)
            yield from self._claim(shapes, found, f"{free} free kinds of jobs")

    def _word(self, shapes: Shapes) -> Iterator[Claim]:
        """Let CP-SAT decide with all that can matter; finding nothing is a proof, on its word."""
        jobs, cost, task = self._jobs, self._cost, None
        if self._met() or not (shapes.complete and jobs.listed) or (cost and not self._step):
            return
        target = self._target
        if target is not None:
            task = every_option(shapes, jobs, self._point, self._least, target, self._budget)
        if task is None and self._compact_size <= _MOST_BLOCKS:
            task = every_block(jobs, self._least, target)
        if task is None:
            return
        answer = close(shapes, jobs, task, self._budget, effort=_EXACT_EFFORT)
        yield from self._claim(shapes, answer.found, _part(task))
        word = solver_bound(answer, task, self._step)
        if word is not None:
            yield Named(word, _part(task))

    def _whole_fleets(self, diver: Diver) -> Iterator[Claim]:
        """Choose whole machines and whole jobs at once, and cut last."""
        jobs, cost = self._jobs, self._cost
        taken = jobs.listed and len(jobs) <= MAX_KINDS and jobs.longest <= _LONGEST
        if taken and self._step and cost is not None and not self._met():
            programs = WholeFleets(self._search, self._point, jobs, self._budget)
            for dived in programs.improve(diver, self._least, cost):
                yield self._named(dived.schedule(jobs), "whole fleets")

    def _tree(self, most: int = _TREE_NODES, *, fewer: bool = False) -> Iterator[Claim]:
        """Branch, with prices at every leaf: a proof that is checked.

        With ``fewer`` blocks, without those that others replace, a node takes little time, but only
        machines are branched on.
        """
        work = _TREE_WORK if most == _TREE_NODES else _FIRST_TREE_WORK
        nodes = min(most, work // max(1, len(self._jobs)))
        if self._met() or nodes < 2 or not self._jobs.listed or fewer in self._branched:
            return
        if self._jobs.longest > _LONGEST:  # no tree has ended there yet
            return
        if fewer or most == _TREE_NODES:
            self._branched.add(fewer)
        from .tree import branch_and_price

        for claim in branch_and_price(
            self._reduction.original,
            self._budget,
            self._cost,
            node_limit=nodes,
            fewer=fewer,
            known=(self._reduction, self._search),
        ):
            yield Named(claim, "branching")


def _part(task: Task) -> str:
    return "the compact program" if task.boxes else "all options that can matter"


class _GreedyTurn:
    """Greedy's turn, which comes once, and only where it takes little of the time."""

    def __init__(self, reduction: PresolvedProblem, budget: Budget) -> None:
        self._problem, self._budget = reduction.original, budget
        small = reduction.problem
        few = small.n_jobs * len(small.blocks) <= _MOST_FOR_GREEDY
        self._waits = few and isinstance(small, Problem)
        self._late = (1 - _LATE) * budget.remaining()

    def claims(self, *, if_late: bool = False) -> Iterator[Named]:
        """Yield greedy's claims, unless it had its turn, or may still be put off."""
        if not self._waits or (if_late and self._budget.remaining() >= self._late):
            return
        self._waits = False
        from ..greedy import Greedy, GreedyOptions

        greedy, options = Greedy(), GreedyOptions()
        if greedy.support(self._problem, options):
            # Numbers too far apart for it show in its run.
            with suppress(UnsupportedProblem):
                share = cast("Budget", _TimeShare(self._budget))
                for claim in greedy.run(self._problem, options, share):
                    yield Named(claim.claim, f"greedy: {claim.part}")


class _TimeShare:
    """A budget with a part of the time that is left of another one.

    Native code in it ends by the limits it is given: ``on_stop`` calls when the other one ends.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget, self._end = budget, monotonic() + _TIME * budget.remaining()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._budget, name)

    @property
    def stopped(self) -> bool:
        return self._budget.stopped or monotonic() >= self._end

    def remaining(self) -> float:
        return max(0.0, min(self._budget.remaining(), self._end - monotonic()))
