"""Threads that were given up: they may go on, but not into the end of the interpreter.

A thread that comes back from C++ while the interpreter shuts down is killed where it stands. The
C++ runtime takes that for a failure and aborts the process; one in the middle of importing a solver
dies of what is being torn down around it (signal 11). The user has the answer by then, and would
read of a crash. So the exit waits for such threads. How long that takes is counted in the process's
own time at work: a machine busy with other things takes longer, and must not crash for it.
"""

from __future__ import annotations

import atexit
import ctypes
import signal
import threading
import time
from typing import Protocol

#: Seconds of work after which a thread that has not ended is told to, by an exception in its Python
#: code. Solvers that were stopped need less, and an exception in a callback is best spared them.
_BY_ITSELF = 1.0
#: Seconds of work after which nothing more is expected: native code that nobody can stop.
_AT_WORK = 10.0
#: Seconds by the clock in which a process at work gets at least so many seconds of work done, on
#: any machine that is still of use. One that does not is asleep, and its threads do no harm: from
#: sleep they come back into the interpreter's own code, not into C++.
_ASLEEP, _SIGN_OF_LIFE = 5.0, 0.25
_POLL_SECONDS = 0.05


class Left(Protocol):
    """A thread, or what stands for one."""

    @property
    def ident(self) -> int | None:
        """The thread's number."""

    def is_alive(self) -> bool:
        """Whether it has started and not yet ended."""

    def join(self, timeout: float) -> None:
        """Wait for its end, but not longer than so many seconds."""


_threads: list[Left] = []
_lock = threading.Lock()


def leave_behind(thread: Left) -> None:
    """Give up a thread; the interpreter's exit will see to it."""
    with _lock:
        _threads[:] = [*(other for other in _threads if other.is_alive()), thread]
    # Again each time, to come before what was registered since: libraries clear up at exit, too.
    atexit.unregister(_see_off)
    atexit.register(_see_off)


def _see_off() -> None:
    try:
        _wait()
    except KeyboardInterrupt:
        # Somebody who does not wish to wait: out at once, without the end that is to be feared.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


def _wait() -> None:
    begun, told = time.process_time(), False
    seen, until = 0.0, time.monotonic() + _ASLEEP
    while alive := [thread for thread in _threads if thread.is_alive()]:
        worked = time.process_time() - begun
        if worked >= _AT_WORK:
            return
        if worked >= _BY_ITSELF and not told:
            told = True
            for thread in alive:
                _end(thread)
        if time.monotonic() >= until:
            if worked < seen + _SIGN_OF_LIFE:
                return
            seen, until = worked, time.monotonic() + _ASLEEP
        alive[0].join(_POLL_SECONDS)


def _end(thread: Left) -> None:
    """Have SystemExit raised in a thread as soon as it executes Python; nothing if it has ended."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    )
