"""What a checker says in a terminal, and its exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

#: Of a million jobs without a machine nobody reads the last.
SPELLED_OUT = 100


def told(path: Path, faults: Sequence[str], words: str) -> int:
    """Say what is wrong with what is at a path, or what it establishes."""
    for sentence in faults[:SPELLED_OUT] or [words]:
        print(printable(f"{path}: {sentence}"), file=sys.stderr if faults else sys.stdout)
    if len(faults) > SPELLED_OUT:
        print(printable(f"{path}: and {len(faults) - SPELLED_OUT} faults more"), file=sys.stderr)
    return 1 if faults else 0


def unreadable(path: Path, fault: Exception) -> int:
    """Say that it cannot be read."""
    print(printable(f"{path}: {fault}"), file=sys.stderr)
    return 2


def printable(text: str) -> str:
    """Return a sentence with whatever would steer a terminal, or begin a line, as escapes."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
