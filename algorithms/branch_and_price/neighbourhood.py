"""Schedules near a fractional one: some kinds of jobs are free, others stay (theory 6.6)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .options import NearOptions
from .program import Found, Task, close

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cms.plugin.algorithm import Budget

    from ..prices.fraction import Fractional
    from ..prices.jobs import Jobs
    from ..prices.region import PricePoint, Region
    from .mixture_rounding import Rounded
    from .shapes import Shapes


class Rung(NamedTuple):
    """One attempt: how many kinds are free, with how many options each, and SCIP's nodes.

    No further kind becomes free once the free kinds have ``all_options`` options in total.
    """

    kinds: int
    options: int
    nodes: int
    all_options: int = 60_000


#: What is tried before branching.
FIRST_RUNGS = (Rung(60, 15, 100), Rung(40, 12, 50), Rung(60, 15, 100), Rung(200, 20, 300))


class Neighbourhood:
    """What is nearly best at prices: machines at those of ``point``, options at ``leaning``."""

    def __init__(
        self,
        jobs: Jobs,
        region: Region,
        point: PricePoint,
        shapes: Shapes,
        mixture: Fractional,
        random: np.random.Generator,
        leaning: PricePoint | None = None,
    ) -> None:
        self._jobs, self._point, self._shapes = jobs, point, shapes
        self._random = random
        self._around = shapes.around(mixture)
        self._reduced = shapes.reduced_costs(point.vector, region)
        self._near = NearOptions(jobs, leaning or point)

    def look(
        self,
        rung: Rung,
        origin: Rounded | Found,
        *,
        least: Fraction,
        target: Fraction | None,
        budget: Budget,
        taken: Mapping[int, Sequence[tuple[int, ...]]] | None = None,
    ) -> tuple[Found | None, int]:
        """Look for a schedule; kinds that have several options in ``taken`` are free first."""
        around, boxes = self._around, () if isinstance(origin, Found) else origin.boxes
        if isinstance(origin, Found):
            around = [Fraction(x) for x in origin.machines]
        # Without a schedule any one will do; options of some machines' worth may be needed.
        slack = max(self._shapes.costs) if target is None else target - self._point.bound
        boxed = {box.kind for box in boxes}
        free: dict[int, list[tuple[int, ...]]] = {}
        n = len(self._jobs)
        n_options = 0
        drawn: list[int] = self._random.choice(n, min(rung.kinds, n), replace=False).tolist()
        taken = taken or {}
        mixed = [kind for kind, options in taken.items() if len(options) > 1]
        for kind in dict.fromkeys((*mixed, *drawn)):
            if budget.stopped:
                return None, 0
            if kind not in boxed and n_options < rung.all_options:
                near = self._near.some(kind, slack, rung.options)
                free[kind] = [*dict.fromkeys((*near, *taken.get(kind, ())))]
                n_options += len(free[kind])
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
