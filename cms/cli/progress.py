"""What a person sees on stderr of a command that takes more than two seconds."""

from __future__ import annotations

import threading
import time
from typing import Self, TextIO

import cms
from cms.solving.words import log_head, log_line
from cms.values.words import decimal

FIRST_LINE_SECONDS = 2.0
"""A run that is over before this time shows nothing."""
EVERY_SECONDS = 5.0
"""The longest time between two lines that are not rewritten."""
_PAUSE_SECONDS = 0.25
"""Between two looks; improvements that follow each other within this time share a line."""
_BAR_LETTERS = 20
_WIPE = "\r\x1b[K"


class Doing:
    """What is being done, and since when: on a terminal one line that is rewritten, by a thread."""

    def __init__(self, stream: TextIO | None, what: str) -> None:
        self.lines = 0
        self._stream, self._what = stream, what
        self._rewrites = stream is not None and stream.isatty()
        self._began = self._last = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, name="cms-progress", daemon=True)

    def __enter__(self) -> Self:
        if self._stream is not None:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Write nothing from here on; a line that is rewritten is wiped away."""
        self._over.set()
        if self._thread.is_alive():  # it may be blocked on a terminal that a person has paused
            self._thread.join(timeout=0.2)

    def _write(self) -> None:
        over = self._over.wait(max(0, self._began + FIRST_LINE_SECONDS - time.monotonic()))
        while not over:
            now = time.monotonic()
            if self._is_due(now - self._last):
                self._last = now
                self.lines += 1
                if not self._tell(self._text(now - self._began)):
                    return
            over = self._over.wait(_PAUSE_SECONDS)
        if self._rewrites and self.lines:
            self._tell(_WIPE)

    def _is_due(self, seconds: float) -> bool:
        """Whether to write, by the seconds since the last time."""
        return self._rewrites

    def _text(self, seconds: float) -> str:
        return f"\r{seconds:>8.1f}s  {self._what} ..."

    def _tell(self, text: str) -> bool:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the reader has gone: the run itself is not at fault
            return False
        return True


class CountProgress(Doing):
    """How much is done of what is counted: a bar on a terminal, else a line every five seconds."""

    def __init__(self, stream: TextIO | None, what: str = "requests") -> None:
        super().__init__(stream, what)
        self.begun = False
        self._state = 0, 0, ""

    def __call__(self, done: int, expected: int, doing: str = "") -> None:
        """Take note of how many there are, of how many, and in which part of a run."""
        self._state, self.begun = (done, expected, doing), True

    def _is_due(self, seconds: float) -> bool:
        return self.begun and (self._rewrites or self.lines == 0 or seconds >= EVERY_SECONDS)

    def _text(self, seconds: float) -> str:
        done, expected, doing = self._state
        share = done / max(expected, 1)
        text = f"{seconds:>8.1f}s  {share:.0%}".replace("%", " %")
        text += f" of {decimal(expected)} {self._what}" + (f": {doing}" if doing else "")
        if not self._rewrites:
            return text + "\n"
        filled = round(share * _BAR_LETTERS)
        return f"\r[{'#' * filled}{'.' * (_BAR_LETTERS - filled)}]{text}\x1b[K"


class Progress(Doing):
    """The log of a run, also while nothing improves; its instance is ``on_improvement``."""

    def __init__(self, stream: TextIO, what: str = "best") -> None:
        super().__init__(stream, what)
        self._rewrites = False
        self._state: cms.Incumbent | None = None
        self._printed: cms.Incumbent | None = None
        self._doing = ""

    def watch(self, what: str, done: int, of: int) -> None:
        """Take note of how many shards of a problem are through; the next line says so."""
        self._doing = f"  {what}: {decimal(done)} of {decimal(of)} shards"

    def __call__(self, incumbent: cms.Incumbent) -> None:
        """Take note of an improvement."""
        self._state = incumbent

    def _is_due(self, seconds: float) -> bool:
        improved = self._state is not self._printed
        return improved or self.lines == 0 or seconds >= EVERY_SECONDS

    def _text(self, seconds: float) -> str:
        self._printed = self._state
        head = log_head(self._what) + "\n" if self.lines == 1 else ""
        return head + log_line(self._printed, seconds) + self._doing + "\n"
