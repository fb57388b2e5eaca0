"""What the conformance suite looks for, one function a check, and the runs that it watches."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise, takewhile
from typing import Any, TypeAlias

from ..checker.kinds import AnyProblem, AnySchedule, checker_for
from ..errors import AlgorithmError, CmsError, GuaranteeBreached, InvalidOption
from ..plugin.algorithm import Algorithm, Budget, Claim, Named, SolverBound, Support, kinds_taken
from ..plugin.guarantee import Guarantee
from ..plugin.registry import NamedProblem, algorithm_of, option_fields, read_options
from ..solving.driver import Arguments
from ..solving.ledger import Ledger
from ..solving.solution import Solution, StopReason
from ..solving.solve import run_checked
from ..values.frozen import FrozenMap
from ..values.numbers import shown
from .edge_problems import CROWDS, EDGE_PROBLEMS, TIME_SHARED_EDGE_PROBLEMS

Faults: TypeAlias = Iterator[str]

#: Seconds of work that one may take to end; asleep it may take so many times as long, since a busy
#: machine makes one at work wait as well.
_LATE, _ASLEEP = 0.5, 20


class Observation:
    """One run through the driver, on a copy of a problem; there it stands for the algorithm.

    ``claims`` are all, whether they held or not; ``refusal`` is why there is no ``solution``;
    ``changed`` names the inputs that are no longer what they were; ``late`` says whether it worked
    for more than half a second after it was stopped, by the process's own clock, or slept on.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        trusted: bool,
        problem: AnyProblem,
        *,
        on_start: Callable[[], object] = lambda: None,
        on_claim: Callable[[], object] = lambda: None,
        start: AnySchedule | None = None,
        **arguments: Any,
    ) -> None:
        self.name, self.options_type = algorithm.name, algorithm.options_type
        self.takes = kinds_taken(algorithm)
        self.support, self.guarantee = algorithm.support, algorithm.guarantee
        self._algorithm, self._on_start, self._on_claim = algorithm, on_start, on_claim
        self._stopped_at: tuple[float, float] | None = None
        self.problem, self.seed = problem, arguments.get("seed", 0)
        self.claims: list[Any] = []
        self.solution: Solution | None = None
        self.refusal: CmsError | None = None
        self.changed: list[str] = []
        self.late = False
        inputs = pickle.loads(pickle.dumps((problem, start)))
        before = [pickle.dumps(given) for given in inputs]
        try:
            how = Arguments(start=inputs[1], **arguments)
            self.solution = run_checked(self, trusted, inputs[0], how)
        except CmsError as fault:
            self.refusal = fault
        for what, given, kept in zip(("problem", "start schedule"), inputs, before, strict=True):
            if pickle.dumps(given) != kept:
                self.changed.append(what)

    def run(self, problem: AnyProblem, options: Any, budget: Budget) -> Iterator[Claim]:
        """Pass on what the algorithm claims."""

        def claims() -> Generator[Claim]:
            yield from self._algorithm.run(problem, options, budget)

        before = repr(options)
        self._on_start()
        try:
            with budget.on_stop(self._stop), closing(claims()) as found:
                for claim in found:
                    self.claims.append(claim.claim if type(claim) is Named else claim)
                    self._on_claim()
                    yield claim
        finally:
            if self._stopped_at is not None:
                work, seconds = self._stopped_at
                self.late = (
                    time.process_time() - work > _LATE
                    or time.monotonic() - seconds > _ASLEEP * _LATE
                )
            if repr(options) != before:
                self.changed.append("options")

    def _stop(self) -> None:
        if self._stopped_at is None:
            self._stopped_at = time.process_time(), time.monotonic()


class Laboratory:
    """An algorithm, the problems to try it on, and the runs already watched.

    Its problems are by default those here, and what the checkers of other kinds bring; ``crowds``
    are large ones to stop in the middle of.
    """

    def __init__(
        self,
        algorithm: Any,
        problems: Sequence[NamedProblem] | None = None,
        *,
        seeds: Sequence[int] = (0, 1),
        time_limit: float = 10.0,
        options: Mapping[str, object] = FrozenMap(),
    ) -> None:
        self.algorithm, self.trusted = algorithm_of(algorithm)
        self.kinds = kinds_taken(self.algorithm)
        small, large = [*EDGE_PROBLEMS, *TIME_SHARED_EDGE_PROBLEMS], [*CROWDS]
        for kind in self.kinds:
            bring = getattr(checker_for.dispatch(kind), "edge_problems", tuple)
            for known, more in zip((small, large), bring(), strict=False):
                known += more
        if problems is None:
            problems = [named for named in small if isinstance(named.make(), self.kinds)]
        self.problems, self.crowds = tuple(problems), tuple(large)
        self.seeds, self.time_limit, self.options = tuple(seeds), time_limit, options
        self._runs: dict[tuple[str, int], Observation] = {}

    def supports(self, problem: AnyProblem) -> bool:
        """Whether the algorithm says that it can take a problem."""
        options, is_taken = self.chosen(), isinstance(problem, self.kinds)
        with suppress(Exception):  # what it raises is the matter of the check "support"
            return is_taken and self.algorithm.support(problem, options).ok is True
        return False

    def chosen(self) -> Any:
        """Return the options of every run, as the algorithm's own object."""
        return read_options(self.algorithm, self.options)

    def runs(self) -> Iterator[tuple[NamedProblem, str, Observation]]:
        """Iterate over one plain run for each problem it takes and seed, with words for it."""
        for named in self.problems:
            problem = named.make()
            for seed in self.seeds if self.supports(problem) else ():
                key = named.name, seed
                if key not in self._runs:
                    self._runs[key] = self.watch(problem, seed=seed)
                yield named, f"{named.name}, seed {seed}", self._runs[key]

    def watch(self, problem: AnyProblem, **arguments: Any) -> Observation:
        """Watch a run of its own."""
        arguments = {"time_limit": self.time_limit, "options": self.options, **arguments}
        return Observation(self.algorithm, self.trusted, problem, **arguments)


def faults_in_support(laboratory: Laboratory) -> Faults:
    """Refusals have reasons, answers do not change, nothing is raised, and its kinds are known."""
    for kind in laboratory.kinds:
        if checker_for.dispatch(kind) is checker_for.dispatch(object):
            yield f"it takes {kind.__name__}, for which no checker is registered"
    given = [(named.name, named.make()) for named in (*laboratory.problems, *laboratory.crowds)]
    if not any(laboratory.supports(problem) for _, problem in given):
        yield f"it takes none of the {len(given)} problems, so nothing can be said of it"
    for name, problem in given:
        if not isinstance(problem, laboratory.kinds):
            continue
        try:
            first, second = (
                laboratory.algorithm.support(problem, laboratory.chosen()) for _ in range(2)
            )
        except Exception as fault:  # noqa: BLE001 (reported)
            yield f"{name}: support() raised {_said(fault)}"
            continue
        if type(first) is not Support:
            yield f"{name}: support() returned {first!r}; expected a cms.Support"
        elif first != second:
            yield f"{name}: support() answered {first}, then {second}"


def faults_in_options(laboratory: Laboratory) -> Faults:
    """Every option has a default and a word of documentation; nonsense is refused."""
    algorithm = laboratory.algorithm
    fields = option_fields(algorithm)
    text = algorithm.options_type.__doc__ or ""
    for name in fields:
        if name not in text:
            yield f"the docstring of {algorithm.options_type.__name__} does not mention {name!r}"
    nonsense = object()  # a value no option can mean, and a name none can have
    for name in (*fields, "no such option"):
        try:
            read_options(algorithm, {name: nonsense})
        except InvalidOption:
            continue
        except Exception as fault:  # noqa: BLE001 (reported)
            yield f"option {name!r} given nonsense raised {_said(fault)}; expected a ValueError"
        else:
            yield f"option {name!r} took nonsense; refuse it with a ValueError in __post_init__"


def faults_in_claims(laboratory: Laboratory) -> Faults:
    """Claims are of the known types and hold, even where they would not improve anything."""
    for named, where, seen in laboratory.runs():
        for claim in seen.claims:
            ledger = Ledger(seen.problem, where, trusted=laboratory.trusted, clock=time.monotonic)
            try:
                ledger.hear(claim)
            except AlgorithmError as fault:
                yield f"{where}: {fault.message}"
            if type(claim) is not SolverBound:
                continue
            value, optimum = claim.value, named.optimum
            if value is None and not named.infeasible:
                yield f"{where}: {claim.solver} claims that there is no schedule"
            elif value is not None and optimum is not None and value > optimum:
                said = f"{where}: {claim.solver} claims a bound of {shown(value)}"
                yield f"{said}, above the optimum {shown(optimum)}"


def faults_in_inputs(laboratory: Laboratory) -> Faults:
    """Problem, start schedule and options are the same after the run."""
    for _, where, seen in laboratory.runs():
        changed = seen.changed
        if seen.solution is not None and seen.solution.cost is not None:
            again = laboratory.watch(seen.problem, seed=seen.seed, start=seen.solution.schedule)
            changed = [*changed, *again.changed]
        for what in changed:
            yield f"{where}: the {what} has changed"


def faults_in_clock(laboratory: Laboratory) -> Faults:
    """The algorithm ends within half a second of work of its time limit or the caller's cancel.

    Late means late twice: the first time code may have been compiled. Under a tracer, such as that
    of a measurement of coverage, nothing is.
    """

    def cancelled() -> Observation:
        cancel = threading.Event()
        timer = threading.Timer(0.1, cancel.set)
        # From the beginning of the run: on a busy machine that may take a while to come.
        seen = laboratory.watch(problem, time_limit=None, cancel=cancel, on_start=timer.start)
        timer.cancel()
        return seen

    monitoring = getattr(sys, "monitoring", None)
    if sys.gettrace() or (monitoring and monitoring.get_tool(monitoring.COVERAGE_ID)):
        return
    for named in laboratory.crowds:
        problem = named.make()
        if laboratory.supports(problem):
            if all(laboratory.watch(problem, time_limit=0.2).late for _ in range(2)):
                yield f"{named.name}: still at work half a second after its 0.2 s were over"
            if all(cancelled().late for _ in range(2)):
                yield f"{named.name}: still at work half a second after the caller's cancel"


def faults_in_reproducible(laboratory: Laboratory) -> Faults:
    """Further runs with the same seed make the same claims."""
    for _, where, seen in laboratory.runs():
        # two in a row, so that what alternates between runs is found out
        others = [laboratory.watch(seen.problem, seed=seen.seed) for _ in range(2)]
        claims = [
            run.claims
            for run in (seen, *others)
            if run.solution is None or run.solution.stop_reason is not StopReason.TIME_LIMIT
        ]
        for first, second in pairwise(claims):
            if first != second:
                pairs = zip(first, second, strict=False)
                same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
                counts = f"({len(first)} and {len(second)} claims)"
                yield f"{where}: two runs differ from claim {same + 1} on {counts}"
                break


def faults_in_cancels(laboratory: Laboratory) -> Faults:
    """Closing or cancelling it at a claim raises nothing, in it or in its cancels."""
    for named, _, plain in laboratory.runs():
        cancel = threading.Event()
        ways: dict[str, dict[str, Any]] = {
            "closed at its first schedule": {"gap": 10**30},
            "cancelled at its first claim": {"cancel": cancel, "on_claim": cancel.set},
        }
        for way, arguments in ways.items() if plain.refusal is None else ():
            seen = laboratory.watch(plain.problem, seed=plain.seed, **arguments)
            if seen.refusal is not None:
                yield f"{named.name}, {way}: {seen.refusal}"


def faults_in_edge_problems(laboratory: Laboratory) -> Faults:
    """It raises nothing on any problem it says it can take."""
    for _, where, seen in laboratory.runs():
        refusal = seen.refusal  # the driver's own are about claims and guarantees
        if refusal and getattr(refusal, "message", "raised").startswith("raised"):
            yield f"{where}: {refusal}"


def faults_in_guarantee(laboratory: Laboratory) -> Faults:
    """Finished runs keep the guarantee against the known optimum."""
    for named, where, seen in laboratory.runs():
        solution, optimum, refusal = seen.solution, named.optimum, seen.refusal
        if isinstance(refusal, GuaranteeBreached):
            yield f"{where}: {refusal}"
        try:
            promised: Any = laboratory.algorithm.guarantee(seen.problem, laboratory.chosen())
        except Exception as fault:  # noqa: BLE001 (reported)
            yield f"{named.name}: guarantee() raised {_said(fault)}"
            continue
        if promised is not None and not isinstance(promised, Guarantee):
            yield f"{named.name}: guarantee() returned {promised!r}; expected a cms.Guarantee"
            continue
        if promised is None or solution is None or optimum is None:
            continue
        if solution.stop_reason not in ("finished", "proved"):
            continue
        if solution.cost is None:
            yield f"{where}: finished without a schedule; {promised} promises one"
        elif solution.cost > promised.allows(optimum):
            found = f"cost {shown(solution.cost)} at an optimum of {shown(optimum)}"
            yield f"{where}: {found} breaches {promised}"


def _said(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"
