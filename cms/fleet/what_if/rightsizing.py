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
from .questions import list_questions, order_questions
from .relaxations import Relaxation, Rightsizing
from .services import named_service

_WANTED = "rightsizing"


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

    Parameters
    ----------
    plan : Plan
        With a schedule; its instances serve one service each.
    points : iterable of OperatingPoint, optional
        All that were measured: a plan keeps only those in use, and a looser limit may admit others.
        Without them only rates are looked at.
    load_curves : mapping, optional
        Of the points, if the plan was made with any.
    services : iterable of str, optional
        Only these.
    to : number, optional
        The cost that is wanted; by default the next one below the plan's: one GPU less, where all
        GPUs cost the same.
    time_limit : float or None, default 60
        Seconds for all together; None means none.
    seed, threads : int
    cancel : threading.Event, optional
        Set it to end with what is known; so does Ctrl-C.
    on_step : callable, optional
        Called after each number with how many are done, of how many.

    Raises
    ------
    InvalidOption
        For an unknown service, a bad cost, or points that are not the plan's.
    UnsupportedProblem
        If there is no schedule, or services share instances in time.

    Notes
    -----
    Nothing changes between two breakpoints: sums that blocks can add up to, limits at which a point
    counts for more. Between what a certificate proves to be too little and what a schedule serves,
    the search asks :func:`cms.solve` at breakpoints alone, and moves either end as far as the
    answer's schedule or certificate reaches, which is most of the way. So an answer ``least`` is
    exact: a checked plan at the breakpoint, and a checked certificate just short of it. What may be
    enough with the smallest change, by the plan's own certificate, is asked first. Without a time
    limit the same arguments give the same answer, but for the seconds.

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
    serving = plan.unshared(_WANTED)
    how = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel)
    if plan.solution.cost is None:
        raise UnsupportedProblem(
            f"{_WANTED} takes plans with a schedule, and this one has none; 'cms plan' says what "
            "would do"
        )
    if not plan.solution.cost:
        raise UnsupportedProblem("the plan costs nothing, so that there is nothing to save")
    known = {service.name: service for service in serving.services}
    places = {name: place for place, name in enumerate(known)}
    chosen = [*known.values()]
    if services is not None:
        chosen = [named_service(known, name) for name in dict.fromkeys(services)]
    wanted = None if to is None else _wanted(to, plan.solution.cost)
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
        relaxations=tuple(sorted(found, key=lambda each: (*_rank(each), places[each.service]))),
        unasked=tuple(unasked),
        seconds=time.monotonic() - started,
    )


def _wanted(to: Number, cost: Fraction) -> Fraction:
    wanted = exact(to, "the wanted cost", error=InvalidOption)
    if wanted >= cost:
        raise InvalidOption(
            f"the wanted cost is {shown(wanted)}, and the plan costs {shown(cost)}; expected less"
        )
    return wanted


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
