"""The best machines to open next, by MIG-serving's score: made when asked for, none kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .patterns import number, patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .options import MigServingFastOptions
    from .patterns import Patterns
    from .services import Filled, Services

#: Jobs that are looked at together when the best machine for all of them is wanted.
PLACES = 6
#: Numbers in the table of the ways to hand out blocks to these, at most.
MOST_NUMBERS = 2_000_000


def fitting(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> int:
    """Return how many jobs can be looked at together, at most ``places``; 0 if not even one.

    Parameters
    ----------
    shapes : sequence of c sequences of k ints
        Numbers of blocks.
    places, mixed : int
        As :func:`~algorithms.mig_serving.patterns.patterns` takes them.

    Examples
    --------
    >>> fitting([[7]], places=6, mixed=4), fitting([[1000]], places=6, mixed=4)
    (6, 3)
    """
    k = len(shapes[0]) if shapes else 0
    while places and number(shapes, places, mixed) * places * k > MOST_NUMBERS:
        places -= 1
    return places


class Candidates:
    """Scores of filled machines.

    The score of a machine is the sum, over jobs, of the part of the demand that is missing times
    the part that the machine satisfies, by the machine's cost.

    In the last mile, when no job is missing much, one job more may be mixed on a machine, and what
    it gives a job counts up to what that is missing alone.

    Parameters
    ----------
    services : Services
    options : MigServingFastOptions
    """

    def __init__(self, services: Services, options: MigServingFastOptions) -> None:
        self._services, self._mixed = services, options.mixed
        self._nearly = np.array([int(need * options.last_mile) for need in services.needs])
        self._patterns: dict[tuple[int, int], Patterns] = {}
        self._places: dict[int, int] = {}
        counts = services.tables.counts
        # What a block of each type is worth to the jobs, then all of the type that a machine has.
        most = np.array([max(column) for column in zip(*counts, strict=True)]).reshape(-1, 1)
        self._worth = np.vstack([services.utility.T, services.utility.T * most])
        self._needs = np.array(services.needs, dtype=np.float64)
        costs = services.tables.costs
        self._costs = np.array([float(cost / min(costs)) for cost in costs])

    def top(
        self,
        jobs: Sequence[int],
        missing: Sequence[int] | NDArray[np.int64],
        *,
        keep: int,
        capped: bool = True,
    ) -> list[Filled]:
        """Return the machines of the highest scores, the best first.

        All ways to hand out blocks to these jobs are looked at.

        Parameters
        ----------
        jobs : sequence of int
            Few, each missing something.
        missing : sequence of n ints
            What jobs lack.
        keep : int
            How many machines.
        capped : bool, default True
            Whether what a machine gives a job counts up to what that is missing alone; in the last
            mile it does.

        Returns
        -------
        list of Filled
            Each gives something to one of the jobs.

        Examples
        --------
        >>> from cms import Configuration, Job, Problem
        >>> from algorithms.tables.integers import Tables
        >>> from algorithms.mig_serving.options import MigServingFastOptions
        >>> from algorithms.mig_serving.services import Services
        >>> jobs = [Job("x", 4, {"a": 1}), Job("y", 2, {"a": 1})]
        >>> services = Services.of(
        ...     Tables.of(Problem(configurations=Configuration({"a": 3}), jobs=jobs))
        ... )
        >>> candidates = Candidates(services, MigServingFastOptions())
        >>> [best] = candidates.top([0, 1], services.needs, keep=1)
        >>> best.blocks
        ((0, 0, 1), (0, 1, 2))
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
        """Choose the jobs for which a machine is worth most, whatever machine is opened.

        They are those for which one block of a type counts most, and all blocks of a type that a
        machine can have; types take turns.

        Parameters
        ----------
        missing : ndarray of int64, shape (n,)
        capped : bool
            As for :meth:`top`.

        Returns
        -------
        list of int
            Six jobs in order, or as many as the table of ways allows; fewer if fewer are missing
            something.
        """
        places = self.places(PLACES)
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

    def filled_up(
        self, shape: int, blocks: Sequence[tuple[int, int, int]], missing: Sequence[int]
    ) -> Filled:
        """Hand out the idle blocks of a machine one by one, each where it counts most.

        Not to more different jobs than may be mixed.

        Parameters
        ----------
        shape : int
        blocks : sequence of (block type, job, number)
            Those handed out already.
        missing : sequence of n ints
            What jobs lack, with these.
        """
        services, left = self._services, list(missing)
        held = {(i, j): count for i, j, count in blocks}
        free = list(services.tables.counts[shape])
        for i, _, count in blocks:
            free[i] -= count
        while True:
            best, pick = 0.0, None
            there = {j for _, j in held}
            for j, amount in enumerate(left):
                if j not in there and len(there) >= self._mixed:
                    continue
                for i, gives in enumerate(services.supply[j]):
                    if amount > 0 and free[i]:
                        worth = min(gives, amount) * amount / services.needs[j] ** 2
                        if worth > best:
                            best, pick = worth, (i, j)
            if pick is None:
                break
            i, j = pick
            held[pick] = held.get(pick, 0) + 1
            free[i] -= 1
            left[j] -= services.supply[j][i]
        return services.filled(shape, [(i, j, count) for (i, j), count in held.items()])

    def places(self, wanted: int) -> int:
        """Return how many jobs can be looked at together: so many, or fewer."""
        if wanted not in self._places:
            counts = self._services.tables.counts
            self._places[wanted] = fitting(counts, wanted, self._mixed + 1)
        return self._places[wanted]

    def _late(self, missing: Sequence[int] | NDArray[np.int64]) -> bool:
        """Whether this is the last mile."""
        return bool((np.asarray(missing) <= self._nearly).all())

    def _rows(self, places: int, mixed: int) -> Patterns:
        known = self._patterns.get((places, mixed))
        if known is None:
            known = patterns(self._services.tables.counts, places, mixed)
            self._patterns[places, mixed] = known
        return known
