"""Schedules near a fractional one: a few dozen jobs are free, the others stay (theory 6.6)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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


#: What is tried before branching.
FIRST_RUNGS = (Rung(60, 15, 100), Rung(40, 12, 50), Rung(60, 15, 100), Rung(200, 20, 300))
#: What is tried near a fleet that branches lead to; another fleet is found sooner than more helps.
FLEET_RUNGS = (Rung(400, 15, 100, 400), Rung(400, 12, 50, 250))


class Neighbourhood:
    """What is nearly best at the prices of a search."""

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
        """Look for a schedule."""
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
