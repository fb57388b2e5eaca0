"""A value of a parsed document that knows the path to itself, and so its place in the file."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import FileError
from ..values.numbers import format_exact
from .json_text import locate
from .source import Source, quoted, shortened

_PLAIN = re.compile(r"[\w:-]+")  # keys that need no quotes in a path


class Parsed(NamedTuple):
    """A value of a parsed document and the path to it, by which errors find line and column."""

    value: Any
    source: Source = Source("<document>")
    path: tuple[str | int, ...] = ()

    def at(self, *path: str | int) -> Parsed:
        """Return a part of the value, None where there is none."""
        value = self.value
        for step in path:
            value = _child(value, step)
        return Parsed(value, self.source, (*self.path, *path))

    def error(self, what: str, *path: str | int, at_key: bool = False, **told: Any) -> FileError:
        """Build an error that points at a part of the value, or at its key."""
        value, key = locate(self.source, (*self.path, *path))
        while value is None and path:  # what is not there stands where it would
            path = path[:-1]
            value, key = locate(self.source, (*self.path, *path))
        return self.source.error(what, key if at_key and key is not None else value, **told)

    def label(self, *path: str | int) -> str:
        """Name a part of the value: ``jobs[3].demand (job 'bert')``."""
        text = about = ""
        for step in (*self.path, *path):
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                plain = shortened(step) if _PLAIN.fullmatch(step) else ""
                text += f".{plain}" if plain else f"[{quoted(step)}]"
        for end, (kind, step) in enumerate(pairwise(path), 2):
            called = self.at(*path[:end], "name").value
            if isinstance(step, int) and isinstance(kind, str) and isinstance(called, str):
                kind = re.sub("ies$", "y", kind).removesuffix("s").replace("_", " ")
                about = f" ({shortened(f'{kind} {called!r}', 200)})"
        return (shortened(text.removeprefix("."), 200) or "the document") + about

    def wrong(self, expected: str, *path: str | int, fix: str | None = None) -> FileError:
        """Build the error that a part of the value is not what was expected."""
        what = f"{self.label(*path)} is {show_value(self.at(*path).value)}"
        return self.error(what, *path, expected=expected, fix=fix)


def _child(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def show_value(value: Any) -> str:
    """Show a value as the file has it, or say what kind of thing it is."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    try:
        return shortened(format_exact(value) if isinstance(value, Fraction) else str(value))
    except ValueError:  # Python prints no more than 4300 digits
        return "a number of thousands of digits"
