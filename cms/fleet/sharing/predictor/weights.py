"""Weights by prediction: what a workload would do there, and where it must not be."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from ....errors import InvalidOption, InvalidProblem
from ....values.names import nearest
from ..classes import FULL_WEIGHT, OfflineClass, OnlineClass, sm_share
from ..profiles import Profiles
from .features import Place
from .predictor import Predictor

#: What is compared with an online side's limit: the upper end of its interval, or what is expected.
LIMITS_BY = ("upper", "expected")


class PredictedPair(NamedTuple):
    """What is predicted of a workload beside an online side."""

    #: As a part of what the workload does alone; the ends of its interval.
    throughput: float
    throughput_low: float
    throughput_high: float
    #: Of the online side, and the upper end of its interval; infinite if that has none.
    slowdown: float
    slowdown_high: float


class PredictedWeights:
    """Weights by a predictor, which forbid what may be too slow.

    A workload counts for its predicted throughput at the share that is left on the GPU (or the
    lower end of its interval), times its priority, rounded down. A pair is forbidden if the online
    side has a limit and the slowdown that is held against it is above it: by "upper" the upper end
    of its interval, so that few pairs are too slow, and wide intervals forbid many that are not;
    "expected" is for GPUs that are watched, where a monitor takes workloads away from an online
    side that is too slow. A device that was not trained on, or a model of which nothing is known,
    is refused; profiles are of models that the predictor was not trained on. Margin and lowest
    share are the problem's.
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        margin: int = 10,
        lowest_share: int = 5,
        lower_end: bool = False,
        limit_by: str = "upper",
        profiles: Profiles | None = None,
    ) -> None:
        if limit_by not in LIMITS_BY:
            raise InvalidOption(
                f"limit_by is {limit_by!r}{nearest(limit_by, LIMITS_BY)}; expected "
                f"{' or '.join(LIMITS_BY)}"
            )
        self.predictor = predictor
        self.lower_end, self.limit_by = lower_end, limit_by
        self._profiles = profiles
        # One share for all where the predictor does not heed it.
        heeded = any(feature[:2] == ("pair", "share") for feature in predictor.features)
        self._share = cache(
            lambda activity: (
                sm_share(activity, margin, lowest_share) if heeded else predictor.shares[0]
            )
        )
        self._known: dict[Place, PredictedPair] = {}

    def __call__(self, online: OnlineClass, offline: OfflineClass) -> int | None:
        """Return a weight; None if the pair is forbidden."""
        pair = self.pair(online, offline)
        limit = online.slowdown_limit
        if limit is not None and self.compared(pair) > limit:
            return None
        part = Fraction(pair.throughput_low if self.lower_end else pair.throughput)
        return int(FULL_WEIGHT * part * offline.priority)

    def compared(self, pair: PredictedPair) -> float:
        """Return what of a pair is held against the limit of the online side."""
        return pair.slowdown_high if self.limit_by == "upper" else pair.slowdown

    def why(self, online: OnlineClass, offline: OfflineClass) -> str:
        """Say why a pair is forbidden, if the prediction forbids it; an empty text if not."""
        if self(online, offline) is not None:
            return ""
        limit, pair = online.slowdown_limit, self.pair(online, offline)
        if limit is not None and pair.slowdown > limit:
            return "expected to be slowed down beyond the limit"
        return "beyond the limit at the upper end of what is predicted"

    def pair(self, online: OnlineClass, offline: OfflineClass) -> PredictedPair:
        """Return what is predicted of two classes.

        With a pair the same place is predicted beside all workloads trained on: one call for a
        hundred pairs costs little more than for one.
        """
        place = Place(online.model, offline.model, online.device, self._share(online.sm_activity))
        if place not in self._known:
            try:
                self._note([place])
            except InvalidProblem as fault:
                raise InvalidProblem(
                    f"{offline.name!r} beside online class {online.name!r}: {fault}"
                ) from None
            others = (place._replace(offline_model=model) for model in self.predictor.offline)
            self._note([each for each in others if each not in self._known])
        return self._known[place]

    def _note(self, places: Sequence[Place]) -> None:
        if any(not place.online_model for place in places):
            raise InvalidProblem(
                "the online side has no model; expected one, in the column 'model' of its table"
            )
        told = self.predictor.predict(places, self._profiles)
        for place, *parts, speed, speed_low in zip(places, *told, strict=True):
            slowdowns = (1 / float(s) if s > 0 else float("inf") for s in (speed, speed_low))
            self._known[place] = PredictedPair(*map(float, parts), *slowdowns)
