"""Files whose kind the command line finds out by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cms.files import Parsed


def open_document(path: Path) -> tuple[str, Parsed]:
    """Parse a JSON file, of a path or ``-``; return its ``format``, empty without one, and it."""
    from cms.files.documents import parse_document

    document = parse_document(path)
    value = document.value
    kind = value.get("format") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else "", document
