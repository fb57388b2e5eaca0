"""Problems whose jobs need not fit into memory: shards, engines that go through them, and counts.

Imports ``referee`` and what stands before it.
"""

from ..referee.kinds import referee_of
from .problem import ShardedProblem
from .schedule import ShardedReferee

referee_of.register(ShardedProblem, ShardedReferee)
