"""Problems whose blocks several jobs share in time: data, frames, check and proofs."""

from ..referee.kinds import referee_of
from .problem import TimeSharedProblem
from .referee import MixReferee

referee_of.register(TimeSharedProblem, MixReferee)
