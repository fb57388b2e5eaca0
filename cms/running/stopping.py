"""Steps that can be left in their midst."""

from __future__ import annotations

from collections.abc import Callable


class Stopped(Exception):
    """A run was stopped, so that a step of it has no result."""


def never() -> bool:
    """Answer for a step that nobody stops."""
    return False


def look(stopped: Callable[[], bool]) -> None:
    """Raise Stopped if the run is to end."""
    if stopped():
        raise Stopped
