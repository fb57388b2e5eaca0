"""Which rate or limit, relaxed least, saves a GPU: exactly, and proved from both sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from ...errors import InvalidOption, UnsupportedProblem
from ...infeasibility.search import Asking
from ...running.interrupt import CtrlC
from ...solving.driver import Arguments, CancelEvent
from ...solving.solution import Solution
from ...values.numbers import Number, exact, shown
from ..serving.load_curve import LoadCurve, PointKey
from ..serving.operating_point import OperatingPoint
from ..serving.plan import Plan
from .least import Base, Outcome
from .posing import Posing
from .relaxations import Relaxation, Rightsizing, list_questions, order_questions
from .services import named_service

WANTED = "looking for what would save a GPU"


def rightsize(
    plan: Plan,
    points: Iterable[OperatingPoint] | None = None,
    *,
    load_curves: Mapping[PointKey, LoadCurve] | None = None,
    services: Iterable[str] | None = None,
    to: Number | None = None,
    time_limit: float | None = 60.0,
    seed: int = 0,
    threads: int | None = None,
    cancel: CancelEvent | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Rightsizing:
    """Find for each service how little of its rate or a limit would save a GPU, if given up.

    A plan keeps only the points in use, and a looser limit may admit others: `points` are all that
    were measured, with `load_curves` if it was made with any. Without them only rates are looked
    at. `services` leaves others out; `to` is the cost that is wanted, by default the next one below
    the plan's. The time limit is in seconds for all together; `cancel` and Ctrl-C end with what is
    known. `on_step` is called after each number with how many are done, of how many. InvalidOption
    for an unknown service, a bad cost, or points that are not the plan's; UnsupportedProblem if
    there is no schedule, or services share instances in time.

    Plans are asked for at breakpoints alone: sums that blocks can add up to, limits at which a
    point counts for more. So an answer ``least`` is exact: a checked plan at the breakpoint, and a
    checked certificate just short of it. Without a time limit the same arguments give the same
    answer.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
    >>> service = Service("chat", "bert", rate_rps=130, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, 60, 33),
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 8, 90, 120),
    ... ]
    >>> serving = build_problem([service], points, rule="plain")
    >>> found = rightsize(Plan(serving, solve(serving.problem)), points)
    >>> for each in found.relaxations:
    ...     print(each.what, str(each.now), str(each.enough), str(each.short), each.outcome)
    rate 130 120 130 least
    latency_limit 100 120 100 least
    """
    started = time.monotonic()
    serving = plan.unshared(WANTED)
    how = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel)
    if plan.solution.cost is None:
        raise UnsupportedProblem(
            f"{WANTED} takes plans with a schedule, and this one has none; 'cms plan' says what "
            "would do"
        )
    if serving.problem.rows.ruled:
        raise UnsupportedProblem(f"{WANTED} takes plans of weighted routing without replicas")
    if not plan.solution.cost:
        raise UnsupportedProblem("the plan costs nothing, so that there is nothing to save")
    known = {service.name: service for service in serving.services}
    places = [*known]
    chosen = [*known.values()]
    if services is not None:
        chosen = [named_service(known, name) for name in dict.fromkeys(services)]
    wanted = None if to is None else exact(to, "the wanted cost", error=InvalidOption)
    if wanted is not None and wanted >= plan.solution.cost:
        raise InvalidOption(
            f"the wanted cost is {shown(wanted)}, and the plan costs {shown(plan.solution.cost)}; "
            "expected less"
        )
    posing = Posing(serving, points, load_curves)
    with CtrlC() as interrupt:
        asking = Asking("auto", seed, threads, started + how.seconds, interrupt, cancel)
        base, better = _base(posing, plan.solution, wanted, asking)
        found, unasked = list[Relaxation](), dict[str, None]()
        asked = [] if base.cost <= base.target else [*list_questions(base, chosen, asking, unasked)]
        for at, question in enumerate(order_questions(asked, asking)):
            found.append(question.answer())
            if on_step is not None:
                on_step(at + 1, len(asked))
    return Rightsizing(
        cost=base.cost,
        target=base.target,
        proved=base.proved,
        better=better,
        relaxations=tuple(
            sorted(found, key=lambda each: (*_rank(each), places.index(each.service)))
        ),
        unasked=tuple(unasked),
        seconds=time.monotonic() - started,
    )


def _base(
    posing: Posing, solution: Solution, wanted: Fraction | None, asking: Asking
) -> tuple[Base, Plan | None]:
    """The best that is known without any relaxation: what is not proved is solved anew."""
    base = Base(posing, solution, wanted)
    if base.proved:
        return base, None
    anew = asking.answer(posing.problem, part=2, start=solution.schedule)
    if anew.lower_bound < solution.lower_bound:
        certificate, bound = solution.certificate, solution.lower_bound
        anew = replace(anew, certificate=certificate, lower_bound=bound)
    better = None if anew.cost == solution.cost else Plan(posing.serving, anew)
    return Base(posing, anew, wanted), better


def _rank(each: Relaxation) -> tuple[bool, bool, Fraction, bool]:
    """The least change first, then profiles, then what is open, then what is not enough."""
    change = each.change
    return (
        each.plan is None,
        change is None,
        Fraction(0) if change is None else change,
        each.outcome is Outcome.NONE,
    )
