"""The predictor: what it learns, what its files hold, and where its weights forbid."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError, InvalidOption, InvalidProblem, UnsupportedProblem
from cms.fleet.sharing import (
    OfflineClass,
    OnlineClass,
    PredictedWeights,
    Profiles,
    SharingProblem,
    probed,
    read_predictor,
    share,
    train_predictor,
    write_predictor,
)
from cms.fleet.sharing.predictor import MODELS, Predictor, evaluate, fitting
from cms.fleet.sharing.predictor.evaluation import rank_correlation
from cms.fleet.sharing.predictor.features import Place, encoded
from cms.fleet.sharing.predictor.files import predictor_from_json, predictor_to_json
from cms.fleet.sharing.predictor.residuals import (
    half_width,
    held_out_pairs,
    samples_of,
    two_of,
    unseen,
)
from tests.files.test_schemas import require_valid
from tests.fleet.sharing.pairs import by_rule
from tests.samples import refusal, so_many


@cache
def trained(model: str) -> Predictor:
    if model in ("boosting", "mlp"):
        pytest.importorskip("sklearn")
    return quickly(model)


def quickly(model: str, seed: int = 0) -> Predictor:
    """Train with few trees, and few rounds of a network."""
    with (
        patch.dict(fitting._TREES, n_estimators=5, max_depth=3),
        patch.object(fitting, "_ROUNDS", 5),
    ):
        return train_predictor(*by_rule(), model=model, seed=seed)


def places() -> list[Place]:
    return [Place(*pair[:4]) for pair in by_rule()[0]]


# --- what is learnt -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_predictor_comes_back_from_its_file_and_says_the_same(model: str, tmp_path: Path) -> None:
    predictor = trained(model)
    write_predictor(predictor, tmp_path / "model.json")
    again = read_predictor(tmp_path / "model.json")
    for one, other in zip(predictor.predict(places()), again.predict(places()), strict=True):
        assert (one == other).all()
    assert predictor_to_json(again) == predictor_to_json(predictor)
    require_valid("predictor", predictor_to_json(predictor))


def test_the_same_seed_gives_the_same_file_and_another_one_another() -> None:
    pytest.importorskip("sklearn")
    again = quickly("boosting")
    assert predictor_to_json(again) == predictor_to_json(trained("boosting"))
    other = quickly("boosting", seed=1)
    assert predictor_to_json(other) != predictor_to_json(again)


@pytest.mark.parametrize("model", ["boosting", "mlp", "ridge"])
def test_numpy_predicts_what_scikit_learn_does(model: str) -> None:
    ensemble, network, linear = (
        pytest.importorskip(f"sklearn.{name}")
        for name in ("ensemble", "neural_network", "linear_model")
    )
    generator = np.random.default_rng(0)
    features = generator.normal(size=(200, 5))
    targets = features[:, 0] * features[:, 1] + generator.normal(size=200) / 10
    ours = fitting.fitted(model, features, targets, 3)
    if model == "boosting":
        theirs = ensemble.GradientBoostingRegressor(**fitting._TREES, random_state=3)
    elif model == "mlp":
        theirs = network.MLPRegressor(hidden_layer_sizes=(64, 64), random_state=3, max_iter=300)
    else:
        theirs = linear.Ridge(alpha=1.0)
    theirs.fit(features, targets)
    others = generator.normal(size=(500, 5))
    assert np.abs(ours.predict(others) - theirs.predict(others)).max() < 1e-9


def test_a_linear_rule_is_found_by_a_linear_model_and_every_split_is_told() -> None:
    pairs, profiles = by_rule()
    report = evaluate(pairs, profiles, model="ridge")
    splits = {(each.target, each.split): each for each in report.splits}
    assert len(splits) == 6
    for each in splits.values():
        assert each.samples == len(pairs)
        assert each.mae < each.constant
    assert splits["throughput", "pair"].mae < 0.005
    assert splits["throughput", "pair"].rank > 0.99
    mean = evaluate(pairs, profiles, model="mean").splits
    assert all(each.mae == pytest.approx(each.constant) for each in mean if each.split != "pair")


def test_without_profiles_names_stand_for_models() -> None:
    predictor = train_predictor(by_rule()[0], model="ridge")
    assert {feature.column for feature in predictor.features} == {"model", "device", "share"}
    words = "nothing of offline model 'm11' on 'slow'; nearest: 'm1'"
    assert words in refusal(InvalidProblem, predictor.predict, [Place("m1", "m11", "slow", 30)])


def test_beside_probes_an_unseen_workload_is_predicted_better() -> None:
    pairs, profiles = by_rule()
    blind = Profiles({key: {"family": row["family"]} for key, row in profiles.of_all().items()})
    seeing, rest = probed(blind, pairs, ["m0", "m7"])
    assert not {"m0", "m7"} & {name for pair in rest for name in pair[:2]}
    assert (seeing.of("m3", "slow") or {})["speed beside m0"] == Fraction(55, 100)

    def victims(*given: Any) -> float:
        return next(
            each.mae for each in evaluate(*given, model="ridge").splits if each.split == "victim"
        )

    assert victims(rest, seeing) < victims(rest, blind) / 2
    words = "nothing was measured beside the probe 'm8'"
    assert words in refusal(InvalidProblem, probed, blind, pairs, ["m8"])


# --- nothing leaks, and intervals hold ------------------------------------------------------------


def test_a_pair_is_held_out_on_all_devices_at_all_shares_and_in_both_orders() -> None:
    parts = held_out_pairs(places(), 5, np.random.default_rng(0))
    found: dict[tuple[str, str], set[int]] = {}
    for place, part in zip(places(), parts.tolist(), strict=True):
        found.setdefault(two_of(place), set()).add(part)
    assert all(len(parts) == 1 for parts in found.values())
    assert set(parts.tolist()) == set(range(5))


def test_what_is_held_out_changes_nothing_that_is_learnt() -> None:
    pairs, profiles = by_rule()
    held = held_out_pairs(places(), 5, np.random.default_rng(0)) == 0
    changed = [
        pair._replace(offline_throughput=Fraction(1, 9)) if out else pair
        for pair, out in zip(pairs, held, strict=True)
    ]
    one, other = (train_predictor(p, profiles, model="ridge") for p in (pairs, changed))
    assert (one.predict(places()).throughput == other.predict(places()).throughput).all()
    assert one.throughput_widths.pair < other.throughput_widths.pair  # only the intervals heed it


def test_families_are_held_out_as_a_whole_on_the_side_that_is_unseen() -> None:
    pairs, profiles = by_rule()
    tested = np.zeros(len(pairs), dtype=int)
    for test, errors, _ in unseen("mean", samples_of(pairs, profiles), "offline", 0):
        tested += test
        assert len(errors) == test.sum()
        inside = {pair.offline_model for pair, out in zip(pairs, test, strict=True) if out}
        outside = {pair.offline_model for pair, out in zip(pairs, test, strict=True) if not out}
        assert not inside & outside
        families = [{(profiles.of(m, "") or {})["family"] for m in s} for s in (inside, outside)]
        assert not families[0] & families[1]
    assert (tested == 1).all()


def test_the_half_width_covers_as_often_as_it_should() -> None:
    generator = np.random.default_rng(1)
    rounds = so_many(400, 20_000)
    inside = [
        abs(errors[-1]) <= half_width(errors[:-1], 0.9)
        for errors in generator.uniform(-0.3, 0.4, size=(rounds, 51))
    ]
    assert 0.9 - 3 * (0.09 / rounds) ** 0.5 < np.mean(inside) < 0.92 + 3 * (0.09 / rounds) ** 0.5


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_ranks_are_as_scipy_has_them(values: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    one = np.array(values)
    other = np.round(np.sin(40 * one), 1)
    found = rank_correlation(one, other)
    if len(set(values)) < 2 or len(set(other.tolist())) < 2:
        assert found == 0
    else:
        assert found == pytest.approx(stats.spearmanr(one, other)[0])


# --- weights --------------------------------------------------------------------------------------


def gpu(model: str = "m1", limit: str | None = None, activity: int = 30) -> OnlineClass:
    return OnlineClass("slow", count=1, sm_activity=activity, model=model, slowdown_limit=limit)


def test_weights_are_predictions_rounded_down_at_the_share_that_is_left() -> None:
    predictor = trained("ridge")
    work = OfflineClass("m2", count=1, priority=3)
    told = predictor.predict([Place("m1", "m2", "slow", 60)])
    for lower, part in ((False, told.throughput), (True, told.throughput_low)):
        weight = PredictedWeights(predictor, lower_end=lower)(gpu(), work)
        assert weight is not None
        assert weight <= 3 * 10**6 * Fraction(float(part[0])) < weight + 1
    assert told.throughput_low[0] < told.throughput[0] < told.throughput_high[0]
    less = PredictedWeights(predictor, margin=40)(gpu(), work)
    assert less is not None
    assert less < (PredictedWeights(predictor)(gpu(), work) or 0)


def test_a_pair_is_forbidden_where_the_upper_end_of_its_slowdown_passes_the_limit() -> None:
    weights = PredictedWeights(trained("ridge"))
    work = OfflineClass("m2", count=1)
    pair = weights.pair(gpu(), work)
    assert pair.slowdown < pair.slowdown_high
    end = Fraction(pair.slowdown_high)
    assert weights(gpu(limit=str(end)), work) is not None
    assert weights(gpu(limit=str(end - Fraction(1, 10**9))), work) is None


def test_a_limit_is_held_against_what_is_expected_where_that_is_asked() -> None:
    predictor = trained("ridge")
    upper, expected = (PredictedWeights(predictor, limit_by=by) for by in ("upper", "expected"))
    work = OfflineClass("w", model="m7", count=1)
    pair = upper.pair(gpu(), work)
    between = f"{(pair.slowdown + pair.slowdown_high) / 2:.6f}"
    sharp = f"{(1 + pair.slowdown) / 2:.6f}"
    assert 1 < pair.slowdown < float(between) < pair.slowdown_high
    assert expected(gpu(limit=between), work) == expected(gpu(), work) is not None
    assert expected.why(gpu(limit=between), work) == ""
    assert upper(gpu(limit=between), work) is None
    words = "beyond the limit at the upper end of what is predicted"
    assert upper.why(gpu(limit=between), work) == words
    for weights in (upper, expected):
        assert weights(gpu(limit=sharp), work) is None
        assert weights.why(gpu(limit=sharp), work) == "expected to be slowed down beyond the limit"
        assert weights.why(gpu(), work) == ""


def test_only_ends_that_there_are_can_be_held_against_a_limit() -> None:
    words = "limit_by is 'uper'; nearest: 'upper'; expected upper or expected"
    assert words in refusal(
        InvalidOption, lambda: PredictedWeights(trained("ridge"), limit_by="uper")
    )


def test_of_two_strangers_nothing_is_known() -> None:
    profiles = Profiles({(name, ""): {"wants": Fraction(4), "family": "f1"} for name in "xy"})
    predictor = trained("ridge")
    ends = predictor.predict(
        [Place(*two, "slow", 60) for two in (("m1", "m2"), ("m1", "y"), ("x", "m2"), ("x", "y"))],
        profiles,
    )
    widths = ends.throughput_high - ends.throughput_low
    assert widths[0] < widths[1]
    assert (ends.throughput_low[3], ends.throughput_high[3]) == (0, 1)
    weights = PredictedWeights(predictor, profiles=profiles)
    assert weights.pair(gpu("x"), OfflineClass("y", count=1)).slowdown_high == float("inf")
    assert weights(gpu("x", limit="9"), OfflineClass("y", count=1)) is None
    assert weights(gpu("x"), OfflineClass("y", count=1)) is not None


def test_a_problem_by_predictions_is_solved_and_near_the_truth() -> None:
    pairs, profiles = by_rule()
    predictor = train_predictor(pairs, profiles, model="ridge")
    online = [gpu(f"m{at}") for at in range(8)]
    work = [OfflineClass(f"m{at}", count=1) for at in range(8)]
    truth = {pair[:4]: pair.offline_throughput for pair in pairs}
    exact = [
        [int(10**6 * truth[o.model, f.model, "slow", 60]) for f in work] for o in online
    ]  # fmt: skip
    best = SharingProblem(online=online, offline=work, weights=exact)
    found = SharingProblem(online=online, offline=work, weights=PredictedWeights(predictor))
    assert abs(found.weights - best.weights).max() < 10_000
    assert best.value(share(found).plan) >= 0.99 * share(best).value


@pytest.mark.parametrize(
    ("online", "work", "words"),
    [
        (gpu("m11"), "m2", "nothing of online model 'm11' on 'slow'; nearest: 'm1'"),
        (gpu(""), "m2", "the online side has no model; expected one, in the column 'model'"),
        (OnlineClass("fats", count=1, sm_activity=1, model="m1"), "m2",
         "nothing of device 'fats'; nearest: 'fast'; it was trained on 'fast', 'slow'"),
    ],
)  # fmt: skip
def test_what_was_not_trained_on_is_refused_by_name(
    online: OnlineClass, work: str, words: str
) -> None:
    said = refusal(
        InvalidProblem, PredictedWeights(trained("mean")), online, OfflineClass(work, count=1)
    )
    assert words in said
    assert f"'{work}' beside online class" in said


# --- what is refused ------------------------------------------------------------------------------


def test_too_little_to_train_on_is_refused() -> None:
    pairs, profiles = by_rule()
    words = "model is 'rigde'; expected one of boosting, ridge, mean, mlp; nearest: 'ridge'"
    assert words in refusal(InvalidOption, train_predictor, pairs, profiles, model="rigde")
    words = "19 measurements are too few to train on; expected at least 20"
    assert words in refusal(InvalidProblem, train_predictor, pairs[:19], profiles, model="mean")
    none = [*pairs, pairs[0]._replace(online_slowdown=Fraction(0))]
    words = "'m0' beside 'm0' has throughput 0.43 and slowdown 0; expected a throughput from 0 to"
    assert words in refusal(InvalidProblem, train_predictor, none, profiles, model="mean")
    twice = [pair for pair in pairs if {pair[0], pair[1]} <= {"m0", "m1"}]
    again = [pair._replace(share=pair.share + at) for pair in twice for at in (0, 1)]
    words = "too few pairs of models to hold some out; expected at least 5"
    assert words in refusal(InvalidProblem, train_predictor, again, profiles, model="mean")


def test_without_scikit_learn_it_predicts_and_names_the_extra_to_train(tmp_path: Path) -> None:
    write_predictor(trained("boosting"), tmp_path / "model.json")
    code = """
import sys
class Away:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in ("sklearn", "threadpoolctl", "joblib"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Away())
from cms.fleet.sharing import read_predictor
from cms.fleet.sharing.predictor.features import Place
print(read_predictor(sys.argv[1]).predict([Place("m1", "m2", "slow", 60)]).throughput[0])
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.json")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = trained("boosting").predict([Place("m1", "m2", "slow", 60)]).throughput[0]
    assert float(run.stdout) == expected


def test_training_without_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("threadpoolctl", "sklearn", "sklearn.ensemble"):
        monkeypatch.setitem(sys.modules, name, None)
    words = "pip install '.[muxflow]', or the models mean and ridge"
    assert words in refusal(UnsupportedProblem, train_predictor, *by_rule(), model="boosting")
    assert train_predictor(*by_rule(), model="ridge").kind == "ridge"


def changed(change: Callable[[dict[str, Any]], object], model: str) -> dict[str, Any]:
    document = copy.deepcopy(predictor_to_json(trained(model)))
    change(document)
    return document


@pytest.mark.parametrize(
    ("model", "change", "words"),
    [
        ("ridge", lambda d: d.pop("speed"), 'has no "speed"'),
        ("ridge", lambda d: d.update(model="forest"), 'model is "forest", expected one of boost'),
        ("ridge", lambda d: d["speed_widths"].update(pair=1.5), "expected a number from 0 to 1"),
        ("ridge", lambda d: d["features"].pop(), "has 13 entries, expected 12"),
        ("ridge", lambda d: d["speed"]["layers"].clear(), "expected at least one layer"),
        ("ridge", lambda d: d["features"][0].update(scale=0), "expected a number > 0"),
        ("ridge", lambda d: d["speed"]["layers"][0].update(added=["1"]), "expected numbers"),
        ("ridge", lambda d: d["profiles"].append(d["profiles"][0]), "are there already"),
        ("boosting", lambda d: d["speed"]["trees"][3]["left"].__setitem__(0, 0), "no tree"),
        ("boosting", lambda d: d["speed"]["trees"][3]["right"].__setitem__(0, -1), "no tree"),
        ("boosting", lambda d: d["speed"]["trees"][3]["right"].pop(), "right has"),
        ("boosting", lambda d: d["speed"]["trees"][3]["left"].__setitem__(0, 10**6), "from -1 to"),
        ("boosting", lambda d: d["speed"]["trees"][3]["feature"].__setitem__(0, 99), "from -1 to"),
        ("boosting", lambda d: d["speed"]["trees"][3]["feature"].__setitem__(0, -1), "a feature"),
    ],
)
def test_a_file_that_is_no_predictor_is_refused(
    model: str, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    document = changed(change, model)
    assert words in refusal(FileError, predictor_from_json, document)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values in a document."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))


@pytest.mark.parametrize("model", ["ridge", "boosting"])
def test_a_document_with_an_odd_value_anywhere_is_refused_or_still_predicts(model: str) -> None:
    document = predictor_to_json(trained(model))
    ways = list(leaves(document))[1:]
    refused = 0
    for at in range(0, len(ways), max(1, len(ways) // so_many(60, 1_000))):
        *way, last = ways[at]
        odd: Any
        for odd in (None, -1, "x", [], {}, 10**400, 10**299, True, 2.5):
            inner = changed(lambda d: None, model)
            part: Any = inner
            for key in way:
                part = part[key]
            part[last] = odd
            try:
                found = predictor_from_json(inner)
                told = found.predict([Place("m1", "m2", "slow", 60)])
                assert all(((0 <= each) & (each <= 1)).all() for each in told)
            except (FileError, InvalidProblem):
                refused += 1
    assert refused > 100


def test_features_tell_what_is_missing_and_what_is_wide() -> None:
    pairs, profiles = by_rule()
    rows: dict[tuple[str, str], Any] = {
        key: {**row, "rate": Fraction(10) ** at if at % 3 else None}
        for at, (key, row) in enumerate(profiles.of_all().items())
    }
    predictor = train_predictor(pairs, Profiles(rows), model="mean")
    kinds = {(feature.kind) for feature in predictor.features if feature.column == "rate"}
    assert kinds == {"log", "missing"}
    table = encoded(places(), predictor.features, predictor.profiles)
    assert np.isfinite(table).all()
    for odd, words in (("fast", "is 'fast'; expected a number"), (10**301, "at most 300 digits")):
        value = odd if isinstance(odd, str) else Fraction(odd)
        said = refusal(InvalidProblem, Profiles, {**rows, ("z", ""): {"rate": value}})
        assert "column 'rate' of the profile of 'z'" in said
        assert words in said
