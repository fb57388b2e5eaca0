"""The dearest mix of a block at given price functions, exactly; and all that are worth enough.

The frames that a mix can have are split into intervals, as long as :mod:`.relaxation` cannot tell
that none of an interval holds what is looked for; what is left of narrow intervals is searched, job
by job. Integers rounded outwards decide what is left out, and complete mixes are evaluated in exact
arithmetic: so the answer is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..running.stopping import look, never
from ..schedule.contents import Mix
from .dive import Dive, Undecided
from .listed import ListedMixes
from .offers import ExactMixes, Offer, Pick, amounts, worth_of
from .relaxation import Cell, Interval, Relaxation

#: Intervals and partial mixes after which a search is given up: about a minute's work.
NODE_LIMIT = 10_000_000
#: Intervals that end within such a part of their begin are searched, or not split any more.
_NARROW, _NARROWEST = 20, 160
#: Partial mixes of an interval, at first, after which others have their turn; then more and more.
_FIRST_EFFORT, _MORE_EFFORT = 100, 4


class Priced(NamedTuple):
    """A mix and what it is worth."""

    mix: Mix
    worth: Fraction


class Search(NamedTuple):
    """What a search found.

    Attributes
    ----------
    mixes : tuple of Priced
        By falling worth.
    decided : bool
        Whether the question is answered; False where the limit of nodes, or of mixes, was reached.
    nodes : int
        Intervals and partial mixes looked at: the effort.
    """

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
    any_one: bool = False,
    node_limit: int = NODE_LIMIT,
    stopped: Callable[[], bool] = never,
    listed: ListedMixes | None = None,
) -> Search:
    """Find the dearest mix that is worth more than some value.

    Parameters
    ----------
    offers : sequence of Offer
        The jobs that a mix on the block can have, each once.
    above : Fraction
        >= 0.
    most_jobs : int, optional
        Of one mix.
    any_one : bool, default False
        Whether to end, undecided, once there is a mix that is worth more.
    node_limit : int
    stopped : callable
    listed : ListedMixes, optional
        With all mixes of these offers of at most so many jobs: then none is searched for, where
        what they are worth is bounded in 64 bits.

    Returns
    -------
    Search
        The dearest mix and others met on the way, all worth more than ``above``; if it is decided
        and has none, no mix is.

    Raises
    ------
    Stopped

    Examples
    --------
    >>> from .functions import PriceFunction
    >>> from .model import Choice
    >>> def offer(job: str, *points: tuple[int, int]) -> Offer:
    ...     choices = [Choice(Fraction(a), Fraction(l), Fraction(20 - l)) for a, l in points]
    ...     return Offer(job, Fraction(1), PriceFunction(1), tuple(choices))
    >>> found = dearest_mix([offer("x", (2, 4), (8, 9)), offer("y", (6, 6))], above=Fraction(0))
    >>> print(found.dearest.mix, found.dearest.worth)
    y x 6 1
    """
    if not any(offer.pays for offer in offers):
        return Search((), decided=True, nodes=0)
    if listed is not None and len(listed) <= node_limit:
        found = _looked_through(offers, above, any_one, listed)
        if found is not None:
            return found
    search = _Searching(offers, above, most_jobs, node_limit, stopped)
    search.any_one = any_one
    return search.run()


def _looked_through(
    offers: Sequence[Offer], above: Fraction, any_one: bool, listed: ListedMixes
) -> Search | None:
    """Look through all mixes; None where what they are worth is not bounded."""
    likely = listed.likely(offers, above)
    if likely is None:
        return None
    found, best = list[Priced](), above
    for picks, most in likely:
        if most <= best:
            break
        worth = worth_of((offers[at], offers[at].choices[c]) for at, c in picks)
        if worth > above:
            found.append(Priced(Mix(amounts(offers, picks)), worth))
            best = max(best, worth)
            if any_one:
                break
    return Search(_by_worth(found), decided=not (any_one and found), nodes=len(listed))


def _by_worth(found: Iterable[Priced]) -> tuple[Priced, ...]:
    return tuple(sorted(found, key=lambda priced: (-priced.worth, tuple(priced.mix.items()))))


def mixes_worth(
    offers: Sequence[Offer],
    *,
    least: Fraction,
    most: int,
    most_jobs: int | None = None,
    node_limit: int = NODE_LIMIT,
    stopped: Callable[[], bool] = never,
) -> Search:
    """List all mixes that are worth at least so much, up to ``most`` of them.

    Parameters
    ----------
    offers : sequence of Offer
        As in :func:`dearest_mix`.
    least : Fraction
        Of either sign; with a low one, every mix is listed.
    most : int
        If there are more, the search ends undecided.

    Raises
    ------
    Stopped
    """
    if not offers:
        return Search((), decided=True, nodes=0)
    search = _Searching(offers, least, most_jobs, node_limit, stopped, most=most)
    return search.run()


class _Searching:
    """One search: for the dearest mix, or with ``most`` for all that are worth enough."""

    def __init__(
        self,
        offers: Sequence[Offer],
        value: Fraction,
        most_jobs: int | None,
        node_limit: int,
        stopped: Callable[[], bool],
        *,
        most: int | None = None,
    ) -> None:
        self._offers, self._value, self._most, self._stopped = offers, value, most, stopped
        self._most_jobs = min(most_jobs or len(offers), len(offers))
        self._exact = ExactMixes(offers)
        self._alone = [
            Pick(at, c) for at, own in enumerate(offers) for c in range(len(own.choices))
        ]
        largest = max(abs(value), *map(self._exact.most, self._alone))
        self._relaxation = Relaxation(offers, self._most_jobs, largest)
        kinds: dict[object, int] = {}
        self._kinds = [kinds.setdefault(offer.kind, len(kinds)) for offer in offers]
        self._node_limit, self._nodes = node_limit, 0
        self._found: dict[tuple[Pick, ...], Fraction] = {}
        #: Whether one mix that is worth enough is enough.
        self.any_one = False
        #: Whether mixes worth as much as the target do not count.
        self.strict = most is None
        #: What mixes must be worth, in the relaxation's units, rounded down.
        self.target = self._aim(value)

    def run(self) -> Search:
        """Search."""
        decided = True
        try:
            for pick in self._alone:
                self.meet((pick,))
            self._search(self._cells())
        except Undecided:
            decided = False
        named = (Priced(Mix(amounts(self._offers, p)), worth) for p, worth in self._found.items())
        return Search(_by_worth(named), decided, self._nodes)

    def _cells(self) -> list[Cell]:
        """Return the narrow intervals that may hold what is looked for."""
        waiting, narrow = [self._relaxation.frames], list[Cell]()
        while waiting:
            cells = self._relaxed(waiting)
            waiting = []
            for cell in cells:
                if cell.interval.is_narrow(_NARROW):
                    narrow.append(cell)
                else:
                    waiting += cell.interval.halves()
        return narrow

    def _search(self, cells: list[Cell]) -> None:
        """Search the cells, the likeliest first: none for long before the others had their turn.

        What one of them finds soon spares the others much.
        """
        effort = _FIRST_EFFORT
        while cells:
            cells.sort(key=lambda cell: Fraction(cell.gap, max(cell.lo, 1)), reverse=True)
            unfinished, halves = list[Cell](), list[Interval]()
            for cell in cells:
                if not self._may_hold(cell):
                    continue
                if Dive(cell, self._kinds, self._most_jobs, self).run(effort):
                    continue
                if cell.interval.is_narrow(_NARROWEST):
                    unfinished.append(cell)
                else:
                    halves += cell.interval.halves()
            cells = unfinished + self._relaxed(halves)
            effort *= _MORE_EFFORT

    def _relaxed(self, intervals: list[Interval]) -> list[Cell]:
        look(self._stopped)
        for _ in intervals:
            self.count()
        return self._relaxation.cells(intervals, self.target, strict=self.strict)

    def _aim(self, worth: Fraction) -> int:
        """Return the target where mixes are to be worth more, or as much if that is enough."""
        if not self.strict or not self._exact.step:
            return self._relaxation.whole_worth(worth)
        # Worths come in steps, so that what is worth more reaches the next one: this is below it.
        reached = self._exact.step * (worth // self._exact.step + 1)
        return max(self._relaxation.whole_worth(reached) - 1, self._relaxation.whole_worth(worth))

    def _may_hold(self, cell: Cell) -> bool:
        """Whether the cell is not ruled out by a mix that was found since."""
        return cell.gap_at(self.target) > 0 if self.strict else True

    # -- what a dive asks --------------------------------------------------------------------------

    def count(self) -> None:
        """Count a node.

        Raises
        ------
        Undecided
            If there are too many of them.
        """
        self._nodes += 1
        if self._nodes > self._node_limit:
            raise Undecided
        if self._nodes % 4096 == 0:
            look(self._stopped)

    def meet(self, picks: tuple[Pick, ...]) -> None:
        """Evaluate a mix, and keep it if it is worth enough."""
        worth = self._exact.worth(picks)
        if worth is None or worth < self._value or (self.strict and worth == self._value):
            return
        picks = tuple(sorted(picks))
        if picks in self._found:
            return
        for each in self._alike(picks) if self._most is not None else (picks,):
            self._found[each] = worth
            if self._most is not None and len(self._found) > self._most:
                raise Undecided
        if self.any_one:
            raise Undecided
        if self.strict:
            self.target = max(self.target, self._aim(worth))

    def _alike(self, picks: tuple[Pick, ...]) -> Iterator[tuple[Pick, ...]]:
        """Iterate over the mixes that differ from one by an exchange of jobs of one kind."""
        wanted: dict[int, list[int]] = {}
        for offer, choice in picks:
            wanted.setdefault(self._kinds[offer], []).append(choice)
        yield from self._exchanged(list(wanted.items()))

    def _exchanged(self, wanted: list[tuple[int, list[int]]]) -> Iterator[tuple[Pick, ...]]:
        if not wanted:
            yield ()
            return
        (kind, choices), *others = wanted
        members = [at for at, own in enumerate(self._kinds) if own == kind]
        for given in _arrangements(members, Counter(choices)):
            for rest in self._exchanged(others):
                yield tuple(sorted((*given, *rest)))


def _arrangements(members: list[int], choices: Counter[int]) -> Iterator[tuple[Pick, ...]]:
    """Iterate over the ways to give each of some choices to a member of its own."""
    if not choices.total():
        yield ()
        return
    first, rest = members[0], members[1:]
    for choice in sorted(choices):
        for more in _arrangements(rest, choices - Counter([choice])):
            yield (Pick(first, choice), *more)
    if len(rest) >= choices.total():
        yield from _arrangements(rest, choices)
