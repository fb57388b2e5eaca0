"""JSON text becomes exact numbers by the hooks of the standard library; faults get their place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from ..errors import FileError
from ..values.numbers import LARGEST_DIGITS, parse_exact
from .source import Source, quoted

_BLANK = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|NaN|-?Infinity|-?[0-9][-+.eE0-9]*|[a-z]+', re.DOTALL
)
# Values are skipped, not read, on the way to a position: numbers may stay text.
_SKIP = json.JSONDecoder(parse_int=str, parse_float=str)


def parse_json(source: Source) -> Any:
    """Parse a JSON document: integers become int, other numbers Fraction, exactly."""
    value, end = parse_part(source, skip_blanks(source.text, 0))
    if (end := skip_blanks(source.text, end)) < len(source.text):
        what = f"there is more after the document: {_excerpt(source.text, end)}"
        raise source.error(what, end, expected="one document")
    return value


def parse_part(source: Source, begin: int) -> tuple[Any, int]:
    """Parse the value that begins at an offset, and say where it ends."""
    try:
        return _EXACT.raw_decode(source.text, begin)
    except json.JSONDecodeError as fault:
        raise _syntax_error(source, fault) from None
    except ValueError:  # of a hook, which does not know where in the text it is
        _raise_first_fault(source, begin)
    except RecursionError:
        raise source.error("the document is nested too deeply to be read") from None


def locate(source: Source, path: Sequence[str | int]) -> tuple[int | None, int | None]:
    """Find the offsets of the value that a path leads to, and of its key in the object around it.

    The document is one that :func:`parse_json` has read; None for the key of an array's entry and
    of the root, and both None if there is no such value.
    """
    text = source.text
    if source.places is not None:
        return source.places.get(tuple(path), (None, None))
    if not text:
        return None, None
    at, key_at = skip_blanks(text, source.begin), None
    try:
        for step in path:
            at, key_at = _descend(text, at, step)
    except (LookupError, ValueError, RecursionError):  # there is no such value
        return None, None
    return at, key_at


def _descend(text: str, at: int, step: str | int) -> tuple[int, int | None]:
    if text[at] != ("{" if isinstance(step, str) else "["):
        raise LookupError(step)
    index = 0
    while text[at] not in "}]":
        at, key_at = skip_blanks(text, at + 1), None
        key: str | int = index
        if isinstance(step, str):
            key_at = at
            key, at = _SKIP.raw_decode(text, at)
            at = skip_blanks(text, skip_blanks(text, at) + 1)  # past the colon
        if key == step:
            return at, key_at
        at = skip_blanks(text, _SKIP.raw_decode(text, at)[1])
        index += 1
    raise LookupError(step)


def skip_blanks(text: str, at: int) -> int:
    """Find the next character that is none of JSON's blanks."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _integer(text: str) -> int:
    # int() takes time that grows with the square of the digits; Python's own limit may be off
    if len(text) - text.startswith("-") > LARGEST_DIGITS:
        raise ValueError("too many digits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


#: With hooks that make numbers exact, and refuse what the standard library lets pass.
_EXACT = json.JSONDecoder(
    parse_float=parse_exact,
    parse_int=_integer,
    parse_constant=parse_exact,
    object_pairs_hook=_unique,
)


def _raise_first_fault(source: Source, begin: int) -> NoReturn:
    """Scan for what made a hook refuse; up to there the text is known to be well-formed."""
    keys: list[set[str] | None] = []  # of every open container, None for an array
    at_key = False
    for match in _TOKEN.finditer(source.text, begin):
        token, at = match[0], match.start()
        if token[0] == '"':
            if at_key and keys[-1] is not None:
                key = json.loads(token)
                if key in keys[-1]:
                    raise twice(source, key, at)
                keys[-1].add(key)
            at_key = False
        elif token in "{[":
            keys.append(set() if token == "{" else None)
            at_key = token == "{"
        elif token in "}]":
            keys.pop()
        elif token == ",":
            at_key = keys[-1] is not None
        elif token in ("NaN", "Infinity", "-Infinity"):
            raise source.error(f"{token} is no number", at, expected="a finite number")
        elif token[0] in "-0123456789" and (
            len(token) > LARGEST_DIGITS or "e" in token or "E" in token
        ):  # others are in range: to look at each would take far longer than reading it
            number_at(source, token, at)
    raise source.error("a number or a key is not allowed")


def twice(source: Source, key: str, at: int) -> FileError:
    """Build the error that a key is there a second time."""
    return source.error(f"the key {quoted(key)} is there twice", at, fix="remove one of them")


def number_at(source: Source, token: str, at: int) -> int | Fraction:
    """Read the number that stands at an offset."""
    try:
        return parse_exact(token) if {".", "e", "E"} & set(token) else _integer(token)
    except ValueError:
        shown = token if len(token) <= 20 else f"{token[:12]}... ({len(token)} characters)"
        raise source.error(
            f"the number {shown} is out of range",
            at,
            expected=f"at most {LARGEST_DIGITS} digits and an exponent of at most 400",
        ) from None


# What the parser says, and what a person is told instead; its own words differ between versions.
_EXPECTED = {
    "property name": "a key in double quotes",
    "':'": '":"',
    "','": "a comma or the closing bracket",
}


def _syntax_error(source: Source, fault: json.JSONDecodeError) -> FileError:
    text, at = fault.doc, fault.pos
    if source.name.lower().endswith((".csv", ".tsv")):
        return source.error(
            "this is a table",
            expected="a JSON document",
            fix="'cms plan --services S.csv --operating-points P.csv -o plan.json' reads tables",
        )
    if fault.msg.startswith("Unterminated string"):
        return source.error("this text is never closed", at, fix='close it with "')
    if fault.msg.startswith("Invalid"):  # an escape, or a control character
        what, expected = f"{text[at : at + 1]!r} inside a text", r"an escape: \" \\ \/ \n \t \u0041"
        return source.error(what, at, expected=expected, fix='or close the text with "')
    at = skip_blanks(text, at)
    before = text[:at].rstrip(" \t\n\r")
    expected = next((told for word, told in _EXPECTED.items() if word in fault.msg), "a value")
    expected += ', or "}"' if "key" in expected and before.endswith("{") else ""
    if at >= len(text):
        fix = "was the file cut off?"
        return source.error("the document ends too early", at, expected=expected, fix=fix)
    # up to Python 3.12 the parser stops at the bracket, later ones at the comma before it
    trailing = at if text[at] == "," else len(before) - 1
    closes = skip_blanks(text, trailing + 1)
    if text[trailing : trailing + 1] == "," and text[closes : closes + 1] in ("}", "]"):
        return source.error(f'a comma before "{text[closes]}"', trailing, fix="remove the comma")
    return source.error(f"unexpected {_excerpt(text, at)}", at, expected=expected)


def _excerpt(text: str, at: int) -> str:
    match = re.compile(r'"[^"\\]{0,30}"|[\w.+-]{1,20}|.', re.DOTALL).match(text, at)
    token = match[0] if match else ""
    return quoted(token[1:-1] if len(token) > 1 and token[0] == '"' else token)
