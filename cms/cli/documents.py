"""Files whose kind the command line finds out by itself."""

from __future__ import annotations

from pathlib import Path

from cms.files import Parsed
from cms.files.documents import parse_document


def open_document(path: Path) -> tuple[str, Parsed]:
    """Parse a JSON file, of a path or ``-``; return its ``format``, empty without one, and it."""
    document = parse_document(path)
    value = document.value
    kind = value.get("format") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else "", document
