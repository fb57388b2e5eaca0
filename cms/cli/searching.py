"""What ``plan`` and ``solve`` share: the driver's options, its progress, Ctrl-C, and a shortage."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cms.errors import CmsError, UnsupportedProblem
from cms.running.interrupt import Interrupted
from cms.running.stopping import POLL_SECONDS

from .documents import open_document
from .options import pairs, usage_error
from .options import time_limit as read_time_limit
from .session import Session

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.fleet.serving import NeighbourServing
    from cms.infeasibility.shortage import Growth, Shortage
    from cms.problem.machine_problem import MachineProblem
    from cms.problem.problem import Problem
    from cms.schedule.schedule import Schedule
    from cms.solving.solution import Incumbent, Solution

    from .progress import CountProgress

T = TypeVar("T")

GROWTH_SECONDS = 5.0
"""Spreading the slack of a plan takes so long at most, and not beyond another time limit."""
SHORTAGE_SECONDS = 10.0
"""An infeasible answer is printed at most this much later, and not beyond another time limit."""
# The driver gives a method half a second to end; what takes longer has not begun to search.
_PATIENCE_SECONDS = 0.75


@dataclass(frozen=True, slots=True)
class Search:
    """The driver's options as the command line gives them."""

    method: str
    options: dict[str, str]
    time_limit: float | None
    gap: Fraction
    seed: int
    threads: int | None
    start: Path | None

    @classmethod
    def read(
        cls,
        method: str,
        option: list[str] | None,
        time_limit: str,
        gap: str,
        seed: int,
        threads: int | None,
        start: Path | None,
    ) -> Search:
        """Turn texts into values."""
        from cms.values.numbers import exact

        try:
            absolute = exact(gap, "the gap")
        except CmsError as fault:
            raise usage_error(str(fault), "--gap") from None
        options = pairs(option, "--option", "epsilon=1/4")
        return cls(method, options, read_time_limit(time_limit), absolute, seed, threads, start)


def search(
    session: Session, problem: MachineProblem, how: Search, *, counted: str, report: str
) -> Solution:
    """Solve a problem, with a log of a long run on stderr."""
    with session.reading():
        start = None if how.start is None else _read_start(how.start)
    arguments: dict[str, Any] = {
        "method": how.method, "options": option_values(how), "time_limit": how.time_limit,
        "gap": how.gap, "seed": how.seed, "threads": how.threads, "start": start,
        "cancel": session.interrupts.cancel,
    }  # fmt: skip
    from cms.shards.problem import ShardedProblem

    from .progress import Progress

    ear = _Ear()
    log = (
        nullcontext()
        if session.quiet or sys.stderr is None
        else Progress(sys.stderr, counted, prepare=lambda: import_module(report))
    )
    with log as ear.log:
        if isinstance(log, Progress) and isinstance(problem, ShardedProblem):
            problem.engine.watch = log.watch
        return heard(
            session, lambda: _solve(problem, arguments, ear), patient=lambda: ear.has_schedule
        )


def bounded_beside(
    session: Session, serving: NeighbourServing, solution: Solution, how: Search
) -> Solution:
    """Bound what is needed whatever is beside what, in as much time again."""
    from .progress import FIRST_LINE_SECONDS

    if serving.outer == serving.problem:  # nothing is beside anything
        return solution
    if solution.seconds > FIRST_LINE_SECONDS:  # there is a log already
        session.note("planned beside the worst that may be there; bounding beside the best")
    how = replace(how, method="auto", options={}, start=None)
    return search(session, serving.outer, how, counted="GPUs", report="cms.fleet.report.plans")


def lacking(
    session: Session, problem: MachineProblem, solution: Solution, how: Search
) -> Shortage | None:
    """Find sufficient changes where there is no schedule, in a small part of the time."""
    from cms.problem.problem import Problem

    if not isinstance(problem, Problem):
        return None
    if solution.status != "infeasible" or session.interrupts.pressed:
        return None
    from .progress import FIRST_LINE_SECONDS

    limit = SHORTAGE_SECONDS if how.time_limit is None else min(SHORTAGE_SECONDS, how.time_limit)
    arguments: dict[str, Any] = {
        "solution": solution, "time_limit": limit, "seed": how.seed, "threads": how.threads,
        "cancel": session.interrupts.cancel,
    }  # fmt: skip
    said = threading.Timer(
        FIRST_LINE_SECONDS, session.note, ["infeasible; looking for sufficient changes"]
    )
    said.daemon = True
    said.start()
    try:
        return heard(session, lambda: _shortage(problem, arguments))
    except Interrupted:
        return None
    except UnsupportedProblem as fault:  # by auto; it was another method that gave the answer
        session.warn(f"sufficient changes were not looked for: {fault}")
        return None
    finally:
        said.cancel()


def spread(
    session: Session, problem: Problem, solution: Solution, how: Search
) -> tuple[Solution, Growth | None]:
    """Let all demands grow as much as the machines found allow: their slack where it is of use."""
    if solution.cost is None or session.interrupts.pressed:
        return solution, None
    limit = GROWTH_SECONDS if how.time_limit is None else min(GROWTH_SECONDS, how.time_limit)
    arguments: dict[str, Any] = {
        "certificate": solution.certificate, "time_limit": limit, "seed": how.seed,
        "threads": how.threads, "cancel": session.interrupts.cancel,
    }  # fmt: skip
    try:
        return heard(
            session, lambda: _grown(problem, solution, arguments), doing="sharing out the slack"
        )
    except (Interrupted, UnsupportedProblem):  # what was found before is the answer
        return solution, None


class _Ear:
    """Hears of improvements: passes them to the log, and remembers whether there is a schedule."""

    def __init__(self) -> None:
        self.has_schedule = False
        self.log: Callable[[Incumbent], None] | None = None

    def __call__(self, incumbent: Incumbent) -> None:
        self.has_schedule |= incumbent.cost is not None
        if self.log is not None:
            self.log(incumbent)


# Both import in the thread that calls them: the main one hears Ctrl-C meanwhile.


def _solve(problem: MachineProblem, arguments: dict[str, Any], ear: _Ear) -> Solution:
    from cms.solving.solve import solve

    return solve(problem, **arguments, on_improvement=ear)


def _shortage(problem: Problem, arguments: dict[str, Any]) -> Shortage:
    from cms.infeasibility.shortage import explain_infeasibility

    return explain_infeasibility(problem, **arguments)


def _grown(
    problem: Problem, solution: Solution, arguments: dict[str, Any]
) -> tuple[Solution, Growth | None]:
    from cms.infeasibility.shortage import find_growth, with_schedule

    found = find_growth(problem, solution.schedule, **arguments)
    if found.schedule == solution.schedule:
        return solution, found
    replaced = with_schedule(problem, solution, found.schedule)
    # a cheaper schedule, or one that is proved less, is not taken: then nothing is said of it
    return replaced, found if replaced.schedule == found.schedule else None


def heard(
    session: Session,
    call: Callable[[], T],
    *,
    doing: str | None = None,
    patient: Callable[[], bool] = lambda: False,
) -> T:
    """Call in a thread of its own, so that this one always hears Ctrl-C.

    What has begun may hear nothing: a check, an import, a question to a method of ours. Whoever
    presses Ctrl-C has his answer all the same: Interrupted if the call does not come back in time,
    and is not worth waiting for (``patient``). ``doing`` says on a terminal what it does; without
    it the call shows by itself how far it is.
    """
    found: Future[T] = Future()
    # a daemon: one that does not come back does not keep the process
    threading.Thread(target=_fulfil, args=(found, call), name="cms search", daemon=True).start()
    with nullcontext() if doing is None else session.doing(doing):
        while not wait([found], POLL_SECONDS).done:
            if session.interrupts.seconds_since_press > _PATIENCE_SECONDS and not patient():
                raise Interrupted
    return found.result()


def counted(
    session: Session, what: str, call: Callable[[CountProgress], T], *, patient: bool = False
) -> T:
    """Call likewise, and say how much is done of what is counted; it is worth waiting for then."""
    from .progress import CountProgress

    progress = CountProgress(None if session.quiet else sys.stderr, what=what)
    try:
        return heard(session, lambda: call(progress), patient=lambda: patient or progress.begun)
    finally:
        progress.end()


def _fulfil(found: Future[T], call: Callable[[], T]) -> None:
    try:
        found.set_result(call())
    except BaseException as fault:  # noqa: BLE001 (for whoever asked)
        found.set_exception(fault)


def option_values(how: Search) -> dict[str, object]:
    """Turn the texts of ``--option`` into values of the kind that the defaults have.

    What is no value of that kind stays text, and what is no option stays too: the driver refuses
    both, in words that name the option.
    """
    if not how.options:
        return {}
    from cms.plugin.registry import load_algorithm, option_fields

    defaults = option_fields(load_algorithm(how.method)[0])
    return {name: _value(text, defaults.get(name)) for name, text in how.options.items()}


def _value(text: str, default: object) -> object:
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError:
            return text
    return text


def _read_start(path: Path) -> Schedule:
    """Read the schedule of a solution file, or of the solution in a plan file."""
    from cms.files import solution_from_json

    kind, document = open_document(path)
    if kind == "cms-plan":
        document = document.at("solution")
    return solution_from_json(document).schedule
