"""The head of a document: its format and schema version, and refusals of other versions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .documents import FORMATS
from .fields import refusal

#: The schema that this version writes and reads.
SCHEMA = 2
_OLD = (
    "configurable-machines 0.1.0 (tag v0.1.0) wrote this file and reads it; make it anew with this "
    "version, from the tables or the problem it was made from"
)


def require_head(value: Any, kind: str) -> None:
    """Refuse what is no document of a kind, or is of a schema that this version does not read."""
    holds = FORMATS[kind]
    if not isinstance(value, dict) or "format" not in value:
        raise refusal(f'an object with "format": "{kind}" ({holds})')
    schema = value.get("schema")
    if schema == 1 and schema is not True and str(value["format"]).startswith("cms-"):
        raise refusal(str(SCHEMA), "schema", fix=_OLD)  # some formats had other names then
    if value["format"] != kind:
        raise refusal(f'"{kind}" ({holds})', "format")
    if "schema" not in value:
        raise refusal('the key "schema"', what='{} has no "schema"')
    if schema != SCHEMA or isinstance(schema, bool):
        newer = isinstance(schema, int | Fraction) and schema > SCHEMA
        fix = "a newer version of configurable-machines wrote this file; install it to read it"
        raise refusal(str(SCHEMA), "schema", fix=fix if newer else None)


def head(kind: str) -> dict[str, Any]:
    """Begin a document: ``{"format": "cms-problem", "schema": 2}``."""
    return {"format": kind, "schema": SCHEMA}
