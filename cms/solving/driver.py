"""Runs an algorithm in the caller's thread, and hears its claims one at a time.

The algorithm is a generator: it goes on when its last claim has been checked. So it never runs
ahead of what is known, and the history of a run does not depend on the operating system. A watchdog
stops it when the time is up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from ..errors import AlgorithmError, ClusterError, FileError, InvalidOption, UnsupportedProblem
from ..plugin.algorithm import Algorithm
from ..referee.kinds import AnyProblem
from ..running.interrupt import CtrlC
from ..running.stopping import GRACE_SECONDS, Stopped
from ..running.watchdog import Watchdog
from .ledger import Ledger
from .solution import Incumbent, StopReason


class CancelEvent(Protocol):
    """What ``cancel`` must be: a ``threading.Event`` or anything else that can be set."""

    def is_set(self) -> bool:
        """Whether the run is to end."""


class Limits(NamedTuple):
    """When to stop, besides at a proof."""

    seconds: float
    gap: Fraction
    cancel: CancelEvent | None


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
        self,
        ledger: Ledger,
        budget: RunBudget,
        limits: Limits,
        interrupt: CtrlC,
        on_improvement: Callable[[Incumbent], object],
    ) -> None:
        self._ledger, self._budget = ledger, budget
        self._limits, self._interrupt = limits, interrupt
        self._on_improvement = on_improvement
        self._watchdog = Watchdog(self._left, budget.stop)
        self.has_run = False

    def run(self, algorithm: Algorithm, problem: AnyProblem, options: Any) -> StopReason:
        """Run to the end and return why it ended."""
        reason = self.reason_to_stop()
        if reason is not None:
            return reason
        self.has_run = True

        def claims() -> Generator[Any]:
            with blaming(algorithm):
                yield from algorithm.run(problem, options, self._budget)

        with self._watchdog:
            try:
                reason = self._hear(algorithm, claims())
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
        cancel = self._limits.cancel
        pressed = self._interrupt.pressed or self._watchdog.pressed
        return pressed or (cancel is not None and cancel.is_set())

    def reason_to_stop(self) -> StopReason | None:
        """Return why the run must end now, if it must."""
        known = self._ledger.known
        if self._ledger.proved:
            return StopReason.PROVED
        if known.cost is not None and known.cost - known.lower_bound <= self._limits.gap:
            return StopReason.GAP
        if self.interrupted:
            return StopReason.INTERRUPTED
        return StopReason.TIME_LIMIT if self._budget.remaining() <= 0 else None

    def _left(self) -> float:
        return 0.0 if self.interrupted else self._budget.remaining()

    def _hear(self, algorithm: Algorithm, claims: Generator[Any]) -> StopReason:
        """Check every claim, until one leaves nothing to search for or the grace is over."""
        try:
            for claim in claims:
                line = self._ledger.hear(claim, stopped=self._budget.grace_is_over)
                if line is not None:
                    self._on_improvement(line)
                reason = self.reason_to_stop()
                if reason in (StopReason.PROVED, StopReason.GAP):
                    return reason
                if reason is not None and self._budget.grace_is_over():
                    return reason
            return self.reason_to_stop() or StopReason.FINISHED
        except Stopped:  # perhaps a moment early, where nothing would come of going on
            return self.reason_to_stop() or StopReason.TIME_LIMIT
        finally:
            with blaming(algorithm):
                self._budget.stop()
            claims.close()
