"""What a person sees on stderr of a command that takes more than two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self, TextIO

import cms
from cms.solving.words import log_head, log_line
from cms.values.words import decimal

FIRST_LINE_SECONDS = 2.0
"""A run that is over before this time logs nothing."""
EVERY_SECONDS = 5.0
"""The longest time between two lines."""
_SHORTEST_PAUSE_SECONDS = 0.25
_BAR_LETTERS = 20
_WIPE = "\r\x1b[K"


class _Teller:
    """Writes to a stream until the reader has gone: the run itself is not at fault."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Write nothing from here on."""

    def _tell(self, text: str) -> bool:
        if self._stream is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):
                self._stream = None
        return self._stream is not None


class Progress(_Teller):
    """A context manager that logs a run; its instance is ``solve``'s ``on_improvement``.

    A thread of its own writes, so that a line appears also while nothing improves. Improvements
    that follow each other within a quarter of a second share a line.
    """

    def __init__(
        self,
        stream: TextIO,
        what: str = "best",
        *,
        prepare: Callable[[], object] = lambda: None,
        first: float = FIRST_LINE_SECONDS,
        every: float = EVERY_SECONDS,
    ) -> None:
        super().__init__(stream)
        self.lines = 0
        self._what, self._prepare, self._first, self._every = what, prepare, first, every
        self._state: cms.Incumbent | None = None
        self._printed: cms.Incumbent | None = None
        self._over = False
        self._doing = ""
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_lines, name="cms-progress", daemon=True)

    def watch(self, what: str, done: int, of: int) -> None:
        """Take note of how many shards of a problem are through; the next line says so."""
        self._doing = f"  {what}: {decimal(done)} of {decimal(of)} shards"

    def __call__(self, incumbent: cms.Incumbent) -> None:
        """Take note of an improvement; the thread writes it."""
        with self._changed:
            self._state = incumbent
            self._changed.notify()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def end(self) -> None:
        """End the log."""
        with self._changed:
            self._over = True
            self._changed.notify()
        # The thread may be blocked on a terminal that a person has paused: do not wait for ever.
        self._thread.join(timeout=0.2)

    def _write_lines(self) -> None:
        last = self._began + self._first - self._every
        while True:
            with self._changed:
                while not self._over and (wait := self._pause(last)) > 0:
                    self._changed.wait(wait)
                if self._over:
                    return
                state = self._printed = self._state
            text = ""
            if self.lines == 0:
                self._prepare()
                text = log_head(self._what) + "\n"
            last = time.monotonic()
            text += log_line(state, last - self._began) + self._doing + "\n"
            self.lines += 1
            if not self._tell(text):
                return

    def _pause(self, last: float) -> float:
        """Seconds until the next line is due, given what is known now."""
        improved = self._state is not self._printed
        due = last + (_SHORTEST_PAUSE_SECONDS if improved else self._every)
        return max(due, self._began + self._first) - time.monotonic()


class CountProgress(_Teller):
    """How much is done of what is counted, on stderr; its instance is an ``on_progress``.

    On a terminal it is a bar that stays on its line, elsewhere a line every five seconds; a run
    that is over within two seconds shows nothing.

    Examples
    --------
    >>> import io
    >>> stream, seconds = io.StringIO(), iter([0.0, 1.0, 3.0, 4.0])
    >>> progress = CountProgress(stream, lambda: next(seconds))
    >>> for done in (10, 500_000, 600_000):
    ...     progress(done, 1_000_000)
    >>> stream.getvalue()
    '     3.0s  50 % of 1,000,000 requests\\n'
    """

    def __init__(
        self,
        stream: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        what: str = "requests",
    ) -> None:
        super().__init__(stream)
        self.begun = False
        self._what, self._clock, self._began = what, clock, clock()
        self._bar = stream is not None and stream.isatty()
        self._every = _SHORTEST_PAUSE_SECONDS if self._bar else EVERY_SECONDS
        self._last = self._began + FIRST_LINE_SECONDS - self._every
        self._shown = False

    def __call__(self, done: int, expected: int, doing: str = "") -> None:
        """Take note of how many there are, of how many, and in which part of a run."""
        self.begun = True
        now = self._clock()
        if now - self._last < self._every:
            return
        self._last, self._shown = now, True
        share = done / max(expected, 1)
        text = f"{now - self._began:>8.1f}s  {share:.0%}".replace("%", " %")
        text += f" of {decimal(expected)} {self._what}" + (f": {doing}" if doing else "")
        if self._bar:
            filled = round(share * _BAR_LETTERS)
            self._tell(f"\r[{'#' * filled}{'.' * (_BAR_LETTERS - filled)}]{text}\x1b[K")
        else:
            self._tell(text + "\n")

    def end(self) -> None:
        """Wipe the bar away; what follows begins on a line of its own."""
        if self._shown and self._bar:
            self._tell(_WIPE)


class Doing(_Teller):
    """What is being done, and since when, where it cannot be counted: a context manager.

    On a terminal it is one line that is rewritten, and wiped away at the end; elsewhere, and in
    what is over within two seconds, there is none.
    """

    def __init__(
        self, stream: TextIO | None, what: str, *, first: float = FIRST_LINE_SECONDS
    ) -> None:
        super().__init__(stream if stream is not None and stream.isatty() else None)
        self._what, self._first = what, first
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write_lines, name="cms-doing", daemon=True)

    def __enter__(self) -> Self:
        if self._stream is not None:
            self._thread.start()
        return self

    def end(self) -> None:
        """Wipe the line away, for good."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=0.2)  # as above: the terminal may be paused

    def _write_lines(self) -> None:
        if self._over.wait(self._first):
            return
        while not self._over.is_set() and self._tell(
            f"\r{time.monotonic() - self._began:>8.1f}s  {self._what} ..."
        ):
            self._over.wait(_SHORTEST_PAUSE_SECONDS)
        self._tell(_WIPE)
