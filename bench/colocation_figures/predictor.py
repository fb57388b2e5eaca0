"""Figures 6 to 8: the predictor, on the shipped table of pairs of training jobs (Gavel's)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.expected import Line
from bench.importers import read_gavel_pairs, write_measured_pairs
from cms.fleet.colocation import (
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    colocate,
    probed,
    read_measured_pairs,
    read_profiles,
    write_profiles,
)
from cms.fleet.colocation.predictor.models import Place
from cms.fleet.colocation.predictor.predictor import Prediction
from cms.fleet.colocation.predictor.training import (
    Samples,
    calibrate,
    fit_both,
    groups,
    rank_correlation,
    samples_of,
    split_pairs,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

DATA = Path(__file__).parents[2] / "instances" / "data"
PAIRS, PROFILES = DATA / "gavel_pairs.csv", DATA / "gavel_profiles.csv"
#: Three jobs of three families, beside which all others are profiled once.
PROBES = ("ResNet-50 (batch size 32)", "LM (batch size 20)", "Recommendation (batch size 2048)")
FOLDS = 5
LIMIT = 2
_MILLION = 10**6


class Score(NamedTuple):
    """What one split says: mean absolute error, that of the mean, rank, and share in intervals."""

    mae: float
    constant: float
    rank: float
    coverage: float


@cache
def table() -> Samples:
    """Return the shipped measurements."""
    return samples_of(read_measured_pairs(PAIRS), read_profiles(PROFILES))


def unseen_pairs(samples: Samples, seed: int, model: str = "boosting") -> Score:
    """Hold a fifth of the pairs of models out, on all GPU types and in both orders."""
    test = split_pairs(samples.places, FOLDS, seed) == 0
    predictor = calibrate(model, samples.taken(~test), seed)
    held = samples.taken(test)
    told = predictor.predict(held.places)
    inside = (told.throughput_low <= held.throughput) & (held.throughput <= told.throughput_high)
    mean = float(samples.throughput[~test].mean())
    return Score(*_score(told.throughput, held.throughput, mean), float(inside.mean()))


def unseen_families(samples: Samples, model: str = "boosting", seed: int = 0) -> Score:
    """Hold families out, one after the other: no pair with one of its models is trained on."""
    sides = [np.array(groups(samples.places, side, samples.profiles)) for side in _SIDES]
    said, truth, means = [], [], []
    for family in sorted(set(sides[0])):
        test = (sides[0] == family) | (sides[1] == family)
        both = fit_both(model, samples.taken(~test), seed)
        errors, _ = both.errors(samples.taken(test))
        values = samples.throughput[test]
        said.append(values + errors)
        truth.append(values)
        means.append(np.full(len(values), samples.throughput[~test].mean()))
    found, values, mean = (np.concatenate(parts) for parts in (said, truth, means))
    return Score(*_score(found, values, mean), float("nan"))


_SIDES = ("online", "offline")


def _score(
    said: NDArray[np.float64], truth: NDArray[np.float64], mean: NDArray[np.float64] | float
) -> tuple[float, float, float]:
    constant = float(np.abs(truth - mean).mean())
    return float(np.abs(said - truth).mean()), constant, rank_correlation(said, truth)


def with_probes() -> Samples:
    """Return the measurements with three jobs as probes, and without these jobs' pairs."""
    profiles, rest = probed(read_profiles(PROFILES), read_measured_pairs(PAIRS), PROBES)
    return samples_of(rest, profiles)


def out_of_fold(samples: Samples, seed: int, model: str = "boosting") -> Prediction:
    """Predict every measurement by a predictor that has not seen its pair of models."""
    parts = split_pairs(samples.places, FOLDS, seed)
    columns = [np.empty(len(samples.places)) for _ in Prediction._fields]
    for fold in range(FOLDS):
        test = parts == fold
        predictor = calibrate(model, samples.taken(~test), seed)
        told = predictor.predict(samples.taken(test).places)
        for column, values in zip(columns, told, strict=True):
            column[test] = values
    return Prediction(*columns)


class Matched(NamedTuple):
    """What plans are truly worth, as parts of the best plan by the truth."""

    predicted: float
    greedy: float
    random: float
    kept: float
    limited: float


def matched(samples: Samples, told: Prediction, size: int, seed: int) -> Matched:
    """Match so many GPUs, each with a job as its online side, and as many workloads."""
    generator = np.random.default_rng(seed)
    places = {place: at for at, place in enumerate(samples.places)}
    hosts = sorted({(place.device, place.online_model) for place in samples.places})
    names = sorted({place.offline_model for place in samples.places})
    gpus = generator.multinomial(size, np.full(len(hosts), 1 / len(hosts)))
    work = generator.multinomial(size, np.full(len(names), 1 / len(names)))
    at = np.array([
        [places.get(Place(model, name, device, 100), -1) for name in names]
        for device, model in hosts
    ])  # fmt: skip

    def problem(values: NDArray[np.float64], allowed: NDArray[np.bool_]) -> ColocationProblem:
        weights = np.floor(_MILLION * values[at]).astype(np.int64)
        weights[(at < 0) | ~allowed[at]] = -1  # what did not run together has no prediction
        return ColocationProblem(
            online=[
                OnlineClass(device, count=int(count), sm_activity=0, name=f"{device} {model}")
                for (device, model), count in zip(hosts, gpus, strict=True)
            ],
            offline=[
                OfflineClass(n, count=int(c)) for n, c in zip(names, work, strict=True)
            ],
            weights=weights,
        )  # fmt: skip

    everywhere = np.ones(len(samples.places), dtype=np.bool_)
    fast, kept_truly = told.speed_low * LIMIT >= 1, samples.speed * LIMIT >= 1
    true, guessed = problem(samples.throughput, everywhere), problem(told.throughput, everywhere)
    limited = colocate(problem(told.throughput, fast)).plan
    best = colocate(true).value
    found = (
        colocate(guessed),
        colocate(guessed, "colocation_greedy"),
        colocate(true, "colocation_random", seed=seed),
    )
    rows, columns = true.online_index, true.offline_index
    kept = sum(
        pair.count for pair in limited if kept_truly[at[rows[pair.online], columns[pair.offline]]]
    )
    predicted, greedy, random = (true.value(solution.plan) / best for solution in found)
    return Matched(
        predicted,
        greedy,
        random,
        kept / limited.placed if limited.placed else 1.0,
        true.value(limited) / colocate(problem(samples.throughput, kept_truly)).value,
    )


def error_figures(splits: int) -> Iterator[Line]:
    """Figures 6 and 7: errors on what was not seen, and intervals."""
    samples = table()
    scores = [unseen_pairs(samples, seed) for seed in range(splits)]
    mae, constant, rank, coverage = (float(each) for each in np.mean(scores, axis=0))
    of = f"unseen pairs, {splits} splits"
    yield Line("6", f"error, {of}", "<= 0.045", f"{mae:.4f}", mae <= 0.045)
    yield Line("6", f"rank correlation, {of}", ">= 0.93", f"{rank:.3f}", rank >= 0.93)
    yield Line("6", f"error of the mean, {of}", "0.145", f"{constant:.4f}", constant > 0.13)
    for model in ("ridge", "mlp"):
        errors = [unseen_pairs(samples, seed, model).mae for seed in range(min(splits, 4))]
        worse = float(np.mean(errors))
        yield Line("6", f"error of {model}, unseen pairs", "more", f"{worse:.4f}", worse > mae)
    whole = unseen_families(samples)
    said = f"{whole.mae:.4f}, the mean's {whole.constant:.4f}"
    yield Line("6", "error, unseen families", "<= 0.13", said, whole.mae <= 0.13)
    probing = unseen_families(with_probes())
    said = f"{probing.mae:.4f}, the mean's {probing.constant:.4f}"
    few = "error, unseen families profiled beside 3 jobs"
    yield Line("6", few, "less", said, probing.mae < whole.mae)
    covers = [score.coverage for score in scores]
    said = f"{coverage:.1%}, {min(covers):.1%} to {max(covers):.1%}"
    within = 0.93 <= coverage <= 0.97
    yield Line("7", f"in the 95 % interval, {of}", "93 to 97 %", said, within)


def matching_figure(draws: int, size: int) -> Iterator[Line]:
    """Figure 8: what matching on predictions is truly worth."""
    samples = table()
    told = out_of_fold(samples, 0)
    plans = [matched(samples, told, size, seed) for seed in range(draws)]
    mean = Matched(*(float(each) for each in np.mean(plans, axis=0)))
    of = f"of the best, {size} x {size}, {draws} draws"
    least = min(plan.predicted for plan in plans)
    said = f"{mean.predicted:.1%}, at least {least:.1%}"
    yield Line("8", f"matching on predictions, {of}", ">= 93 %", said, mean.predicted >= 0.93)
    for name, value in (("greedy on predictions", mean.greedy), ("random", mean.random)):
        yield Line("8", f"{name}, {of}", "less", f"{value:.1%}", value < mean.predicted)
    said = f"{mean.kept:.1%}, {mean.limited:.1%} of the best"
    of = f"predicted pairs that keep a slowdown of {LIMIT}"
    yield Line("8", of, ">= 95 %", said, mean.kept >= 0.95)


def make_tables(path: Path) -> None:
    """Make the shipped table and its profiles again, from Gavel's published file."""
    pairs, profiles = read_gavel_pairs(path)
    write_measured_pairs(pairs, PAIRS)
    write_profiles(profiles, PROFILES)
