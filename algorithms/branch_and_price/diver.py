"""Schedules by diving: jobs decide one by one, then machines, and what is left is priced anew.

The linear program behind the best prices mixes options of jobs and contents of machines. What it
has whole jobs and machines of is kept, or else the option or the content it has most of; it is
solved again for what is left, with options and contents priced for that. First the jobs decide, so
that what they all take stays near what the bound is made of; then the machines for these blocks,
which is cutting stock. A dive that does not end well is followed by others that once or twice took
the second best (limited discrepancy search; Sadykov, Vanderbeck, Pessoa, Tahiri, Uchoa 2019, DOI
10.1287/ijoc.2018.0822).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from .dive import MOST_IN_FLOATS, Dive, Dived

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from cms.plugin.algorithm import Budget

    from ..prices.region import Region, Row
    from ..prices.sharded_jobs import AnyJobs
    from .covers import Covered
    from .dive import LookedFor
    from .undecided import Undecided

#: At which steps dives take the second best: at none, at each of the first, at each two of these.
_DEPTH = 12
_DISCREPANCIES = sorted(
    ((), *((at,) for at in range(_DEPTH)), *combinations(range(_DEPTH), 2)),
    key=lambda steps: (len(steps), sum(steps)),
)
#: More undecided kinds of jobs are rounded instead.
MOST_UNDECIDED = 2_000


class Diver:
    """Dives of one problem; the contents that it comes across are kept."""

    def __init__(self, jobs: AnyJobs, region: Region, budget: Budget) -> None:
        self._jobs, self._region, self._budget = jobs, region, budget
        self._rows: dict[Row, None] = {}
        self.used: dict[Row, None] = {}
        # How often the last dive chose: a dive that takes the second best later on is the same.
        self._choices = _DEPTH
        # Machines of each limited type that deciding jobs leave alone, until there is a schedule:
        # what is to be packed may need them.
        self._spare = 0
        # What was left to do in some dive, and what a look through all machines for that found.
        self._looked_at: dict[LookedFor, Covered] = {}

    def dives(
        self, start: Undecided, target: Fraction, below: Fraction | None, which: slice
    ) -> Iterator[Dived]:
        """Yield cheaper and cheaper schedules."""
        if start.most_blocks(self._jobs.weights) > MOST_IN_FLOATS:
            return
        self._rows.update(dict.fromkeys(row for row in self._region.rows if any(row.counts)))
        for skips in _DISCREPANCIES[which]:
            if self._budget.stopped:
                return
            if skips and skips[-1] >= self._choices:
                continue
            spare = self._spare if below is None else 0
            given = self._jobs, self._region, self._rows, start, self._budget
            dive = Dive(*given, spare, self._looked_at)
            found = dive.run(frozenset(skips), below, target if skips else None)
            if dive.short:
                self._spare = max(1, 2 * self._spare)
            if found is not None:
                self._choices = dive.steps
                below = found.cost
                self.used.update(dict.fromkeys(found.machines))
                yield found
            if dive.least is None or dive.least > target:
                return  # what is decided needs more than that, however machines are cut
            if below is not None and below <= target:
                return
