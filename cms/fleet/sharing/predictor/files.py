"""Predictors as JSON documents: plain numbers, which run nothing when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ....files.documents import check_head, head, number_to_json, read_document, write_document
from ....files.node import Node
from ....files.source import StrPath
from ..profiles import Profiles
from .features import SIDES, Feature
from .models import LEAF, Layers, Model, Trees
from .predictor import Predictor, Widths
from .training import MODELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..profiles import Value

PREDICTOR = "cms-predictor"
_FIELDS = (
    *("format", "schema", "model", "seed", "level", "online", "offline", "devices", "shares"),
    *("throughput_widths", "speed_widths", "features", "profiles", "throughput", "speed"),
)
_ARRAYS = ("feature", "threshold", "left", "right", "value")
_KINDS = ("number", "log", "missing", "is")


def write_predictor(predictor: Predictor, path: StrPath) -> None:
    """Write a predictor to a JSON file.

    Parameters
    ----------
    predictor : Predictor
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    write_document(lambda: predictor_to_json(predictor), path)


def read_predictor(path: StrPath) -> Predictor:
    """Read a predictor from a JSON file; what it predicts is what it predicted when written.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``, for whatever is wrong with the file.
    """
    return predictor_from_json(read_document(path, PREDICTOR))


def predictor_to_json(predictor: Predictor) -> dict[str, Any]:
    """Turn a predictor into the document that :func:`predictor_from_json` reads.

    Examples
    --------
    >>> from cms.fleet.sharing import MeasuredPair
    >>> from cms.fleet.sharing.predictor import train_predictor
    >>> pairs = [
    ...     MeasuredPair(a, b, "a30", 50, Fraction(ord(a), 200), Fraction(200, ord(b)))
    ...     for a in "abcde"
    ...     for b in "abcde"
    ... ]
    >>> predictor = train_predictor(pairs, model="ridge")
    >>> again = predictor_from_json(predictor_to_json(predictor))
    >>> again.throughput_widths == predictor.throughput_widths
    True
    """
    return {
        **head(PREDICTOR),
        "model": predictor.kind,
        "seed": predictor.seed,
        "level": predictor.level,
        "online": list(predictor.online),
        "offline": list(predictor.offline),
        "devices": list(predictor.devices),
        "shares": list(predictor.shares),
        "throughput_widths": predictor.throughput_widths._asdict(),
        "speed_widths": predictor.speed_widths._asdict(),
        "features": [feature._asdict() for feature in predictor.features],
        "profiles": [
            {"model": model, "device": device, "is": {c: _shown(v) for c, v in row.items()}}
            for (model, device), row in predictor.profiles.of_all().items()
        ],
        "throughput": _model_to_json(predictor.throughput),
        "speed": _model_to_json(predictor.speed),
    }


def predictor_from_json(document: Node | Mapping[str, Any]) -> Predictor:
    """Turn a parsed document into a predictor.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        Naming the value at fault.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, PREDICTOR)
    fields = node.object(_FIELDS)
    features = tuple(_feature(entry) for entry in fields["features"].array())
    least, largest = (share.integer(minimum=1) for share in fields["shares"].array(2))
    return Predictor(
        kind=fields["model"].one_of(MODELS),
        seed=fields["seed"].integer(),
        level=_part(fields["level"]),
        features=features,
        throughput=_model(fields["throughput"], len(features)),
        speed=_model(fields["speed"], len(features)),
        throughput_widths=_widths(fields["throughput_widths"]),
        speed_widths=_widths(fields["speed_widths"]),
        profiles=_profiles(fields["profiles"]),
        online=tuple(each.name("model") for each in fields["online"].array()),
        offline=tuple(each.name("model") for each in fields["offline"].array()),
        devices=tuple(each.name("device") for each in fields["devices"].array()),
        shares=(least, largest),
    )


def _shown(value: Value) -> Any:
    # A word could look like a number: numbers are JSON numbers, or fractions in a list.
    if value is None or isinstance(value, str):
        return value
    exact = number_to_json(value)
    return exact if isinstance(exact, int) else [exact]


def _profiles(node: Node) -> Profiles:
    rows: dict[tuple[str, str], dict[str, Value]] = {}
    for entry in node.array():
        parts = entry.object(("model", "device", "is"))
        key = parts["model"].name("model"), parts["device"].text()
        if key in rows:
            raise entry.error(f"{entry.label} is about a model and device that are there already")
        rows[key] = {column: _value(value) for column, value in parts["is"].entries()}
    return node.build(Profiles, rows)


def _value(node: Node) -> Value:
    if node.value is None or isinstance(node.value, str):
        return node.or_null(Node.text)
    if isinstance(node.value, list):
        (one,) = node.array(1)
        return one.number(None)
    return Fraction(node.integer(None))


def _feature(entry: Node) -> Feature:
    parts = entry.object(Feature._fields)
    scale = _float(parts["scale"])
    if scale <= 0:
        raise parts["scale"].wrong("a number > 0")
    return Feature(
        parts["side"].one_of((*SIDES, "pair")), parts["column"].text(),
        parts["kind"].one_of(_KINDS), parts["word"].text(), _float(parts["mean"]), scale,
    )  # fmt: skip


def _widths(node: Node) -> Widths:
    parts = node.object(Widths._fields)
    return Widths(*(_part(parts[name]) for name in Widths._fields))


def _float(node: Node) -> float:
    try:
        return float(node.number(None))
    except OverflowError:
        raise node.wrong("a number that fits into 64 bits") from None


def _part(node: Node) -> float:
    found = _float(node)
    if not 0 <= found <= 1:
        raise node.wrong("a number from 0 to 1")
    return found


def _model_to_json(model: Model) -> dict[str, Any]:
    if isinstance(model, Layers):
        layers = zip(model.matrices, model.added, strict=True)
        return {"layers": [{"matrix": m.tolist(), "added": a.tolist()} for m, a in layers]}
    ends = [*model.roots[1:].tolist(), len(model.left)]
    trees = []
    for first, end in zip(model.roots.tolist(), ends, strict=True):
        part = slice(first, end)
        tree: dict[str, Any] = {name: getattr(model, name)[part].tolist() for name in _ARRAYS}
        for side in ("left", "right"):
            tree[side] = [child if child == LEAF else child - first for child in tree[side]]
        trees.append(tree)
    return {"start": model.start, "trees": trees}


def _model(node: Node, inputs: int) -> Model:
    if isinstance(node.value, dict) and "layers" in node.value:
        return _layers(node.object(("layers",))["layers"], inputs)
    parts = node.object(("start", "trees"))
    roots, size = [], 0
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in _ARRAYS}
    for entry in parts["trees"].array():
        tree = entry.object(_ARRAYS)
        n = len(list(tree["feature"].array()))
        if not n:
            raise tree["feature"].wrong("at least one node")
        roots.append(size)
        for name in ("threshold", "value"):
            columns[name].append(_numbers(tree[name], n))
        feature = _whole(tree["feature"], n, inputs)
        left, right = (_whole(tree[side], n, n) for side in ("left", "right"))
        leaves = left == LEAF
        # Children stand behind their parents, so that every walk ends.
        ordered = (left > np.arange(n)) & (right > np.arange(n))
        if ((right == LEAF) != leaves).any() or not (leaves | ordered).all():
            raise tree["left"].error(
                f"{tree['left'].label} and its right are no tree",
                expected="both children behind their node, or -1 for both",
            )
        if (feature[~leaves] == LEAF).any():
            raise tree["feature"].error(
                f"{tree['feature'].label} has -1 at a node with children", expected="a feature"
            )
        columns["feature"].append(feature)
        for side, children in (("left", left), ("right", right)):
            columns[side].append(np.where(children == LEAF, LEAF, children + size))
        size += n

    def joined(name: str) -> NDArray[Any]:
        empty = np.empty(0, dtype=np.float64 if name in ("threshold", "value") else np.int64)
        return np.concatenate([*columns[name], empty])

    return Trees(_float(parts["start"]), np.array(roots, dtype=np.int64), *map(joined, _ARRAYS))


def _layers(node: Node, inputs: int) -> Layers:
    matrices, added = [], []
    width = inputs
    entries = list(node.array())
    for at, entry in enumerate(entries):
        parts = entry.object(("matrix", "added"))
        outputs = 1 if at == len(entries) - 1 else len(list(parts["added"].array()))
        rows = [_numbers(row, outputs) for row in parts["matrix"].array(width)]
        matrices.append(np.array(rows).reshape(width, outputs))
        added.append(_numbers(parts["added"], outputs))
        width = outputs
    if not entries:
        raise node.wrong("at least one layer")
    return Layers(tuple(matrices), tuple(added))


def _numbers(node: Node, length: int) -> NDArray[np.float64]:
    values: Sequence[Any] = [each.value for each in node.array(length)]
    if all(type(value) in (int, float, Fraction) for value in values):
        try:
            found = np.array([float(value) for value in values])
        except OverflowError:
            raise node.wrong("numbers that fit into 64 bits") from None
        if np.isfinite(found).all():
            return found
    raise node.wrong("numbers")


def _whole(node: Node, length: int, end: int) -> NDArray[np.int64]:
    values: Sequence[Any] = [each.value for each in node.array(length)]
    if all(type(value) is int and LEAF <= value < end for value in values):
        return np.array(values, dtype=np.int64)
    raise node.wrong(f"whole numbers from -1 to {end - 1}")
