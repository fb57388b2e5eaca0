"""The search of one narrow interval of cycles, job by job.

Jobs come by falling best term u - k * length, and of one kind one after the other. A partial mix is
given up where what it has and the best terms of the jobs to come are no more than (p - k) times its
cycle, which is at least the interval's begin and at least its lengths so far. Choices with a term
below 0 stay: the mix that is looked for may have some. Jobs of one kind are taken in order, and
later ones only with later choices: the other mixes differ from these by an exchange.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from .functions import Pick
from .relaxation import Cell

#: Jobs of a mix beyond which a search is given up: each is a call within the one before it.
_DEEPEST = 400


class Undecided(Exception):
    """The limit of nodes, or of jobs in a mix, was reached before the question was answered."""


class _OutOfEffort(Exception):
    """The effort allowed was spent."""


class Hunt(Protocol):
    """What is looked for, and where it is told."""

    target: int

    def count(self) -> None:
        """Count a node; Undecided where there are too many."""

    def meet(self, picks: tuple[Pick, ...]) -> None:
        """Evaluate a mix; it may raise the target."""


class _Term(NamedTuple):
    """A choice of a job: u - k * length, its length, and the longest cycle it allows."""

    value: int
    length: int
    longest: int
    pick: Pick


class Dive:
    """The search of one cell; offers of one kind may be exchanged."""

    def __init__(self, cell: Cell, kinds: list[int], most_jobs: int, hunt: Hunt) -> None:
        self._cell, self._hunt, self._most_jobs = cell, hunt, most_jobs
        terms = self._terms(cell)
        order = sorted(terms, key=lambda at: (-terms[at][0].value, kinds[at]))
        self._jobs = [terms[at] for at in order]
        #: The best terms of the first jobs together, by their number.
        self._sums = [0, *accumulate(max(0, job[0].value) for job in self._jobs)]
        self._kinds = [kinds[at] for at in order]
        longest = [max(term.length for term in job) for job in self._jobs]
        #: The longest choices of a job and all after it together.
        self._reach = [*accumulate(reversed(longest), initial=0)][::-1]
        #: Where the jobs of another kind begin.
        self._ends = [len(order)] * len(order)
        for at in reversed(range(len(order) - 1)):
            alike = self._kinds[at] == self._kinds[at + 1]
            self._ends[at] = self._ends[at + 1] if alike else at + 1

    @staticmethod
    def _terms(cell: Cell) -> dict[int, list[_Term]]:
        """Each job's choices, the best first; jobs without one that is admitted are left out."""
        reduced = (cell.paid - cell.k * cell.lengths).tolist()
        lengths, longest = cell.lengths.tolist(), cell.longest.tolist()
        terms: dict[int, list[_Term]] = {}
        for j, c in np.argwhere(cell.admitted()).tolist():
            term = _Term(reduced[j][c], lengths[j][c], longest[j][c], Pick(j, c))
            terms.setdefault(j, []).append(term)
        for own in terms.values():
            own.sort(key=lambda term: (-term.value, term.pick))
        return terms

    def run(self, effort: int) -> bool:
        """Search, up to `effort` partial mixes; whether that was all. It may raise Undecided."""
        self._left = effort
        try:
            self._visit(0, -1, 0, 0, 0, self._cell.hi, ())
        except _OutOfEffort:
            return False
        return True

    def _needed(self, cycle: int) -> int:
        """What the terms of a mix must exceed, if its cycle is at least so long."""
        return (self._hunt.target - self._cell.k) * max(self._cell.lo, cycle)

    def _visit(
        self,
        start: int,
        kind: int,
        rank: int,
        value: int,
        cycle: int,
        longest: int,
        picks: tuple[Pick, ...],
    ) -> None:
        """Search below a partial mix, with jobs from ``start`` on.

        Those of the kind of its last job have choices from ``rank`` on.
        """
        hunt = self._hunt
        hunt.count()
        self._left -= 1
        if self._left < 0:
            raise _OutOfEffort
        # Rounded down, its lengths fall short of the cycle by less than one each.
        if picks and value > self._needed(cycle) and cycle + len(picks) >= self._cell.lo:
            hunt.meet(picks)
        left = self._most_jobs - len(picks)
        if not left:
            return
        if len(picks) == _DEEPEST:
            raise Undecided
        at, sums, last = start, self._sums, len(self._jobs)
        # However long its other slots are, it does not reach the interval.
        while at < last and cycle + self._reach[at] + self._most_jobs >= self._cell.lo:
            needed = self._needed(cycle)
            if value + sums[min(last, at + left)] - sums[at] <= needed:
                return
            end, job = self._ends[at], self._jobs[at]
            for place in range(rank if self._kinds[at] == kind else 0, len(job)):
                term = job[place]
                worth, longer = value + term.value, cycle + term.length
                bound = worth + self._rest(at, end, left - 1, term.value)
                if bound <= needed:
                    break
                allowed = min(longest, term.longest)
                if longer <= allowed and bound > self._needed(longer):
                    more = (*picks, term.pick)
                    self._visit(at + 1, self._kinds[at], place, worth, longer, allowed, more)
            at = end

    def _rest(self, at: int, end: int, left: int, value: int) -> int:
        """Bound what jobs after ``at`` can add; those of its kind no more than it has itself."""
        sums, last = self._sums, len(self._jobs)
        plain = sums[min(last, at + 1 + left)] - sums[at + 1]
        alike = min(end - at - 1, left) * max(0, value)
        return min(plain, alike + sums[min(last, end + left)] - sums[end])
