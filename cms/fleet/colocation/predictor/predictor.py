"""A trained predictor, its errors, and weights by its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from ....errors import InvalidOption, InvalidProblem
from ....values.names import nearest
from ..problem import FULL_WEIGHT, OfflineClass, OnlineClass, sm_share
from ..weights import Profiles
from .models import SIDES, Bools, Feature, Floats, Model, Place, encode


class Widths(NamedTuple):
    """Half the width of the intervals, by situation."""

    pair: float  #: Both models were measured, beside others
    #: The one that is slowed, or the one that slows it, was not measured at all
    victim: float
    aggressor: float


class Prediction(NamedTuple):
    """Predictions of pairs, each an array with an entry a pair."""

    #: Of the offline side, as a part of its throughput alone; the ends of the interval.
    throughput: Floats
    throughput_low: Floats
    throughput_high: Floats
    #: Of the online side, the inverse of its slowdown, and the interval's lower end
    speed: Floats
    speed_low: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Predicts offline throughputs and online slowdowns of pairs."""

    kind: str  #: One of :data:`cms.fleet.colocation.predictor.MODELS`.
    seed: int
    level: float  #: The part of the measured values that the intervals should cover
    features: tuple[Feature, ...]
    #: Of the offline throughput, and of the inverse of the online slowdown
    throughput: Model
    speed: Model
    throughput_widths: Widths
    speed_widths: Widths
    profiles: Profiles  #: Of the models trained on
    #: The models and devices trained on
    online: tuple[str, ...]
    offline: tuple[str, ...]
    devices: tuple[str, ...]
    shares: tuple[int, int]  #: The least and the largest share trained on

    def predict(self, places: Sequence[Place], profiles: Profiles | None = None) -> Prediction:
        """Predict pairs: all numbers are between 0 and 1.

        Profiles of models that were not trained on replace those trained on. If neither model was
        trained on, the intervals reach from 0 to 1. A device, or a model without a profile, that
        was not trained on is refused.
        """
        known = self.profiles if profiles is None else self.profiles.joined(profiles)
        unseen = np.array([self._find_unseen(place, known) for place in places], dtype=np.bool_)
        unseen = unseen.reshape(-1, 2)
        table = encode(places, self.features, known)
        throughput, speed = (_compute(model, table) for model in (self.throughput, self.speed))
        around = _widths(self.throughput_widths, unseen[:, 1], unseen[:, 0])
        below = _widths(self.speed_widths, unseen[:, 0], unseen[:, 1])
        return Prediction(
            throughput, np.clip(throughput - around, 0.0, 1.0),
            np.clip(throughput + around, 0.0, 1.0), speed, np.clip(speed - below, 0.0, 1.0),
        )  # fmt: skip

    def _find_unseen(self, place: Place, known: Profiles) -> list[bool]:
        """Say which of both models were not trained on; refuse what nothing is known of."""
        if place.device not in self.devices:
            said = f"the predictor knows nothing of device {place.device!r}"
            own, near = ", ".join(map(repr, self.devices)), nearest(place.device, self.devices)
            raise InvalidProblem(f"{said}{near}; it was trained on {own}")
        trained, unseen = (self.online, self.offline), list[bool]()
        for side, model, models in zip(SIDES, place[:2], trained, strict=True):
            unseen.append(model not in models)
            if unseen[-1] and known.of(model, place.device) is None:
                said = f"the predictor knows nothing of {side} model {model!r} on {place.device!r}"
                fix = "measure it beside others and train again, or give its profile"
                raise InvalidProblem(f"{said}{nearest(model, sorted(models))}; {fix}")
        return unseen


def _compute(model: Model, table: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.predict(table)
    if not np.isfinite(found).all():
        said = "the predictor's numbers, or those of profiles, are too large to compute with"
        raise InvalidProblem(f"{said}; expected what 'cms colocate train' writes")
    return np.clip(found, 0.0, 1.0)


def _widths(widths: Widths, victim: Bools, aggressor: Bools) -> Floats:
    one = np.where(victim, widths.victim, np.where(aggressor, widths.aggressor, widths.pair))
    return np.where(victim & aggressor, 1.0, one)


#: The slowdown that is compared with a limit: the upper end of its interval, or the expected one.
LIMITS_BY = ("upper", "expected")


class PredictedPair(NamedTuple):
    """Predictions of a workload beside an online side."""

    #: As a part of the workload's throughput alone; the ends of its interval.
    throughput: float
    throughput_low: float
    throughput_high: float
    #: Of the online side, and the upper end of its interval; infinite if that has none.
    slowdown: float
    slowdown_high: float


class PredictedWeights:
    """Weights by a predictor, which forbid pairs that may be too slow.

    A workload counts for its predicted throughput at the share that is left on the GPU (or the
    lower end of its interval), times its priority, rounded down. A pair is forbidden if the online
    side has a limit and the slowdown that is compared with it is above it. With "upper" that is the
    upper end of its interval: few pairs are too slow, and wide intervals forbid many that are not.
    "expected" is for GPUs whose monitor evicts workloads where the online side is too slow. A
    device that was not trained on, or an unknown model, is refused; profiles are of models that the
    predictor was not trained on. Margin and lowest share are the problem's.
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
            said = f"limit_by is {limit_by!r}{nearest(limit_by, LIMITS_BY)}"
            raise InvalidOption(f"{said}; expected {' or '.join(LIMITS_BY)}")
        self.predictor = predictor
        self.lower_end, self.limit_by = lower_end, limit_by
        self._profiles = profiles
        self._share = cache(partial(sm_share, margin=margin, lowest=lowest_share))
        if not any(feature[:2] == ("pair", "share") for feature in predictor.features):
            self._share = cache(lambda activity: predictor.shares[0])  # it heeds no share
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
        """Return the slowdown that is compared with the limit of the online side."""
        return pair.slowdown_high if self.limit_by == "upper" else pair.slowdown

    def why(self, online: OnlineClass, offline: OfflineClass) -> str:
        """Return why the prediction forbids a pair; empty if it does not."""
        if self(online, offline) is not None:
            return ""
        limit, pair = online.slowdown_limit, self.pair(online, offline)
        if limit is not None and pair.slowdown > limit:
            return "expected to be slowed down beyond the limit"
        return "beyond the limit at the upper end of its interval"

    def pair(self, online: OnlineClass, offline: OfflineClass) -> PredictedPair:
        """Return the predictions of two classes.

        All workloads trained on are predicted with it: a hundred pairs cost little more than one.
        """
        place = Place(online.model, offline.model, online.device, self._share(online.sm_activity))
        if place not in self._known:
            said = "the online side has no model; expected one, in the column 'model' of its table"
            others = (place._replace(offline_model=model) for model in self.predictor.offline)
            places = [place, *others]
            try:
                if not online.model:
                    raise InvalidProblem(said)
                told = self.predictor.predict(places, self._profiles)
            except InvalidProblem as fault:
                said = f"{offline.name!r} beside online class {online.name!r}: {fault}"
                raise InvalidProblem(said) from None
            for each, *parts, speed, low in zip(places, *told, strict=True):
                slowdowns = (1 / float(s) if s > 0 else float("inf") for s in (speed, low))
                self._known[each] = PredictedPair(*map(float, parts), *slowdowns)
        return self._known[place]
