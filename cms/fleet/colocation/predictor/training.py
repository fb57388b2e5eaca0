"""Training: measured pairs in, a predictor with honest intervals out; and how good its kind is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np

from ....errors import InvalidOption, InvalidProblem
from ....values.names import nearest
from ....values.numbers import shown
from ..weights import MeasuredPair, Profiles
from .models import FITS, Bools, Feature, Floats, Ints, Model, Place, encode, features_of, fit
from .predictor import Predictor, Widths

#: Which samples were held out, and the errors of throughputs and of speeds.
_Errors: TypeAlias = tuple[Bools, Floats, Floats]
#: Which samples were held out, their errors, and the half-width of their intervals.
_Tried: TypeAlias = tuple[Bools, Floats, float]


MODELS = tuple(FITS)
#: The part of the measured values that intervals should cover
LEVEL = 0.95
_FEWEST = 20
#: Of the pairs a predictor is trained with, one in 5 is held out for its intervals.
CALIBRATION = 5
#: The most folds of models, and the folds of pairs, that are held out in turn
_FOLDS, _PARTS = 8, 5
_OPEN = Widths(1.0, 1.0, 1.0)


class Samples(NamedTuple):
    """Measurements as a model takes them."""

    places: tuple[Place, ...]
    #: The targets: offline throughput, and the inverse of the online slowdown, at most 1.
    throughput: Floats
    speed: Floats
    profiles: Profiles

    def taken(self, chosen: Bools) -> Samples:
        """Return some of the samples."""
        places = tuple(compress(self.places, chosen))
        return Samples(places, self.throughput[chosen], self.speed[chosen], self.profiles)


class Pairwise(NamedTuple):
    """Both models, fitted on the same samples."""

    features: tuple[Feature, ...]
    throughput: Model
    speed: Model

    def errors(self, samples: Samples) -> tuple[Floats, Floats]:
        """Return the errors of throughputs and of speeds."""
        table = encode(samples.places, self.features, samples.profiles)
        return (
            np.clip(self.throughput.predict(table), 0.0, 1.0) - samples.throughput,
            np.clip(self.speed.predict(table), 0.0, 1.0) - samples.speed,
        )


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

    There must be at least 20 pairs, of at least 5 pairs of models. Without profiles names stand for
    the models. A model is gradient boosted trees, a linear one (ridge), a constant (mean), or a
    network of two layers of 64 (mlp), the choice of the preset ``muxflow-assumed``; the first and
    last need scikit-learn. The same arguments give the same predictor.
    """
    samples = checked_samples(pairs, profiles, model)
    widths = []
    for side in ("online", "offline"):
        errors = [each[1:] for each in hold_out(model, samples, side, seed)]
        joined = map(np.concatenate, zip(*errors, strict=True)) if errors else (np.empty(0),) * 2
        widths.append([half_width(each) for each in joined])
    # The victim of a throughput is the offline model, the victim of a slowdown the online one.
    online, offline = widths
    throughput = Widths(1.0, victim=offline[0], aggressor=online[0])
    speed = Widths(1.0, victim=online[1], aggressor=offline[1])
    return calibrate(model, samples, seed, throughput, speed)


def checked_samples(
    pairs: Iterable[MeasuredPair], profiles: Profiles | None, model: str
) -> Samples:
    """Turn measured pairs into samples; refuse too few, and an unknown model."""
    if model not in FITS:
        said = f"model is {model!r}; expected one of {', '.join(MODELS)}{nearest(model, MODELS)}"
        raise InvalidOption(said)
    measured = tuple(pairs)
    if len(measured) < _FEWEST:
        said = f"{len(measured)} measurements are too few to train on; expected at least {_FEWEST}"
        raise InvalidProblem(said)
    if len({tuple(sorted(pair[:2])) for pair in measured}) < CALIBRATION:
        said = "the measurements are of too few pairs of models to hold some out"
        raise InvalidProblem(f"{said}; expected at least {CALIBRATION} different pairs")
    for pair in measured:
        if pair.online_slowdown <= 0 or not 0 <= pair.offline_throughput <= 1:
            raise InvalidProblem(
                f"{pair.offline_model!r} beside {pair.online_model!r} has throughput "
                f"{shown(pair.offline_throughput)} and slowdown {shown(pair.online_slowdown)}; "
                "expected a throughput from 0 to 1 and a slowdown > 0"
            )
    return samples_of(measured, profiles or Profiles({}))


def samples_of(pairs: Sequence[MeasuredPair], profiles: Profiles) -> Samples:
    """Turn measured pairs into samples."""
    throughputs = np.array([float(pair.offline_throughput) for pair in pairs])
    speeds = np.array([float(min(Fraction(1), 1 / pair.online_slowdown)) for pair in pairs])
    return Samples(tuple(Place(*pair[:4]) for pair in pairs), throughputs, speeds, profiles)


def fit_both(kind: str, samples: Samples, seed: int) -> Pairwise:
    """Fit both models."""
    features = features_of(samples.places, samples.profiles)
    table = encode(samples.places, features, samples.profiles)
    targets = samples.throughput, samples.speed
    return Pairwise(features, *(fit(kind, table, values, seed) for values in targets))


def calibrate(
    model: str, samples: Samples, seed: int, throughput: Widths = _OPEN, speed: Widths = _OPEN
) -> Predictor:
    """Train with intervals for pairs of measured models, and those given for unseen ones."""
    held = split_pairs(samples.places, CALIBRATION, seed) == 0
    both = fit_both(model, samples.taken(~held), seed)
    parts, speeds = both.errors(samples.taken(held))
    online, offline, devices, shares = (
        tuple(sorted(set(column))) for column in zip(*samples.places, strict=True)
    )
    return Predictor(
        kind=model, seed=seed, level=LEVEL, features=both.features, throughput=both.throughput,
        speed=both.speed, throughput_widths=throughput._replace(pair=half_width(parts)),
        speed_widths=speed._replace(pair=half_width(speeds)), profiles=samples.profiles,
        online=online, offline=offline, devices=devices, shares=(shares[0], shares[-1]),
    )  # fmt: skip


def split_pairs(places: Sequence[Place], parts: int, seed: int) -> Ints:
    """Return the part of each sample: all samples of two models, in both orders, are in one."""
    pairs = [tuple(sorted(place[:2])) for place in places]
    names = sorted(set(pairs))
    order = np.random.default_rng(seed).permutation(len(names))
    numbers = dict(zip(names, order % parts, strict=True))
    return np.array([numbers[pair] for pair in pairs], dtype=np.int64)


def groups(places: Sequence[Place], side: str, profiles: Profiles) -> list[str]:
    """Return of each sample the family of the model on one side, or its name if it has none."""
    models = [place.online_model if side == "online" else place.offline_model for place in places]
    rows = (profiles.of(m, place.device) or {} for m, place in zip(models, places, strict=True))
    families = (row.get("family") for row in rows)
    return [f if isinstance(f, str) else m for f, m in zip(families, models, strict=True)]


def hold_out(kind: str, samples: Samples, side: str, seed: int) -> Iterator[_Errors]:
    """Yield samples whose families on one side were held out, fold by fold, and the errors."""
    names = groups(samples.places, side, samples.profiles)
    known = sorted(set(names))
    order = np.random.default_rng(seed).permutation(len(known))
    numbers = {known[group]: at % min(_FOLDS, len(known)) for at, group in enumerate(order)}
    folds = np.array([numbers[name] for name in names], dtype=np.int64)
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        if test.all():
            return
        yield test, *fit_both(kind, samples.taken(~test), seed).errors(samples.taken(test))


def half_width(errors: Floats, level: float = LEVEL) -> float:
    """Return half the width of a split conformal interval by held-out errors.

    It is the k-th smallest of the n absolute errors, k = ⌈level (n + 1)⌉, and 1, which says
    nothing, if k > n. An interval of that width holds the value of a further sample with a
    probability of at least the level, if samples are exchangeable (H. Papadopoulos et al.,
    Inductive Confidence Machines for Regression, ECML 2002).
    """
    place = math.ceil(level * (len(errors) + 1))
    if place > len(errors):
        return 1.0
    return min(1.0, float(np.sort(np.abs(errors))[place - 1]))


class SplitReport(NamedTuple):
    """The errors of a model on held-out measurements."""

    #: ``throughput`` of the offline side or ``speed``, the inverse of the online slowdown
    target: str
    split: str  #: Held out: ``pair``, ``victim`` (whose target it is) or ``aggressor``
    samples: int
    mae: float  #: The mean absolute error
    rank: float  #: Spearman's correlation of predictions with measurements
    coverage: float  #: The part of the measured values in their 95 % intervals
    half_width: float  #: Of these intervals, on average
    constant: float  #: The mean absolute error of a constant: the mean of the others


class Report(NamedTuple):
    """The splits that the table allows."""

    model: str
    seed: int
    splits: tuple[SplitReport, ...]


def evaluate(
    pairs: Iterable[MeasuredPair],
    profiles: Profiles | None = None,
    *,
    model: str = "boosting",
    seed: int = 0,
) -> Report:
    """Hold measurements out, and compare them with predictions from the others.

    Pairs are held out in five parts, on all devices, at all shares and in both orders; their
    intervals are those of a predictor trained on the rest. Victims and aggressors are held out by
    families, or by themselves where profiles have none; the half-width of a fold's intervals is
    that of the errors in the other folds. The parameters are those of :func:`train_predictor`.
    """
    samples = checked_samples(pairs, profiles, model)
    parts = split_pairs(samples.places, _PARTS, seed)
    by_pair = []
    for test in (parts == part for part in range(_PARTS)):
        predictor, held = calibrate(model, samples.taken(~test), seed), samples.taken(test)
        told = predictor.predict(held.places)
        errors = told.throughput - held.throughput, told.speed - held.speed
        widths = predictor.throughput_widths.pair, predictor.speed_widths.pair
        by_pair.append((test, errors, widths))
    by_side = {side: list(hold_out(model, samples, side, seed)) for side in ("offline", "online")}
    found = []
    for at, values in enumerate((samples.throughput, samples.speed)):
        victim, aggressor = ("offline", "online") if at == 0 else ("online", "offline")
        for split, folds in (
            ("pair", [(test, errors[at], widths[at]) for test, errors, widths in by_pair]),
            ("victim", _others(by_side[victim], at)),
            ("aggressor", _others(by_side[aggressor], at)),
        ):
            if folds:
                error, width, constant = np.zeros((3, len(values)))
                for test, own, half in folds:
                    error[test], width[test], constant[test] = own, half, values[~test].mean()
                found.append(SplitReport(
                    ("throughput", "speed")[at], split, len(values), float(np.abs(error).mean()),
                    rank_correlation(values + error, values),
                    float((np.abs(error) <= width).mean()), float(width.mean()),
                    float(np.abs(constant - values).mean()),
                ))  # fmt: skip
    return Report(model, seed, tuple(found))


def _others(unseen: list[_Errors], at: int) -> list[_Tried]:
    """Give each fold the half-width that the errors in the other folds have."""
    errors = [fold[1:][at] for fold in unseen]
    others = [errors[:here] + errors[here + 1 :] for here in range(len(errors))]
    return [
        (fold[0], own, half_width(np.concatenate(rest)) if rest else 1.0)
        for fold, own, rest in zip(unseen, errors, others, strict=True)
    ]


def rank_correlation(one: Floats, other: Floats) -> float:
    """Return Spearman's rank correlation; 0 where one of the two is constant."""
    ranks = []
    for values in (one, other):  # equal values share a mean rank
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[inverse])
    return float(np.atleast_2d(np.corrcoef(ranks))[0, 1]) if all(map(np.ptp, ranks)) else 0.0
