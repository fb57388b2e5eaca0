"""The predictor: what it learns, what its files hold, and where its weights forbid."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from cms.errors import FileError, InvalidProblem, UnsupportedProblem
from cms.fleet.colocation import (
    OfflineClass,
    OnlineClass,
    PredictedWeights,
    Profiles,
    probed,
    read_predictor,
    train_predictor,
    write_predictor,
)
from cms.fleet.colocation.predictor import MODELS, Predictor, evaluate, models
from cms.fleet.colocation.predictor.files import predictor_from_json, predictor_to_json
from cms.fleet.colocation.predictor.models import Place, encode
from cms.fleet.colocation.predictor.training import half_width, hold_out, samples_of, split_pairs
from tests.files.test_schemas import require_valid
from tests.fleet.colocation.pairs import by_rule
from tests.samples import refusal, so_many

PLACES = [Place(*pair[:4]) for pair in by_rule()[0]]


@cache
def trained(model: str, seed: int = 0) -> Predictor:
    """Train with few trees, and few rounds of a network."""
    if model in ("boosting", "mlp"):
        pytest.importorskip("sklearn")
    with patch.dict(models._TREES, n_estimators=5, max_depth=3), patch.object(models, "_ROUNDS", 5):
        return train_predictor(*by_rule(), model=model, seed=seed)


@pytest.mark.parametrize("model", MODELS)
def test_a_predictor_comes_back_from_its_file_and_is_the_same_for_the_same_seed(
    model: str, tmp_path: Path
) -> None:
    predictor = trained(model)
    write_predictor(predictor, tmp_path / "model.json")
    again = read_predictor(tmp_path / "model.json")
    for one, other in zip(predictor.predict(PLACES), again.predict(PLACES), strict=True):
        assert (one == other).all()
    document = predictor_to_json(predictor)
    assert predictor_to_json(again) == document
    assert predictor_to_json(trained.__wrapped__(model)) == document
    assert predictor_to_json(trained(model, 1)) != document
    require_valid("predictor", document)


@pytest.mark.parametrize("model", ["boosting", "mlp", "ridge"])
def test_numpy_predicts_what_scikit_learn_does(model: str) -> None:
    ensemble, network, linear = (
        pytest.importorskip(f"sklearn.{name}")
        for name in ("ensemble", "neural_network", "linear_model")
    )
    generator = np.random.default_rng(0)
    features = generator.normal(size=(200, 5))
    targets = features[:, 0] * features[:, 1] + generator.normal(size=200) / 10
    theirs = {
        "boosting": ensemble.GradientBoostingRegressor(**models._TREES, random_state=3),
        "mlp": network.MLPRegressor(hidden_layer_sizes=(64, 64), random_state=3, max_iter=300),
        "ridge": linear.Ridge(alpha=1.0),
    }[model]
    theirs.fit(features, targets)
    others = generator.normal(size=(500, 5))
    ours = models.fit(model, features, targets, 3).predict(others)
    assert np.abs(ours - theirs.predict(others)).max() < 1e-9


def test_a_linear_rule_is_found_by_a_linear_model_and_every_split_is_told() -> None:
    pairs, profiles = by_rule()
    report = evaluate(pairs, profiles, model="ridge")
    splits = {(each.target, each.split): each for each in report.splits}
    assert len(splits) == 6
    for each in splits.values():
        assert (each.samples, each.mae < each.constant) == (len(pairs), True)
    assert splits["throughput", "pair"].mae < 0.005
    assert splits["throughput", "pair"].rank > 0.99
    mean = evaluate(pairs, profiles, model="mean").splits
    assert all(each.mae == pytest.approx(each.constant) for each in mean if each.split != "pair")
    nameless = train_predictor(pairs, model="ridge")  # without profiles names stand for models
    assert {feature.column for feature in nameless.features} == {"model", "device", "share"}
    assert "'m11'" in refusal(InvalidProblem, nameless.predict, [Place("m1", "m11", "slow", 30)])


def test_beside_probes_an_unseen_workload_is_predicted_better() -> None:
    pairs, profiles = by_rule()
    blind = Profiles({key: {"family": row["family"]} for key, row in profiles.of_all().items()})
    seeing, rest = probed(blind, pairs, ["m0", "m7"])
    assert not {"m0", "m7"} & {name for pair in rest for name in pair[:2]}
    assert (seeing.of("m3", "slow") or {})["speed beside m0"] == Fraction(55, 100)

    def victims(*given: Any) -> float:
        splits = evaluate(*given, model="ridge").splits
        return next(each.mae for each in splits if each.split == "victim")

    assert victims(rest, seeing) < victims(rest, blind) / 2
    assert "'m8'" in refusal(InvalidProblem, probed, blind, pairs, ["m8"])


def test_what_is_held_out_is_held_out_whole_and_changes_nothing_that_is_learnt() -> None:
    pairs, profiles = by_rule()
    parts = split_pairs(PLACES, 5, 0)
    found: dict[tuple[str, ...], set[int]] = {}
    for place, part in zip(PLACES, parts.tolist(), strict=True):
        found.setdefault(tuple(sorted(place[:2])), set()).add(part)
    assert all(len(parts) == 1 for parts in found.values())
    assert set(parts.tolist()) == set(range(5))
    ninth = Fraction(1, 9)
    changed = [
        pair if part else pair._replace(offline_throughput=ninth)
        for pair, part in zip(pairs, parts, strict=True)
    ]
    one, other = (train_predictor(p, profiles, model="ridge") for p in (pairs, changed))
    assert (one.predict(PLACES).throughput == other.predict(PLACES).throughput).all()
    assert one.throughput_widths.pair < other.throughput_widths.pair  # only the intervals heed it


def test_families_are_held_out_as_a_whole_on_the_side_that_is_unseen() -> None:
    pairs, profiles = by_rule()
    tested = np.zeros(len(pairs), dtype=int)
    for test, errors, _ in hold_out("mean", samples_of(pairs, profiles), "offline", 0):
        tested += test
        assert len(errors) == test.sum()
        sides: tuple[set[Any], set[Any]] = (set(), set())
        for pair, out in zip(pairs, test, strict=True):
            sides[int(out)].add((profiles.of(pair.offline_model, "") or {})["family"])
        assert not sides[0] & sides[1]
    assert (tested == 1).all()


def test_features_tell_what_is_missing_and_what_is_wide() -> None:
    pairs, profiles = by_rule()
    rows: dict[tuple[str, str], Any] = {
        key: {**row, "rate": Fraction(10) ** at if at % 3 else None}
        for at, (key, row) in enumerate(profiles.of_all().items())
    }
    predictor = train_predictor(pairs, Profiles(rows), model="mean")
    kinds = {feature.kind for feature in predictor.features if feature.column == "rate"}
    assert kinds == {"log", "missing"}
    assert np.isfinite(encode(PLACES, predictor.features, predictor.profiles)).all()
    for odd in ("fast", Fraction(10**301)):
        said = refusal(InvalidProblem, Profiles, {**rows, ("z", ""): {"rate": odd}})
        assert "column 'rate' of the profile of 'z'" in said


def test_the_half_width_covers_as_often_as_it_should() -> None:
    generator = np.random.default_rng(1)
    rounds = so_many(400, 20_000)
    inside = [
        abs(errors[-1]) <= half_width(errors[:-1], 0.9)
        for errors in generator.uniform(-0.3, 0.4, size=(rounds, 51))
    ]
    assert 0.9 - 3 * (0.09 / rounds) ** 0.5 < np.mean(inside) < 0.92 + 3 * (0.09 / rounds) ** 0.5


def gpu(model: str = "m1", limit: str | None = None) -> OnlineClass:
    return OnlineClass("slow", count=1, sm_activity=30, model=model, slowdown_limit=limit)


def work(model: str = "m2", priority: int = 1) -> OfflineClass:
    return OfflineClass("w", model=model, count=1, priority=priority)


def test_weights_are_predictions_rounded_down_at_the_share_that_is_left() -> None:
    predictor = trained("ridge")
    told = predictor.predict([Place("m1", "m2", "slow", 60)])
    for lower, part in ((False, told.throughput), (True, told.throughput_low)):
        weight = PredictedWeights(predictor, lower_end=lower)(gpu(), work(priority=3))
        assert weight is not None
        assert weight <= 3 * 10**6 * Fraction(float(part[0])) < weight + 1
    assert told.throughput_low[0] < told.throughput[0] < told.throughput_high[0]
    less, more = (PredictedWeights(predictor, margin=m)(gpu(), work()) for m in (40, 10))
    assert (less or 0) < (more or 0)


def test_a_limit_is_held_against_the_upper_end_or_what_is_expected() -> None:
    predictor = trained("ridge")
    upper, expected = (PredictedWeights(predictor, limit_by=by) for by in ("upper", "expected"))
    of = work("m7")
    pair = upper.pair(gpu(), of)
    end = Fraction(pair.slowdown_high)
    assert upper(gpu(limit=str(end)), of) is not None
    assert upper(gpu(limit=str(end - Fraction(1, 10**9))), of) is None
    between = f"{(pair.slowdown + pair.slowdown_high) / 2:.6f}"
    sharp = f"{(1 + pair.slowdown) / 2:.6f}"
    assert 1 < pair.slowdown < float(between) < pair.slowdown_high
    assert expected(gpu(limit=between), of) == expected(gpu(), of) is not None
    assert (upper(gpu(limit=between), of), expected.why(gpu(limit=between), of)) == (None, "")
    assert "upper end" in upper.why(gpu(limit=between), of)
    for weights in (upper, expected):
        assert weights(gpu(limit=sharp), of) is None
        assert "expected" in weights.why(gpu(limit=sharp), of)
        assert weights.why(gpu(), of) == ""


def test_of_two_strangers_nothing_is_known() -> None:
    profiles = Profiles({(name, ""): {"wants": Fraction(4), "family": "f1"} for name in "xy"})
    weights = PredictedWeights(trained("ridge"), profiles=profiles)
    one, two = weights.pair(gpu("x"), work()), weights.pair(gpu("x"), work("y"))
    assert (two.throughput_low, two.throughput_high, two.slowdown_high) == (0, 1, float("inf"))
    assert one.slowdown_high < 9
    assert weights(gpu("x", limit="9"), work("y")) is None
    assert weights(gpu("x"), work("y")) is not None


def test_what_cannot_be_trained_or_predicted_is_refused_by_name() -> None:
    pairs, profiles = by_rule()
    none = [*pairs, pairs[0]._replace(online_slowdown=Fraction(0))]
    few = [pair for pair in pairs * 3 if {pair[0], pair[1]} <= {"m0", "m1"}]
    for error, measured, model, words in (
        (InvalidProblem, pairs[:19], "mean", "19 measurements"),
        (InvalidProblem, none, "mean", "'m0' beside 'm0' has throughput 0.43 and slowdown 0"),
        (InvalidProblem, few, "mean", "at least 5"),
    ):
        assert words in refusal(error, train_predictor, measured, profiles, model=model)
    weights = PredictedWeights(trained("mean"))
    fats = OnlineClass("fats", count=1, sm_activity=1, model="m1")
    for online, words in ((gpu("m11"), "'m1'"), (gpu(""), "no model"), (fats, "'fast'")):
        assert words in refusal(InvalidProblem, weights, online, work())


def test_without_scikit_learn_it_predicts_and_names_the_extra_to_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place("m1", "m2", "slow", 60)
    expected = trained("boosting").predict([place]).throughput[0]
    write_predictor(trained("boosting"), tmp_path / "model.json")
    for name in [each for each in sys.modules if each.split(".")[0] in ("sklearn", "joblib")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert read_predictor(tmp_path / "model.json").predict([place]).throughput[0] == expected
    said = refusal(UnsupportedProblem, train_predictor, *by_rule(), model="boosting")
    assert "pip install '.[muxflow]'" in said
    assert train_predictor(*by_rule(), model="ridge").kind == "ridge"


@pytest.mark.parametrize(
    ("model", "change", "words"),
    [
        ("ridge", lambda d: d.pop("speed"), "speed"),
        ("ridge", lambda d: d["speed_widths"].update(pair=1.5), "pair"),
        ("ridge", lambda d: d["features"].pop(), "13 entries"),
        ("ridge", lambda d: d["speed"]["layers"][0].update(added=["1"]), "added"),
        ("boosting", lambda d: d["speed"].update(roots=[]), "roots"),
        ("boosting", lambda d: d["speed"]["left"].__setitem__(0, 0), "left"),
        ("boosting", lambda d: d["speed"]["right"].__setitem__(0, -1), "left"),
        ("boosting", lambda d: d["speed"]["right"].pop(), "right"),
        ("boosting", lambda d: d["speed"]["feature"].__setitem__(0, 99), "feature"),
    ],
)
def test_a_file_that_is_no_predictor_is_refused(
    model: str, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    document = copy.deepcopy(predictor_to_json(trained(model)))
    change(document)
    assert words in refusal(FileError, predictor_from_json, document)
