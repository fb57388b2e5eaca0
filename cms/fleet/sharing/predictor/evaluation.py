"""How well a kind of model does on pairs, victims and aggressors it has not seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..profiles import Profiles
from ..weights import MeasuredPair
from .training import Samples, calibrated, checked_samples, half_width, held_out_pairs, unseen

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FOLDS = 5


class SplitReport(NamedTuple):
    """What held-out measurements say of a model."""

    #: ``throughput`` of the offline side or ``speed``, the inverse of the online slowdown
    target: str
    split: str  #: What was held out: ``pair``, ``victim`` (whose target it is) or ``aggressor``.
    samples: int  #: So many were predicted, each once
    mae: float  #: The mean absolute error
    rank: float  #: Spearman's correlation of what is predicted with what was measured
    coverage: float  #: How many measured values were in their 95 % intervals
    half_width: float  #: Of these intervals, on average
    constant: float  #: The mean absolute error of the mean of what was not held out


class Report(NamedTuple):
    """What :func:`evaluate` says: the splits that the table allows."""

    model: str
    seed: int
    splits: tuple[SplitReport, ...]


class _Tried(NamedTuple):
    """One fold: which samples, the errors, the half-width, and the mean of the others' targets."""

    test: NDArray[np.bool_]
    errors: NDArray[np.float64]
    width: float
    constant: float


def evaluate(
    pairs: Iterable[MeasuredPair],
    profiles: Profiles | None = None,
    *,
    model: str = "boosting",
    seed: int = 0,
) -> Report:
    """Hold measurements out, and say how well they are predicted from the others.

    Pairs are held out in five parts, on all devices, at all shares and in both orders; their
    intervals are those of a predictor trained on the rest. Victims and aggressors are held out by
    families, or by themselves where profiles have none; the half-width of a fold's intervals is
    that of the errors in the other folds. The parameters are those of :func:`train_predictor`.
    """
    samples = checked_samples(pairs, profiles, model)
    targets = samples.throughput, samples.speed
    by_pair = _pairs(model, samples, seed)
    by_side = {side: list(unseen(model, samples, side, seed)) for side in ("offline", "online")}
    found = []
    for at, (name, values) in enumerate(zip(("throughput", "speed"), targets, strict=True)):
        victim, aggressor = ("offline", "online") if at == 0 else ("online", "offline")
        tried = {
            "pair": by_pair[at],
            "victim": _others(by_side[victim], at, values),
            "aggressor": _others(by_side[aggressor], at, values),
        }
        found += [_report(name, split, folds, values) for split, folds in tried.items() if folds]
    return Report(model, seed, tuple(found))


def _pairs(model: str, samples: Samples, seed: int) -> tuple[list[_Tried], list[_Tried]]:
    parts = held_out_pairs(samples.places, _FOLDS, seed)
    found: tuple[list[_Tried], list[_Tried]] = [], []
    for fold in range(_FOLDS):
        test = parts == fold
        predictor = calibrated(model, samples.taken(~test), seed)
        told = predictor.predict(samples.taken(test).places)
        for at, (values, said, width) in enumerate(
            (
                (samples.throughput, told.throughput, predictor.throughput_widths.pair),
                (samples.speed, told.speed, predictor.speed_widths.pair),
            )
        ):
            mean = float(values[~test].mean())
            found[at].append(_Tried(test, said - values[test], width, mean))
    return found


def _others(
    folds: list[tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]],
    at: int,
    values: NDArray[np.float64],
) -> list[_Tried]:
    found = []
    for here, (test, *errors) in enumerate(folds):
        others = [fold[1:][at] for there, fold in enumerate(folds) if there != here]
        width = half_width(np.concatenate(others)) if others else 1.0
        found.append(_Tried(test, errors[at], width, float(values[~test].mean())))
    return found


def _report(
    target: str, split: str, folds: list[_Tried], values: NDArray[np.float64]
) -> SplitReport:
    errors = np.concatenate([fold.errors for fold in folds])
    truth = np.concatenate([values[fold.test] for fold in folds])
    widths = np.concatenate([np.full(len(fold.errors), fold.width) for fold in folds])
    constants = np.concatenate([np.full(len(fold.errors), fold.constant) for fold in folds])
    return SplitReport(
        target, split, len(errors), float(np.abs(errors).mean()),
        rank_correlation(errors + truth, truth), float((np.abs(errors) <= widths).mean()),
        float(widths.mean()), float(np.abs(constants - truth).mean()),
    )  # fmt: skip


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation; 0 where one of the two is constant."""
    ranks = [_ranks(values) for values in (one, other)]
    centred = [rank - rank.mean() for rank in ranks]
    scale = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum() / scale) if scale else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: NDArray[np.float64] = (ends - (counts - 1) / 2)[inverse]
    return mean
