"""Which rate or limit, relaxed least, saves a GPU: exactly, and proved from both sides."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from ...certificate.certificate import Certificate
from ...errors import InvalidOption, UnsupportedProblem
from ...infeasibility.search import Asking
from ...problem.problem import Problem
from ...running.interrupt import CtrlC
from ...solving.driver import Arguments, CancelEvent
from ...solving.solution import Solution
from ...values.numbers import Number, exact, shown
from ..serving.capacity import CapacityRule
from ..serving.latency_rule import Breakpoint
from ..serving.load_curve import LoadCurve, PointKey
from ..serving.operating_point import OperatingPoint
from ..serving.plan import Plan
from ..serving.service import Service
from .least import PARTS_OF_THE_TIME, Base, Climb, Least, Outcome, limit_ladder, rate_ladder
from .posing import Posing
from .services import named_service

WANTED = "looking for what would save a GPU"


class What(StrEnum):
    """What of a service is relaxed."""

    RATE = "rate"
    LATENCY_LIMIT = "latency_limit"
    LATE_SHARE = "late_share"
    ALLOWED_PROFILES = "allowed_profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """What is known about relaxing one number of one service, all else as it is."""

    service: str
    what: What
    outcome: Outcome
    now: Fraction | None = None  #: the number; None for profiles
    #: From here on a plan of the wanted cost was found and checked; None if none was.
    enough: Fraction | None = None
    above: bool = False  #: whether it has to be above that, and not equal to it
    change: Fraction | None = None  #: how much that is of what it is now
    #: As loose as this, the wanted cost is proved impossible; None if that is not proved at all.
    #: Whatever lies between this and ``enough`` is like this, where the outcome is ``least``.
    short: Fraction | None = None
    #: Any one of these, allowed as well, is enough; where no single one is known to be, all.
    profiles: tuple[str, ...] = ()
    plan: Plan | None = None  #: with the relaxation, at the wanted cost
    #: It proves what is said of ``short``; of ``none`` it proves that nothing is enough.
    certificate: Certificate | None = None
    #: No smaller change than this is enough: proved. None if no change at all is.
    ruled_out: Fraction | None = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rightsizing:
    """What each service would have to give up so that a plan costs less."""

    cost: Fraction  #: of the plan, or of a cheaper one that was found on the way
    target: Fraction  #: what is wanted
    proved: bool  #: whether the wanted cost is proved impossible without any relaxation
    better: Plan | None  #: a cheaper plan than the given one, without any relaxation
    #: The least change first; then those that are not enough, or open.
    relaxations: tuple[Relaxation, ...]
    unasked: tuple[str, ...]  #: what was not looked at, and why, a sentence each
    seconds: float

    @property
    def least(self) -> Relaxation | None:
        """The relaxation that changes least; None if none was found to be enough."""
        found = self.relaxations[0] if self.relaxations else None
        return found if found is not None and found.plan is not None else None

    @property
    def is_least_of_all(self) -> bool:
        """Whether no smaller change of any number (profiles are none) is enough: proved."""
        first = self.least
        if first is None or first.change is None or first.outcome is not Outcome.LEAST:
            return False
        numbers = (each for each in self.relaxations if each.what is not What.ALLOWED_PROFILES)
        ruled_out = (each.ruled_out for each in numbers if each is not first)
        return all(change is None or change >= first.change for change in ruled_out)


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
    names = known if services is None else dict.fromkeys(services)
    chosen = [named_service(known, name) for name in names]
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
        asked = [] if base.cost <= base.target else [*_questions(base, chosen, asking, unasked)]
        # What may be enough first: the smallest change, then what is unknown.
        asked.sort(key=lambda each: _none_last(None if asking.over else each.least_change()))
        for at, question in enumerate(asked):
            found.append(question.answer())
            if on_step is not None:
                on_step(at + 1, len(asked))
    places = [*known]
    found.sort(key=lambda each: (
        each.plan is None, *_none_last(each.change), each.outcome is Outcome.NONE,
        places.index(each.service),
    ))  # fmt: skip
    return Rightsizing(
        cost=base.cost, target=base.target, proved=base.proof is not None, better=better,
        relaxations=tuple(found), unasked=tuple(unasked), seconds=time.monotonic() - started,
    )  # fmt: skip


def _none_last(change: Fraction | None) -> tuple[bool, Fraction]:
    return change is None, change or Fraction(0)


def _base(
    posing: Posing, solution: Solution, wanted: Fraction | None, asking: Asking
) -> tuple[Base, Plan | None]:
    """The best that is known without any relaxation: what is not proved is solved anew."""
    base = Base(posing, solution, wanted)
    if base.proof is not None:
        return base, None
    anew = asking.answer(posing.problem, part=2, start=solution.schedule)
    if anew.lower_bound < solution.lower_bound:
        certificate, bound = solution.certificate, solution.lower_bound
        anew = replace(anew, certificate=certificate, lower_bound=bound)
    better = None if anew.cost == solution.cost else Plan(posing.serving, anew)
    return Base(posing, anew, wanted), better


class _Question(ABC):
    """One number of one service; None stands for its profiles."""

    def __init__(
        self, base: Base, service: Service, what: What, now: Fraction | None, asking: Asking
    ) -> None:
        self.base, self.service, self.asking = base, service, asking
        self.what, self.now = what, now

    @abstractmethod
    def least_change(self) -> Fraction | None:
        """Return the part of the number that is too little by the plan's certificate, if known."""

    @abstractmethod
    def answer(self) -> Relaxation:
        """Return what is known, once plans were asked for where something is open."""

    def open(self) -> Relaxation:
        """Return that nothing is known."""
        name, what = self.service.name, self.what
        return Relaxation(service=name, what=what, outcome=Outcome.OPEN, now=self.now)

    def relaxation(
        self,
        found: Least,
        other: Service | None = None,
        reached: Breakpoint | None = None,
        profiles: Sequence[str] = (),
    ) -> Relaxation:
        """Word what was found; ``other`` is the service as it was relaxed."""
        change = None
        if reached is not None and self.now is not None:
            change = abs(reached.limit_ms - self.now) / self.now
        ruled_out = change if found.outcome is Outcome.LEAST else None
        if found.outcome in (Outcome.FOUND, Outcome.OPEN):
            ruled_out = Fraction(0) if self.base.proof is None else self.least_change()
        plan = None
        if found.solution is not None and other is not None:
            plan = Plan(self.base.posing.anew(other), found.solution)
        return Relaxation(
            service=self.service.name, what=self.what, outcome=found.outcome, now=self.now,
            enough=None if reached is None else reached.limit_ms,
            above=reached is not None and reached.above, change=change, short=found.short,
            profiles=tuple(profiles), plan=plan, certificate=found.certificate, ruled_out=ruled_out,
        )  # fmt: skip


class _OnLadder(_Question):
    """A rate, or a latency limit."""

    @cached_property
    def _climb(self) -> Climb:
        posing, rule = self.base.posing, cast("Any", self.base.posing.rule)
        if self.what is What.RATE:
            ladder = rate_ladder(posing, self.service)
        else:
            ladder = limit_ladder(posing, self.service, rule.next_limit)
        return Climb(ladder, self.service.name, self.base, self.asking)

    def least_change(self) -> Fraction | None:
        now = self._climb.ladder.now
        return abs(self._climb.low - now) / now

    def answer(self) -> Relaxation:
        if self.asking.over and "_climb" not in vars(self):
            return self.open()
        found, ladder = self._climb.finish(), self._climb.ladder
        if found.reached is None:
            return self.relaxation(found)
        reached = Breakpoint(found.reached)
        if found.outcome is Outcome.LEAST and found.short is not None:
            reached = ladder.first_after(found.short)
        return self.relaxation(found, ladder.at(found.reached), reached)


class _LateShare(_Question):
    """How many requests may be late."""

    def __init__(self, base: Base, service: Service, rule: CapacityRule, asking: Asking) -> None:
        super().__init__(base, service, What.LATE_SHARE, rule.tolerated(service), asking)
        points = [point for own in base.posing.candidates(service).values() for point in own]
        self._shares = rule.looser_late_shares(service, points)

    def least_change(self) -> Fraction | None:
        now = self.now or Fraction(1)
        return (self._shares[0] - now) / now if self._shares else None

    def answer(self) -> Relaxation:
        """Try the late shares one by one.

        A load curve that a larger share lets count may say less than the table that counted before.
        """
        base, posing = self.base, self.base.posing
        certificate, short, unsettled = base.proof, None, base.proof is None
        for share in self._shares:
            if self.asking.over:
                unsettled = True
                break
            other = replace(self.service, late_share=share)
            problem = posing.with_row(other.name, posing.row(other))
            if base.proof is not None and base.is_too_dear(problem, base.proof):
                short = short if unsettled else share
                continue
            answer = self.asking.answer(problem, part=PARTS_OF_THE_TIME[0])
            if base.is_reached(answer):
                outcome = Outcome.FOUND if unsettled else Outcome.LEAST
                least = Least(outcome, share, short, answer, certificate)
                return self.relaxation(least, other, Breakpoint(share))
            if not base.is_too_dear(problem, answer.certificate):
                unsettled = True
            elif not unsettled:
                short, certificate = share, answer.certificate
        outcome = Outcome.OPEN if unsettled else Outcome.NONE
        return self.relaxation(Least(outcome, short=short, certificate=certificate))


class _Profiles(_Question):
    """Which instances it allows: `more` are those that its model was measured on besides."""

    def __init__(self, base: Base, service: Service, more: Sequence[str], asking: Asking) -> None:
        super().__init__(base, service, What.ALLOWED_PROFILES, None, asking)
        self._more = more

    def least_change(self) -> Fraction | None:
        """There is no telling how much one profile is."""
        return None

    def answer(self) -> Relaxation:
        """Allow all, then each alone; where none is known to be enough, all are together."""
        base, more, asking = self.base, self._more, self.asking
        if asking.over:
            return self.open()
        problem, answer = self._allow(more)
        if not base.is_reached(answer):
            if not base.is_too_dear(problem, answer.certificate):
                return self.open()
            return self.relaxation(Least(Outcome.NONE, certificate=answer.certificate))
        enough: dict[str, Solution] = {}
        for name in more:
            if self.asking.over:
                break
            found = answer if len(more) == 1 else self._allow((name,))[1]
            if base.is_reached(found):
                enough[name] = found
        if not enough:
            together = Least(Outcome.FOUND, solution=answer)
            return self.relaxation(together, self._with_profiles(more), profiles=more)
        first, solution = next(iter(enough.items()))
        # nothing is less than one, if none at all is proved not to do
        outcome = Outcome.FOUND if base.proof is None else Outcome.LEAST
        least = Least(outcome, solution=solution, certificate=base.proof)
        return self.relaxation(least, self._with_profiles((first,)), profiles=[*enough])

    def _with_profiles(self, more: Sequence[str]) -> Service:
        allowed = self.service.allowed_profiles or ()
        return replace(self.service, allowed_profiles=(*allowed, *more))

    def _allow(self, more: Sequence[str]) -> tuple[Problem, Solution]:
        problem = self.base.posing.anew(self._with_profiles(more)).problem
        return problem, self.asking.answer(problem, part=PARTS_OF_THE_TIME[0])


def _questions(
    base: Base, services: Iterable[Service], asking: Asking, unasked: dict[str, None]
) -> Iterator[_Question]:
    """Iterate over what can be asked of services; note why other numbers cannot be relaxed."""
    posing, limited = base.posing, False
    rule = posing.rule
    for service in services:
        if service.rate_rps:
            yield _OnLadder(base, service, What.RATE, service.rate_rps, asking)
        limited |= service.latency_limit_ms is not None or service.allowed_profiles is not None
        if posing.points is None:
            continue
        if service.latency_limit_ms is not None:
            if hasattr(rule, "next_limit"):
                limit = service.latency_limit_ms
                yield _OnLadder(base, service, What.LATENCY_LIMIT, limit, asking)
            else:
                said = f"the rule {rule.name!r} does not say where its supplies change"
                unasked[f"latency limits: {said}"] = None
            if isinstance(rule, CapacityRule):
                yield _LateShare(base, service, rule, asking)
        if service.allowed_profiles is not None:
            everything = posing.candidates(replace(service, allowed_profiles=None))
            allowed = posing.candidates(service)
            if more := tuple(block for block in everything if block not in allowed):
                yield _Profiles(base, service, more, asking)
    if limited and posing.points is None:
        unasked[
            "limits: a looser one may admit operating points that the plan does not keep; give all "
            "that were measured"
        ] = None
