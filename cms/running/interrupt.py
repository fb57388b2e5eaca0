"""Ctrl-C as a request to end well: noted at the first press, KeyboardInterrupt at the second."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class CtrlC:
    """While entered, a first Ctrl-C only sets ``pressed``; a second one raises KeyboardInterrupt.

    Python delivers signals to the main thread, and a handler of somebody else's is not ours to
    replace: in another thread, or where SIGINT is not handled by Python's default, entering does
    nothing, and whoever listens treats a KeyboardInterrupt as the first press.

    Examples
    --------
    >>> with CtrlC() as interrupt:
    ...     interrupt.pressed
    False
    """

    def __init__(self) -> None:
        self.pressed = False
        self._installed = False

    def __enter__(self) -> CtrlC:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._press)
            self._installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            signal.default_int_handler(number, frame)
        self.pressed = True
