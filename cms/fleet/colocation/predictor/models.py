"""How pairs become numbers, and models as plain numbers, which predict by numpy alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import UnsupportedProblem
from ..weights import Profiles

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
SIDES = ("online", "offline")
#: A column whose values are all positive and this many times apart counts by its logarithm.
_WIDE = 10
_Value: TypeAlias = "float | str | None"


class Place(NamedTuple):
    """A pair of models, its device and its share: the input of a prediction."""

    online_model: str
    offline_model: str
    device: str
    share: int


class Feature(NamedTuple):
    """A number from one column of one side's profile, or from the pair's device or share."""

    side: str  #: ``online``, ``offline``, or ``pair`` for device and share
    column: str
    #: ``number``, ``log`` (its natural logarithm), ``missing`` (1 where nothing is known), or
    #: ``is`` (1 where it is ``word``)
    kind: str
    word: str
    #: A number x becomes (x - mean) / scale; one that is missing becomes 0.
    mean: float
    scale: float


def features_of(places: Sequence[Place], profiles: Profiles) -> tuple[Feature, ...]:
    """Choose features that differ; without any profile, names stand for the models."""
    found: list[Feature] = []
    for side in SIDES:
        for column in profiles.numbers:
            found += _number(side, column, [_value(p, side, column, profiles) for p in places])
        for column in profiles.words or (() if profiles.numbers else ("model",)):
            found += _words(side, column, [_value(p, side, column, profiles) for p in places])
    found += _words("pair", "device", [place.device for place in places])
    return (*found, *_number("pair", "share", [float(place.share) for place in places]))


def encode(places: Sequence[Place], features: Sequence[Feature], profiles: Profiles) -> Floats:
    """Return the features' values, shape (places, features)."""
    keys = {feature[:2] for feature in features}
    columns = {key: [_value(place, *key, profiles) for place in places] for key in keys}
    table = np.zeros((len(places), len(features)))
    for at, feature in enumerate(features):
        table[:, at] = [_as_number(value, feature) for value in columns[feature[:2]]]
    return table


def _as_number(value: _Value, feature: Feature) -> float:
    if feature.kind == "is":
        return float(value == feature.word)
    known = isinstance(value, float) and (feature.kind != "log" or value > 0)
    if feature.kind == "missing":
        return float(not known)
    if not known:
        return 0.0
    assert isinstance(value, float)
    number = math.log(value) if feature.kind == "log" else value
    return (number - feature.mean) / feature.scale


def _value(place: Place, side: str, column: str, profiles: Profiles) -> _Value:
    if side == "pair":
        return place.device if column == "device" else float(place.share)
    model = place.online_model if side == "online" else place.offline_model
    value = (profiles.of(model, place.device) or {}).get(column)
    if value is None and not profiles.numbers and not profiles.words and column == "model":
        return model
    return float(value) if isinstance(value, Fraction) else value


def _number(side: str, column: str, values: Sequence[_Value]) -> list[Feature]:
    numbers = [value for value in values if isinstance(value, float)]
    found = []
    if len(set(numbers)) > 1:
        wide = min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers)
        used = [math.log(number) for number in numbers] if wide else numbers
        mean = math.fsum(used) / len(used)
        scale = math.sqrt(math.fsum((x - mean) ** 2 for x in used) / len(used))
        found.append(Feature(side, column, "log" if wide else "number", "", mean, scale or 1.0))
    if 0 < len(numbers) < len(values):
        found.append(Feature(side, column, "missing", "", 0.0, 1.0))
    return found


def _words(side: str, column: str, values: Sequence[_Value]) -> list[Feature]:
    words = sorted({value for value in values if isinstance(value, str)})
    return [Feature(side, column, "is", word, 0.0, 1.0) for word in words if len(words) > 1]


#: The child of a node that has none.
LEAF = -1
#: Rows times trees that are walked at once.
_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Matrices one after the other, with max(0, x) between them; one is a linear model."""

    #: The last has one output. Without inputs the model is a constant.
    matrices: tuple[Floats, ...]
    added: tuple[Floats, ...]

    def predict(self, features: Floats) -> Floats:
        """Return a number for each row."""
        found = features
        for at, (matrix, added) in enumerate(zip(self.matrices, self.added, strict=True)):
            inputs = np.maximum(found, 0.0) if at else found
            # Not a product of matrices: that is a library of its own, with threads of its own.
            found = np.einsum("ri,io->ro", inputs, matrix, optimize=False) + added
        return found[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A sum of decision trees, their nodes one after the other."""

    start: float  #: What the trees' values are added to
    roots: Ints  #: The first node of each tree
    #: At a node, a row whose feature is at most the threshold goes left; -1 at leaves.
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    def predict(self, features: Floats) -> Floats:
        """Return a number for each row."""
        step = max(1, _AT_ONCE // max(1, len(self.roots)))
        # As they were grown: features are rounded to 32 bits, thresholds are not.
        rows = features.astype(np.float32)
        parts = [self._walk(rows[at : at + step]) for at in range(0, len(rows), step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _walk(self, rows: NDArray[np.float32]) -> Floats:
        nodes = np.repeat(self.roots[None, :], len(rows), axis=0)
        at = np.arange(len(rows))[:, None]
        while (inner := self.left[nodes] != LEAF).any():
            goes_left = rows[at, np.maximum(self.feature[nodes], 0)] <= self.threshold[nodes]
            children = np.where(goes_left, self.left[nodes], self.right[nodes])
            nodes = np.where(inner, children, nodes)
        found = np.full(len(rows), self.start)
        for tree in self.value[nodes].T:  # one after the other: the same sum on every machine
            found += tree
        return found


Model: TypeAlias = Layers | Trees
Fit: TypeAlias = Callable[[Floats, Floats, int], Model]


_RIDGE = 1.0
_TREES = {
    "n_estimators": 200, "max_depth": 6, "learning_rate": 0.1, "subsample": 0.5,
    "max_features": 0.3,
}  # fmt: skip
_HIDDEN = (64, 64)
_ROUNDS = 300


def _needed(module: str, kind: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        said = f"model {kind!r} is trained by scikit-learn, which is not installed; expected the"
        extra = "extra: pip install '.[muxflow]', or the models mean and ridge"
        raise UnsupportedProblem(f"{said} {extra}") from None


def _mean(features: Floats, targets: Floats, seed: int) -> Model:
    """Fit a constant: what every other model is held against."""
    return Layers((np.zeros((features.shape[1], 1)),), (np.array([float(np.mean(targets))]),))


def _ridge(features: Floats, targets: Floats, seed: int) -> Model:
    """Fit a linear model by least squares, with the sum of squared coefficients as a penalty."""
    middle, mean = features.mean(axis=0), targets.mean()
    centred = features - middle
    square = centred.T @ centred + _RIDGE * np.eye(features.shape[1])
    slopes = np.linalg.solve(square, centred.T @ (targets - mean))
    return Layers((slopes[:, None],), (np.array([mean - middle @ slopes]),))


def _boosting(features: Floats, targets: Floats, seed: int) -> Model:
    """Fit gradient boosted trees (J. Friedman 2001, 2002)."""
    ensemble = _needed("sklearn.ensemble", "boosting")
    fitted = ensemble.GradientBoostingRegressor(**_TREES, random_state=seed)
    fitted.fit(features, targets)
    trees = [tree.tree_ for tree in fitted.estimators_[:, 0]]
    counts = [tree.node_count for tree in trees]
    roots = np.cumsum(counts) - counts
    names = "children_left", "children_right", "feature", "threshold", "value"
    left, right, feature, threshold, value = (
        np.concatenate([getattr(tree, name) for tree in trees]) for name in names
    )
    is_leaf, before = left == LEAF, np.repeat(roots, counts)
    return Trees(
        float(fitted.init_.constant_[0, 0]), roots, np.where(is_leaf, LEAF, feature),
        np.where(is_leaf, 0.0, threshold), np.where(is_leaf, LEAF, left + before),
        np.where(is_leaf, LEAF, right + before),
        np.where(is_leaf, value[:, 0, 0] * fitted.learning_rate, 0.0),
    )  # fmt: skip


def _mlp(features: Floats, targets: Floats, seed: int) -> Model:
    """Fit a network of two hidden layers of 64.

    The choice of the preset ``muxflow-assumed``; the paper's model is not known.
    """
    network = _needed("sklearn.neural_network", "mlp")
    with warnings.catch_warnings():
        # It ends after 300 rounds, whether the loss still falls or not.
        warnings.simplefilter("ignore", _needed("sklearn.exceptions", "mlp").ConvergenceWarning)
        fitted = network.MLPRegressor(
            hidden_layer_sizes=_HIDDEN, random_state=seed, max_iter=_ROUNDS
        )
        fitted.fit(features, targets)
    return Layers(tuple(fitted.coefs_), tuple(fitted.intercepts_))


FITS: dict[str, Fit] = {"boosting": _boosting, "ridge": _ridge, "mean": _mean, "mlp": _mlp}


def fit(kind: str, features: Floats, targets: Floats, seed: int) -> Model:
    """Fit a model of a kind on one thread."""
    if kind in ("boosting", "mlp"):
        with _needed("threadpoolctl", kind).threadpool_limits(1):
            return FITS[kind](features, targets, seed)
    return FITS[kind](features, targets, seed)
