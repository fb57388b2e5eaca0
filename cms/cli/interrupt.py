"""Ctrl-C: the first press asks for the best schedule so far, the second one leaves at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

EXIT_CODE = 130
"""What a shell reports for a process that SIGINT ended."""

# Some launchers pass on a Ctrl-C that the terminal has already sent to the whole process group.
# A person does not press twice within this time; a second signal that does is the same press.
_SAME_PRESS_SECONDS = 0.2


class Interrupted(BaseException):  # no KeyboardInterrupt: Typer would take that for its own
    """Ctrl-C came while the command was still reading its input."""


class Interrupts:
    """The SIGINT handler of one command.

    While input is being read (:meth:`abortable`) a press raises :class:`Interrupted`; at every
    other moment it only sets :attr:`cancel`, so that imports, checks and printing are never torn
    apart: the driver sees the event and returns the best checked solution.

    Attributes
    ----------
    cancel : threading.Event
        Set by the first press; what ``solve(cancel=...)`` takes.

    Examples
    --------
    >>> interrupts = Interrupts()
    >>> interrupts.pressed
    False
    """

    def __init__(self) -> None:
        self.cancel = threading.Event()
        self.quiet = False
        self._first_press = 0.0
        self._abortable = False

    @property
    def pressed(self) -> bool:
        """Whether Ctrl-C has been pressed."""
        return self.cancel.is_set()

    @property
    def seconds_since_press(self) -> float:
        """How long ago that was; 0 if it has not been pressed."""
        return time.monotonic() - self._first_press if self.pressed else 0.0

    def install(self) -> None:
        """Take over SIGINT; only the main thread may."""
        signal.signal(signal.SIGINT, self._press)

    @contextmanager
    def abortable(self) -> Iterator[None]:
        """Let a press raise :class:`Interrupted` in this block, and check for one before it.

        Raises
        ------
        Interrupted
            If Ctrl-C was pressed before or inside the block.
        """
        self._abortable = True
        try:
            if self.pressed:
                raise Interrupted
            yield
            if self.pressed:  # a library swallowed the exception, as a destructor does
                raise Interrupted
        finally:
            self._abortable = False

    def _press(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.pressed:
            if now - self._first_press > _SAME_PRESS_SECONDS:
                os._exit(EXIT_CODE)
            return
        self._first_press = now
        self.cancel.set()
        if not self.quiet:
            # os.write: the handler may run inside a write to sys.stderr, which is not re-entrant
            with suppress(OSError):  # nobody reads it
                os.write(2, b"\ninterrupted: stopping (press Ctrl-C again to leave at once)\n")
        if self._abortable:
            raise Interrupted
