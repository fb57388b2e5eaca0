"""The dearest mix of a block at given price functions, exactly.

Where all mixes are listed each is looked at. Else the cycles that a mix can have are split into
intervals, as long as :mod:`.relaxation` cannot tell that none of an interval holds what is looked
for; what is left of narrow intervals is searched, job by job. Integers rounded outwards decide what
is left out, and complete mixes are evaluated exactly: so the answer is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..certificate.price_conditions import Condition
from ..certificate.quantity import BlocksOfJob
from ..problem.parts import Block
from ..running.stopping import look, never
from ..schedule.contents import Mix
from ..values.numbers import common_step
from .dive import Dive, Undecided
from .functions import Offer, Pick, PriceFunction, is_admitted, worth_of
from .listed import ListedMixes
from .problem import TimeSharedProblem
from .relaxation import Cell, Interval, Relaxation

#: Intervals and partial mixes after which a search is given up: about a minute's work.
NODE_LIMIT = 10_000_000
#: Intervals that end within such a part of their begin are searched, or not split any more.
_NARROW, _NARROWEST = 20, 160
#: Partial mixes of an interval, at first, after which others have their turn; then more and more.
_FIRST_EFFORT, _MORE_EFFORT = 100, 4
_NOTHING = PriceFunction()


class Priced(NamedTuple):
    """A mix and what it is worth."""

    mix: Mix
    worth: Fraction


class Search(NamedTuple):
    """Mixes by falling worth, whether the search came to an end, and its effort in nodes."""

    mixes: tuple[Priced, ...]
    decided: bool
    nodes: int

    @property
    def dearest(self) -> Priced | None:
        """The first one."""
        return self.mixes[0] if self.mixes else None


def dearest_mix(
    offers: Sequence[Offer],
    *,
    above: Fraction,
    most_jobs: int | None = None,
    node_limit: int = NODE_LIMIT,
    stopped: Callable[[], bool] = never,
    listed: ListedMixes | None = None,
) -> Search:
    """Find the dearest mix that is worth more than ``above`` >= 0, and others met on the way.

    If the search is decided and has none, no mix is. ``listed`` has all mixes of these offers: then
    none is searched for, where what they are worth is bounded in 64 bits. It may raise Stopped.
    """
    if not any(offer.pays for offer in offers):
        return Search((), decided=True, nodes=0)
    jobs = min(most_jobs or len(offers), len(offers))
    return _Searching(offers, above, jobs, node_limit, stopped).run(listed)


def charges_of(
    block: Block, path: Iterable[Condition], multipliers: Iterable[Fraction]
) -> dict[str, Fraction]:
    """Add up what mixes on a block are worth more for having a job, below branches."""
    charges: dict[str, Fraction] = {}
    for (quantity, sign, _), multiplier in zip(path, multipliers, strict=True):
        if isinstance(quantity, BlocksOfJob) and quantity.block == block and multiplier:
            charges[quantity.job] = charges.get(quantity.job, Fraction(0)) + sign * multiplier
    return charges


def offers_of(
    problem: TimeSharedProblem,
    block: Block,
    functions: Mapping[str, PriceFunction],
    charges: Mapping[str, Fraction],
) -> list[Offer]:
    """Return what jobs offer on a type of block, but for those that no dearest mix needs."""
    offers = (
        offer._replace(
            function=functions.get(name, _NOTHING) if offer.demand else _NOTHING,
            charge=charges.get(name, Fraction(0)),
        )
        for name, offer in problem.unpaid_offers(block).items()
    )
    return [offer for offer in offers if offer.pays]


def price_mix(
    problem: TimeSharedProblem,
    block: Block,
    functions: Mapping[str, PriceFunction],
    charges: Mapping[str, Fraction],
    *,
    above: Fraction,
    node_limit: int = NODE_LIMIT,
    stopped: Callable[[], bool] = never,
) -> Search:
    """Find the dearest mix on a type of block as :func:`.dearest_mix` does."""
    return dearest_mix(
        offers_of(problem, block, functions, charges),
        above=above,
        most_jobs=problem.max_jobs,
        node_limit=node_limit,
        stopped=stopped,
        listed=problem.listed_mixes(block),
    )


class _Searching:
    def __init__(
        self,
        offers: Sequence[Offer],
        above: Fraction,
        most_jobs: int,
        node_limit: int,
        stopped: Callable[[], bool],
    ) -> None:
        self._offers, self._stopped = offers, stopped
        self._most_jobs, self._node_limit, self._nodes = most_jobs, node_limit, 0
        self._found: dict[tuple[Pick, ...], Fraction] = {}
        self._best, self._step = above, _step(offers)
        self._numbers: Relaxation | None = None

    def run(self, listed: ListedMixes | None) -> Search:
        decided = True
        try:
            likely = None
            if listed is not None and len(listed) <= self._node_limit:
                likely = listed.likely(self._offers, self._reached)
            if likely is None:
                self._search()
            else:
                for picks in likely:
                    self.meet(picks)
        except Undecided:
            decided = False
        offers = self._offers
        named = [
            Priced(Mix({offers[at].job: offers[at].choices[c].amount for at, c in picks}), worth)
            for picks, worth in self._found.items()
        ]
        named.sort(key=lambda priced: (-priced.worth, tuple(priced.mix.items())))
        return Search(tuple(named), decided, self._nodes)

    def _reached(self) -> Fraction:
        """Compute a worth that every better mix has at least: the next step, if there are steps."""
        step = self._step
        return step * (self._best // step + 1) if step else self._best

    def _search(self) -> None:
        """Search the cells, the likeliest first: none for long before the others had their turn.

        What one of them finds soon spares the others much.
        """
        offers = self._offers
        largest = max(self._best, *(offer.largest for offer in offers))
        self._numbers = numbers = Relaxation(offers, self._most_jobs, largest)
        #: What mixes must be worth more than, in the relaxation's units, rounded down.
        self.target = self._aim()
        for at, own in enumerate(offers):
            for c in range(len(own.choices)):
                self.meet((Pick(at, c),))
        cells, waiting = list[Cell](), [numbers.cycles]
        while waiting:
            split = self._relaxed(waiting)
            cells += [cell for cell in split if cell.interval.is_narrow(_NARROW)]
            wide = [cell.interval for cell in split if not cell.interval.is_narrow(_NARROW)]
            waiting = [half for interval in wide for half in interval.halves()]
        kinds: dict[object, int] = {}
        kinds_of = [kinds.setdefault(offer.kind, len(kinds)) for offer in offers]
        effort = _FIRST_EFFORT
        while cells:
            cells.sort(key=lambda cell: Fraction(cell.gap, max(cell.lo, 1)), reverse=True)
            unfinished = list[Cell]()
            for cell in cells:
                if cell.gap <= (self.target - cell.above) * cell.lo:
                    continue
                if Dive(cell, kinds_of, self._most_jobs, self).run(effort):
                    continue
                if cell.interval.is_narrow(_NARROWEST):
                    unfinished.append(cell)
                else:
                    waiting += cell.interval.halves()
            cells, waiting = unfinished + self._relaxed(waiting), []
            effort *= _MORE_EFFORT

    def _relaxed(self, intervals: list[Interval]) -> list[Cell]:
        look(self._stopped)
        for _ in intervals:
            self.count()
        assert self._numbers is not None
        return self._numbers.cells(intervals, self.target)

    def _aim(self) -> int:
        assert self._numbers is not None
        reached = self._numbers.whole_worth(self._reached())
        # What is worth as much as the next step is looked for, and above the best it need be.
        return reached - 1 if self._step else reached

    def count(self) -> None:
        """Count a node; raise Undecided where there are too many of them."""
        self._nodes += 1
        if self._nodes > self._node_limit:
            raise Undecided
        if self._nodes % 4096 == 0:
            look(self._stopped)

    def meet(self, picks: tuple[Pick, ...]) -> None:
        """Evaluate a mix, and keep it if it is worth more than any before."""
        turns = [(self._offers[at], self._offers[at].choices[c]) for at, c in picks]
        if not is_admitted([choice for _, choice in turns]):
            return
        worth = worth_of(turns)
        if worth <= self._best:
            return
        self._found[picks], self._best = worth, worth
        if self._numbers is not None:
            self.target = self._aim()


def _step(offers: Sequence[Offer]) -> Fraction:
    """Compute the largest number of which every worth is a whole multiple; 0 if there is none."""
    if any(offer.function.slope and offer.demand for offer in offers):
        return Fraction(0)
    heights = [height for offer in offers for _, height in offer.function.steps]
    return common_step([*heights, *(offer.charge for offer in offers)])
