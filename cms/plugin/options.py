"""An algorithm's options: from the user's mapping to the algorithm's own frozen dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import AlgorithmError, InvalidOption
from ..values.names import nearest
from .algorithm import Algorithm


def read_options(algorithm: Algorithm, given: Mapping[str, object]) -> Any:
    """Make an algorithm's options, with its defaults for what is not given.

    Parameters
    ----------
    algorithm : Algorithm
    given : Mapping[str, object]
        Values by name; the dataclass's own ``__post_init__`` converts and checks them.

    Returns
    -------
    object
        Of the algorithm's ``options_type``.

    Raises
    ------
    InvalidOption
        If an option is unknown (it lists those there are) or a value is refused.
    AlgorithmError
        If ``options_type`` is not a frozen dataclass with a default for every option.
    """
    name, kind = algorithm.name, algorithm.options_type
    fields = option_fields(algorithm)
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
                + (known or "none")
            )
    try:
        return kind(**given)
    except InvalidOption:
        raise
    except (TypeError, ValueError, ArithmeticError) as fault:
        culprits = [option for option, value in given.items() if _refused(kind, option, value)]
        # none by itself: the values are refused together
        shown = ", ".join(f"{key} = {given[key]!r}" for key in culprits or given)
        raise InvalidOption(f"method {name!r}, option {shown}: {fault}") from fault


def option_fields(algorithm: Algorithm) -> dict[str, object]:
    """Return an algorithm's options with their defaults.

    Raises
    ------
    AlgorithmError
        If ``options_type`` is not a frozen dataclass with a default for every option.
    """
    kind = algorithm.options_type
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):  # type: ignore[redundant-expr]
        raise AlgorithmError(
            algorithm.name, f"options_type is {kind!r}; expected a frozen dataclass"
        )
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise AlgorithmError(
            algorithm.name, f"options_type {kind.__name__} is not frozen; a run could change it"
        )
    try:
        defaults = kind()
    except TypeError as fault:
        raise AlgorithmError(
            algorithm.name, f"options_type {kind.__name__} needs a default for every option"
        ) from fault
    return {field.name: getattr(defaults, field.name) for field in _settable(kind)}


def _settable(kind: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(kind) if field.init]


def _refused(kind: Any, option: str, value: object) -> bool:
    try:
        kind(**{option: value})
    except (TypeError, ValueError, ArithmeticError):
        return True
    return False
