"""A watchdog beside a thread at work, which may hear neither the clock nor Ctrl-C by itself."""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Self

from .stopping import GRACE_SECONDS, POLL_SECONDS, Stopped

#: No signal has this number: the watched block was left.
_LEFT = 0
#: Seconds after the stop at which Python code that goes on is ended: in time for the grace.
_PATIENCE_SECONDS = 0.8 * GRACE_SECONDS
#: Files of code that is not ended: a half imported module, or a half compiled function, is of no
#: use later.
_NEVER_HALF_DONE = ("<frozen importlib", f"{os.sep}numba{os.sep}")
#: Seconds that runs in other threads have to leave native code when the interpreter ends.
_LAST_SECONDS = 2.0


class Watchdog:
    """While entered, looks at the time and for SIGINT, and stops what this thread is doing.

    Python's own handlers wait until the main thread is back from native code. The number of a
    signal is written into a file at once, though (:func:`signal.set_wakeup_fd`), which is read
    here and handed on to whoever was listening before, as event loops do.

    Parameters
    ----------
    left : callable
        The seconds left; 0 once the block is to end. It is asked in another thread.
    stop : callable
        Called in another thread once the block is to end, and again until it is left: a solver that
        has not quite begun misses a call.

    Attributes
    ----------
    pressed : bool
        Whether SIGINT came while the block ran in the main thread.
    ejected : bool
        Whether Stopped was raised in a block of :meth:`ejecting`.
    fault : Exception or None
        What ``stop`` or ``left`` raised last.

    Examples
    --------
    >>> over = threading.Event()
    >>> with Watchdog(lambda: 0.0, over.set):
    ...     over.wait()
    True
    """

    def __init__(self, left: Callable[[], float], stop: Callable[[], object]) -> None:
        self.pressed = self.ejected = False
        self.fault: Exception | None = None
        self._left, self._stop = left, stop
        self._thread = threading.Thread(target=self._watch, name="cms watchdog", daemon=True)
        self._listener = -1
        self._lock = threading.Lock()
        self._watched, self._ejecting, self._eject_at = 0, False, math.inf
        self._caller: FrameType | None = None

    def __enter__(self) -> Self:
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._reads, False)
        os.set_blocking(self._writes, False)
        self._watched = threading.get_ident()
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
                    self._eject_at = min(self._eject_at, time.monotonic() + _PATIENCE_SECONDS)
                    self._stop()
                    self._eject()
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

    @contextmanager
    def ejecting(self) -> Iterator[None]:
        """Have Stopped raised in the Python code of a block that goes on long after the stop."""
        try:
            self._caller = sys._getframe(2)
            self._ejecting = True
            yield
        finally:
            with self._lock:
                self._ejecting, self._caller = False, None
                if self.ejected:  # perhaps it is still on its way
                    _raise_in(self._watched, None)

    def _eject(self) -> None:
        with self._lock:
            late = self._ejecting and time.monotonic() >= self._eject_at
            if late and not self._is_importing():
                self.ejected = True
                # again, if it got lost in a destructor
                self._eject_at = time.monotonic() + GRACE_SECONDS
                _raise_in(self._watched, Stopped)

    def _is_importing(self) -> bool:
        """Whether the block is in an import or in numba's compiler."""
        frame = sys._current_frames().get(self._watched)
        while frame is not None and frame is not self._caller:
            if any(part in frame.f_code.co_filename for part in _NEVER_HALF_DONE):
                return True
            frame = frame.f_back
        return False

    def end(self, until: float) -> None:
        """Stop the block as Ctrl-C does; wait till it is left, or for so long."""
        self.pressed = True
        self._thread.join(max(0.0, until - time.monotonic()))


_elsewhere: set[Watchdog] = set()


@atexit.register
def _end_all() -> None:
    """Have daemon threads leave native code: they would come back into an interpreter in ruins."""
    until = time.monotonic() + _LAST_SECONDS
    for each in tuple(_elsewhere):
        each.end(until)


def _raise_in(thread: int, fault: type[Exception] | None) -> None:
    """Have an exception raised in a thread once it executes Python; None: not after all."""
    raised = None if fault is None else ctypes.py_object(fault)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
