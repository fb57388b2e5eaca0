"""A trained predictor: two models, what they were trained on, and how far off they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....errors import InvalidProblem
from ....values.names import nearest
from ..profiles import Profiles
from .features import SIDES, Feature, Place, encoded
from .models import Model

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Widths(NamedTuple):
    """Half the width of the intervals, by situation."""

    pair: float  #: Both models were measured, beside others
    #: The one that is slowed, or the one that slows it, was not measured at all
    victim: float
    aggressor: float


class Prediction(NamedTuple):
    """What is predicted of pairs, each an array with an entry a pair."""

    #: Of the offline side, as a part of what it does alone; the ends of the interval.
    throughput: NDArray[np.float64]
    throughput_low: NDArray[np.float64]
    throughput_high: NDArray[np.float64]
    #: Of the online side, the inverse of its slowdown, and the interval's lower end
    speed: NDArray[np.float64]
    speed_low: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Predicts what an offline workload does beside an online service, and what it does to that."""

    kind: str  #: One of :data:`cms.fleet.sharing.predictor.MODELS`.
    seed: int
    level: float  #: How many of the measured values the intervals should cover
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

        Profiles are of models that were not trained on, and come before those trained on. Of two
        models that were both not trained on nothing is known: their intervals reach from 0 to 1. A
        device, or a model without a profile, that was not trained on is refused.
        """
        known = self.profiles if profiles is None else self.profiles.joined(profiles)
        trained = set(self.online), set(self.offline)
        unseen = np.array(
            [[m not in seen for m, seen in zip(p[:2], trained, strict=True)] for p in places],
            dtype=np.bool_,
        ).reshape(-1, 2)  # fmt: skip
        for place, new in zip(places, unseen, strict=True):
            self._refuse_unknown(place, new, known)
        table = encoded(places, self.features, known)
        throughput, speed = (_computed(model, table) for model in (self.throughput, self.speed))
        around = _widths(self.throughput_widths, unseen[:, 1], unseen[:, 0])
        below = _widths(self.speed_widths, unseen[:, 0], unseen[:, 1])
        return Prediction(
            throughput, np.clip(throughput - around, 0.0, 1.0),
            np.clip(throughput + around, 0.0, 1.0), speed, np.clip(speed - below, 0.0, 1.0),
        )  # fmt: skip

    def _refuse_unknown(self, place: Place, unseen: NDArray[np.bool_], known: Profiles) -> None:
        if place.device not in self.devices:
            raise InvalidProblem(
                f"the predictor knows nothing of device {place.device!r}"
                f"{nearest(place.device, self.devices)}; it was trained on "
                f"{', '.join(map(repr, self.devices))}"
            )
        trained = self.online, self.offline
        for side, model, models, new in zip(SIDES, place[:2], trained, unseen, strict=True):
            if new and known.of(model, place.device) is None:
                raise InvalidProblem(
                    f"the predictor knows nothing of {side} model {model!r} on "
                    f"{place.device!r}{nearest(model, sorted(models))}; measure it beside others "
                    "and train again, or give its profile"
                )


def _computed(model: Model, table: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.predict(table)
    if not np.isfinite(found).all():
        raise InvalidProblem(
            "the predictor's numbers, or those of profiles, are too large to compute with; "
            "expected what 'cms colocate train' writes"
        )
    return np.clip(found, 0.0, 1.0)


def _widths(
    widths: Widths, victim: NDArray[np.bool_], aggressor: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the half-width for each pair, by whether its victim and its aggressor are unseen."""
    one = np.where(victim, widths.victim, np.where(aggressor, widths.aggressor, widths.pair))
    return np.where(victim & aggressor, 1.0, one)
