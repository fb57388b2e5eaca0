"""The end of the interpreter waits for threads that were given up, however busy the machine is."""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from cms.running import left_behind
from tests.source_tree import ROOT


class Clocks:
    """A machine on which a thread left behind gets a share of the time, and what came of it."""

    def __init__(self, share: float, needs: float, ends: float | None = None) -> None:
        self.share, self.needs, self.ends = share, needs, ends
        self.now = self.worked = 0.0
        self.ident = 0
        self.told = False

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.worked

    def is_alive(self) -> bool:
        return self.worked < self.needs and not (self.told and self.ends is not None)

    def join(self, seconds: float) -> None:
        self.now += seconds
        self.worked += self.share * seconds


@pytest.fixture
def exit_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Clocks]:
    def leave(share: float, needs: float, ends: float | None = None) -> Clocks:
        clocks = Clocks(share, needs, ends)
        monkeypatch.setattr(left_behind, "_threads", [clocks])
        monkeypatch.setattr(left_behind, "time", clocks)
        monkeypatch.setattr(left_behind, "_end", lambda thread: setattr(thread, "told", True))
        left_behind._see_off()
        return clocks

    return leave


@pytest.mark.parametrize("share", [1.0, 0.2, 0.06])
def test_a_stopped_solver_is_waited_for_however_little_of_the_machine_it_gets(
    exit_with: Callable[..., Clocks], share: float
) -> None:
    """It was one second by the clock once, in which a busy machine had not got half a second in."""
    clocks = exit_with(share, needs=0.9)
    assert not clocks.is_alive()
    assert not clocks.told


def test_an_algorithm_that_goes_on_is_told_to_end(exit_with: Callable[..., Clocks]) -> None:
    clocks = exit_with(1.0, needs=10**9, ends=0)
    assert clocks.told
    assert clocks.worked < 1.2


def test_the_exit_does_not_wait_for_ever(exit_with: Callable[..., Clocks]) -> None:
    native, asleep = exit_with(2.0, needs=10**9), exit_with(0.0, needs=1)
    assert 10 <= native.worked < 10.2
    assert 5 <= asleep.now < 5.2


def test_python_code_that_never_looks_up_ends_with_the_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_behind, "_BY_ITSELF", 0.0)
    monkeypatch.setattr(left_behind, "_threads", [])
    registered: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", registered.append)

    def deaf() -> None:
        number = 1
        with suppress(SystemExit):
            while True:
                number = number * 5 % 2147483647

    threads = [threading.Thread(target=deaf, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
        left_behind.leave_behind(thread)
    registered[-1]()
    assert not any(thread.is_alive() for thread in threads)


WAITING = """
import signal, threading, time
from cms.running import left_behind

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
left_behind._ASLEEP = 600.0

class Asleep(threading.Thread):
    def join(self, seconds):
        print("waiting", flush=True)
        super().join(seconds)

thread = Asleep(target=time.sleep, args=(600,), daemon=True)
thread.start()
left_behind.leave_behind(thread)
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=-1, stderr=-1) as process:
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to a child is POSIX")
def test_ctrl_c_while_the_exit_waits_ends_the_process(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"  # for ten minutes, if nobody minds
    child.send_signal(signal.SIGINT)
    assert child.wait() == -signal.SIGINT
