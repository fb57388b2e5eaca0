"""An algorithm's options: from the user's mapping to the algorithm's own frozen dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import AlgorithmError, InvalidOption
from ..values.names import nearest
from .algorithm import Algorithm

_REFUSALS = TypeError, ValueError, ArithmeticError


def read_options(algorithm: Algorithm, given: Mapping[str, object]) -> Any:
    """Make an object of the algorithm's ``options_type``, with defaults for what is not given.

    Its own ``__post_init__`` converts and checks values. InvalidOption if an option is unknown or a
    value is refused.
    """
    name, kind, fields = algorithm.name, algorithm.options_type, option_fields(algorithm)
    if not isinstance(given, Mapping):
        raise InvalidOption(
            f"options is {given!r}; expected a mapping of names to values, such as "
            '{"epsilon": "1/4"}'
        )
    for option in given:
        if option not in fields:
            known = ", ".join(f"{key} (default {value})" for key, value in fields.items())
            raise InvalidOption(
                f"method {name!r} has no option {option!r}{nearest(str(option), fields)}; it has "
                f"{known or 'none'}"
            )
    try:
        return kind(**given)
    except InvalidOption:
        raise
    except _REFUSALS as fault:
        culprits = [option for option, value in given.items() if _refused(kind, option, value)]
        # none by itself: the values are refused together
        shown = ", ".join(f"{key} = {given[key]!r}" for key in culprits or given)
        raise InvalidOption(f"method {name!r}, option {shown}: {fault}") from fault


def option_fields(algorithm: Algorithm) -> dict[str, object]:
    """Return an algorithm's options with their defaults.

    AlgorithmError if ``options_type`` is not a frozen dataclass with a default for every option.
    """
    kind = algorithm.options_type
    words = f"options_type {getattr(kind, '__name__', '')}"
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):  # type: ignore[redundant-expr]
        words = f"options_type is {kind!r}; expected a frozen dataclass"
        raise AlgorithmError(algorithm.name, words)
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise AlgorithmError(algorithm.name, f"{words} is not frozen; a run could change it")
    try:
        defaults = kind()
    except TypeError as fault:
        raise AlgorithmError(algorithm.name, f"{words} needs a default for every option") from fault
    settable = [field.name for field in dataclasses.fields(kind) if field.init]
    return {name: getattr(defaults, name) for name in settable}


def _refused(kind: Any, option: str, value: object) -> bool:
    try:
        kind(**{option: value})
    except _REFUSALS:
        return True
    return False
