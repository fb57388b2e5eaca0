"""The referee of problems in shards."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ..referee.machines import JobReferee
from ..schedule.faults import Violation
from .schedule import ShardedSchedule, sharded_faults


class ShardedReferee(JobReferee):
    """Judges what is claimed about a :class:`ShardedProblem`, shard by shard."""

    schedules: Any = ShardedSchedule
    problem: Any

    def faults(self, schedule: Any) -> Iterator[Violation]:
        """Iterate over what is wrong with the machines, and with what their blocks give."""
        return sharded_faults(self.problem, schedule)

    def cost(self, schedule: Any) -> Fraction:
        """Return what all machines cost."""
        return schedule.cost(self.problem)  # type: ignore[no-any-return]
