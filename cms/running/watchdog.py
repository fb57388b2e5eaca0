"""A watchdog beside a thread at work, which may hear neither the clock nor Ctrl-C by itself."""

from __future__ import annotations

import atexit
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from .stopping import POLL_SECONDS

#: No signal has this number: the watched block was left.
_LEFT = 0
#: Seconds that runs in other threads have to leave native code when the interpreter ends.
_LAST_SECONDS = 2.0


class Watchdog:
    """While entered, looks at the time and for SIGINT, and stops what this thread is doing.

    Python's own handlers wait until the main thread is back from native code. The number of a
    signal is written into a file at once, though (:func:`signal.set_wakeup_fd`), which is read
    here and handed on to whoever was listening before, as event loops do.

    Both functions are called in another thread: ``left`` for the seconds left, 0 once the block is
    to end; ``stop`` then, again and again until the block is left, since a solver that has not
    quite begun misses a call. ``fault`` is what one of them raised last, ``pressed`` whether SIGINT
    came while the block ran in the main thread.

    Examples
    --------
    >>> over = threading.Event()
    >>> with Watchdog(lambda: 0.0, over.set):
    ...     over.wait()
    True
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
