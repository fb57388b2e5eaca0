"""Fitting one model to a table of features; scikit-learn is needed for two of the four kinds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ....errors import UnsupportedProblem
from .models import LEAF, Layers, Model, Trees, constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Fit: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64], int], Model]

_RIDGE = 1.0
_TREES = {
    "n_estimators": 200, "max_depth": 6, "learning_rate": 0.1, "subsample": 0.5,
    "max_features": 0.3,
}  # fmt: skip
_HIDDEN = (64, 64)
_ROUNDS = 300


def _needed(module: str, kind: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise UnsupportedProblem(
            f"model {kind!r} is trained by scikit-learn, which is not installed; expected the "
            "extra: pip install '.[muxflow]', or the models mean and ridge"
        ) from None


def fit_mean(features: NDArray[np.float64], targets: NDArray[np.float64], seed: int) -> Model:
    """Fit a constant: what every other model is held against."""
    return constant(float(np.mean(targets)), features.shape[1])


def fit_ridge(features: NDArray[np.float64], targets: NDArray[np.float64], seed: int) -> Model:
    """Fit a linear model by least squares, with the sum of squared coefficients as a penalty."""
    middle, mean = features.mean(axis=0), targets.mean()
    centred = features - middle
    square = centred.T @ centred + _RIDGE * np.eye(features.shape[1])
    slopes = np.linalg.solve(square, centred.T @ (targets - mean))
    return Layers((slopes[:, None],), (np.array([mean - middle @ slopes]),))


def fit_boosting(features: NDArray[np.float64], targets: NDArray[np.float64], seed: int) -> Model:
    """Fit gradient boosted trees (J. Friedman 2001, 2002)."""
    ensemble = _needed("sklearn.ensemble", "boosting")
    fitted = ensemble.GradientBoostingRegressor(**_TREES, random_state=seed)
    fitted.fit(features, targets)
    trees = [tree.tree_ for tree in fitted.estimators_[:, 0]]
    roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]

    def children(side: str) -> NDArray[np.int64]:
        parts = [getattr(tree, f"children_{side}").astype(np.int64) for tree in trees]
        moved = zip(parts, roots, strict=True)
        return np.concatenate([np.where(part == LEAF, LEAF, part + at) for part, at in moved])

    left = children("left")
    inner = left != LEAF
    feature = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    value = np.concatenate([tree.value[:, 0, 0] for tree in trees]) * fitted.learning_rate
    return Trees(
        float(fitted.init_.constant_[0, 0]), roots.astype(np.int64),
        np.where(inner, feature, LEAF).astype(np.int64), np.where(inner, threshold, 0.0), left,
        children("right"), np.where(inner, 0.0, value),
    )  # fmt: skip


def fit_mlp(features: NDArray[np.float64], targets: NDArray[np.float64], seed: int) -> Model:
    """Fit a network of two hidden layers of 64.

    The choice of the preset ``muxflow-assumed``: what the paper uses is not known to us.
    """
    network = _needed("sklearn.neural_network", "mlp")
    faults = _needed("sklearn.exceptions", "mlp")
    with warnings.catch_warnings():
        # It ends after so many rounds, whether the loss still falls or not.
        warnings.simplefilter("ignore", faults.ConvergenceWarning)
        fitted = network.MLPRegressor(
            hidden_layer_sizes=_HIDDEN, random_state=seed, max_iter=_ROUNDS
        )
        fitted.fit(features, targets)
    return Layers(tuple(fitted.coefs_), tuple(fitted.intercepts_))


FITS: dict[str, Fit] = {
    "boosting": fit_boosting, "ridge": fit_ridge, "mean": fit_mean, "mlp": fit_mlp,
}  # fmt: skip


def fitted(
    kind: str, features: NDArray[np.float64], targets: NDArray[np.float64], seed: int
) -> Model:
    """Fit a model of a kind on one thread.

    Raises
    ------
    UnsupportedProblem
        If scikit-learn is needed, and not installed; it names the extra.
    """
    if kind in ("boosting", "mlp"):
        with _needed("threadpoolctl", kind).threadpool_limits(1):
            return FITS[kind](features, targets, seed)
    return FITS[kind](features, targets, seed)
