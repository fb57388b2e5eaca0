"""From JSON text to exact numbers and checked shapes: the only door into the checker."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from functools import cache
from math import gcd, lcm
from typing import Any, TypeVar

T = TypeVar("T")
ZERO = Fraction(0)

_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[+-]?\d+))?)", re.ASCII)
# 1e999999999 would fill the memory; nobody measures anything that large.
_LARGEST_EXPONENT = 400
# Python reads no longer integers, and prints none.
_LARGEST_DIGITS = 4300
_TOO_LARGE = 10**_LARGEST_DIGITS
# Control characters and line ends would make two lists of names look alike; surrogates are no text.
_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_KINDS: dict[Any, str] = {str: "a text", list: "a list", dict: "an object"}


class Fault(ValueError):
    """A document is not what it should be; the message is a sentence naming the thing."""


def rational(text: str) -> Fraction:
    """Read ``12``, ``12.5``, ``1e3`` or ``1/3``."""
    if len(text) > _LARGEST_DIGITS and any(
        sum(map(str.isdigit, part)) > _LARGEST_DIGITS for part in re.split("[/eE]", text)
    ):
        raise Fault(f"{show(text)} has more than {_LARGEST_DIGITS} digits")
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise Fault(f"{show(text)} is not a number; write 12, 12.5, 1e3 or 1/3")
    try:
        if abs(int(match["exponent"] or 0)) > _LARGEST_EXPONENT:
            raise Fault(f"{show(text)} has an exponent beyond {_LARGEST_EXPONENT}")
        value = Fraction(match[0])
        if max(abs(value.numerator), value.denominator) >= _TOO_LARGE:
            raise Fault(f"{show(text)} has more than {_LARGEST_DIGITS} digits")
        return value
    except ZeroDivisionError:
        raise Fault(f"{show(text)} divides by zero") from None


def common_step(numbers: Sequence[Fraction]) -> Fraction:
    """Find the largest number of which all are whole multiples; 0 if all are 0."""
    unit = lcm(*(value.denominator for value in numbers))
    return Fraction(gcd(*(int(value * unit) for value in numbers)), unit)


def parse_document(text: str) -> Any:
    """Read a JSON document with every number exact: none passes through a float.

    A Fault if it is not JSON, has a key twice in one object, or has NaN or an infinity in it.
    """
    try:
        return json.loads(
            text, parse_float=rational, parse_constant=rational, object_pairs_hook=_unique_keys
        )
    except RecursionError:
        raise Fault("the document is nested too deeply to be read") from None
    except ValueError as fault:  # also an integer of more digits than Python reads
        raise Fault(f"the document cannot be read: {fault}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Two readers could take different ones of two equal keys.
    table = dict(pairs)
    if len(table) < len(pairs):
        no_duplicates([key for key, _ in pairs], "key")
    return table


def no_duplicates(names: list[str], kind: str) -> None:
    """Refuse a name that is there twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise Fault(f"the {kind} {show(name)} is there {count} times")


def show(value: object) -> str:
    """Write a value for a message, shortened."""
    if isinstance(value, str):  # a name may be as long as a file
        return repr(value) if len(value) <= 60 else f"{value[:60]!r}... ({len(value)} characters)"
    try:
        text = str(value) if isinstance(value, int | Fraction) else repr(value)
    except (ValueError, RecursionError):
        return "(too long to show)"
    return text if len(text) <= 60 else text[:57] + "..."


def _named(what: tuple[object, ...]) -> str:
    """Say what a value is: words and names in turn, the names cut. Only messages need it."""
    return " ".join(show(part) if at % 2 else str(part) for at, part in enumerate(what))


def as_a(kind: type[T], value: object, *what: object) -> T:
    """Return the value if it is of this kind."""
    if not isinstance(value, kind):
        raise Fault(f"{_named(what)} is {show(value)}, not {_KINDS[kind]}")
    return value


def sentences(examine: Callable[[], Sequence[str]]) -> list[str]:
    """Return what is wrong with documents, or the one sentence why they cannot be read."""
    try:
        return list(examine())
    except ValueError as fault:
        return [str(fault)]


def optional(value: object, *what: object, signed: bool = False) -> Fraction | None:
    """Return an exact number, or None."""
    return None if value is None else number(value, *what, signed=signed)


def refuse_no_time(value: object, *what: object) -> None:
    """Refuse what is no time; times prove nothing, and may even be binary floats."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not value >= 0:
        raise Fault(f"{_named(what)} is {show(value)}, not a number >= 0")
    if value > sys.float_info.max:
        raise Fault(f"{_named(what)} is {show(value)}, which is no time")


def number(value: object, *what: object, signed: bool = False) -> Fraction:
    """Return an exact number: a JSON number, or text; never a binary float."""
    if isinstance(value, str):
        try:
            result = rational(value)
        except ValueError as fault:
            raise Fault(f"{_named(what)}: {fault}") from None
    elif isinstance(value, int | Fraction) and not isinstance(value, bool):
        result = Fraction(value)
    else:
        raise Fault(f"{_named(what)} is {show(value)}, not an exact number")
    if result.numerator < 0 and not signed:
        raise Fault(f"{_named(what)} is {show(result)}, which is negative")
    return result


def integer(value: object, *what: object, least: int | None = 0) -> int:
    """Return a JSON integer, at least ``least``."""
    if isinstance(value, Fraction) and value.denominator == 1:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Fault(f"{_named(what)} is {show(value)}, not an integer")
    if least is not None and value < least:
        raise Fault(f"{_named(what)} is {show(value)}, less than {least}")
    return value


def new_name(value: object, what: str) -> str:
    """Return the name of a block, a job or a machine type."""
    name = as_a(str, value, what)
    if not name or _NOT_IN_NAMES.search(name):
        raise Fault(f"{what} is {show(name)}; a name is not empty and has no control characters")
    return name


def known_name(known: Collection[str], value: object, *what: object) -> str:
    """Return a name that the problem has."""
    if not isinstance(value, str) or value not in known:
        raise Fault(f"{_named(what)} is {show(value)}, which the problem does not have")
    return value


def table_over(known: Collection[str] | None, value: object, *what: object) -> dict[str, Any]:
    """Return an object whose keys are names, those that the problem has if they are known yet."""
    table = as_a(dict, value, *what)
    for key in table:
        if known is None:
            new_name(key, f"a key of {_named(what)}")
        elif key not in known:
            known_name(known, key, f"a key of {_named(what)}")
    return table


@cache
def _keys(required: str, optional: str) -> tuple[list[str], set[str]]:
    return required.split(), {*required.split(), *optional.split()}


def record(
    value: object, what: str, required: str, optional: str = "", *, own: bool = True
) -> dict[str, Any]:
    """Return an object with these keys; those that start with ``x-`` are the user's own.

    Any other is refused, so that a misspelt ``limit`` does not silently mean no limit.
    """
    table = as_a(dict, value, what)
    needed, known = _keys(required, optional)
    for key in needed:
        if key not in table:
            raise Fault(f"{what} has no {show(key)}")
    for key in table:
        if key not in known and not (own and key.startswith("x-")):
            raise Fault(f"{what} has the unknown key {show(key)}")
    return table


def check_head(document: object, kind: str) -> None:
    """Refuse a document of another format or schema version."""
    table = as_a(dict, document, f"the {kind} document")
    if table.get("format") != f"cms-{kind}":
        raise Fault(f"the format is {show(table.get('format'))}, not 'cms-{kind}'")
    if integer(table.get("schema"), "the schema version") != 2:
        raise Fault(f"the schema version is {show(table['schema'])}; this checker knows version 2")
