"""Ctrl-C in the benchmarks: swallowed by a library, it still ends the run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from bench.interrupt import interruptible


def press_that_a_library_swallows() -> None:
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_press_raises_where_it_comes() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_a_swallowed_press_is_raised_at_the_next_look() -> None:
    with suppress(KeyboardInterrupt), interruptible() as look:
        look()
        press_that_a_library_swallows()
        with pytest.raises(KeyboardInterrupt):
            look()


def test_a_swallowed_press_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        press_that_a_library_swallows()


def test_the_handler_before_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    looks: list[Callable[[], None]] = []

    def run() -> None:
        with interruptible() as look:
            looks.append(look)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    looks[0]()
    assert signal.getsignal(signal.SIGINT) is before
