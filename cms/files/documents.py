"""The head every document of ours has: what it holds, and by which schema."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..values.names import nearest
from .json_text import parse_json
from .node import Node
from .source import StrPath, read_source

#: The schema that this version writes, and the newest it reads.
SCHEMA = 1
#: What a document of each format holds; a layer adds its own with :func:`register_format`.
FORMATS = {
    "cms-problem": "a problem",
    "cms-solution": "a solution",
    "cms-plan": "a plan",
    "cms-problem-folder": "a problem in a folder",
    "cms-solution-folder": "a solution in a folder",
}


def register_format(kind: str, holds: str) -> None:
    """Make a format known that a layer above reads and writes, and what such a document is."""
    FORMATS[kind] = holds


def head(kind: str) -> dict[str, Any]:
    """Begin a document: ``{"format": "cms-problem", "schema": 1}``."""
    return {"format": kind, "schema": SCHEMA}


def read_document(path: StrPath, kind: str) -> Node:
    """Read and parse a JSON file, or standard input (``-``), and check its head."""
    source = read_source(path, holds="a JSON document")
    node = Node(parse_json(source, holds=FORMATS[kind]), source)
    check_head(node, kind)
    return node


def read_folder_document(folder: StrPath, file: str, kind: str) -> Node:
    """Read the document of a folder; see :func:`read_document`."""
    name, place = os.fspath(folder), Path(folder)
    if not place.is_dir():
        raise FileError(name, "is no folder", expected=FORMATS[kind])
    if not (place / file).exists():
        raise FileError(name, f"has no {file}", expected=FORMATS[kind])
    return read_document(place / file, kind)


def check_head(node: Node, kind: str) -> None:
    """Refuse a document of another format, or of a schema that is not known yet."""
    wanted = f'"format": "{kind}" ({FORMATS[kind]})'
    if not isinstance(node.value, dict):
        raise node.wrong(f"an object with {wanted}")
    if "format" not in node.value:
        raise node.error(f'{node.label} has no "format"', expected=wanted)
    found = node.at("format")
    if found.value != kind:
        known = FORMATS.get(found.value) if isinstance(found.value, str) else None
        shown = found.shown + (f" ({known})" if known else "")
        hint = "" if known else nearest(found.value, FORMATS, lead="")
        if known and found.value.endswith("-folder"):
            hint = "give the folder that it is in"
        raise found.error(
            f"{found.label} is {shown}", expected=json.dumps(kind) + f" ({FORMATS[kind]})", fix=hint
        )
    if "schema" not in node.value:
        raise node.error(f'{node.label} has no "schema"', expected=f'"schema": {SCHEMA}')
    schema = node.at("schema")
    if schema.integer(minimum=1) > SCHEMA:
        raise schema.wrong(
            f"at most {SCHEMA}",
            "a newer version of configurable-machines wrote this file; install it to read it",
        )
