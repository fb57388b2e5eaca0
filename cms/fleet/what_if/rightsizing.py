"""Which rate or limit, relaxed least, saves a GPU: exactly, and proved from both sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from ...certificate.certificate import Certificate
from ...errors import InvalidOption, UnsupportedProblem
from ...running.interrupt import CtrlC
from ...shortages.search import Asking
from ...solving.arguments import Arguments
from ...solving.driver import CancelEvent
from ...solving.solution import Solution
from ...values.numbers import Number, exact, shown
from ..serving.capacity import CapacityRule
from ..serving.latency_rule import Breakpoint
from ..serving.load_curve import LoadCurve, PointKey
from ..serving.operating_point import OperatingPoint
from ..serving.plan import Plan
from ..serving.service import Service
from .ladders import Ladder, LimitLadder, RateLadder, SteppedRule
from .least import Base, Least, Outcome, least_relaxation
from .lists import forbidden, least_late_share, least_profiles, with_profiles
from .posing import Posing
from .services import named_service

__all__ = ["Relaxation", "Rightsizing", "rightsize"]

_WANTED = "rightsizing"


class What(StrEnum):
    """What of a service is relaxed."""

    RATE = "rate"
    LATENCY_LIMIT = "latency_limit"
    LATE_SHARE = "late_share"
    ALLOWED_PROFILES = "allowed_profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """What is known about relaxing one number of one service, all else as it is.

    Parameters
    ----------
    service : str
    what : What
    outcome : Outcome
    now : Fraction or None
        The number; None for profiles.
    enough : Fraction or None
        From here on a plan of the wanted cost was found and checked; None if none was.
    above : bool
        Whether it has to be above that, and not equal to it.
    change : Fraction or None
        How much that is of what it is now.
    short : Fraction or None
        As loose as this, the wanted cost is proved impossible; None if that is not proved at all.
        Whatever lies between this and ``enough`` is like this, where the outcome is ``least``.
    profiles : tuple of str
        Any one of these, allowed as well, is enough; where no single one is known to be, all.
    plan : Plan or None
        With the relaxation, at the wanted cost.
    certificate : Certificate or None
        It proves what is said of ``short``; of ``none`` it proves that nothing is enough.
    """

    service: str
    what: What
    outcome: Outcome
    now: Fraction | None = None
    enough: Fraction | None = None
    above: bool = False
    change: Fraction | None = None
    short: Fraction | None = None
    profiles: tuple[str, ...] = ()
    plan: Plan | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rightsizing:
    """What each service would have to give up so that a plan costs less.

    Parameters
    ----------
    cost : Fraction
        Of the plan, or of a cheaper one that was found on the way.
    target : Fraction
        What is wanted.
    proved : bool
        Whether the wanted cost is proved impossible without any relaxation.
    better : Plan or None
        A cheaper plan than the given one, without any relaxation.
    relaxations : tuple of Relaxation
        The least change first; then those that are not enough, or open.
    unasked : tuple of str
        What was not looked at, and why, a sentence each.
    seconds : float
    """

    cost: Fraction
    target: Fraction
    proved: bool
    better: Plan | None
    relaxations: tuple[Relaxation, ...]
    unasked: tuple[str, ...]
    seconds: float

    @property
    def least(self) -> Relaxation | None:
        """The relaxation that changes least; None if none was found to be enough."""
        found = self.relaxations[0] if self.relaxations else None
        return found if found is not None and found.plan is not None else None


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
    seed : int, default 0
    threads : int, optional
    cancel : threading.Event, optional
        Set it to end with what is known; so does Ctrl-C.
    on_step : callable, optional
        Called after each number with how many are done, of how many.

    Returns
    -------
    Rightsizing

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
    exact: a checked plan at the breakpoint, and a checked certificate just short of it. Without a
    time limit the same arguments give the same answer, but for the seconds.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
    >>> service = Service("chat", "bert", rate_rps=130, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, 60, 33),
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 8, 90, 120),
    ... ]
    >>> serving = as_problem([service], points, rule="plain")
    >>> found = rightsize(Plan(serving, solve(serving.problem)), points)
    >>> for each in found.relaxations:
    ...     print(each.what, str(each.now), str(each.enough), str(each.short), each.outcome)
    rate 130 120 130 least
    latency_limit 100 120 100 least
    """
    started = time.monotonic()
    serving = plan.unshared(_WANTED)
    limits = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel).limits
    if plan.solution.cost is None:
        raise UnsupportedProblem(
            f"{_WANTED} takes plans with a schedule, and this one has none; 'cms plan' says what "
            "would do"
        )
    if not plan.solution.cost:
        raise UnsupportedProblem("the plan costs nothing, so that there is nothing to save")
    known = {service.name: service for service in serving.services}
    chosen = [*known.values()]
    if services is not None:
        chosen = [named_service(known, name) for name in dict.fromkeys(services)]
    wanted = None if to is None else _wanted(to, plan.solution.cost)
    posing = Posing(serving, points, load_curves)
    with CtrlC() as interrupt:
        asking = Asking("auto", seed, threads, started + limits.seconds, interrupt, limits.cancel)
        base, better = _base(posing, plan.solution, wanted, asking)
        found, unasked = list[Relaxation](), dict[str, None]()
        asked = [] if base.cost <= base.target else [*_asked(posing, chosen, unasked)]
        for at, (service, what) in enumerate(asked):
            found.append(_relaxed(base, service, what, asking))
            if on_step is not None:
                on_step(at + 1, len(asked))
    return Rightsizing(
        cost=base.cost,
        target=base.target,
        proved=base.proved,
        better=better,
        relaxations=tuple(sorted(found, key=_rank)),
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
        anew = replace(
            anew, certificate=solution.certificate, lower_bound=solution.lower_bound
        )  # fmt: skip
    better = None if anew.cost == solution.cost else Plan(posing.serving, anew)
    return Base(posing, anew, wanted), better


def _asked(
    posing: Posing, services: Iterable[Service], unasked: dict[str, None]
) -> Iterator[tuple[Service, What]]:
    """Iterate over the numbers that can be relaxed; note why others cannot."""
    rule, limited = posing.rule, False
    for service in services:
        if service.rate_rps:
            yield service, What.RATE
        if service.latency_limit_ms is None and service.allowed_profiles is None:
            continue
        limited = True
        if posing.points is None:
            continue
        if service.latency_limit_ms is not None:
            if isinstance(rule, SteppedRule):
                yield service, What.LATENCY_LIMIT
            else:
                unasked[
                    f"latency limits: the rule {rule.name!r} does not say where its supplies change"
                ] = None
            if isinstance(rule, CapacityRule):
                yield service, What.LATE_SHARE
        if service.allowed_profiles is not None and forbidden(posing, service):
            yield service, What.ALLOWED_PROFILES
    if limited and posing.points is None:
        unasked[
            "limits: a looser one may admit operating points that the plan does not keep; give all "
            "that were measured"
        ] = None


def _relaxed(base: Base, service: Service, what: What, asking: Asking) -> Relaxation:
    """Relax one number of a service as little as is enough."""
    if what is What.ALLOWED_PROFILES:
        return _of_profiles(base, service, asking)
    if what is What.LATE_SHARE:
        return _of_late_share(base, service, asking)
    posing = base.posing
    ladder: Ladder
    if what is What.RATE:
        ladder = RateLadder(posing, service)
    else:
        assert isinstance(posing.rule, SteppedRule)
        ladder = LimitLadder(posing, service, posing.rule)
    found = least_relaxation(ladder, base, asking)
    reached = None if found.reached is None else Breakpoint(found.reached)
    if found.outcome is Outcome.LEAST and found.short is not None:
        reached = ladder.first_after(found.short)
    return _worded(base, service, what, ladder.now, found, ladder.at, reached)


def _of_late_share(base: Base, service: Service, asking: Asking) -> Relaxation:
    assert isinstance(base.posing.rule, CapacityRule)
    now = base.posing.rule.tolerated(service)
    found = least_late_share(base, service, base.posing.rule, asking)

    def at(share: Fraction) -> Service:
        return replace(service, late_share=share)

    reached = None if found.reached is None else Breakpoint(found.reached)
    return _worded(base, service, What.LATE_SHARE, now, found, at, reached)


def _worded(
    base: Base,
    service: Service,
    what: What,
    now: Fraction,
    found: Least,
    at: Callable[[Fraction], Service],
    reached: Breakpoint | None,
) -> Relaxation:
    plan = None
    if found.reached is not None and found.solution is not None:
        plan = base.posing.plan(at(found.reached), found.solution)
    return Relaxation(
        service=service.name,
        what=what,
        outcome=found.outcome,
        now=now,
        enough=None if reached is None else reached.limit_ms,
        above=reached is not None and reached.above,
        change=None if reached is None else abs(reached.limit_ms - now) / now,
        short=found.short,
        plan=plan,
        certificate=found.certificate,
    )


def _of_profiles(base: Base, service: Service, asking: Asking) -> Relaxation:
    found, names = least_profiles(base, service, asking)
    plan = None
    if found.solution is not None:
        more = names[:1] if found.outcome is Outcome.LEAST else names
        plan = base.posing.plan(with_profiles(service, more), found.solution)
    return Relaxation(
        service=service.name, what=What.ALLOWED_PROFILES, outcome=found.outcome, profiles=names,
        plan=plan, certificate=found.certificate,
    )  # fmt: skip


def _rank(each: Relaxation) -> tuple[bool, bool, Fraction, bool]:
    """The least change first, then profiles, then what is open, then what is not enough."""
    change = each.change
    return (
        each.plan is None,
        change is None,
        Fraction(0) if change is None else change,
        each.outcome is Outcome.NONE,
    )
