"""Threads that can be left behind: other people's code runs aside, and holds up nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .left_behind import leave_behind
from .stopping import never

#: Seconds that other people's code has to end once it is to, before it is left behind.
GRACE_SECONDS = 0.5
#: Seconds between two looks at the clock, the caller's cancel event and Ctrl-C.
POLL_SECONDS = 0.05


class Aside:
    """A call in a daemon thread, which is told from outside by nothing the callee can get hold of.

    Parameters
    ----------
    call : callable
    name : str, default "cms aside"
        The thread's.

    Attributes
    ----------
    ident : int or None
        The thread's, once it runs.
    result : object
        What it returned; None before.
    fault : BaseException or None
        What it raised.
    said : str
        That, in words.

    Examples
    --------
    >>> call = Aside(lambda: 1 / 0)
    >>> call.ends_within(60)
    True
    >>> call.said
    'ZeroDivisionError: division by zero'
    """

    def __init__(self, call: Callable[[], object], name: str = "cms aside") -> None:
        self._call, self._name = call, name
        self._ended = threading.Event()
        self._started = False
        self.ident: int | None = None
        self.result: object = None
        self.fault: BaseException | None = None
        self.said = ""

    def start(self) -> None:
        """Start the thread."""
        self._started = True
        _Thread(self._name, self._run).start()

    def is_alive(self) -> bool:
        """Whether it has started and not yet ended."""
        return self._started and not self._ended.is_set()

    def join(self, timeout: float) -> None:
        """Wait for its end, but not longer than so many seconds."""
        self._ended.wait(timeout)

    def ends_within(self, seconds: float, hurry: Callable[[], bool] = never) -> bool:
        """Start, and tell whether it ends in so many seconds; if not, it is left behind.

        Once ``hurry`` is true, it has the grace's time at most.
        """
        end = time.monotonic() + seconds
        self.start()
        while self.is_alive() and (left := end - time.monotonic()) > 0:
            if hurry():
                end, hurry = min(end, time.monotonic() + GRACE_SECONDS), never
            self.join(min(left, POLL_SECONDS))
        if self.is_alive():
            leave_behind(self)
            return False
        return True

    def _run(self) -> None:
        self.ident = threading.get_ident()
        try:
            self.result = self._call()
        except BaseException as fault:  # noqa: BLE001 (for whoever asked)
            self.fault, self.said = fault, in_words(fault)
        finally:
            self._ended.set()


class _Thread(threading.Thread):
    """A thread that keeps nothing: the code in it can ask for it and change it."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._run_once = run

    def run(self) -> None:
        run = self._run_once
        del self._run_once
        run()


def in_words(fault: BaseException) -> str:
    """Say what was raised; to be asked in the thread of the code that raised it, which may answer.

    Examples
    --------
    >>> in_words(KeyError("b7"))
    "KeyError: 'b7'"
    """
    kind = "an exception without a name"
    try:
        kind = str.__str__(type(fault).__name__)
        return f"{kind}: {fault}"
    except BaseException:  # noqa: BLE001 (its words may raise what ends a thread; it is one all the same)
        return kind
