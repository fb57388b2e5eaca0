"""Watching an algorithm at work: what it claims, changes and raises in one run."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ..errors import CmsError
from ..plugin.algorithm import Algorithm, Budget, Claim, Named, kinds_taken
from ..referee.kinds import AnyProblem, AnySchedule
from ..running.stopping import GRACE_SECONDS
from ..solving.driver import Arguments
from ..solving.solution import Solution
from ..solving.solve import run_checked

#: Times the grace that one asleep may take to end: a busy machine makes one at work wait as well.
_ASLEEP = 20


@dataclass
class Observation:
    """One run, seen from outside.

    ``problem`` is as it was before the run; ``claims`` are all, whether they held or not;
    ``refusal`` is why the driver gave no ``solution``, ``raised`` what the algorithm itself raised;
    ``changed`` names the inputs that are no longer what they were. ``late`` says whether it worked
    for more than half a second after it was stopped, by the process's own clock, or slept on.
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

    ``on_start`` and ``on_claim`` are called when the run begins, and before each claim is handed
    over; ``limits`` are further arguments of :func:`cms.solve`.
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
        def claims() -> Generator[Claim]:
            yield from self._algorithm.run(problem, options, budget)

        seen, before = self._seen, repr(options)
        seen.started = True
        self._on_start()
        with budget.on_stop(self._stop):
            try:
                with closing(claims()) as found:
                    for claim in found:
                        seen.claims.append(claim.claim if type(claim) is Named else claim)
                        self._on_claim()
                        yield claim
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
