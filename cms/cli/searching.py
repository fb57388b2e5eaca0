"""What ``plan`` and ``solve`` share: the driver's options, its progress, Ctrl-C, and a shortage."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext, suppress
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import cms.fleet
from cms.errors import UnsupportedProblem
from cms.files import solution_from_json
from cms.infeasibility.shortage import with_schedule
from cms.plugin.registry import load_algorithm, option_fields
from cms.running.interrupt import Interrupted
from cms.running.stopping import POLL_SECONDS
from cms.values.numbers import shown

from . import options
from .progress import FIRST_LINE_SECONDS, CountProgress, Progress
from .session import Session, open_document

if TYPE_CHECKING:
    from cms.fleet.serving.posing import AnyServing

T = TypeVar("T")

GROWTH_SECONDS = 5.0
"""Spreading the slack of a plan takes so long at most, and not beyond another time limit."""
SHORTAGE_SECONDS = 10.0
"""An infeasible answer is printed at most this much later, and not beyond another time limit."""
# The driver gives a method 0.4 seconds to end; what takes longer has not begun to search.
_PATIENCE_SECONDS = 0.75


class Search(options.OptionGroup):
    """The driver's options as the command line gives them."""

    def __init__(
        self,
        method: str = "auto",
        option: options.Texts = None,
        time_limit: str = "60",
        gap: str = "0",
        seed: int = 0,
        threads: int | None = None,
        start: options.File = None,
    ) -> None:
        self.method, self.seed, self.threads, self.start = method, seed, threads, start
        self.options = options.pairs(option, "--option", "epsilon=1/4")
        self.time_limit = options.time_limit(time_limit)
        self.gap = options.number(gap, "the gap", "--gap")

    def within(self, session: Session, seconds: float | None = None) -> dict[str, Any]:
        """Return what every search is told, one after the answer with a limit of its own."""
        limits = [each for each in (seconds, self.time_limit) if each is not None]
        return {
            "time_limit": min(limits, default=None), "seed": self.seed, "threads": self.threads,
            "cancel": session.interrupts.cancel,
        }  # fmt: skip


def search(
    session: Session,
    problem: cms.MachineProblem,
    how: Search,
    *,
    counted: str,
    is_second: bool = False,
) -> cms.Solution:
    """Solve a problem, a second one by default means, with a log of a long run on stderr."""
    arguments: dict[str, Any] = {"gap": how.gap, **how.within(session)}
    if not is_second:
        arguments |= {"method": how.method, "options": option_values(how)}
        if how.start is not None:
            with session.reading():
                kind, document = open_document(how.start)
                told = document.at("solution") if kind == "cms-plan" else document
                arguments["start"] = solution_from_json(told).schedule
    log, has_schedule = None, threading.Event()
    if not session.quiet and sys.stderr is not None:
        log = Progress(sys.stderr, counted)
        if isinstance(problem, cms.ShardedProblem):
            problem.engine.watch = log.watch

    def improved(incumbent: cms.Incumbent) -> None:
        if incumbent.cost is not None:
            has_schedule.set()
        if log is not None:
            log(incumbent)

    with log or nullcontext():
        call = partial(cms.solve, problem, **arguments, on_improvement=improved)
        return heard(session, call, patient=has_schedule.is_set)


def bounded_beside(
    session: Session, serving: cms.fleet.NeighbourServing, solution: cms.Solution, how: Search
) -> cms.Solution:
    """Bound what is needed whatever is beside what, in as much time again."""
    if serving.outer == serving.problem:  # nothing is beside anything
        return solution
    if solution.seconds > FIRST_LINE_SECONDS:  # there is a log already
        session.note("planned beside the worst that may be there; bounding beside the best")
    return search(session, serving.outer, how, counted="GPUs", is_second=True)


def lacking(
    session: Session, problem: cms.MachineProblem, solution: cms.Solution, how: Search
) -> cms.Shortage | None:
    """Find sufficient changes where there is no schedule, in a small part of the time."""
    if solution.status != "infeasible" or not isinstance(problem, cms.Problem):
        return None
    arguments = {"solution": solution, **how.within(session, SHORTAGE_SECONDS)}
    return _call_beside(
        session, lambda: cms.explain_infeasibility(problem, **arguments),
        "infeasible; looking for sufficient changes", "sufficient changes were not looked for",
    )  # fmt: skip


def sufficient_groups(
    session: Session, serving: AnyServing, solution: cms.Solution, how: Search
) -> Iterator[str]:
    """Say how much more each group limit has to allow by itself, in its own unit."""
    from cms.fleet.serving.gpus_used import name_caps

    problem, caps = serving.problem, name_caps(serving.available)
    if solution.status != "infeasible" or not isinstance(problem, cms.Problem):
        return
    for group in problem.group_limits:
        others = [other for other in problem.group_limits if other is not group]
        rest = _at_costs(problem, group.weights, others)
        found = _solve_beside(session, rest, how, SHORTAGE_SECONDS, "looking at group limits")
        if found is not None and found.cost is not None:
            proved = ", proved least" if found.status == "optimal" else ""
            said = f"{shown(found.cost)} instead of {shown(group.at_most)} would do"
            yield f"{'group ' * (group.name not in caps)}{group.name}: {said}{proved}"


def on_fewest(
    session: Session, serving: AnyServing, solution: cms.Solution, how: Search
) -> cms.Solution:
    """Take, of schedules at the least cost, one on few GPUs on which nothing foreign stays."""
    problem, held = serving.problem, {each.name for each in serving.available if each.held}
    costs = {it.name: it.cost for it in problem.machine_types if it.name not in held}
    if solution.status != "optimal" or len({*costs.values()}) < 2:
        return solution
    if not isinstance(problem, cms.Problem) or solution.cost is None:
        return solution
    priced = {key: cost for key, cost in costs.items() if cost}
    name = "at the least cost" + "'" * len(problem.group_limits)
    groups = [*problem.group_limits, cms.GroupLimit(name, priced, solution.cost)]
    fewest = _at_costs(problem, dict.fromkeys(costs, 1), groups)
    found = _solve_beside(
        session, fewest, how, GROWTH_SECONDS, "looking for fewer GPUs", start=solution.schedule
    )
    if found is None or found.cost is None:
        return solution
    return with_schedule(problem, solution, found.schedule)


def _at_costs(
    problem: cms.Problem, costs: Mapping[str, Fraction | int], groups: Sequence[cms.GroupLimit]
) -> cms.Problem:
    types = [
        cms.MachineType(it.name, costs.get(it.name, 0), it.limit) for it in problem.machine_types
    ]
    return problem.replace(machine_types=types, group_limits=groups)


def _solve_beside(
    session: Session, problem: cms.Problem, how: Search, seconds: float, doing: str, **more: Any
) -> cms.Solution | None:
    """Solve a problem beside the one that is asked, in a small part of the time."""
    arguments = how.within(session, seconds) | more
    return _call_beside(session, lambda: cms.solve(problem, **arguments), doing)


def _call_beside(
    session: Session, call: Callable[[], T], doing: str, otherwise: str = ""
) -> T | None:
    """Call for more than the answer; None where Ctrl-C or its method leaves it at that."""
    if session.interrupts.pressed:
        return None
    try:
        return heard(session, call, doing=doing)
    except Interrupted:
        return None
    except UnsupportedProblem as fault:  # by auto; it was another method that gave the answer
        if otherwise:
            session.warn(f"{otherwise}: {fault}")
        return None


def spread(
    session: Session, problem: cms.Problem, solution: cms.Solution, how: Search
) -> tuple[cms.Solution, cms.Growth | None]:
    """Let all demands grow as much as the machines found allow: their slack where it is of use."""
    if solution.cost is None:
        return solution, None
    arguments = {"certificate": solution.certificate, **how.within(session, GROWTH_SECONDS)}

    def grow() -> tuple[cms.Solution, cms.Growth | None]:
        found = cms.find_growth(problem, solution.schedule, **arguments)
        if found.schedule == solution.schedule:
            return solution, found
        replaced = with_schedule(problem, solution, found.schedule)
        # a cheaper schedule, or one that is proved less, is not taken: then nothing is said of it
        return replaced, found if replaced.schedule == found.schedule else None

    return _call_beside(session, grow, "sharing out the slack") or (solution, None)


def heard(
    session: Session,
    call: Callable[[], T],
    *,
    doing: str | None = None,
    patient: Callable[[], bool] = lambda: False,
) -> T:
    """Call in a thread of its own, so that this one always hears Ctrl-C.

    A check, an import or a question to a method may hear nothing. Ctrl-C has its answer all the
    same: Interrupted if the call does not come back in time, and is not worth waiting for
    (``patient``). ``doing`` is shown on a terminal; without it the call shows its own progress.
    """
    found: Future[T] = Future()

    def fulfil() -> None:
        try:
            found.set_result(call())
        except BaseException as fault:  # noqa: BLE001 (for whoever asked)
            found.set_exception(fault)

    # a daemon: one that does not come back does not keep the process
    threading.Thread(target=fulfil, name="cms search", daemon=True).start()
    with nullcontext() if doing is None else session.doing(doing):
        while not wait([found], POLL_SECONDS).done:
            if session.interrupts.seconds_since_press > _PATIENCE_SECONDS and not patient():
                raise Interrupted
    return found.result()


def counted(
    session: Session, what: str, call: Callable[[CountProgress], T], *, patient: bool = False
) -> T:
    """Call likewise, and say how much is done of what is counted; it is worth waiting for then."""
    with CountProgress(None if session.quiet else sys.stderr, what=what) as progress:
        return heard(session, lambda: call(progress), patient=lambda: patient or progress.begun)


def option_values(how: Search) -> dict[str, object]:
    """Turn texts of ``--option`` into values of the defaults' kinds; the driver refuses others."""
    if not how.options:
        return {}
    defaults, values = option_fields(load_algorithm(how.method)[0]), dict[str, object](how.options)
    for name, text in how.options.items():
        default = defaults.get(name)
        if isinstance(default, bool):
            values[name] = {"true": True, "false": False}.get(text.lower(), text)
        elif isinstance(default, int | float):
            with suppress(ValueError):
                values[name] = type(default)(text)
    return values
