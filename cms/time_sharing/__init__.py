"""Problems whose blocks several jobs share in time: data, cycles, check and proofs."""

from ..checker.kinds import checker_for
from .checker import MixChecker
from .problem import TimeSharedProblem

checker_for.register(TimeSharedProblem, MixChecker)
