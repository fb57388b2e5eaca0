"""Ctrl-C where it may abort: swallowed by a library, it still ends the block."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from cms.running.interrupt import CtrlC


@contextmanager
def interruptible() -> Iterator[CtrlC]:
    with CtrlC(take_over=True) as interrupt, interrupt.abortable():
        yield interrupt


def press_that_a_library_swallows() -> None:
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_press_raises_where_it_comes_and_the_handler_before_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_swallowed_press_is_raised_at_the_next_look_or_at_the_end() -> None:
    with suppress(KeyboardInterrupt), interruptible() as interrupt:
        interrupt.look()
        press_that_a_library_swallows()
        with pytest.raises(KeyboardInterrupt):
            interrupt.look()
    with pytest.raises(KeyboardInterrupt), interruptible():
        press_that_a_library_swallows()
