"""Ctrl-C: a press that a library swallows is not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Note a Ctrl-C in this block, and yield what raises it again.

    An exception that a signal's handler raises inside a destructor or a weak reference's callback
    is printed and forgotten there. So whoever goes round in a loop asks now and then.

    Yields
    ------
    callable
        Raises KeyboardInterrupt if Ctrl-C was pressed in this block.

    Examples
    --------
    >>> with interruptible() as look:
    ...     look()
    """
    pressed = threading.Event()

    def press(signum: int, frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    def look() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield look  # signals are the main thread's
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield look
        look()
    finally:
        signal.signal(signal.SIGINT, before)
