"""Training: measured pairs in, a predictor with honest intervals out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ....errors import InvalidOption, InvalidProblem
from ....values.names import nearest
from ....values.numbers import shown
from ..profiles import Profiles
from ..weights import MeasuredPair
from .fitting import FITS
from .predictor import Predictor, Widths
from .residuals import (
    CALIBRATION,
    Samples,
    fit_both,
    half_width,
    held_out_pairs,
    samples_of,
    unseen,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODELS = tuple(FITS)
#: How many of the measured values intervals should cover.
LEVEL = 0.95
_FEWEST = 20


def train_predictor(
    pairs: Iterable[MeasuredPair],
    profiles: Profiles | None = None,
    *,
    model: str = "boosting",
    seed: int = 0,
) -> Predictor:
    """Train a predictor of offline throughputs and online slowdowns.

    One in five pairs of models is held out, on all devices, at all shares and in both orders, and
    the 95 % quantile of its errors is the half-width of the intervals (split conformal). For models
    that were not measured at all the half-width is the same quantile of errors where families of
    models, or models that have none, are held out one after the other, on one side.

    Parameters
    ----------
    pairs : iterable of MeasuredPair
    profiles : Profiles, optional
        What is known of the models; without them their names stand for them.
    model : {"boosting", "ridge", "mean", "mlp"}
        Gradient boosted trees; a linear model; a constant; a network of two layers of 64, the
        choice of the preset ``muxflow-assumed``.
    seed : int, default 0

    Returns
    -------
    Predictor
        The same for the same arguments.

    Raises
    ------
    InvalidOption
        If there is no such model.
    InvalidProblem
        If there are fewer than 20 measurements, or fewer than 5 pairs of models, or one is no
        measurement: a throughput above 1, a slowdown of 0.
    UnsupportedProblem
        If scikit-learn is needed, and not installed.

    Examples
    --------
    >>> from fractions import Fraction
    >>> names = [f"m{i}" for i in range(6)]
    >>> pairs = [
    ...     MeasuredPair(a, b, "a30", 50, Fraction(1 + i + j, 12), Fraction(12, 11 - j))
    ...     for i, a in enumerate(names)
    ...     for j, b in enumerate(names)
    ... ]
    >>> predictor = train_predictor(pairs, model="ridge")
    >>> predictor.kind, len(predictor.features)
    ('ridge', 12)
    """
    checked_model(model)
    samples = checked_samples(pairs, profiles or Profiles({}))
    throughput, speed = _other_widths(model, samples, seed)
    return _trained(model, samples, seed, throughput, speed)


def checked_model(model: str) -> None:
    """Refuse a model that is none.

    Raises
    ------
    InvalidOption
    """
    if model not in FITS:
        raise InvalidOption(
            f"model is {model!r}; expected one of {', '.join(MODELS)}{nearest(model, MODELS)}"
        )


def checked_samples(pairs: Iterable[MeasuredPair], profiles: Profiles) -> Samples:
    """Turn measured pairs into samples, if they are enough.

    Raises
    ------
    InvalidProblem
    """
    measured = tuple(pairs)
    if len(measured) < _FEWEST:
        raise InvalidProblem(
            f"{len(measured)} measurements are too few to train on; expected at least {_FEWEST}"
        )
    if len({tuple(sorted(pair[:2])) for pair in measured}) < CALIBRATION:
        raise InvalidProblem(
            "the measurements are of too few pairs of models to hold some out; expected at least "
            f"{CALIBRATION} different pairs"
        )
    for pair in measured:
        if pair.online_slowdown <= 0 or not 0 <= pair.offline_throughput <= 1:
            raise InvalidProblem(
                f"{pair.offline_model!r} beside {pair.online_model!r} has throughput "
                f"{shown(pair.offline_throughput)} and slowdown {shown(pair.online_slowdown)}; "
                "expected a throughput from 0 to 1 and a slowdown > 0"
            )
    return samples_of(measured, profiles)


def calibrated(
    model: str, samples: Samples, seed: int
) -> tuple[Predictor, NDArray[np.bool_]]:  # fmt: skip
    """Train with intervals for pairs of measured models alone, and say what was held out."""
    nothing = Widths(1.0, 1.0, 1.0)
    return _trained(model, samples, seed, nothing, nothing), _held_out(samples, seed)


def _held_out(samples: Samples, seed: int) -> NDArray[np.bool_]:
    parts = held_out_pairs(samples.places, CALIBRATION, np.random.default_rng(seed))
    return np.asarray(parts == 0)


def _trained(
    model: str, samples: Samples, seed: int, throughput: Widths, speed: Widths
) -> Predictor:
    held = _held_out(samples, seed)
    both = fit_both(model, samples.taken(~held), seed)
    parts, speeds = both.errors(samples.taken(held))
    shares = [place.share for place in samples.places]
    return Predictor(
        kind=model,
        seed=seed,
        level=LEVEL,
        features=both.features,
        throughput=both.throughput,
        speed=both.speed,
        throughput_widths=throughput._replace(pair=half_width(parts, LEVEL)),
        speed_widths=speed._replace(pair=half_width(speeds, LEVEL)),
        profiles=samples.profiles,
        online=tuple(sorted({place.online_model for place in samples.places})),
        offline=tuple(sorted({place.offline_model for place in samples.places})),
        devices=tuple(sorted({place.device for place in samples.places})),
        shares=(min(shares), max(shares)),
    )


def _other_widths(model: str, samples: Samples, seed: int) -> tuple[Widths, Widths]:
    """Return half-widths where one of the two models was not measured at all.

    The victim of a throughput is the offline model, the victim of a slowdown the online one.
    """
    found = {}
    for side in ("online", "offline"):
        errors = [each[1:] for each in unseen(model, samples, side, seed)]
        found[side] = [
            half_width(np.concatenate([each[at] for each in errors]), LEVEL) if errors else 1.0
            for at in (0, 1)
        ]
    return (
        Widths(1.0, victim=found["offline"][0], aggressor=found["online"][0]),
        Widths(1.0, victim=found["online"][1], aggressor=found["offline"][1]),
    )
