"""The best machines to open next, by MIG-serving's score: made when asked for, none kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from .options import MigServingFastOptions
    from .services import Filled, Services

#: Jobs that are looked at together when the best machine for all of them is wanted.
_PLACES = 6
#: Numbers in the table of the ways to hand out blocks to these, at most.
MOST_NUMBERS = 2_000_000
#: Machines are opened one by one: beyond so many a run takes minutes.
MOST_MACHINES = 20_000


class Patterns(NamedTuple):
    """Ways to hand out all blocks of configurations to numbered places, whichever jobs take these.

    `shapes` (rows,) are the configurations, `counts` (rows, places, k) how many blocks of each type
    each place gets: floats, for products, of small whole numbers.
    """

    shapes: NDArray[np.int64]
    counts: NDArray[np.float64]


def patterns(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> Patterns:
    """List the ways to hand out the blocks of each configuration, to at most `mixed` places."""
    rows, tables = [], []
    for at, shape in enumerate(shapes):
        for used in range(1, min(mixed, places) + 1):
            every = product(*(_shares(count, used) for count in shape))
            ways = [way for way in every if all(map(any, zip(*way, strict=True)))]
            taken = np.array(ways, dtype=np.float64).reshape(-1, len(shape), used)
            for chosen in combinations(range(places), used):
                table = np.zeros((len(ways), places, len(shape)))
                table[:, chosen] = taken.transpose(0, 2, 1)
                tables.append(table)
                rows += [at] * len(ways)
    return Patterns(np.array(rows, dtype=np.int64), np.concatenate(tables))


def _shares(count: int, used: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide equal blocks among so many takers, most for the first first."""
    if used == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for rest in _shares(count - first, used - 1):
            yield (first, *rest)


def count_patterns(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> int:
    """Count the rows of :func:`patterns` without listing them."""
    total = 0
    for shape in shapes:
        for used in range(1, min(mixed, places) + 1):
            # Inclusion and exclusion: nobody of those chosen goes without.
            onto = 0
            for out in range(used):
                ways = 1
                for count in filter(None, shape):
                    ways *= comb(count + used - out - 1, count)
                onto += (-1) ** out * comb(used, out) * ways
            total += comb(places, used) * onto
    return total


def fitting(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> int:
    """Return how many jobs can be looked at together, at most `places`; 0 if not even one."""
    k = len(shapes[0]) if shapes else 0
    while places and count_patterns(shapes, places, mixed) * places * k > MOST_NUMBERS:
        places -= 1
    return places


class Candidates:
    """Scores of filled machines, as :class:`~algorithms.mig_serving.MigServingFast` says."""

    def __init__(self, services: Services, options: MigServingFastOptions) -> None:
        self._services, self._mixed = services, options.mixed
        self._capped = options.score == "capped"
        self._nearly = np.array([int(need * options.last_mile) for need in services.needs])
        self._patterns: dict[tuple[int, int], Patterns] = {}
        counts = services.tables.counts
        self._places = fitting(counts, _PLACES, self._mixed + 1)
        # What a block of each type is worth to the jobs, then all of the type that a machine has.
        most = np.array([max(column) for column in zip(*counts, strict=True)]).reshape(-1, 1)
        self._worth = np.vstack([services.utility.T, services.utility.T * most])
        self._needs = np.array(services.needs, dtype=np.float64)
        costs = services.tables.costs
        self._costs = np.array([float(cost / min(costs)) for cost in costs])

    def fast(self, budget: Budget | None = None) -> list[Filled] | None:
        """Open the machine of the highest score until nothing is missing; None if stopped."""
        left = np.array(self._services.needs, dtype=np.int64)
        opened: list[Filled] = []
        while (left > 0).any():
            if budget is not None and budget.stopped:
                return None
            jobs = self.shortlist(left, capped=self._capped)
            [machine] = self.top(jobs, left, keep=1, capped=self._capped)
            opened.append(machine)
            if len(opened) > MOST_MACHINES:
                raise UnsupportedProblem(
                    f"it would open more than {MOST_MACHINES} machines one by one, because "
                    "machines of little use are so much cheaper than others; use auto or greedy"
                )
            for j, amount in machine.gives:
                left[j] -= amount
        return opened

    def top(
        self,
        jobs: Sequence[int],
        missing: Sequence[int] | NDArray[np.int64],
        *,
        keep: int,
        capped: bool = True,
    ) -> list[Filled]:
        """Return so many machines of the highest scores for a few jobs, the best first.

        All ways to hand out blocks to these jobs, each missing something, are looked at. If capped,
        and in the last mile, what a machine gives a job counts up to what that is missing alone.
        """
        late = self._late(missing)
        rows = self._rows(len(jobs), self._mixed + late)
        left = np.array([missing[j] for j in jobs], dtype=np.float64) / self._needs[list(jobs)]
        # (rows, places): what each way gives each job
        parts = np.einsum("rpi,pi->rp", rows.counts, self._services.utility[list(jobs)])
        if capped or late:
            np.minimum(parts, left, out=parts)
        scores = parts @ left
        scores /= self._costs[rows.shapes]
        # Ways that differ in blocks that give nothing are one machine: some more than wanted.
        some = min(len(scores), 4 * keep)
        order = np.argpartition(-scores, some - 1)[:some] if some < len(scores) else range(some)
        best: dict[Filled, None] = {}
        for r in sorted(order, key=lambda r: (-scores[r], r)):
            table = rows.counts[r]
            blocks = [(int(i), jobs[p], int(table[p, i])) for p, i in np.argwhere(table)]
            machine = self._services.filled(int(rows.shapes[r]), blocks)
            if machine.gives:
                best[machine] = None
            if len(best) == keep:
                break
        return list(best)

    def shortlist(self, missing: NDArray[np.int64], *, capped: bool) -> list[int]:
        """Choose six jobs, in order, for which a machine is worth most, whatever is opened.

        They are those for which one block of a type counts most, and all blocks of a type that a
        machine can have; types take turns. Fewer where the table of ways would be too large.
        """
        places = self._places
        open_jobs = np.flatnonzero(missing > 0)
        if len(open_jobs) <= places:
            return [int(j) for j in open_jobs]
        left = missing[open_jobs] / self._needs[open_jobs]
        values = self._worth[:, open_jobs]
        if capped or self._late(missing):
            np.minimum(values, left, out=values)
        values *= left
        # The best few of each row, best first; of equals the first.
        few = np.argpartition(values, -places, axis=1)[:, -places:].tolist()
        ranked = [
            [j for _, j in sorted((-row[j], j) for j in best)]
            for row, best in zip(values, few, strict=True)
        ]
        chosen: dict[int, None] = {}
        for turn in zip(*ranked, strict=True):
            for j in turn:
                if len(chosen) < places:
                    chosen[int(open_jobs[j])] = None
        return sorted(chosen)

    def _late(self, missing: Sequence[int] | NDArray[np.int64]) -> bool:
        """Whether this is the last mile."""
        return bool((np.asarray(missing) <= self._nearly).all())

    def _rows(self, places: int, mixed: int) -> Patterns:
        known = self._patterns.get((places, mixed))
        if known is None:
            known = patterns(self._services.tables.counts, places, mixed)
            self._patterns[places, mixed] = known
        return known
