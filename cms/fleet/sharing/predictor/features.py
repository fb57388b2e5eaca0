"""How two profiles, a device and a share become numbers that a model takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..profiles import Profiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDES = ("online", "offline")
#: A column whose values are all positive and this many times apart counts by its logarithm.
_WIDE = 10
_Value: TypeAlias = "float | str | None"


class Place(NamedTuple):
    """Who is beside whom, where, on what share: all that a prediction is asked for."""

    online_model: str
    offline_model: str
    device: str
    share: int


class Feature(NamedTuple):
    """A number made of one column of one side's profile, or of the pair's device or share."""

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
    """Choose features by what differs; without any profile, names stand for the models."""
    found: list[Feature] = []
    for side in SIDES:
        for column in profiles.numbers:
            found += _number(side, column, [_value(p, side, column, profiles) for p in places])
        for column in profiles.words or (() if profiles.numbers else ("model",)):
            found += _words(side, column, [_value(p, side, column, profiles) for p in places])
    found += _words("pair", "device", [place.device for place in places])
    return (*found, *_number("pair", "share", [float(place.share) for place in places]))


def encoded(
    places: Sequence[Place], features: Sequence[Feature], profiles: Profiles
) -> NDArray[np.float64]:
    """Return the features' values, shape (places, features)."""
    columns: dict[tuple[str, str], list[_Value]] = {}
    table = np.zeros((len(places), len(features)))
    for at, feature in enumerate(features):
        key = feature.side, feature.column
        if key not in columns:
            columns[key] = [_value(place, *key, profiles) for place in places]
        table[:, at] = [_as_number(value, feature) for value in columns[key]]
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
    return value if value is None or isinstance(value, str) else float(value)


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
    if len(words) < 2:
        return []
    return [Feature(side, column, "is", word, 0.0, 1.0) for word in words]
