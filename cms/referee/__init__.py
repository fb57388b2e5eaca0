"""Who judges what is claimed about a problem: a referee for each kind of problem, and ``check``.

Imports ``certificate`` and what stands before it.
"""

from ..problem.problem import Problem
from .kinds import referee_of
from .machines import JobReferee

referee_of.register(Problem, JobReferee)
