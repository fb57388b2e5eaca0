"""A trained predictor: two models, what they were trained on, and how far off they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....errors import InvalidProblem
from ....values.names import nearest
from ..profiles import Profiles
from .features import Feature, Place, encoded
from .models import Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What a pair can be, to the table that a predictor was trained on.
SITUATIONS = ("pair", "victim", "aggressor")


class Widths(NamedTuple):
    """Half the width of the intervals, by situation.

    Attributes
    ----------
    pair : float
        Both models were measured, beside others.
    victim, aggressor : float
        The one that is slowed, or the one that slows it, was not measured at all.
    """

    pair: float
    victim: float
    aggressor: float


class Prediction(NamedTuple):
    """What is predicted of pairs, each an array with an entry a pair.

    Attributes
    ----------
    throughput, throughput_low, throughput_high : numpy.ndarray
        Of the offline side, as a part of what it does alone; the ends of the interval.
    speed, speed_low : numpy.ndarray
        Of the online side, the inverse of its slowdown, and the interval's lower end.
    """

    throughput: NDArray[np.float64]
    throughput_low: NDArray[np.float64]
    throughput_high: NDArray[np.float64]
    speed: NDArray[np.float64]
    speed_low: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Predicts what an offline workload does beside an online service, and what it does to that.

    Parameters
    ----------
    kind : str
        One of :data:`cms.fleet.sharing.predictor.MODELS`.
    seed : int
    level : float
        How many of the measured values the intervals should cover.
    features : tuple of Feature
    throughput, speed : Model
        Of the offline throughput, and of the inverse of the online slowdown.
    throughput_widths, speed_widths : Widths
    profiles : Profiles
        Of the models trained on.
    online, offline, devices : tuple of str
        The models and devices trained on.
    shares : tuple of int
        The least and the largest share trained on.
    """

    kind: str
    seed: int
    level: float
    features: tuple[Feature, ...]
    throughput: Model
    speed: Model
    throughput_widths: Widths
    speed_widths: Widths
    profiles: Profiles
    online: tuple[str, ...]
    offline: tuple[str, ...]
    devices: tuple[str, ...]
    shares: tuple[int, int]

    def predict(self, places: Sequence[Place], profiles: Profiles | None = None) -> Prediction:
        """Predict pairs.

        Parameters
        ----------
        places : sequence of Place
        profiles : Profiles, optional
            Of models that were not trained on; they come before those trained on.

        Returns
        -------
        Prediction
            All between 0 and 1. Of two models that were both not trained on nothing is known: their
            intervals reach from 0 to 1.

        Raises
        ------
        InvalidProblem
            If a device was not trained on, or nothing is known of a model.
        """
        known = self.profiles if profiles is None else self.profiles.joined(profiles)
        online, offline = set(self.online), set(self.offline)
        unseen = np.zeros((len(places), 2), dtype=np.bool_)
        for at, place in enumerate(places):
            if place.device not in self.devices:
                raise InvalidProblem(
                    f"the predictor knows nothing of device {place.device!r}"
                    f"{nearest(place.device, self.devices)}; it was trained on "
                    f"{', '.join(map(repr, self.devices))}"
                )
            for side, (model, seen) in enumerate(
                ((place.online_model, online), (place.offline_model, offline))
            ):
                unseen[at, side] = model not in seen
                if unseen[at, side] and known.of(model, place.device) is None:
                    which = ("online", "offline")[side]
                    raise InvalidProblem(
                        f"the predictor knows nothing of {which} model {model!r} on "
                        f"{place.device!r}{nearest(model, sorted(seen))}; measure it beside others "
                        "and train again, or give its profile"
                    )
        table = encoded(places, self.features, known)
        throughput, speed = (
            self._computed(model, table) for model in (self.throughput, self.speed)
        )
        around = _widths(self.throughput_widths, unseen[:, 1], unseen[:, 0])
        below = _widths(self.speed_widths, unseen[:, 0], unseen[:, 1])
        return Prediction(
            throughput, np.clip(throughput - around, 0.0, 1.0),
            np.clip(throughput + around, 0.0, 1.0), speed, np.clip(speed - below, 0.0, 1.0),
        )  # fmt: skip

    @staticmethod
    def _computed(model: Model, table: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            found = model.predict(table)
        if not np.isfinite(found).all():
            raise InvalidProblem(
                "the predictor's numbers, or those of profiles, are too large to compute with; "
                "expected what 'cms predictor train' writes"
            )
        return np.clip(found, 0.0, 1.0)


def _widths(
    widths: Widths, victim: NDArray[np.bool_], aggressor: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the half-width for each pair, by whether its victim and its aggressor are unseen."""
    one = np.where(victim, widths.victim, np.where(aggressor, widths.aggressor, widths.pair))
    return np.where(victim & aggressor, 1.0, one)
