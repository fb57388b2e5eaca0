"""``solve``: one call from a problem to a checked schedule and a checked bound."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..checker.kinds import AnyProblem, AnySchedule, Checker, checker_for
from ..errors import AlgorithmError, GuaranteeBreached, InvalidOption, UnsupportedProblem
from ..plugin.algorithm import Algorithm, Support, is_taken, kinds_taken
from ..plugin.guarantee import Guarantee, GuaranteeVerdict, Verdict, judge
from ..plugin.registry import algorithm_of, read_options
from ..running.interrupt import CtrlC
from ..running.stopping import GRACE_SECONDS
from ..values.frozen import FrozenMap
from ..values.numbers import Number, shown, shown_object
from .driver import Arguments, CancelEvent, Driver, RunBudget, blaming
from .ledger import Known, Ledger
from .solution import Incumbent, Proof, Solution, StopReason


def solve(
    problem: AnyProblem,
    method: str | Algorithm = "auto",
    *,
    options: Mapping[str, object] = FrozenMap(),
    time_limit: float | None = 60.0,
    gap: Number = 0,
    seed: int = 0,
    threads: int | None = None,
    start: AnySchedule | None = None,
    cancel: CancelEvent | None = None,
    on_improvement: Callable[[Incumbent], object] | None = None,
) -> Solution:
    """Find a schedule of low cost and a lower bound on every schedule's cost; check both exactly.

    Parameters
    ----------
    problem : Problem
    method : str or Algorithm, default "auto"
        A name from :func:`cms.algorithms`, or an algorithm of your own.
    options : Mapping[str, object], optional
        The method's own options, by name.
    time_limit : float or None, default 60
        Seconds for the whole call, which our own methods keep to half a second up to a million
        jobs; None means no limit.
    gap : number, default 0
        Stop when cost less lower bound is at most this, in the unit of the costs.
    seed : int, default 0
        >= 0. It makes a run reproducible that no time limit cuts short.
    threads : int, optional
        >= 1, for compiled pricing; by default the cores this process may use.
    start : Schedule, optional
        A valid schedule to improve on.
    cancel : threading.Event, optional
        Set it, from any thread, to end the run with what is known.
    on_improvement : callable, optional
        Called in this thread with each new :class:`cms.Incumbent` of the history.

    Raises
    ------
    UnknownMethod, InvalidOption, InvalidSchedule
        For a bad argument, before anything has run; they are ValueErrors.
    PluginError
        If the method is installed but cannot be used.
    UnsupportedProblem
        If the method cannot take this problem; with the method's own reason.
    AlgorithmError
        If a claim of the method does not hold, or the method fails.
    GuaranteeBreached
        If a finished run costs more than the method's theorem allows.

    Notes
    -----
    Whatever the method claims is checked in exact arithmetic before it counts. The logger ``cms``
    of Python's :mod:`logging` has, at level INFO, a line an improvement.

    The method runs in the caller's thread. Ctrl-C ends the run with what is known, even if the
    program has a handler of its own, which is called as well; pressed twice, it raises
    KeyboardInterrupt as soon as the method is back from native code. In a thread other than the
    main one, where Ctrl-C does not reach, use ``cancel``.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
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
    arguments = Arguments(
        options=options, time_limit=time_limit, gap=gap, seed=seed, threads=threads, start=start,
        cancel=cancel, on_improvement=on_improvement,
    )  # fmt: skip
    return run_checked(algorithm, trusted, problem, arguments)


def run_checked(
    algorithm: Algorithm, trusted: bool, problem: AnyProblem, arguments: Arguments | None = None
) -> Solution:
    """Do as :func:`solve`; ``trusted`` says whether a solver's word is accepted."""
    started = time.monotonic()
    checker = checker_for(problem)
    arguments = Arguments() if arguments is None else arguments
    start, name = arguments.start, algorithm.name
    options = read_options(algorithm, arguments.options)
    if start is not None and type(start) is not checker.schedules:
        raise InvalidOption(f"start is {start!r}; expected {checker.schedules.__name__}")

    with CtrlC() as interrupt:
        if not is_taken(algorithm, problem):
            kinds = " or ".join(kind.__name__ for kind in kinds_taken(algorithm))
            hint = "; if it fits into memory, solve problem.load()"
            raise UnsupportedProblem(
                f"method {name!r} takes {kinds}; this problem is of type {type(problem).__name__}"
                + (hint if hasattr(problem, "load") else "")
            )
        support = _answer(algorithm, "support", problem, options, Support)
        if not support.ok:
            raise UnsupportedProblem(f"method {name!r} cannot take this problem: {support.reason}")
        ledger = Ledger(problem, name, trusted=trusted, clock=lambda: time.monotonic() - started)
        if start is not None:
            ledger.start_from(start)
        report, log_end = arguments.on_improvement, None
        if logging.getLogger("cms").isEnabledFor(logging.INFO):
            from .words import run_log

            report, log_end = run_log(problem, name, arguments)
        for line in ledger.known.history:
            report(line)
        end = started + arguments.seconds
        budget = RunBudget(ledger, arguments.seed, arguments.threads, end)
        driver = Driver(ledger, budget, arguments, interrupt)
        # At the end, a large problem's digest would come after the time limit.
        sha256 = problem.sha256
        reason = driver.reason_to_stop()
        has_run = reason is None
        if reason is None:
            reason = driver.run(algorithm, problem, options, report)
        if reason is not StopReason.INTERRUPTED:
            for line in ledger.bound_roughly(
                lambda: time.monotonic() > end + GRACE_SECONDS / 2 or driver.interrupted
            ):
                report(line)
            if ledger.proved:
                reason = StopReason.PROVED
        verdict = None
        if has_run and reason in (StopReason.FINISHED, StopReason.PROVED):
            guarantee = _answer(algorithm, "guarantee", problem, options, Guarantee)
            if guarantee is not None:
                verdict = _verdict(name, guarantee, ledger.known, checker)
        status, proof = ledger.verdict
        known = ledger.known._asdict()
        best, _ = known.pop("best"), known.pop("infeasible")
        schedule: Any = checker.schedules() if best is None else best
        solution = Solution(
            status=status,
            proof=proof,
            stop_reason=reason,
            method=name,
            seconds=time.monotonic() - started,
            schedule=schedule,
            guarantee=verdict,
            problem_sha256=sha256,
            **known,
        )
        if log_end is not None:
            log_end(solution)
        return solution


def _answer(
    algorithm: Algorithm, question: str, problem: AnyProblem, options: Any, expected: type[Any]
) -> Any:
    """Ask ``support`` or ``guarantee``."""
    with blaming(algorithm, f"{question}() raised"):
        answer = getattr(algorithm, question)(problem, options)
    if type(answer) is not expected and not (answer is None and expected is Guarantee):
        words = f"{question}() returned {shown_object(answer)}; expected a {expected.__name__}"
        raise AlgorithmError(algorithm.name, words)
    return answer


def _verdict(
    name: str, guarantee: Guarantee, known: Known, checker: Checker
) -> GuaranteeVerdict | None:
    cost = known.cost
    if cost is None:
        if known.infeasible is not Proof.NONE or checker.limited:
            return None  # there may be no schedule
        raise GuaranteeBreached(
            name,
            "finished without a schedule, though everything can be served and nothing limits how; "
            f"{guarantee.theorem} guarantees one ({guarantee})",
        )
    # Every reference is at most the optimum, hence at most what any valid schedule costs.
    verdict = judge(guarantee, cost=cost, lower_bound=known.lower_bound, upper_value=cost)
    if verdict.verdict is Verdict.BREACHED:
        raise GuaranteeBreached(
            name,
            f"finished with a schedule of cost {shown(cost)}, above the "
            f"{shown(guarantee.allows(cost))} that {guarantee.theorem} guarantees ({guarantee})",
        )
    return verdict
