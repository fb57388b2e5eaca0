"""Handling of the end of offline work: a graceful exit, or a reset of the context that it shared.

Processes of one GPU context share its faults: one that vanishes with a kernel in flight, or without
having released the context, harms all of them, the online side too. So a signal that can be handled
is handled (:class:`GracefulExit`, in the offline program), and after every other end the context is
reset and the offline program restarted, ever later (:class:`Supervisor`, beside it).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ...errors import InvalidOption
from ...values.numbers import whole
from .muxflow_monitor import back_off

Handling: TypeAlias = Literal["graceful", "reset"]

#: Signals that are handled in the program itself; all other events are answered by a reset.
GRACEFUL: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)


def error_handling(event: str) -> Handling:
    """Return how an event of offline work is handled.

    A signal's name; ``error`` or any other text, such as a CUDA error's name; or ``silence``.
    Graceful: stop launching, drain, release and exit with 0; else reset the context and restart.

    Examples
    --------
    >>> [error_handling(event) for event in ("SIGTERM", "SIGKILL", "CUDA_ERROR_LAUNCH_FAILED")]
    ['graceful', 'reset', 'reset']
    """
    return "graceful" if event in {each.name for each in GRACEFUL} else "reset"


def ended(code: int) -> str | None:
    """Return what a process died of, by the code of ``Popen.poll``; None for an exit with 0.

    A process that *died* of SIGTERM did not handle it.
    """
    if code >= 0:
        return f"exit code {code}" if code else None
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
    return f"{name}, not handled" if error_handling(name) == "graceful" else name


class GracefulExit:
    """The handler that an offline program installs: SIGINT and SIGTERM ask it to leave.

    Inside the ``with`` block the signals only set ``asked``. The program looks at it between
    kernels; once it is asked it launches no more, waits for kernels in flight, releases the context
    and exits with 0. Blocked signals are unblocked. After the block the signals are ignored if it
    was asked, so that a second one does not kill the program; else they are as before. It is
    entered in the main thread, where signals arrive.

    Examples
    --------
    >>> before, kernels = [signal.getsignal(each) for each in GRACEFUL], 0
    >>> with GracefulExit() as leave:
    ...     while not leave.asked:
    ...         kernels += 1  # launch one, and wait for it
    ...         if kernels == 3:
    ...             signal.raise_signal(signal.SIGTERM)
    ...     released = True
    >>> kernels, released
    (3, True)
    >>> _ = [signal.signal(*each) for each in zip(GRACEFUL, before)]
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: list[object] = []

    def __enter__(self) -> GracefulExit:
        """Install the handlers."""
        if threading.current_thread() is not threading.main_thread():
            said = "GracefulExit is entered in another thread; enter it in the main thread"
            raise InvalidOption(f"{said}, where signals arrive")
        self._before = [signal.signal(each, self._ask) for each in GRACEFUL]
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, GRACEFUL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None
    ) -> None:
        """Ignore the signals if it was asked to leave, else handle them as before."""
        for each, before in zip(GRACEFUL, self._before, strict=True):
            if self.asked:
                signal.signal(each, signal.SIG_IGN)
            elif before is not None:  # None: not installed from Python, and not to be had back
                signal.signal(each, before)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


class Child(Protocol):
    """A running offline program, such as a ``subprocess.Popen``."""

    def poll(self) -> int | None:
        """Return its exit code, minus the signal that ended it, or None while it runs."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal."""

    def kill(self) -> None:
        """End it at once."""


@dataclass(frozen=True, slots=True)
class RestartTimes:
    """How patient a supervisor is, in milliseconds."""

    grace: int = 10_000  #: For an offline program to leave when asked
    #: The first back-off before a restart; each fault doubles it, up to the cap.
    base: int = 1_000
    cap: int = 300_000
    calm: int = 600_000  #: After a run of this length back-offs begin at the first again
    silence: int = 60_000  #: Without progress, before a program counts as dead

    def __post_init__(self) -> None:
        for name in ("grace", "base", "cap", "calm", "silence"):
            whole(getattr(self, name), f"{name} of restarts", least=1, error=InvalidOption)
        if self.cap < self.base:
            said = f"cap of restarts is {self.cap}; expected at least their base, {self.base}"
            raise InvalidOption(said)


class Event(NamedTuple):
    """An action or observation of a supervisor, and its reason.

    ``left`` is an exit with 0; ``out``: the online side is not healthy after a reset, and no
    offline work is restarted. A fault's reason is the cause of death, a reset's the health of the
    online side before and after it.
    """

    what: Literal["start", "restart", "left", "fault", "reset", "out"]
    why: str = ""


class Supervisor:
    """Keeps one offline program running beside the online side: resets and restarts after faults.

    `start`: starts the program and returns a :class:`Child`, such as a ``subprocess.Popen``.
    `reset`: resets the context, or the server that holds it; returns when that is done. `healthy`:
    whether the online side serves; asked before and after each reset. `heard`: a number that
    changes while the program makes progress; by default silence is never noticed. `clock` and
    `sleep`: seconds that pass, and waiting for some; ``time.monotonic`` and ``time.sleep``.

    The state is ``running``, ``waiting`` for the end of a back-off, or ``over``. Every end but an
    exit with 0 is followed by exactly one reset, and by one restart unless the online side is not
    healthy after it, or the end was asked for by :meth:`stop`.
    """

    def __init__(
        self,
        start: Callable[[], Child],
        reset: Callable[[], None],
        healthy: Callable[[], bool],
        *,
        times: RestartTimes | None = None,
        heard: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._start, self._reset, self._healthy = start, reset, healthy
        self._times = times or RestartTimes()
        self._heard, self._clock, self._sleep = heard, clock, sleep
        self.events: list[Event] = []
        self.state: Literal["running", "waiting", "over"] = "running"
        self._level = self._sign = 0
        self._killed = ""  # why we killed it ourselves
        self._due = 0.0
        self._begin("start")

    def look(self) -> None:
        """See how the program is, and do what is due; never wait. To be called again and again."""
        if self.state == "waiting" and self._clock() >= self._due:
            self._begin("restart")
        elif self.state == "running":
            code = self.child.poll()
            if code is not None:
                self._over(code, again=True)
            elif self._heard is not None and not self._killed:
                sign, now = self._heard(), self._clock()
                if sign != self._sign:
                    self._sign, self._last = sign, now
                if now - self._last >= self._times.silence / 1000:
                    self._killed = "silence"
                    self.child.kill()

    def stop(self) -> Handling:
        """End the program for good: ask it to leave; kill it and reset if it does not in time."""
        if self.state != "running":
            self.state = "over"
            return "graceful"
        self.child.send_signal(signal.SIGTERM)
        due = self._clock() + self._times.grace / 1000
        while (code := self.child.poll()) is None:
            if self._clock() >= due and not self._killed:
                self._killed = f"still there {self._times.grace} ms after SIGTERM"
                self.child.kill()
            self._sleep(0.001)
        return self._over(code, again=False)

    def _begin(self, what: Literal["start", "restart"]) -> None:
        self.child = self._start()
        self.state, self._killed = "running", ""
        self._began = self._last = self._clock()
        self._sign = self._heard() if self._heard else 0
        self.events.append(Event(what))

    def _over(self, code: int, *, again: bool) -> Handling:
        why = self._killed or ended(code)
        self.state = "over"
        if why is None:
            self.events.append(Event("left"))
            return "graceful"
        self.events.append(Event("fault", why))
        words = "not healthy", "healthy"
        before = words[bool(self._healthy())]
        self._reset()
        after = bool(self._healthy())
        self.events.append(Event("reset", f"{before} before, {words[after]} after"))
        if not after:
            self.events.append(Event("out", "the online side is not healthy after the reset"))
        elif again:
            ran = self._clock() - self._began
            self._level = 1 if ran >= self._times.calm / 1000 else self._level + 1
            wait = back_off(self._level, self._times.base, self._times.cap)
            self.state, self._due = "waiting", self._clock() + wait / 1000
        return "reset"
