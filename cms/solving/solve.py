"""``solve``: one call from a problem to a checked schedule and a checked bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar, cast

from ..errors import (
    AlgorithmError,
    CmsError,
    GuaranteeBreached,
    InvalidOption,
    UnsupportedProblem,
    is_ours,
)
from ..plugin.algorithm import Algorithm, Support, kinds_taken
from ..plugin.border import Border, own_options, taken_answer
from ..plugin.guarantee import Guarantee, GuaranteeVerdict, Verdict, judge
from ..plugin.options import read_options
from ..plugin.registry import algorithm_of
from ..referee.check import referee_of
from ..referee.kinds import AnyProblem, AnySchedule, Referee, is_one_of
from ..running.aside import GRACE_SECONDS, Aside, in_words
from ..running.interrupt import CtrlC
from ..shards.problem import ShardedProblem
from ..values.frozen import FrozenMap
from ..values.numbers import Number, shown, shown_object
from .arguments import Arguments
from .driver import CancelEvent, Driver, RunBudget
from .ledger import Ledger
from .log import run_log
from .solution import Incumbent, Proof, Solution, StopReason

T = TypeVar("T")

_NO_OPTIONS: Mapping[str, object] = FrozenMap()
#: A class's name as it was given, whatever the class says.
_NAME_OF: Callable[[type], str] = vars(type)["__name__"].__get__


def solve(
    problem: AnyProblem,
    method: str | Algorithm = "auto",
    *,
    options: Mapping[str, object] = _NO_OPTIONS,
    time_limit: float | None = 60.0,
    gap: Number = 0,
    seed: int = 0,
    threads: int | None = None,
    start: AnySchedule | None = None,
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
        Seconds, for the whole call; None, and anything above a billion, means no limit. The answer
        comes at most half a second later; with our own methods plus the time of one pass over the
        jobs, if prices are being checked just then, and after they were asked whether they support
        the problem, which they say quickly.
    gap : number, default 0
        Stop when cost less lower bound is at most this; absolute, in the unit of the costs.
    seed : int, default 0
        >= 0. The same seed, options, threads and version give the same history, but for the
        seconds, if no time limit cuts the run short.
    threads : int, optional
        >= 1; by default the cores this process may use. They bound compiled pricing; how many
        workers a solver inside a method has is the method's own option. A problem in a folder is
        priced by its engine (:func:`cms.open_problem`), which has threads of its own.
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
    Nothing is printed. The logger ``cms`` of Python's :mod:`logging` has, at level INFO, what was
    asked, a line an improvement (time, best cost, bound, gap, source) and what was found:
    ``logging.basicConfig(level=logging.INFO)`` shows them.

    Ctrl-C ends the run with what is known (``StopReason.INTERRUPTED``); pressed twice, it raises
    KeyboardInterrupt. In a thread other than the main one, where Ctrl-C does not reach, use
    ``cancel``.

    A method of a third party gets a problem, a start and options of its own, and what it claims is
    rebuilt from its numbers and names before it is checked. So nothing it does to its objects makes
    a false claim pass, unless it replaces functions of this package.

    The method runs in a thread of its own. When it is stopped and does not end within half a
    second, it is left behind: it may go on in the background until its native code returns. The
    interpreter's end waits for that, up to ten seconds of work, and Ctrl-C ends the waiting.

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
        options=options,
        time_limit=time_limit,
        gap=gap,
        seed=seed,
        threads=threads,
        start=start,
        cancel=cancel,
        on_improvement=on_improvement,
    )
    return run_checked(algorithm, trusted, problem, arguments)


def run_checked(
    algorithm: Algorithm,
    trusted: bool,
    problem: AnyProblem,
    arguments: Arguments | None = None,
) -> Solution:
    """Do as :func:`solve`; ``trusted`` says whether a solver's word is accepted."""
    started = time.monotonic()
    referee = referee_of(problem)
    arguments = Arguments() if arguments is None else arguments
    limits, start = arguments.limits, arguments.start
    name = str.__str__(algorithm.name)  # once: it may say something else later
    chosen = read_options(
        algorithm, arguments.options if trusted else own_options(arguments.options)
    )
    if start is not None and type(start) is not referee.schedules:
        raise InvalidOption(f"start is {start!r}; expected {referee.schedules.__name__}")

    with CtrlC() as interrupt:
        border = None if trusted else Border(problem, start)
        asking = _Asking(
            algorithm,
            name,
            chosen,
            problem,
            border,
            started + limits.seconds,
            lambda: limits.interrupted(interrupt),
        )
        _refuse_other_kinds(asking.kinds(), name, problem)
        support = asking.answer("support", Support)
        if not support.ok:
            raise UnsupportedProblem(f"method {name!r} cannot take this problem: {support.reason}")
        ledger = Ledger(
            problem,
            name,
            trusted=trusted,
            clock=lambda: time.monotonic() - started,
            taken=None if border is None else border.taken,
        )
        if start is not None:
            ledger.start_from(start)
        report, ended = run_log(problem, name, arguments)
        for line in ledger.known.history:
            report(line)
        driver = Driver(
            name,
            algorithm,
            asking.given,
            chosen,
            ledger=ledger,
            budget=RunBudget(ledger, arguments.seed, arguments.cores, started, limits.seconds),
            limits=limits,
            interrupt=interrupt,
            on_improvement=report,
            border=border,
        )
        # At the end, a large problem's digest would come after the time limit.
        sha256 = problem.sha256
        try:
            reason = driver.run()
        except AlgorithmError as fault:
            # The true cause first: claims about a changed problem were true of that one.
            _refuse_changes(border, name, fault)
            raise
        _refuse_changes(border, name, None)
        if reason is not StopReason.INTERRUPTED:
            end = started + limits.seconds + GRACE_SECONDS
            for line in ledger.bound_roughly(
                lambda: time.monotonic() > end or limits.interrupted(interrupt)
            ):
                report(line)
            if ledger.proved:
                reason = StopReason.PROVED
        verdict = None
        if driver.has_run and reason in (StopReason.FINISHED, StopReason.PROVED):
            verdict = _verdict(asking, ledger, referee)
        status, proof = ledger.verdict
        known = ledger.known
        best: Any = referee.schedules() if known.best is None else known.best
        solution = Solution(
            status=status,
            proof=proof,
            stop_reason=reason,
            method=name,
            seconds=time.monotonic() - started,
            schedule=best,
            cost=known.cost,
            certificate=known.certificate,
            lower_bound=known.lower_bound,
            claimed_bound=known.claimed_bound,
            guarantee=verdict,
            history=known.history,
            problem_sha256=sha256,
        )
        ended(solution)
        return solution


def _refuse_other_kinds(kinds: tuple[type, ...], name: str, problem: AnyProblem) -> None:
    if not any(is_one_of(kind, kinds) for kind in type(problem).__mro__):
        words = " or ".join(_NAME_OF(kind) for kind in kinds[:5]) + (", …" if kinds[5:] else "")
        hint = "; if it fits into memory, solve problem.load()"
        raise UnsupportedProblem(
            f"method {name!r} takes {words}; this problem is of type {type(problem).__name__}"
            + (hint if isinstance(problem, ShardedProblem) else "")
        )


def _refuse_changes(border: Border | None, name: str, fault: AlgorithmError | None) -> None:
    # Our own algorithms are held to it by the conformance tests, which spares a large problem two
    # passes over its data.
    changed = None if border is None else border.changed()
    if changed is not None:
        raise AlgorithmError(
            name, f"changed the {changed} it was given, which is not its own"
        ) from fault


class _Asking:
    """Questions to an algorithm beside its run; what goes wrong there is its fault.

    Attributes
    ----------
    given : AnyProblem
        What the algorithm is asked about: of a third party's a problem of its own.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        name: str,
        options: Any,
        problem: AnyProblem,
        border: Border | None,
        end: float,
        interrupted: Callable[[], bool],
    ) -> None:
        self.name, self.given = name, problem if border is None else border.given
        self._algorithm, self._options, self._end = algorithm, options, end
        self._aside, self._interrupted = border is not None, interrupted

    def kinds(self) -> tuple[type, ...]:
        """Ask which kinds of problems it takes."""
        return self._heard("takes", lambda: kinds_taken(self._algorithm))

    def answer(self, question: str, expected: type[Any]) -> Any:
        """Ask ``support`` or ``guarantee``."""
        return self._heard(f"{question}()", lambda: taken_answer(self._answer(question, expected)))

    def _heard(self, what: str, ask: Callable[[], T]) -> T:
        """Return an answer; a third party is not asked longer than the run may take."""
        if not self._aside:
            return ask()
        call = Aside(ask)
        now = time.monotonic()
        if not call.ends_within(max(self._end - now, 0.0) + GRACE_SECONDS, self._interrupted):
            raise AlgorithmError(self.name, f"{what} has not answered in time")
        if call.fault is not None and is_ours(call.fault):
            raise call.fault
        if call.fault is not None:
            raise AlgorithmError(self.name, f"{what} raised {call.said}") from call.fault
        return cast("T", call.result)

    def _answer(self, question: str, expected: type[Any]) -> Any:
        try:
            answer = getattr(self._algorithm, question)(self.given, self._options)
        except CmsError:
            raise
        except Exception as fault:
            raise AlgorithmError(self.name, f"{question}() raised {in_words(fault)}") from fault
        if type(answer) is not expected and not (answer is None and expected is Guarantee):
            raise AlgorithmError(
                self.name,
                f"{question}() returned {shown_object(answer)}; expected a {expected.__name__}",
            )
        return answer


def _verdict(asking: _Asking, ledger: Ledger, referee: Referee) -> GuaranteeVerdict | None:
    known = ledger.known
    guarantee = asking.answer("guarantee", Guarantee)
    if guarantee is None or known.infeasible is not Proof.NONE:
        return None
    if known.cost is None:
        if referee.limited:
            return None  # there may be no schedule
        raise GuaranteeBreached(
            asking.name,
            "finished without a schedule, though everything can be served and nothing limits how; "
            f"{guarantee.theorem} guarantees one ({guarantee})",
        )
    # Every reference is at most the optimum, hence at most what any valid schedule costs.
    verdict = judge(
        guarantee, cost=known.cost, lower_bound=known.lower_bound, upper_value=known.cost
    )
    if verdict.verdict is Verdict.BREACHED:
        raise GuaranteeBreached(
            asking.name,
            f"finished with a schedule of cost {shown(known.cost)}, above the "
            f"{shown(guarantee.allows(Fraction(known.cost)))} that {guarantee.theorem} "
            f"guarantees ({guarantee})",
        )
    return verdict
