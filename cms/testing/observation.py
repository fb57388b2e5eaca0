"""Watching an algorithm at work: what it claims, changes and raises in one run."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import CmsError
from ..plugin.algorithm import Algorithm, Budget, Claim, Named, kinds_taken
from ..referee.kinds import AnyProblem, AnySchedule
from ..running.stopping import GRACE_SECONDS
from ..solving.arguments import Arguments
from ..solving.solution import Solution
from ..solving.solve import run_checked

#: Times the grace that one asleep may take to end: a busy machine makes one at work wait as well.
_ASLEEP = 20


@dataclass
class Observation:
    """One run, seen from outside.

    Attributes
    ----------
    problem : AnyProblem
        As it was before the run; the algorithm was given a copy.
    seed : int
    started : bool
        Whether the algorithm was run.
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
    late : bool
        Whether it worked for more than half a second after it was stopped, by the process's own
        clock, or slept on.
    cancels : int
        Cancels still registered when the algorithm had ended.
    cancel_raised : BaseException or None
        What a cancel raised when it was called.
    """

    problem: AnyProblem
    seed: int = 0
    started: bool = False
    claims: list[Any] = field(default_factory=list)
    solution: Solution | None = None
    refusal: CmsError | None = None
    raised: BaseException | None = None
    changed: list[str] = field(default_factory=list)
    late: bool = False
    cancels: int = 0
    cancel_raised: BaseException | None = None


def _nothing() -> None:
    pass


def observe(
    algorithm: Algorithm,
    trusted: bool,
    problem: AnyProblem,
    *,
    options: Mapping[str, object],
    on_start: Callable[[], object] = _nothing,
    on_claim: Callable[[], object] = _nothing,
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
    on_start, on_claim : callable, optional
        Called when the run begins, and before each claim is handed over.
    start : Schedule, optional
    **limits
        Further arguments of :func:`cms.solve`.
    """
    seen = Observation(problem, limits.get("seed", 0))
    copy, own_start = pickle.loads(pickle.dumps((problem, start)))
    inputs = {"problem": copy, "start schedule": own_start}
    before = {what: pickle.dumps(given) for what, given in inputs.items()}
    try:
        arguments = Arguments(options=options, start=own_start, **limits)
        watched = _Watched(algorithm, seen, on_start, on_claim)
        seen.solution = run_checked(watched, trusted, copy, arguments)
    except CmsError as fault:
        seen.refusal = fault
    seen.changed += [what for what, given in inputs.items() if pickle.dumps(given) != before[what]]
    return seen


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
        self.support, self.guarantee = algorithm.support, algorithm.guarantee
        self._stopped_at: tuple[float, float] | None = None

    def _stop(self) -> None:
        if self._stopped_at is None:
            self._stopped_at = time.process_time(), time.monotonic()

    def run(self, problem: AnyProblem, options: Any, budget: Budget) -> Iterator[Claim]:
        seen, before = self._seen, repr(options)
        seen.started = True
        self._on_start()
        with budget.on_stop(self._stop):
            try:
                noted: Any = _NotedBudget(budget, seen)
                claims = iter(self._algorithm.run(problem, options, noted))
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
                if self._stopped_at is not None:
                    work, seconds = self._stopped_at
                    seen.late = (
                        time.process_time() - work > GRACE_SECONDS
                        or time.monotonic() - seconds > _ASLEEP * GRACE_SECONDS
                    )
                if repr(options) != before:
                    seen.changed.append("options")


class _NotedBudget:
    """The driver's budget, with a note of the cancels."""

    def __init__(self, budget: Budget, seen: Observation) -> None:
        self._budget, self._seen = budget, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._budget, name)

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
