"""Problems whose jobs need not fit into memory: shards, engines that go through them, and counts.

Imports ``checker`` and what stands before it.
"""

from ..checker.kinds import checker_for
from .problem import ShardedProblem
from .schedule import ShardedChecker

checker_for.register(ShardedProblem, ShardedChecker)
