"""The command line: ``cms``, its commands and their settings."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TextIO

from ..running.interrupt import EXIT_CODE, CommandCtrlC

__all__ = ["main"]


def main() -> int:
    """Run the ``cms`` command on the process's arguments; return (or exit with) its code."""
    _keep_numbers_of_streams()
    # A Python that we start does not import what lies in the folder where we are.
    os.environ["PYTHONSAFEPATH"] = "1"
    interrupts = CommandCtrlC()
    interrupts.install()  # before anything else is imported: from here on Ctrl-C is handled
    others = set(threading.enumerate())
    from .app import run

    code = run(sys.argv[1:], interrupts)
    # Python gives the signal back to the system before it has finished; that would be a moment in
    # which Ctrl-C kills the process without its exit code.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if interrupts.pressed:
        code = EXIT_CODE
    streams: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr)
    for stream in filter(None, streams):
        try:
            stream.flush()
        except OSError:  # the reader has gone, the disk is full; what can be said has been said
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if any(thread.is_alive() for thread in set(threading.enumerate()) - others):
        # A solver that did not stop in time is still in native code; the interpreter must not be
        # taken down around it, and its answer is not needed.
        os._exit(code)
    return code


def _keep_numbers_of_streams() -> None:
    """Let no file get the number of a closed stream: with ``2>&-`` --output would be number 2."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
