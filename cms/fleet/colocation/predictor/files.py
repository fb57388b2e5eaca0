"""Predictors as JSON documents: plain numbers, which run nothing when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from ....files import fields as f
from ....files import model as m
from ....files.documents import number_to_json, parse_document, write_document
from ....files.parsed import Parsed
from ....files.source import StrPath
from ..files import part_of, require_length
from ..weights import Profiles
from ..weights import Value as ProfileValue
from .models import LEAF, SIDES, Feature, Layers, Model, Trees
from .predictor import Predictor, Widths
from .training import MODELS

_ModelName = Annotated[str, f.name("model")]


def _read_float(value: Any) -> float:
    if isinstance(value, str):
        raise f.refusal("a number")
    try:
        return float(f.read_any_number(value))
    except OverflowError:
        raise f.refusal("a number that fits into 64 bits") from None


def _read_part_of_one(value: Any) -> float:
    if not 0 <= (found := _read_float(value)) <= 1:
        raise f.refusal("a number from 0 to 1")
    return found


_Float = Annotated[float, f.Value(_read_float, type="number")]
_PartOfOne = Annotated[float, f.Value(_read_part_of_one, type="number", minimum=0, maximum=1)]
_Index = Annotated[int, f.whole(-1)]


_WidthsPart = part_of(Widths, pair=_PartOfOne, victim=_PartOfOne, aggressor=_PartOfOne)


def _build_feature(**told: Any) -> Feature:
    found = Feature(**told)
    f.refuse_unknown(found.side, "side", (*SIDES, "pair"), "side")
    if found.scale <= 0:
        raise f.refusal("a number > 0", "scale")
    return found


_FeaturePart = part_of(
    Feature, _build_feature, mean=_Float, scale=_Float,
    kind=Literal["number", "log", "missing", "is"],
)  # fmt: skip


def _read_value(value: Any) -> ProfileValue:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        require_length(value, 1)
        number: Fraction = f.read_any_number(value[0])
        return number
    return Fraction(f.whole(None).read(value))


def _write_value(value: ProfileValue) -> Any:
    # A word could look like a number: numbers are JSON numbers, or fractions in a list.
    if value is None or isinstance(value, str):
        return value
    exact = number_to_json(value)
    return exact if isinstance(exact, int) else [exact]


class _ProfilePart(m.Part):
    model: _ModelName
    device: f.Text
    row: dict[str, Annotated[Any, f.Value(_read_value, _write_value)]] = Field(alias="is")


class _TreesPart(m.Part):
    start: _Float
    roots: tuple[f.Count, ...]
    feature: tuple[_Index, ...]
    threshold: tuple[_Float, ...]
    left: tuple[_Index, ...]
    right: tuple[_Index, ...]
    value: tuple[_Float, ...]

    def model(self, inputs: int) -> Trees:
        n = len(self.feature)
        if not self.roots:
            raise f.refusal("at least one tree", "roots")
        for key in ("threshold", "left", "right", "value"):
            require_length(getattr(self, key), n, key)
        for key, end in (("roots", n), ("feature", inputs), ("left", n), ("right", n)):
            if max(getattr(self, key), default=LEAF) >= end:
                raise f.refusal(f"whole numbers below {end}", key)
        trees = Trees(self.start, *(np.array(column) for key, column in self if key != "start"))
        left, right, leaves = trees.left, trees.right, trees.left == LEAF
        ordered = (left > np.arange(n)) & (right > np.arange(n))
        if ((right == LEAF) != leaves).any() or not (leaves | ordered).all():
            expected = "both children behind their node, or -1 for both"
            raise f.refusal(expected, "left", what="{} and its right are no tree")
        if (trees.feature[~leaves] == LEAF).any():
            raise f.refusal("a feature", "feature", what="{} has -1 at a node with children")
        return trees

    @classmethod
    def from_object(cls, value: Trees, **other: Any) -> Self:
        columns = cls.model_fields.keys() - {"start"}
        told = {key: getattr(value, key).tolist() for key in columns}
        return cls.from_fields(start=value.start, **told)


class _LayerPart(m.Part):
    matrix: tuple[tuple[_Float, ...], ...]
    added: tuple[_Float, ...]


class _LayersPart(m.Part):
    layers: tuple[_LayerPart, ...]

    def model(self, inputs: int) -> Layers:
        if not self.layers:
            raise f.refusal("at least one layer", "layers")
        width, matrices = inputs, []
        for index, layer in enumerate(self.layers):
            outputs = 1 if index == len(self.layers) - 1 else len(layer.added)
            require_length(layer.matrix, width, "layers", index, "matrix")
            require_length(layer.added, outputs, "layers", index, "added")
            for at, row in enumerate(layer.matrix):
                require_length(row, outputs, "layers", index, "matrix", at)
            matrices.append(np.array(layer.matrix).reshape(width, outputs))
            width = outputs
        return Layers(tuple(matrices), tuple(np.array(layer.added) for layer in self.layers))

    @classmethod
    def from_object(cls, value: Layers, **other: Any) -> Self:
        layers = [
            _LayerPart.from_fields(matrix=tuple(map(tuple, matrix.tolist())), added=added.tolist())
            for matrix, added in zip(value.matrices, value.added, strict=True)
        ]
        return cls.from_fields(layers=layers)


def _read_model(value: Any) -> Any:
    layers = isinstance(value, dict) and "layers" in value
    return m.read_part(_LayersPart if layers else _TreesPart, value)


def _write_model(model: Model) -> dict[str, Any]:
    part: type[m.Part] = _LayersPart if isinstance(model, Layers) else _TreesPart
    return part.from_object(model).to_json()


_Model = Annotated[Any, f.Value(_read_model, _write_model, (_TreesPart, _LayersPart))]


class PredictorDocument(m.Document):
    """A predictor."""

    KIND: ClassVar[str] = "cms-predictor"
    model: f.Text
    seed: f.Count
    level: _PartOfOne
    online: tuple[_ModelName, ...]
    offline: tuple[_ModelName, ...]
    devices: tuple[Annotated[str, f.name("device")], ...]
    shares: tuple[f.AtLeastOne, f.AtLeastOne]
    throughput_widths: Annotated[Widths, m.Built(_WidthsPart)]
    speed_widths: Annotated[Widths, m.Built(_WidthsPart)]
    features: tuple[Annotated[Feature, m.Built(_FeaturePart)], ...]
    profiles: tuple[_ProfilePart, ...]
    throughput: _Model
    speed: _Model

    def build(self) -> Predictor:
        """Build the predictor."""
        f.refuse_unknown(self.model, "model", MODELS, "model")
        told, rows = dict(self), {}
        for index, part in enumerate(self.profiles):
            if (key := (part.model, part.device)) in rows:
                what = "{} is about a model and device that are there already"
                raise f.refusal(None, "profiles", index, what=what)
            rows[key] = part.row
        for side in ("throughput", "speed"):
            with f.blaming(side):
                told[side] = told[side].model(len(self.features))
        with f.blaming("profiles"):
            told["profiles"] = Profiles(rows)
        return Predictor(kind=told.pop("model"), **told)

    @classmethod
    def from_object(cls, value: Predictor, **other: Any) -> Self:
        """Describe a predictor."""
        profiles = [
            _ProfilePart.from_fields(model=model, device=device, row=dict(row))
            for (model, device), row in value.profiles.of_all().items()
        ]
        return super().from_object(value, model=value.kind, profiles=profiles)


def write_predictor(predictor: Predictor, path: StrPath) -> None:
    """Write a predictor to a JSON file."""
    write_document(lambda: predictor_to_json(predictor), path)


def read_predictor(path: StrPath) -> Predictor:
    """Read a predictor from a JSON file; it predicts as when it was written."""
    return predictor_from_json(parse_document(path))


def predictor_to_json(predictor: Predictor) -> dict[str, Any]:
    """Turn a predictor into the document that :func:`predictor_from_json` reads."""
    return PredictorDocument.from_object(predictor).to_json()


def predictor_from_json(document: Parsed | Mapping[str, Any]) -> Predictor:
    """Turn a parsed document into a predictor; a FileError names the value at fault."""
    found: Predictor = m.build(PredictorDocument, document)
    return found
