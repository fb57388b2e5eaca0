"""Which measurements are held out together, and how far off a model is on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..profiles import Profiles
from ..weights import MeasuredPair
from .features import Feature, Place, encoded, features_of
from .fitting import fitted
from .models import Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Of the pairs a predictor is trained with, one in so many is held out for its intervals.
CALIBRATION = 5
_FOLDS = 8
FAMILY = "family"


class Samples(NamedTuple):
    """Measurements as a model takes them.

    Attributes
    ----------
    places : tuple of Place
    throughput, speed : numpy.ndarray
        The targets: offline throughput, and the inverse of the online slowdown, at most 1.
    profiles : Profiles
    """

    places: tuple[Place, ...]
    throughput: NDArray[np.float64]
    speed: NDArray[np.float64]
    profiles: Profiles

    def taken(self, chosen: NDArray[np.bool_]) -> Samples:
        """Return some of the samples."""
        places = tuple(place for place, take in zip(self.places, chosen, strict=True) if take)
        return Samples(places, self.throughput[chosen], self.speed[chosen], self.profiles)


def samples_of(pairs: Sequence[MeasuredPair], profiles: Profiles) -> Samples:
    """Turn measured pairs into samples."""
    return Samples(
        tuple(Place(*pair[:4]) for pair in pairs),
        np.array([float(pair.offline_throughput) for pair in pairs]),
        np.array([float(min(Fraction(1), 1 / pair.online_slowdown)) for pair in pairs]),
        profiles,
    )


class Pairwise(NamedTuple):
    """Both models, fitted on the same samples."""

    features: tuple[Feature, ...]
    throughput: Model
    speed: Model

    def errors(self, samples: Samples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what is predicted too high, of throughputs and of speeds."""
        table = encoded(samples.places, self.features, samples.profiles)
        return (
            np.clip(self.throughput.predict(table), 0.0, 1.0) - samples.throughput,
            np.clip(self.speed.predict(table), 0.0, 1.0) - samples.speed,
        )


def fit_both(kind: str, samples: Samples, seed: int) -> Pairwise:
    """Fit both models."""
    features = features_of(samples.places, samples.profiles)
    table = encoded(samples.places, features, samples.profiles)
    return Pairwise(
        features,
        fitted(kind, table, samples.throughput, seed),
        fitted(kind, table, samples.speed, seed),
    )


def two_of(place: Place) -> tuple[str, str]:
    """Return what stands for a pair on all devices, at all shares and in both orders."""
    first, second = sorted(place[:2])
    return first, second


def held_out_pairs(
    places: Sequence[Place], parts: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return the part of each sample, all samples of two models being in one part.

    A pair that was measured on another device, at another share or in the other order is not
    unseen.
    """
    names = sorted({two_of(place) for place in places})
    numbers = dict(zip(names, generator.permutation(len(names)) % parts, strict=True))
    return np.array([numbers[two_of(place)] for place in places], dtype=np.int64)


def groups(places: Sequence[Place], side: str, profiles: Profiles) -> list[str]:
    """Return of each sample the family of the model on one side, or its name if it has none."""
    found = []
    for place in places:
        model = place.online_model if side == "online" else place.offline_model
        family = (profiles.of(model, place.device) or {}).get(FAMILY)
        found.append(family if isinstance(family, str) else model)
    return found


def folds_of(names: Sequence[str], generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each sample, all samples of a group being in one; at most 8 folds."""
    known = sorted(set(names))
    order = generator.permutation(len(known))
    numbers = {known[group]: at % min(_FOLDS, len(known)) for at, group in enumerate(order)}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def unseen(
    kind: str, samples: Samples, side: str, seed: int
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield, fold by fold, samples whose model on one side was held out, and the errors there.

    Held out is its whole family, where profiles have one, on that side.
    """
    names = groups(samples.places, side, samples.profiles)
    folds = folds_of(names, np.random.default_rng(seed))
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        if test.all():
            return
        model = fit_both(kind, samples.taken(~test), seed)
        yield test, *model.errors(samples.taken(test))


def half_width(errors: NDArray[np.float64], level: float) -> float:
    """Return half the width of a split conformal interval by held-out errors.

    It is the k-th smallest of the n absolute errors, k = ⌈level (n + 1)⌉, and 1, which says
    nothing, if k > n. An interval of that width holds the value of a further sample with a
    probability of at least the level, if samples are exchangeable.

    References
    ----------
    H. Papadopoulos et al., Inductive Confidence Machines for Regression, ECML 2002.

    Examples
    --------
    >>> errors = np.arange(1, 20) / 100
    >>> half_width(errors, 0.9), half_width(errors[:8], 0.9)
    (0.18, 1.0)
    """
    place = math.ceil(level * (len(errors) + 1))
    if place > len(errors):
        return 1.0
    return min(1.0, float(np.sort(np.abs(errors))[place - 1]))
