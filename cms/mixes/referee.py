"""The referee of problems whose blocks are shared in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..referee.kinds import First
from ..referee.machines import JobReferee, MachineReferee
from ..schedule.faults import Violation
from .check import mix_faults
from .problem import TimeSharedProblem

if TYPE_CHECKING:
    from ..schedule.columns import Columns


class MixReferee(MachineReferee[TimeSharedProblem]):
    """Judges what is claimed about a :class:`cms.TimeSharedProblem`: every block serves a mix."""

    def content_faults(self, columns: Columns) -> Iterator[Violation]:
        """Iterate over mixes that break a rule, and over jobs whose demand is not met."""
        return mix_faults(self.problem, columns)

    def first(self) -> First:
        """Return prices of 0, or of blocks no machine can have where they show a job is lost.

        A job is lost under sharing if it is without: what is admitted in some mix is alone.
        """
        return JobReferee(self.problem.unshared()).first()
