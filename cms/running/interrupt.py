"""Ctrl-C as a request to end well, and a watchdog that hears it beside native code."""

from __future__ import annotations

import atexit
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from .stopping import POLL_SECONDS

#: What a shell reports for a process that SIGINT ended.
EXIT_CODE = 130

# Some launchers pass on a Ctrl-C that the terminal has already sent to the whole process group.
# A person does not press twice within this time; a second signal that does is the same press.
_SAME_PRESS_SECONDS = 0.2
#: No signal has this number: the watched block was left.
_LEFT = 0
#: Seconds that runs in other threads have to leave native code when the interpreter ends.
_LAST_SECONDS = 2.0


class Interrupted(BaseException):  # no KeyboardInterrupt: Typer would take that for its own
    """Ctrl-C came while a command was still reading its input."""


class CtrlC:
    """While entered, a first Ctrl-C sets ``pressed`` and ``cancel``; a second one raises.

    In a thread other than the main one, or where SIGINT is not handled by Python's default,
    entering does nothing; a program may ``take_over`` any handler.
    """

    #: What a press raises in a block that it may abort.
    abort: type[BaseException] = KeyboardInterrupt

    def __init__(self, *, take_over: bool = False) -> None:
        self.pressed = False
        self.cancel = threading.Event()
        self._take_over, self._abortable = take_over, False
        self._before: Any = None

    def install(self) -> None:
        """Take over SIGINT, unless another handler is installed."""
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
        """Raise :attr:`abort` if Ctrl-C was pressed: loops ask now and then."""
        if self.pressed:  # a destructor forgets what a handler raises in it
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
    """Ctrl-C in one of our commands: it tells what it does, and a second press leaves at once."""

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
            with suppress(OSError):  # no one reads the pipe any more
                os.write(2, b"\ninterrupted: stopping (press Ctrl-C again to leave at once)\n")
        super()._press(number, frame)


class Watchdog:
    """While entered, looks at the time and for SIGINT, and stops what this thread is doing.

    Python's own handlers wait until the main thread is back from native code. The number of a
    signal is written into a file at once, though (:func:`signal.set_wakeup_fd`), which is read
    here and handed on to whoever was listening before, as event loops do.

    Both functions are called in another thread: ``left`` for the seconds left; ``stop`` once there
    are none, again and again, since a solver that has not quite begun misses a call. ``fault`` is
    what one of them raised last.
    """

    def __init__(self, left: Callable[[], float], stop: Callable[[], object]) -> None:
        self.pressed = False
        self.fault: Exception | None = None
        self._left, self._stop = left, stop
        self._thread = threading.Thread(target=self._watch, name="cms watchdog", daemon=True)
        self._listener = -1

    def __enter__(self) -> Self:
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._reads, False)
        os.set_blocking(self._writes, False)
        self._in_main = threading.current_thread() is threading.main_thread()
        if self._in_main:
            self._listener = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        else:
            _elsewhere.add(self)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._in_main:
            signal.set_wakeup_fd(self._listener)
        _elsewhere.discard(self)
        os.write(self._writes, bytes([_LEFT]))
        self._thread.join()
        os.close(self._reads)
        os.close(self._writes)

    def _watch(self) -> None:
        waiting = select.poll()
        waiting.register(self._reads, select.POLLIN)
        while True:
            left = 0.0
            try:
                left = 0.0 if self.pressed else self._left()
                if left <= 0:
                    self._stop()
            except Exception as fault:  # noqa: BLE001 (for the watched thread to raise)
                self.fault = fault
            if waiting.poll(1000 * (min(left, POLL_SECONDS) if left > 0 else POLL_SECONDS)):
                numbers = os.read(self._reads, 4096)
                if _LEFT in numbers:
                    return
                self.pressed = self.pressed or signal.SIGINT in numbers
                if self._listener >= 0:
                    with suppress(OSError):  # its owner has closed it, or does not empty it
                        os.write(self._listener, numbers)

    def end(self, until: float) -> None:
        """Stop the block as Ctrl-C does; wait till it is left, or until then."""
        self.pressed = True
        self._thread.join(max(0.0, until - time.monotonic()))


_elsewhere: set[Watchdog] = set()


@atexit.register
def _end_all() -> None:
    """Have daemon threads leave native code: they would come back into an interpreter in ruins."""
    until = time.monotonic() + _LAST_SECONDS
    for each in tuple(_elsewhere):
        each.end(until)
