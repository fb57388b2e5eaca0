"""Runs an algorithm in the caller's thread: it goes on when its last claim has been checked."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Protocol

from ..checker.kinds import AnyProblem, AnySchedule
from ..errors import AlgorithmError, ClusterError, FileError, InvalidOption, UnsupportedProblem
from ..plugin.algorithm import Algorithm
from ..running.interrupt import CtrlC, Watchdog
from ..running.stopping import GRACE_SECONDS, Stopped
from ..values.frozen import FrozenMap
from ..values.numbers import Number, exact, shown_object, whole
from .ledger import Ledger
from .solution import Incumbent, StopReason

#: A time limit beyond this many seconds, some thirty years, is none: solvers count in small units.
LONGEST_TIME_LIMIT = 10**9


class CancelEvent(Protocol):
    """What ``cancel`` must be: a ``threading.Event`` or anything else that can be set."""

    def is_set(self) -> bool:
        """Whether the run is to end."""


class Arguments:
    """The arguments of :func:`cms.solve` that say how to run, checked."""

    def __init__(
        self,
        *,
        options: Mapping[str, object] = FrozenMap(),
        time_limit: float | None = 60.0,
        gap: Number = 0,
        seed: int = 0,
        threads: int | None = None,
        start: AnySchedule | None = None,
        cancel: CancelEvent | None = None,
        on_improvement: Callable[[Incumbent], object] | None = None,
    ) -> None:
        self.options, self.start, self.cancel = options, start, cancel
        self.seconds = math.inf if time_limit is None else _seconds(time_limit)
        self.gap = exact(gap, "gap", error=InvalidOption)
        self.seed = whole(seed, "seed", least=0, error=InvalidOption)
        threads = available_cores() if threads is None else threads
        self.threads = whole(threads, "threads", least=1, error=InvalidOption)
        self.on_improvement = (lambda line: None) if on_improvement is None else on_improvement
        if not callable(self.on_improvement):
            raise InvalidOption(f"on_improvement is {on_improvement!r}; expected a function")
        if cancel is not None and not callable(getattr(cancel, "is_set", None)):
            raise InvalidOption(f"cancel is {shown_object(cancel)}; expected a threading.Event")


def _seconds(time_limit: Any) -> float:
    try:
        # Compared before it becomes a float, which has no room for every number.
        seconds = math.inf if time_limit > LONGEST_TIME_LIMIT else float(time_limit)
    except (TypeError, ValueError, ArithmeticError):  # a decimal's NaN refuses to be compared
        seconds = math.nan
    if isinstance(time_limit, bool) or not seconds >= 0:
        raise InvalidOption(
            f"time_limit is {shown_object(time_limit)}; expected seconds >= 0, or None for no limit"
        )
    return seconds


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class RunBudget:
    """The :class:`cms.Budget` of one run, which ends at a reading of ``time.monotonic()``."""

    def __init__(self, ledger: Ledger, seed: int, threads: int, end: float) -> None:
        self.seed, self.threads = seed, threads
        self._ledger, self._end = ledger, end
        self._stopped_at: float | None = None
        self._lock = threading.Lock()
        self._cancels: dict[object, Callable[[], object]] = {}

    @property
    def lower_bound(self) -> Fraction:
        """The checked lower bound."""
        return self._ledger.known.lower_bound

    @property
    def best(self) -> Any:
        """The cheapest checked schedule."""
        return self._ledger.known.best

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""
        return self._stopped_at is not None

    def remaining(self) -> float:
        """Return the seconds left: infinity without a limit, 0 once stopped."""
        return 0.0 if self.stopped else max(0.0, self._end - time.monotonic())

    def grace_is_over(self) -> bool:
        """Whether the run was stopped so long ago that no more claims count."""
        at = self._stopped_at
        return at is not None and time.monotonic() >= at + GRACE_SECONDS

    @contextmanager
    def on_stop(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Have ``cancel`` called when the run is stopped within the block."""
        key = object()
        with self._lock:
            self._cancels[key] = cancel
        try:
            if self.stopped:  # a stop after this look finds the cancel registered
                cancel()
            yield
        finally:
            with self._lock:
                del self._cancels[key]

    def stop(self) -> None:
        """Set ``stopped`` and call every cancel that is registered; may be repeated."""
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
        with self._lock:
            cancels = list(self._cancels.values())
        # Outside the lock: a cancel may wait for a solver that is itself about to leave its block.
        for cancel in cancels:
            cancel()


#: No algorithm is to blame for what a problem is not, or for what a disk or a cluster does.
_PASSING = UnsupportedProblem, InvalidOption, FileError, ClusterError, AlgorithmError, Stopped


@contextmanager
def blaming(algorithm: Algorithm, deed: str = "raised") -> Generator[None]:
    """Raise AlgorithmError for what goes wrong in the block: it is the algorithm's fault."""
    try:
        yield
    except _PASSING:
        raise
    except Exception as fault:
        words = f"{deed} {type(fault).__name__}: {fault}"
        raise AlgorithmError(algorithm.name, words) from fault


class Driver:
    """One run of an algorithm, from its first claim to the reason why it ended."""

    def __init__(
        self, ledger: Ledger, budget: RunBudget, arguments: Arguments, interrupt: CtrlC
    ) -> None:
        self._ledger, self._budget, self._arguments = ledger, budget, arguments
        self._interrupt = interrupt
        self._watchdog = Watchdog(
            lambda: 0.0 if self.interrupted else budget.remaining(), budget.stop
        )

    def run(
        self,
        algorithm: Algorithm,
        problem: AnyProblem,
        options: Any,
        report: Callable[[Incumbent], object],
    ) -> StopReason:
        """Run to the end, report each improvement, and return why it ended."""

        def claims() -> Generator[Any]:
            with blaming(algorithm):
                yield from algorithm.run(problem, options, self._budget)

        with self._watchdog:
            try:
                reason = self._hear(algorithm, claims(), report)
            except KeyboardInterrupt:
                if self._interrupt.pressed:  # the second press
                    raise
                # the first one, in a program with a handler of its own
                self._interrupt.pressed = True
                reason = self.reason_to_stop() or StopReason.INTERRUPTED
        if self._watchdog.fault is not None:
            with blaming(algorithm, "has a cancel that raised"):
                raise self._watchdog.fault
        return reason

    @property
    def interrupted(self) -> bool:
        """Whether the caller wants the run to end."""
        cancel = self._arguments.cancel
        pressed = self._interrupt.pressed or self._watchdog.pressed
        return pressed or (cancel is not None and cancel.is_set())

    def reason_to_stop(self) -> StopReason | None:
        """Return why the run must end now, if it must."""
        known = self._ledger.known
        if self._ledger.proved:
            return StopReason.PROVED
        if known.cost is not None and known.cost - known.lower_bound <= self._arguments.gap:
            return StopReason.GAP
        if self.interrupted:
            return StopReason.INTERRUPTED
        return StopReason.TIME_LIMIT if self._budget.remaining() <= 0 else None

    def _hear(
        self, algorithm: Algorithm, claims: Generator[Any], report: Callable[[Incumbent], object]
    ) -> StopReason:
        """Check every claim, until one leaves nothing to search for or the grace is over."""
        try:
            for claim in claims:
                line = self._ledger.hear(claim, stopped=self._budget.grace_is_over)
                if line is not None:
                    report(line)
                reason = self.reason_to_stop()
                if reason in (StopReason.PROVED, StopReason.GAP):
                    return reason
                if reason is not None and self._budget.grace_is_over():
                    return reason
            return self.reason_to_stop() or StopReason.FINISHED
        except Stopped:  # perhaps a moment early, where nothing would come of going on
            return self.reason_to_stop() or StopReason.TIME_LIMIT
        finally:
            with blaming(algorithm, "has a cancel that raised"):
                self._budget.stop()
            claims.close()
