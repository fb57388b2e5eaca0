"""How errors show what a file holds: quoted, printable on any terminal, not too long."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

_LONGEST = 60


def quoted(text: str) -> str:
    """Show a text in double quotes, as JSON has it."""
    # A terminal may not be able to print half of a surrogate pair, or may obey a control character.
    return shortened(json.dumps(text, ensure_ascii=not text.isprintable()))


def plain(name: str) -> str:
    """Show a name without quotes, unless it has characters that cannot be printed."""
    return shortened(name) if name.isprintable() else quoted(name)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Cut a text off that is longer than so many characters, and say how long it is."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]}... ({len(text)} characters)"


def one_of(names: Iterable[str]) -> str:
    """Word what was expected where only some names are allowed."""
    known = [plain(name) for name in islice(names, 9)]
    if not known:
        return "none: there are no names to choose from"
    return f"one of {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
