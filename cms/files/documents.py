"""Our JSON documents: the head that says what each holds and by which schema, and their layout."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..values.numbers import LARGEST_DIGITS, has_too_many_digits, json_number, shown
from .json_text import parse_json
from .parsed import Parsed
from .source import StrPath, read_source, write_bytes

#: What a document of each format holds.
FORMATS = {
    "cms-problem": "a problem",
    "cms-solution": "a solution",
    "cms-plan": "a plan",
    "cms-problem-folder": "a problem in a folder",
    "cms-solution-folder": "a solution in a folder",
    "cms-deployment": "a deployment",
    "cms-transition": "a transition",
    "cms-simulation": "a simulation",
    "cms-colocation-problem": "a co-location problem",
    "cms-colocation-solution": "a solution of a co-location problem",
    "cms-colocation-day": "a simulated day of shared GPUs",
    "cms-monitor": "thresholds and times of a monitor",
    "cms-predictor": "a predictor of what workloads do to each other",
}


def parse_document(path: StrPath) -> Parsed:
    """Read and parse a JSON file, or standard input (``-``)."""
    source = read_source(path, holds="a JSON document")
    return Parsed(parse_json(source), source)


def read_folder_document(folder: StrPath, file: str, kind: str) -> Parsed:
    """Read the document of a folder; see :func:`parse_document`."""
    name, place = os.fspath(folder), Path(folder)
    if not place.is_dir():
        raise FileError(name, "is no folder", expected=FORMATS[kind])
    if not (place / file).exists():
        raise FileError(name, f"has no {file}", expected=FORMATS[kind])
    return parse_document(place / file)


def number_to_json(value: Fraction | int) -> int | str:
    """Write a number exactly: an integer as a JSON integer, anything else as text."""
    if has_too_many_digits(value):
        raise FileError(
            "<document>",
            f"the document cannot be written: it has the number {shown(value)}",
            expected=f"numbers of at most {LARGEST_DIGITS} digits, as readers take them",
            fix="choose a larger unit",
        )
    return json_number(value)


def lay_out(document: Any) -> str:
    """Turn a document into text, one entry of every list of objects a line."""
    return "".join([*_lines(document, ""), "\n"])


def write_document(make: Callable[[], Mapping[str, Any]], path: StrPath) -> None:
    """Make a document and write it to a file, or to standard output if the path is ``-``."""
    write_bytes(document_text(make, os.fspath(path)).encode(), path)


def document_text(make: Callable[[], Mapping[str, Any]], name: str) -> str:
    """Make a document and lay it out, for a file so called."""
    try:
        text = lay_out(make())
        text.encode()
    except FileError as fault:
        raise FileError(name, fault.what, expected=fault.expected, fix=fault.fix) from None
    except RecursionError:
        raise FileError(name, "the document is nested too deeply to be written") from None
    except ValueError as fault:  # half of a surrogate pair in a text; too many digits of a count
        raise FileError(name, f"the document cannot be written: {fault}") from None
    return text


def _lines(value: Any, indent: str) -> list[str]:
    if indent and not _is_spread(value):
        return [json_line(value)]
    inner = f"{indent}  "
    if isinstance(value, dict):
        opening, closing = "{", "}"
        parts = [[json_line(key), ": ", *_lines(item, inner)] for key, item in value.items()]
    else:
        opening, closing = "[", "]"
        parts = [[json_line(item)] for item in value]
    pieces = [opening]
    for number, part in enumerate(parts):
        pieces += [",\n" if number else "\n", inner, *part]
    return [*pieces, "\n", indent, closing]


def _is_spread(value: Any) -> bool:
    """Whether a value takes several lines: a list of objects, and what has one in it."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict)
    return isinstance(value, dict) and any(_is_spread(item) for item in value.values())


def json_line(value: Any) -> str:
    """Write a value on one line, which no terminal obeys: what steers one is an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if text.isprintable():
        return text
    # Halves of surrogate pairs stay, and are refused: no reader takes them.
    return "".join(
        char if char.isprintable() or "\ud800" <= char <= "\udfff" else json.dumps(char)[1:-1]
        for char in text
    )
