"""``solve``: one call from a problem to a checked schedule and a checked bound."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .algorithm import Algorithm, Support
from .driver import CancelEvent, Driver, Limits, RunBudget
from .errors import AlgorithmError, CmsError, GuaranteeBreached, InvalidOption, UnsupportedProblem
from .frozen import FrozenMap
from .guarantee import Guarantee, GuaranteeVerdict, Verdict, judge
from .interrupt import CtrlC
from .ledger import Ledger
from .numbers import Number, exact, format_exact, whole
from .options import read_options
from .problem import Problem
from .registry import algorithm_of
from .rows import Rows
from .schedule import Schedule
from .solution import Incumbent, Proof, Solution, StopReason

_NO_OPTIONS: Mapping[str, object] = FrozenMap()


def solve(
    problem: Problem,
    method: str | Algorithm = "auto",
    *,
    options: Mapping[str, object] = _NO_OPTIONS,
    time_limit: float | None = 60.0,
    gap: Number = 0,
    seed: int = 0,
    threads: int | None = None,
    start: Schedule | None = None,
    cancel: CancelEvent | None = None,
    on_improvement: Callable[[Incumbent], object] | None = None,
) -> Solution:
    """Find a schedule of low cost and a lower bound on every schedule's cost; check both exactly.

    Whatever the method claims is checked in exact arithmetic before it counts; ``OPTIMAL`` and
    ``INFEASIBLE`` are said here, never by a method.

    Parameters
    ----------
    problem : Problem
    method : str or Algorithm, default "auto"
        A name from :func:`cms.algorithms`, or an algorithm of your own, which is treated like a
        third party's: no solver's word is accepted from it.
    options : Mapping[str, object], optional
        The method's own options, by name.
    time_limit : float or None, default 60
        Seconds, for the whole call; None means no limit. The answer comes at most half a second
        later, plus the time of an exact check under way; before the run the method is asked
        whether it supports the problem, which it must say quickly.
    gap : number, default 0
        Stop when cost less lower bound is at most this; absolute, in the unit of the costs.
    seed : int, default 0
        >= 0. The same seed, options, threads and version give the same history, but for the
        seconds, if no time limit cuts the run short.
    threads : int, optional
        >= 1; by default the cores this process may use. They bound compiled pricing; how many
        workers a solver inside a method has is the method's own option.
    start : Schedule, optional
        A valid schedule to improve on.
    cancel : threading.Event, optional
        Set it, from any thread, to end the run with what is known.
    on_improvement : callable, optional
        Called in this thread with each new :class:`cms.Incumbent` of the history.

    Returns
    -------
    Solution

    Raises
    ------
    UnknownMethod, InvalidOption, InvalidSchedule
        For a bad argument; they are ValueErrors. Nothing has run then.
    PluginError
        If the method is installed but cannot be used.
    UnsupportedProblem
        If the method cannot take this problem; with the method's own reason.
    AlgorithmError
        If a claim of the method does not hold, or the method fails or changes the problem.
    GuaranteeBreached
        If a finished run costs more than the method's theorem allows, or has no schedule where one
        is certain.

    Notes
    -----
    Ctrl-C ends the run with what is known (``StopReason.INTERRUPTED``); pressed twice, it raises
    KeyboardInterrupt. In a thread other than the main one, where Ctrl-C does not reach, use
    ``cancel``.

    The method runs in a thread of its own. When it is stopped and does not end within half a
    second, it is left behind: it may go on in the background until its native code returns.

    Examples
    --------
    >>> from cms.model import Configuration, Job
    >>> problem = Problem(
    ...     configurations=[Configuration({"7g": 1}), Configuration({"4g": 1, "3g": 1})],
    ...     jobs=[
    ...         Job("bert", demand=1200, demand_function={"3g": "310.5", "4g": 420, "7g": 800}),
    ...         Job("vgg", demand=100, demand_function={"3g": 150}),
    ...     ],
    ... )
    >>> solution = solve(problem)
    >>> str(solution.status), str(solution.proof), solution.machine_count
    ('optimal', 'checked', 2)
    """
    algorithm, trusted = algorithm_of(method)
    return run_checked(
        algorithm,
        trusted,
        problem,
        options=options,
        time_limit=time_limit,
        gap=gap,
        seed=seed,
        threads=threads,
        start=start,
        cancel=cancel,
        on_improvement=on_improvement,
    )


def run_checked(
    algorithm: Algorithm,
    trusted: bool,
    problem: Problem,
    *,
    options: Mapping[str, object] = _NO_OPTIONS,
    time_limit: float | None = 60.0,
    gap: Number = 0,
    seed: int = 0,
    threads: int | None = None,
    start: Schedule | None = None,
    cancel: CancelEvent | None = None,
    on_improvement: Callable[[Incumbent], object] | None = None,
) -> Solution:
    """Do as :func:`solve`; ``trusted`` says whether a solver's word is accepted."""
    started = time.monotonic()
    if not isinstance(problem, Problem):
        raise InvalidOption(f"problem is {problem!r}; expected a cms.Problem")
    chosen = read_options(algorithm, options)
    limits = Limits(
        _seconds(time_limit), exact(gap, "gap", error=InvalidOption), _cancel_event(cancel)
    )
    seed = whole(seed, "seed", least=0, error=InvalidOption)
    threads = (
        _available_cores()
        if threads is None
        else whole(threads, "threads", least=1, error=InvalidOption)
    )
    if start is not None and type(start) is not Schedule:
        raise InvalidOption(f"start is {start!r}; expected a cms.Schedule")
    if on_improvement is not None and not callable(on_improvement):
        raise InvalidOption(f"on_improvement is {on_improvement!r}; expected a function")

    with CtrlC() as interrupt:
        # What a third party's algorithm does to its problem, caches included, stays with it.
        given = problem if trusted else _private_copy(problem)
        guard = _Inputs(given, start, algorithm.name, trusted)
        support = _asked(algorithm, "support", Support, given, chosen)
        if not support.ok:
            raise UnsupportedProblem(
                f"method {algorithm.name!r} cannot take this problem: {support.reason}"
            )
        ledger = Ledger(
            problem, algorithm.name, trusted=trusted, clock=lambda: time.monotonic() - started
        )
        if start is not None:
            ledger.start_from(start)
        report = on_improvement or _nothing
        for line in ledger.known.history:
            report(line)
        driver = Driver(
            algorithm,
            given,
            chosen,
            ledger=ledger,
            budget=RunBudget(ledger, seed, threads, started, limits.seconds),
            limits=limits,
            interrupt=interrupt,
            on_improvement=report,
        )
        try:
            reason = driver.run()
        except AlgorithmError as fault:
            # The true cause first: claims about a changed problem were true of that one.
            guard.refuse_changes(fault)
            raise
        guard.refuse_changes(None)
        verdict = None
        if driver.has_run and reason in (StopReason.FINISHED, StopReason.PROVED):
            verdict = _verdict(algorithm, problem, chosen, ledger)
        status, proof = ledger.verdict
        known = ledger.known
        return Solution(
            status=status,
            proof=proof,
            stop_reason=reason,
            method=algorithm.name,
            seconds=time.monotonic() - started,
            schedule=Schedule() if known.best is None else known.best,
            cost=known.cost,
            certificate=known.certificate,
            lower_bound=known.lower_bound,
            claimed_bound=known.claimed_bound,
            guarantee=verdict,
            history=known.history,
            problem_sha256=problem.sha256,
        )


def _private_copy(problem: Problem) -> Problem:
    rows = problem.rows
    return Problem._rebuild(
        problem.blocks,
        problem.configurations,
        problem.machine_types,
        problem.job_names,
        Rows(rows.demands, rows.supplies, rows.denominators, rows.wide),
    )


class _Inputs:
    """The inputs' digests before an algorithm saw them, to notice that it changed them.

    A problem and a schedule refuse to be changed by the ordinary means; a third party's algorithm
    that reaches around them is found out. Our own are held to it by the conformance tests, which
    spares a large problem two passes over its data.
    """

    def __init__(
        self, problem: Problem, start: Schedule | None, algorithm: str, trusted: bool
    ) -> None:
        self._problem, self._start, self._algorithm = problem, start, algorithm
        self._before = None if trusted else self._digests()

    def refuse_changes(self, fault: AlgorithmError | None) -> None:
        """Raise AlgorithmError if an input is not what it was."""
        if self._before is None:
            return
        for name, before, after in zip(
            ("problem", "start"), self._before, self._digests(), strict=True
        ):
            if before != after:
                raise AlgorithmError(
                    self._algorithm, f"changed the {name} it was given, which is not its own"
                ) from fault

    def _digests(self) -> tuple[str, str]:
        return self._problem.compute_sha256(), schedule_digest(self._start)


def schedule_digest(schedule: Schedule | None) -> str:
    """Return a digest of a schedule's data as they are now."""
    import hashlib
    import pickle

    return hashlib.sha256(pickle.dumps(schedule)).hexdigest()


def _seconds(time_limit: object) -> float:
    if time_limit is None:
        return math.inf
    try:
        seconds = math.nan if isinstance(time_limit, bool | str) else float(time_limit)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not seconds >= 0:
        raise InvalidOption(
            f"time_limit is {time_limit!r}; expected seconds >= 0, or None for no limit"
        )
    return seconds


def _cancel_event(cancel: object) -> CancelEvent | None:
    if cancel is None:
        return None
    if not callable(getattr(cancel, "is_set", None)):
        raise InvalidOption(f"cancel is {cancel!r}; expected a threading.Event")
    return cancel  # type: ignore[return-value]


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _asked(
    algorithm: Algorithm, question: str, expected: type[Any], problem: Problem, options: Any
) -> Any:
    """Ask an algorithm ``support`` or ``guarantee``; what goes wrong there is its fault."""
    try:
        answer = getattr(algorithm, question)(problem, options)
    except CmsError:
        raise
    except Exception as fault:
        raise AlgorithmError(
            algorithm.name, f"{question}() raised {type(fault).__name__}: {fault}"
        ) from fault
    if type(answer) is not expected and not (answer is None and expected is Guarantee):
        raise AlgorithmError(
            algorithm.name, f"{question}() returned {answer!r}; expected a {expected.__name__}"
        )
    return answer


def _verdict(
    algorithm: Algorithm, problem: Problem, options: Any, ledger: Ledger
) -> GuaranteeVerdict | None:
    known = ledger.known
    guarantee = _asked(algorithm, "guarantee", Guarantee, problem, options)
    if guarantee is None or known.infeasible is not Proof.NONE:
        return None
    if known.cost is None:
        if ledger.limited:
            return None  # there may be no schedule
        raise GuaranteeBreached(
            algorithm.name,
            "finished without a schedule, though every job can be served and no machine type has "
            f"a limit; {guarantee.theorem} guarantees one ({guarantee})",
        )
    # Every reference is at most the optimum, hence at most what any valid schedule costs.
    verdict = judge(
        guarantee, cost=known.cost, lower_bound=known.lower_bound, upper_value=known.cost
    )
    if verdict.verdict is Verdict.BREACHED:
        raise GuaranteeBreached(
            algorithm.name,
            f"finished with a schedule of cost {format_exact(known.cost)}, above the "
            f"{format_exact(guarantee.allows(Fraction(known.cost)))} that {guarantee.theorem} "
            f"guarantees ({guarantee})",
        )
    return verdict


def _nothing(_: Incumbent) -> None:
    """Report to nobody."""
