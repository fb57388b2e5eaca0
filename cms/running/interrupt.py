"""Ctrl-C as a request to end well, in the library and in commands."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

EXIT_CODE = 130
"""What a shell reports for a process that SIGINT ended."""

# Some launchers pass on a Ctrl-C that the terminal has already sent to the whole process group.
# A person does not press twice within this time; a second signal that does is the same press.
_SAME_PRESS_SECONDS = 0.2


class Interrupted(BaseException):  # no KeyboardInterrupt: Typer would take that for its own
    """Ctrl-C came while a command was still reading its input."""


class CtrlC:
    """While entered, a first Ctrl-C is only noted; a second one raises KeyboardInterrupt.

    Python delivers signals to the main thread, and a handler of somebody else's is not a library's
    to replace: in another thread, or where SIGINT is not handled by Python's default, entering does
    nothing. A program may ``take_over`` any handler. The first press sets ``pressed``, and
    ``cancel``, which is what ``solve(cancel=...)`` takes.
    """

    #: What a press raises in a block that it may abort.
    abort: type[BaseException] = KeyboardInterrupt

    def __init__(self, *, take_over: bool = False) -> None:
        self.pressed = False
        self.cancel = threading.Event()
        self._take_over, self._abortable = take_over, False
        self._before: Any = None

    def install(self) -> None:
        """Take over SIGINT, if it is ours to take."""
        default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if threading.current_thread() is threading.main_thread() and (self._take_over or default):
            self._before = signal.signal(signal.SIGINT, self._press)

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def abortable(self) -> Iterator[None]:
        """Let a press raise :attr:`abort` in this block, and check for one before and after it."""
        self._abortable = True
        try:
            self.look()
            yield
            self.look()
        finally:
            self._abortable = False

    def look(self) -> None:
        """Raise :attr:`abort` if Ctrl-C was pressed: who goes round in a loop asks now and then.

        An exception that a signal's handler raises inside a destructor or a weak reference's
        callback is printed and forgotten there.
        """
        if self.pressed:
            raise self.abort

    def _press(self, number: int, frame: FrameType | None) -> None:
        again, self.pressed = self.pressed, True
        if not again:  # set by one press alone: another may come while the event is locked
            self.cancel.set()
        if self._abortable:
            raise self.abort
        if again:
            signal.default_int_handler(number, frame)


class CommandCtrlC(CtrlC):
    """Ctrl-C in one of our commands: it tells what it does, and a second press leaves at once.

    While input is being read (:meth:`abortable`) a press raises :class:`Interrupted`; at every
    other moment it only sets :attr:`cancel`, so that imports, checks and printing are never torn
    apart: the driver sees the event and returns the best checked solution.
    """

    abort = Interrupted

    def __init__(self) -> None:
        super().__init__(take_over=True)
        self.quiet = False
        self._first_press = 0.0

    @property
    def seconds_since_press(self) -> float:
        """How long ago that was; 0 if it has not been pressed."""
        return time.monotonic() - self._first_press if self.pressed else 0.0

    def _press(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.pressed:
            if now - self._first_press > _SAME_PRESS_SECONDS:
                os._exit(EXIT_CODE)
            return
        self._first_press = now
        if not self.quiet:
            # os.write: the handler may run inside a write to sys.stderr, which is not re-entrant
            with suppress(OSError):  # nobody reads it
                os.write(2, b"\ninterrupted: stopping (press Ctrl-C again to leave at once)\n")
        super()._press(number, frame)
