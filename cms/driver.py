"""Runs an algorithm in a thread of its own and hears its claims one at a time.

Every claim is a rendezvous: the algorithm goes on when the driver has checked it. So an algorithm
never runs ahead of what is known, and the history of a run does not depend on the scheduler of the
operating system. The thread can be left behind: native code that does not react cannot hold up the
answer.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from .algorithm import Algorithm
from .errors import AlgorithmError, InvalidOption, UnsupportedProblem
from .interrupt import CtrlC
from .ledger import Ledger
from .left_behind import leave_behind
from .problem import Problem
from .schedule import Schedule
from .solution import Incumbent, StopReason

#: Seconds a stopped algorithm has to yield what it holds and to end, before it is left behind.
GRACE_SECONDS = 0.5
#: Seconds between two looks at the clock, the caller's cancel event and Ctrl-C.
_POLL_SECONDS = 0.05


class CancelEvent(Protocol):
    """What ``cancel`` must be: a ``threading.Event`` or anything else that can be set."""

    def is_set(self) -> bool:
        """Whether the run is to end."""
        ...


class Limits(NamedTuple):
    """When to stop, besides at a proof."""

    seconds: float
    gap: Fraction
    cancel: CancelEvent | None


class RunBudget:
    """The budget of one run; see :class:`cms.algorithm.Budget`.

    Parameters
    ----------
    ledger : Ledger
    seed, threads : int
    started : float
        ``time.monotonic()`` at the start.
    seconds : float
        The time limit, infinity for none.
    """

    def __init__(
        self, ledger: Ledger, seed: int, threads: int, started: float, seconds: float
    ) -> None:
        self.seed, self.threads = seed, threads
        self._ledger, self._end = ledger, started + seconds
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._cancels: dict[object, Callable[[], object]] = {}

    @property
    def lower_bound(self) -> Fraction:
        """The checked lower bound."""
        return self._ledger.known.lower_bound

    @property
    def best(self) -> Schedule | None:
        """The cheapest checked schedule."""
        return self._ledger.known.best

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""
        return self._stopped.is_set()

    def remaining(self) -> float:
        """Return the seconds left: infinity without a limit, 0 once stopped."""
        return 0.0 if self.stopped else max(0.0, self._end - time.monotonic())

    @contextmanager
    def on_stop(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Have ``cancel`` called when the run is stopped within the block."""
        key = object()
        with self._lock:
            self._cancels[key] = cancel
        try:
            # After this look, a stop finds the cancel registered.
            if self.stopped:
                cancel()
            yield
        finally:
            with self._lock:
                del self._cancels[key]

    def stop(self) -> None:
        """Set ``stopped`` and call every cancel that is registered; may be repeated."""
        self._stopped.set()
        with self._lock:
            cancels = list(self._cancels.values())
        # Outside the lock: a cancel may wait for a solver that is itself about to leave its block.
        for cancel in cancels:
            cancel()


class _Said(NamedTuple):
    """A message of the worker: a claim."""

    claim: object


class _Ended(NamedTuple):
    """The worker's last message: the algorithm is over, with an exception or without."""

    fault: BaseException | None


class _Worker(threading.Thread):
    """Iterates over the claims; waits after each until it is told to go on."""

    def __init__(
        self, algorithm: Algorithm, problem: Problem, options: Any, budget: RunBudget
    ) -> None:
        super().__init__(name=f"cms {algorithm.name}", daemon=True)
        self._task = algorithm, problem, options, budget
        self._go_on = threading.Semaphore(0)
        self.enough = False
        # Not a SimpleQueue: in CPython 3.11, a signal shortly before its timeout makes it wait for
        # ever (the time left turns negative, which it takes for "no timeout").
        self.messages: queue.Queue[_Said | _Ended] = queue.Queue()

    def run(self) -> None:
        algorithm, problem, options, budget = self._task
        del self._task  # a large problem is not kept by a thread that was left behind
        try:
            claims = iter(algorithm.run(problem, options, budget))
            try:
                while not self.enough:
                    try:
                        claim = next(claims)
                    except StopIteration:
                        break
                    self.messages.put(_Said(claim))
                    self._go_on.acquire()
            finally:
                # a generator is closed here, in its own thread, so that its blocks are left
                close = getattr(claims, "close", None)
                if close is not None:
                    close()
        except BaseException as fault:  # noqa: BLE001 (raised again in the caller's thread)
            self.messages.put(_Ended(fault))
        else:
            self.messages.put(_Ended(None))

    def go_on(self) -> None:
        self._go_on.release()


class Driver:
    """One run of an algorithm, from its first claim to the reason why it ended.

    Parameters
    ----------
    algorithm, problem, options
        As for ``algorithm.run``.
    ledger : Ledger
        Checks and keeps the claims.
    budget : RunBudget
    limits : Limits
    interrupt : CtrlC
    on_improvement : callable
        Called with every new line of the history.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        options: Any,
        *,
        ledger: Ledger,
        budget: RunBudget,
        limits: Limits,
        interrupt: CtrlC,
        on_improvement: Callable[[Incumbent], object],
    ) -> None:
        self._name, self._ledger, self._budget = algorithm.name, ledger, budget
        self._limits, self._interrupt = limits, interrupt
        self._on_improvement = on_improvement
        self._worker = _Worker(algorithm, problem, options, budget)
        self._waiting = False  # whether the worker waits for the answer to a claim
        self._over = False
        self.has_run = False

    def run(self) -> StopReason:
        """Run to the end and return why it ended.

        Raises
        ------
        AlgorithmError
            If a claim does not hold or the algorithm fails.
        """
        reason = self.reason_to_stop()
        if reason is not None:
            return reason
        self._worker.start()
        self.has_run = True
        try:
            try:
                return self._listen()
            except KeyboardInterrupt:
                if self._interrupt.pressed:  # the second press
                    raise
                # the first one, in a program with a handler of its own
                self._interrupt.pressed = True
                return self._wind_up(StopReason.INTERRUPTED)
        except Exception:
            # A claim refused, a failure, an error of the caller's own function.
            self._dismiss(GRACE_SECONDS)
            raise
        finally:
            self._dismiss(0.0)
            if self._worker.is_alive():
                leave_behind(self._worker)

    def reason_to_stop(self) -> StopReason | None:
        """Return why the run must end now, if it must."""
        known, limits = self._ledger.known, self._limits
        if self._ledger.proved:
            return StopReason.PROVED
        if known.cost is not None and known.cost - known.lower_bound <= limits.gap:
            return StopReason.GAP
        cancelled = limits.cancel is not None and limits.cancel.is_set()
        if self._interrupt.pressed or cancelled:
            return StopReason.INTERRUPTED
        if self._budget.remaining() <= 0:
            return StopReason.TIME_LIMIT
        return None

    def _listen(self) -> StopReason:
        while True:
            self._hear(min(_POLL_SECONDS, self._budget.remaining()))
            reason = self.reason_to_stop()
            if reason is not None:
                return self._wind_up(reason)
            if self._over:
                return StopReason.FINISHED
            self._answer()

    def _hear(self, seconds: float) -> None:
        """Check the next claim, if one comes in time; note whether the algorithm has ended."""
        try:
            message = self._worker.messages.get(timeout=seconds)
        except queue.Empty:
            return
        if isinstance(message, _Said):
            self._waiting = True
            if self._ledger.offer(message.claim):
                self._on_improvement(self._ledger.known.history[-1])
            return
        self._over = True
        fault = message.fault
        if isinstance(fault, UnsupportedProblem | InvalidOption):
            raise fault
        if fault is not None:
            raise AlgorithmError(self._name, f"raised {type(fault).__name__}: {fault}") from fault

    def _answer(self) -> None:
        if self._waiting:
            self._waiting = False
            self._worker.go_on()

    def _wind_up(self, reason: StopReason) -> StopReason:
        """Stop the algorithm; hear its last claims and wait for its end for the grace's time.

        After a proof, or at the wanted gap, it is closed where it is, so that the same run ends
        with the same history.
        """
        end = time.monotonic() + GRACE_SECONDS
        hear = reason in (StopReason.TIME_LIMIT, StopReason.INTERRUPTED)
        while not self._over:
            self._worker.enough = not hear or self._ledger.proved
            self._stop()
            self._answer()
            left = end - time.monotonic()
            if left <= 0:
                break
            self._hear(min(_POLL_SECONDS, left))
        if self._ledger.proved:
            return StopReason.PROVED  # by a claim of the last half second
        late_press = reason is StopReason.TIME_LIMIT and self._interrupt.pressed
        return StopReason.INTERRUPTED if late_press else reason

    def _dismiss(self, seconds: float) -> None:
        """Hear the worker no more; wait a while for it to end."""
        self._worker.enough = True
        end = time.monotonic() + seconds
        while True:
            # If a cancel raises only now, the answer or the first error matters more.
            with suppress(AlgorithmError):
                self._stop()
            self._worker.go_on()  # from a claim heard, or from the next one, which nobody will hear
            if not self._worker.is_alive() or time.monotonic() >= end:
                return
            self._worker.join(_POLL_SECONDS)

    def _stop(self) -> None:
        try:
            self._budget.stop()
        except Exception as fault:
            raise AlgorithmError(
                self._name, f"has a cancel that raised {type(fault).__name__}: {fault}"
            ) from fault
