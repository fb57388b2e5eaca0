"""Steps that can be left in their midst, and how long one may take to do so."""

from __future__ import annotations

from collections.abc import Callable

#: Seconds that an algorithm has to end, and to make its last claims, once it is to; of the half
#: second that is promised, the rest is for the answer itself.
GRACE_SECONDS = 0.4
#: Seconds between two looks at the clock, the caller's cancel event and Ctrl-C.
POLL_SECONDS = 0.05


class Stopped(Exception):
    """A run was stopped, so that a step of it has no result."""


def never() -> bool:
    """Answer for a step that is never stopped."""
    return False


def look(stopped: Callable[[], bool]) -> None:
    """Raise Stopped if the run is to end."""
    if stopped():
        raise Stopped
