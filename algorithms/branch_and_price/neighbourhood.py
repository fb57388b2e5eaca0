"""Schedules near a fractional one: a few dozen jobs are free, the others stay (theory 6.6)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..prices.choices import choices_of
from .options import NearOptions
from .program import Found, Task, close

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget

    from ..prices.fraction import Fractional
    from ..prices.points import PricePoint
    from ..prices.search import PriceSearch
    from .rounding import Box, Rounded
    from .shapes import Shapes


class Rung(NamedTuple):
    """One attempt: how many kinds are free, with how many options each, and SCIP's nodes.

    With ``size`` options in all no more kinds are freed.
    """

    kinds: int
    options: int
    nodes: int
    size: int = 10**9


#: How many options beyond the cheapest of each kind all kinds choose among together, in turn; of
#: so many options of a kind, of so many kinds at most; SCIP's nodes.
WIDTHS = (5_000, 5_000)
_LISTED, _MOST_KINDS, _WIDE_NODES = 40, 4_000, 100

#: What is tried before branching.
FIRST_RUNGS = (Rung(60, 15, 100), Rung(40, 12, 50), Rung(60, 15, 100), Rung(200, 20, 300))
#: What is tried near a fleet that branches lead to; another fleet is found sooner than more helps.
FLEET_RUNGS = (Rung(400, 15, 100, 400), Rung(400, 12, 50, 250))


class Neighbourhood:
    """What is nearly best at the prices of a search.

    Parameters
    ----------
    search : PriceSearch
        At its end; without branches on jobs.
    point : PricePoint
        Its best.
    shapes : Shapes
        Of its problem.
    mixture : Fractional
        Of the search.
    random : numpy.random.Generator
        Chooses the free jobs.
    leaning : PricePoint, optional
        Other prices for the choice of options; by default those of ``point``.
    """

    def __init__(
        self,
        search: PriceSearch,
        point: PricePoint,
        shapes: Shapes,
        mixture: Fractional,
        random: np.random.Generator,
        leaning: PricePoint | None = None,
    ) -> None:
        self._jobs, self._point, self._shapes = search.jobs, point, shapes
        self._random = random
        self._around = shapes.around(mixture)
        self._reduced = shapes.reduced_costs(point.vector, search.region)
        self._near = NearOptions(search.jobs, leaning or point)

    def look(
        self,
        rung: Rung,
        origin: Rounded | Found,
        *,
        least: Fraction,
        target: Fraction | None,
        budget: Budget,
    ) -> tuple[Found | None, int]:
        """Look for a schedule.

        Parameters
        ----------
        rung : Rung
        origin : Rounded or Found
            What the jobs that are not free take; a job in a box stays there.
        least : Fraction
            A lower bound on the cost.
        target : Fraction or None
            The highest cost of interest; None if any schedule will do.
        budget : Budget

        Returns
        -------
        found : Found or None
        free : int
            How many kinds were free.
        """
        boxes: tuple[Box, ...] = ()
        around = self._around
        if isinstance(origin, Found):
            around = [Fraction(x) for x in origin.machines]
        else:
            boxes = origin.boxes
        # Without a schedule any one will do; options of some machines' worth may be needed.
        slack = max(self._shapes.costs) if target is None else target - self._point.bound
        boxed = {box.kind for box in boxes}
        free: dict[int, list[tuple[int, ...]]] = {}
        size = 0
        for kind in self._drawn(rung.kinds):
            if budget.stopped:
                return None, 0
            if kind not in boxed and size < rung.size:
                free[kind] = self._near.some(kind, slack, rung.options)
                size += len(free[kind])
        task = Task(
            origin.choices.without(np.array([*free], dtype=np.int64)),
            free,
            boxes,
            least,
            target,
            around,
            None if target is None else [cost <= slack for cost in self._reduced],
        )
        answer = close(self._shapes, self._jobs, task, budget, nodes=rung.nodes)
        return answer.found, len(free)

    def _drawn(self, most: int) -> list[int]:
        """Draw kinds that become free, all equally likely and in any order."""
        n = len(self._jobs)
        drawn: list[int] = self._random.choice(n, min(most, n), replace=False).tolist()
        return drawn

    def look_widely(
        self, alternatives: int, *, least: Fraction, target: Fraction, budget: Budget
    ) -> Found | None:
        """Let all kinds choose, each among few options: those that cost hardly more than its best.

        What is left to find is how all that is taken adds up to whole machines. Of many jobs a few
        must move, which ones nobody knows beforehand; programs of thousands of options that differ
        little in cost are solved in a second or two, where those with all options of some dozen
        kinds often hold no answer.

        Parameters
        ----------
        alternatives : int
            Options beyond the cheapest of each kind: those of lowest reduced cost among all kinds,
            at random where many cost the same.
        least, target : Fraction
            A lower bound on the cost, and the highest cost of interest.
        budget : Budget

        Returns
        -------
        Found, or None if none was found or there are too many kinds
        """
        kinds = len(self._jobs)
        if kinds > _MOST_KINDS:
            return None
        slack = target - self._point.bound
        order: list[tuple[int, int, float, int]] = []
        chances = self._random.random(kinds).tolist()
        listed: list[list[tuple[int, ...]]] = []
        for kind in range(kinds):
            if budget.stopped:
                return None
            options = self._near.some(kind, slack, _LISTED)
            priced = sorted((self._near.price(option), option) for option in options)
            listed.append([option for _, option in priced])
            order += [
                (price - priced[0][0], at, chances[kind], kind)
                for at, (price, _) in enumerate(priced)
                if at
            ]
        free = {k: listed[k][: at + 1] for _, at, _, k in sorted(order)[:alternatives]}
        fixed = [(k, listed[k][0], self._jobs.weight(k)) for k in range(kinds) if k not in free]
        choices = choices_of(fixed, len(self._jobs.problem.blocks))
        usable = [cost <= slack for cost in self._reduced]
        task = Task(choices, free, (), least, target, usable=usable)
        return close(self._shapes, self._jobs, task, budget, nodes=_WIDE_NODES).found
