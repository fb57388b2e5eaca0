"""Runs an algorithm in a thread of its own and hears its claims one at a time.

Every claim is a rendezvous: the algorithm goes on when the driver has checked it. So an algorithm
never runs ahead of what is known, and the history of a run does not depend on the scheduler of the
operating system. The thread can be left behind: native code that does not react cannot hold up the
answer, as long as it lets go of the interpreter. A third party's claims are rebuilt and checked in
that thread too, so that no claim can hold up the answer either.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from ..errors import (
    AlgorithmError,
    ClusterError,
    FileError,
    InvalidOption,
    UnsupportedProblem,
    is_ours,
)
from ..plugin.algorithm import Algorithm
from ..plugin.border import Border
from ..referee.kinds import AnyProblem
from ..running.aside import GRACE_SECONDS as GRACE_SECONDS
from ..running.aside import POLL_SECONDS, Aside, in_words
from ..running.interrupt import CtrlC
from ..running.left_behind import leave_behind
from ..schedule.schedule import Schedule
from .ledger import Ledger, News
from .solution import Incumbent, StopReason


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

    def interrupted(self, interrupt: CtrlC) -> bool:
        """Whether the caller wants the run to end."""
        return interrupt.pressed or (self.cancel is not None and self.cancel.is_set())


class _Knowing(Protocol):
    """Whom a budget asks for what is known: a ledger, or a third party's outlook."""

    @property
    def known(self) -> Any:
        """Something with a ``lower_bound`` and a ``best`` schedule."""
        ...


class RunBudget:
    """The budget of one run; see :class:`cms.Budget`.

    Parameters
    ----------
    ledger : Ledger or Outlook
    seed, threads : int
    started : float
        ``time.monotonic()`` at the start.
    seconds : float
        The time limit, infinity for none.
    """

    def __init__(
        self, ledger: _Knowing, seed: int, threads: int, started: float, seconds: float
    ) -> None:
        self.seed, self.threads = seed, threads
        self._ledger, self._end = ledger, started + seconds
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._cancels: dict[object, Callable[[], object]] = {}

    @property
    def lower_bound(self) -> Fraction:
        """The checked lower bound."""
        return self._ledger.known.lower_bound  # type: ignore[no-any-return]

    @property
    def best(self) -> Schedule | None:
        """The cheapest checked schedule."""
        return self._ledger.known.best  # type: ignore[no-any-return]

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

    def twin(self, knowing: _Knowing) -> RunBudget:
        """Return a budget of the same limits that has nothing in common with this one."""
        return RunBudget(knowing, self.seed, self.threads, self._end, 0.0)

    def end(self) -> None:
        """Set ``stopped``."""
        self._stopped.set()

    def stop(self) -> None:
        """Set ``stopped`` and call every cancel that is registered; may be repeated."""
        self.end()
        with self._lock:
            cancels = list(self._cancels.values())
        # Outside the lock: a cancel may wait for a solver that is itself about to leave its block.
        for cancel in cancels:
            cancel()


class _Said(NamedTuple):
    """A message of the worker: a claim, to be checked."""

    claim: object


class _Checked(NamedTuple):
    """A message of the worker: a claim that was checked, and is news or was refused."""

    news: News | None
    refusal: AlgorithmError | None


#: No algorithm is to blame for what a problem is not, or for what a disk or a cluster does.
_PASSING = UnsupportedProblem, InvalidOption, FileError, ClusterError


class _Ended(NamedTuple):
    """The worker's last message: the algorithm is over, with an exception or without."""

    fault: BaseException | None = None
    said: str = ""
    own: bool = False  # whether it is a refusal that passes through


class _Worker:
    """Iterates over the claims; waits after each until it is told to go on."""

    def __init__(
        self,
        name: str,
        algorithm: Algorithm,
        problem: AnyProblem,
        options: Any,
        budget: RunBudget,
        check: Callable[[object], _Said | _Checked],
        tell: Callable[[], None],
    ) -> None:
        self.thread = Aside(self._run, f"cms {name}")
        self._task = algorithm, problem, options, budget, check, tell
        self._go_on = threading.Semaphore(0)
        self.enough = False
        # Not a SimpleQueue: in CPython 3.11, a signal shortly before its timeout makes it wait for
        # ever (the time left turns negative, which it takes for "no timeout").
        self.messages: queue.Queue[_Said | _Checked | _Ended] = queue.Queue()

    def _run(self) -> None:
        algorithm, problem, options, budget, check, tell = self._task
        del self._task  # a large problem is not kept by a thread that was left behind
        try:
            tell()
            claims = iter(algorithm.run(problem, options, budget))
            try:
                while not self.enough:
                    try:
                        claim = next(claims)
                    except StopIteration:
                        break
                    self.messages.put(check(claim))
                    self._go_on.acquire()
                    tell()
            finally:
                # a generator is closed here, in its own thread, so that its blocks are left
                close = getattr(claims, "close", None)
                if close is not None:
                    close()
        except BaseException as fault:  # noqa: BLE001 (raised again in the caller's thread)
            own = isinstance(fault, _PASSING) and is_ours(fault)
            self.messages.put(_Ended(fault, in_words(fault), own))
        else:
            self.messages.put(_Ended())

    def go_on(self) -> None:
        self._go_on.release()


class Driver:
    """One run of an algorithm, from its first claim to the reason why it ended.

    Parameters
    ----------
    name : str
        The algorithm's.
    algorithm, problem, options
        As for ``algorithm.run``.
    ledger : Ledger
        Checks and keeps the claims.
    budget : RunBudget
        Says when the time is up; of our own algorithms it is theirs as well.
    limits : Limits
    interrupt : CtrlC
    on_improvement : callable
        Called with every new line of the history.
    border : Border, optional
        Between us and a third party's algorithm.
    """

    def __init__(
        self,
        name: str,
        algorithm: Algorithm,
        problem: AnyProblem,
        options: Any,
        *,
        ledger: Ledger,
        budget: RunBudget,
        limits: Limits,
        interrupt: CtrlC,
        on_improvement: Callable[[Incumbent], object],
        border: Border | None = None,
    ) -> None:
        self._name, self._ledger, self._budget = name, ledger, budget
        self._limits, self._interrupt = limits, interrupt
        self._on_improvement, self._border = on_improvement, border
        # What is in a third party's hands says nothing to us: it has a budget of its own.
        self._theirs = budget if border is None else budget.twin(border.outlook)
        self._worker = _Worker(
            name, algorithm, problem, options, self._theirs, self._check, self._tell
        )
        self._cancelling: Aside | None = None
        self._grace_end: float | None = None
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
        self._worker.thread.start()
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
            for thread in (self._worker.thread, self._cancelling):
                if thread is not None and thread.is_alive():
                    leave_behind(thread)

    def reason_to_stop(self) -> StopReason | None:
        """Return why the run must end now, if it must."""
        known, limits = self._ledger.known, self._limits
        if self._ledger.proved:
            return StopReason.PROVED
        if known.cost is not None and known.cost - known.lower_bound <= limits.gap:
            return StopReason.GAP
        return self._end_of_time()

    def _end_of_time(self) -> StopReason | None:
        if self._limits.interrupted(self._interrupt):
            return StopReason.INTERRUPTED
        return StopReason.TIME_LIMIT if self._budget.remaining() <= 0 else None

    def _listen(self) -> StopReason:
        while True:
            self._hear(min(POLL_SECONDS, self._budget.remaining()))
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
        if isinstance(message, _Ended):
            self._over = True
            if message.fault is not None:
                if message.own:
                    raise message.fault
                raise AlgorithmError(self._name, f"raised {message.said}") from message.fault
            return
        self._waiting = True
        if isinstance(message, _Said):
            news = self._ledger.examined(message.claim, stopped=self._grace_is_over)
        elif message.refusal is not None:
            raise message.refusal
        else:
            news = message.news
        if news is not None:
            self._ledger.accept(news)
            self._on_improvement(self._ledger.known.history[-1])

    def _answer(self) -> None:
        if self._waiting:
            self._waiting = False
            self._worker.go_on()

    def _check(self, claim: object) -> _Said | _Checked:
        """Check a third party's claim in its own thread; leave any other to us."""
        if self._border is None:
            return _Said(claim)
        try:
            return _Checked(self._ledger.examined(claim, stopped=lambda: self._worker.enough), None)
        except AlgorithmError as refusal:
            return _Checked(None, refusal)

    def _tell(self) -> None:
        """Tell a third party, between two of its claims, what is known; ours see it themselves."""
        if self._border is not None:
            self._border.tell(self._ledger.known.lower_bound, self._ledger.known.best)

    def _grace_is_over(self) -> bool:
        if self._grace_end is None and self._end_of_time() is not None:
            self._grace_end = time.monotonic() + GRACE_SECONDS
        return self._grace_end is not None and time.monotonic() >= self._grace_end

    def _wind_up(self, reason: StopReason) -> StopReason:
        """Stop the algorithm; hear its last claims and wait for its end for the grace's time.

        After a proof, or at the wanted gap, it is closed where it is, so that the same run ends
        with the same history.
        """
        if self._grace_end is None:
            self._grace_end = time.monotonic() + GRACE_SECONDS
        end = self._grace_end
        hear = reason in (StopReason.TIME_LIMIT, StopReason.INTERRUPTED)
        while not self._over:
            self._worker.enough = not hear or self._ledger.proved
            self._stop()
            self._answer()
            left = end - time.monotonic()
            if left <= 0:
                break
            self._hear(min(POLL_SECONDS, left))
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
            if not self._worker.thread.is_alive() or time.monotonic() >= end:
                return
            self._worker.thread.join(POLL_SECONDS)

    def _stop(self) -> None:
        """Have the algorithm stopped; a third party's cancels run aside, and may take long."""
        if self._border is None:
            try:
                self._budget.stop()
            except Exception as fault:
                raise self._bad_cancel(in_words(fault)) from fault
            return
        self._budget.end()
        calls = self._cancelling
        if calls is None or not (calls.is_alive() or calls.said):
            calls = self._cancelling = Aside(self._theirs.stop)
            calls.start()
            calls.join(POLL_SECONDS)
        if calls.said:
            raise self._bad_cancel(calls.said) from calls.fault

    def _bad_cancel(self, said: str) -> AlgorithmError:
        return AlgorithmError(self._name, f"has a cancel that raised {said}")
