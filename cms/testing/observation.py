"""Watching an algorithm at work: what it claims, changes, raises and leaves behind in one run."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import pbkdf2_hmac
from typing import Any

from ..errors import CmsError
from ..plugin.algorithm import Algorithm, Budget, Claim, Named, Support, kinds_taken
from ..plugin.border import schedule_digest
from ..plugin.guarantee import Guarantee
from ..referee.kinds import AnyProblem, AnySchedule
from ..running.aside import GRACE_SECONDS
from ..schedule.schedule import Schedule
from ..solving.arguments import Arguments
from ..solving.solution import Solution
from ..solving.solve import run_checked


@dataclass
class Observation:
    """One run, seen from outside.

    Attributes
    ----------
    problem : AnyProblem
        As it was before the run; the algorithm was given a copy.
    claims : list
        Everything the algorithm yielded, in order, whether it held or not.
    solution : Solution or None
        The driver's answer; None if it refused a claim or the algorithm failed.
    refusal : CmsError or None
        Why the driver gave no answer.
    raised : BaseException or None
        What the algorithm itself raised.
    changed : list of str
        The inputs that are no longer what they were.
    started, ended : bool
        Whether the algorithm was run, and had ended when the driver gave its answer.
    late : bool
        Whether it went on for more than the grace's half a second after it was stopped. Where it
        had not ended by the clock, that is counted in work, its own and what this process would
        have got done meanwhile: on a busy machine half a second is not half a second.
    cancels : int
        Cancels still registered when the algorithm had ended.
    cancel_raised : BaseException or None
        What a cancel raised when it was called.
    """

    problem: AnyProblem
    claims: list[Any] = field(default_factory=list)
    solution: Solution | None = None
    refusal: CmsError | None = None
    raised: BaseException | None = None
    changed: list[str] = field(default_factory=list)
    started: bool = False
    ended: bool = False
    late: bool = False
    cancels: int = 0
    cancel_raised: BaseException | None = None


def observe(
    algorithm: Algorithm,
    trusted: bool,
    problem: AnyProblem,
    *,
    options: Mapping[str, object],
    on_start: Callable[[], object] = lambda: None,
    on_claim: Callable[[], object] = lambda: None,
    start: AnySchedule | None = None,
    **limits: Any,
) -> Observation:
    """Run an algorithm once through the driver, on a copy of a problem, and watch it.

    Parameters
    ----------
    algorithm : Algorithm
    trusted : bool
        Whether a solver's word is accepted from it.
    problem : AnyProblem
    options : Mapping[str, object]
    on_start : callable, optional
        Called in the algorithm's thread when its run begins.
    on_claim : callable, optional
        Called in the algorithm's thread before each claim is handed over.
    start : Schedule, optional
    **limits
        Further arguments of :func:`cms.solve`.
    """
    seen = Observation(problem)
    watched = _Watched(algorithm, seen, on_start, on_claim)
    copy: AnyProblem = pickle.loads(pickle.dumps(problem))
    own_start: AnySchedule | None = pickle.loads(pickle.dumps(start))
    try:
        arguments = Arguments(options=options, start=own_start, **limits)
        seen.solution = run_checked(watched, trusted, copy, arguments)
    except CmsError as fault:
        seen.refusal = fault
    seen.ended = seen.started and watched.over.is_set()
    seen.late = seen.started and not seen.ended and watched.goes_on()
    # The driver hands a third party's algorithm a copy of its own.
    if (watched.given or copy).compute_sha256() != problem.sha256:
        seen.changed.append("problem")
    if seen.started and schedule_digest(watched.start) != watched.start_before:
        seen.changed.append("start schedule")
    if watched.options_before != watched.options_after:
        seen.changed.append("options")
    return seen


#: Seconds of the watching thread's work in which an algorithm at work gets more than the grace.
_AT_WORK = 4 * GRACE_SECONDS
#: Of the watching thread's work, the part that an algorithm does not get done if it sleeps.
_ASLEEP = 0.1


class _Watched:
    """The algorithm itself, with a note of everything that passes."""

    def __init__(
        self,
        algorithm: Algorithm,
        seen: Observation,
        on_start: Callable[[], object],
        on_claim: Callable[[], object],
    ) -> None:
        self._algorithm, self._seen = algorithm, seen
        self._on_start, self._on_claim = on_start, on_claim
        self.name: str = algorithm.name
        self.options_type: type[Any] = algorithm.options_type
        self.takes = kinds_taken(algorithm)
        self.over = threading.Event()
        self.start: AnySchedule | None = None
        self.start_before = ""
        self.given: AnyProblem | None = None
        self.options_before = self.options_after = ""
        # the work of this process, when the algorithm was stopped first and when it had ended
        self._stopped_at = self._over_at = math.inf

    def goes_on(self) -> bool:
        """Whether it works for more than the grace after it was stopped, or does not end at all.

        Meanwhile this thread works too, and lets the interpreter go. Of what passes on a clock that
        counts work, an algorithm that works gets about as much as this thread, however busy the
        machine is; one that has got next to nothing done in the grace sleeps.
        """
        begun = time.thread_time()
        while not self.over.is_set():
            pbkdf2_hmac("sha256", b"any", b"work", 5_000)
            ours = time.thread_time() - begun
            own = time.process_time() - self._stopped_at - ours
            if own > GRACE_SECONDS or ours > _AT_WORK:
                return True
            if ours > GRACE_SECONDS and own < _ASLEEP * ours:
                return True
        return self._over_at - self._stopped_at - (time.thread_time() - begun) > GRACE_SECONDS

    def _stop(self) -> None:
        self._stopped_at = min(self._stopped_at, time.process_time())

    def support(self, problem: AnyProblem, options: Any) -> Support:
        return self._algorithm.support(problem, options)

    def guarantee(self, problem: AnyProblem, options: Any) -> Guarantee | None:
        return self._algorithm.guarantee(problem, options)

    def run(self, problem: AnyProblem, options: Any, budget: Budget) -> Iterator[Claim]:
        seen, self.given = self._seen, problem
        watched = _WatchedBudget(budget, seen)
        self.start = budget.best
        self.start_before = schedule_digest(self.start)
        seen.started = True
        self._on_start()
        self.options_before = self.options_after = repr(options)
        try:
            with budget.on_stop(self._stop):
                claims = iter(self._algorithm.run(problem, options, watched))
                try:
                    for claim in claims:
                        seen.claims.append(claim.claim if type(claim) is Named else claim)
                        self._on_claim()
                        yield claim
                finally:
                    close = getattr(claims, "close", None)
                    if close is not None:
                        close()
        except GeneratorExit:
            raise
        except BaseException as fault:
            seen.raised = fault
            raise
        finally:
            self.options_after = repr(options)
            self._over_at = time.process_time()
            self.over.set()


class _WatchedBudget:
    """The driver's budget, with a note of the cancels."""

    def __init__(self, budget: Budget, seen: Observation) -> None:
        self._budget, self._seen = budget, seen

    @property
    def seed(self) -> int:
        return self._budget.seed

    @property
    def threads(self) -> int:
        return self._budget.threads

    @property
    def lower_bound(self) -> Fraction:
        return self._budget.lower_bound

    @property
    def best(self) -> Schedule | None:
        return self._budget.best

    @property
    def stopped(self) -> bool:
        return self._budget.stopped

    def remaining(self) -> float:
        return self._budget.remaining()

    @contextmanager
    def on_stop(self, cancel: Callable[[], object]) -> Iterator[None]:
        def noted() -> None:
            try:
                cancel()
            except BaseException as fault:
                self._seen.cancel_raised = fault
                raise

        self._seen.cancels += 1
        with self._budget.on_stop(noted):
            try:
                yield
            finally:
                self._seen.cancels -= 1
