"""What is known about relaxing rates and limits: the data of an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from ...certificate.certificate import Certificate
from ...infeasibility.search import Asking
from ...problem.problem import Problem
from ...solving.solution import Solution
from ..serving.capacity import CapacityRule
from ..serving.latency_rule import Breakpoint
from ..serving.plan import Plan
from ..serving.service import Service
from .ladders import Ladder, LimitLadder, RateLadder, SteppedRule
from .least import PARTS_OF_THE_TIME, Base, Climb, Least, Outcome


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


class Question(ABC):
    """One number of one service."""

    def __init__(self, base: Base, service: Service, what: What, asking: Asking) -> None:
        self.base, self.service, self.what, self.asking = base, service, what, asking

    @abstractmethod
    def least_change(self) -> Fraction | None:
        """Return the part of the number that is too little by the plan's certificate, if known."""

    @abstractmethod
    def answer(self) -> Relaxation:
        """Return what is known, once plans were asked for where something is open."""

    def relaxation(
        self, found: Least, other: Service, now: Fraction, reached: Breakpoint | None
    ) -> Relaxation:
        """Word what was found; ``other`` is the service as it was relaxed."""
        change = None if reached is None else abs(reached.limit_ms - now) / now
        ruled_out = None
        if found.outcome is Outcome.LEAST:
            ruled_out = change
        elif found.outcome is not Outcome.NONE:
            ruled_out = self.least_change() if self.base.proved else Fraction(0)
        return replace(
            self.known(found, other),
            now=now,
            enough=None if reached is None else reached.limit_ms,
            above=reached is not None and reached.above,
            change=change,
            short=found.short,
            ruled_out=ruled_out,
        )

    def known(self, found: Least, other: Service, profiles: Sequence[str] = ()) -> Relaxation:
        """Word what is known of any kind of relaxation."""
        plan = None
        if found.solution is not None:
            plan = Plan(self.base.posing.anew(other), found.solution)
        return Relaxation(
            service=self.service.name, what=self.what, outcome=found.outcome,
            profiles=tuple(profiles), plan=plan, certificate=found.certificate,
        )  # fmt: skip


class _OnLadder(Question):
    """A rate, or a latency limit."""

    @cached_property
    def ladder(self) -> Ladder:
        posing, rule = self.base.posing, self.base.posing.rule
        if self.what is What.LATENCY_LIMIT and isinstance(rule, SteppedRule):
            return LimitLadder(posing, self.service, rule)
        return RateLadder(posing, self.service)

    @cached_property
    def _climb(self) -> Climb:
        climb = Climb(self.ladder, self.base, self.asking)
        climb.prove()
        return climb

    def least_change(self) -> Fraction | None:
        return abs(self._climb.low - self.ladder.now) / self.ladder.now

    def answer(self) -> Relaxation:
        if self.asking.over and "_climb" not in vars(self):
            now = self.service.rate_rps
            if self.what is What.LATENCY_LIMIT:
                now = self.service.latency_limit_ms or now
            return replace(self.known(Least(Outcome.OPEN), self.service), now=now)
        found, ladder = self._climb.finish(), self.ladder
        reached = None if found.reached is None else Breakpoint(found.reached)
        if found.outcome is Outcome.LEAST and found.short is not None:
            reached = ladder.first_after(found.short)
        other = self.service if found.reached is None else ladder.at(found.reached)
        return self.relaxation(found, other, ladder.now, reached)


class _LateShare(Question):
    """How many requests may be late."""

    def __init__(self, base: Base, service: Service, rule: CapacityRule, asking: Asking) -> None:
        super().__init__(base, service, What.LATE_SHARE, asking)
        self._now = rule.tolerated(service)
        points = [point for own in base.posing.candidates(service).values() for point in own]
        self._shares = rule.looser_late_shares(service, points)

    def least_change(self) -> Fraction | None:
        return (self._shares[0] - self._now) / self._now if self._shares else None

    def answer(self) -> Relaxation:
        found, reached, other = self._least(), None, self.service
        if found.reached is not None:
            reached, other = Breakpoint(found.reached), replace(other, late_share=found.reached)
        return self.relaxation(found, other, self._now, reached)

    def _least(self) -> Least:
        """Find the least late share at which a plan costs little enough.

        One by one: a load curve that a larger share lets count may say less than the table that
        counted before it.
        """
        base, service, posing = self.base, self.service, self.base.posing
        proof = certificate = base.solution.certificate if base.proved else None
        short, unsettled = None, proof is None
        for share in self._shares:
            if self.asking.over:
                unsettled = True
                break
            problem = posing.with_row(service.name, posing.row(replace(service, late_share=share)))
            if proof is not None and base.is_too_dear(problem, proof):
                short = short if unsettled else share
                continue
            answer = self.asking.answer(problem, part=PARTS_OF_THE_TIME[0])
            if base.is_reached(answer):
                outcome = Outcome.FOUND if unsettled else Outcome.LEAST
                return Least(outcome, share, short, answer, certificate)
            if not base.is_too_dear(problem, answer.certificate):
                unsettled = True
            elif not unsettled:
                short, certificate = share, answer.certificate
        outcome = Outcome.OPEN if unsettled else Outcome.NONE
        return Least(outcome, None, short, None, certificate)


class _Profiles(Question):
    """Which instances it allows: `more` are those that its model was measured on besides."""

    def __init__(self, base: Base, service: Service, more: Sequence[str], asking: Asking) -> None:
        super().__init__(base, service, What.ALLOWED_PROFILES, asking)
        self._more = more

    def least_change(self) -> Fraction | None:
        """There is no telling how much one profile is."""
        return None

    def answer(self) -> Relaxation:
        """Allow all, then each alone; where none is known to be enough, all are together."""
        base, more, asking = self.base, self._more, self.asking
        if asking.over:
            return self.known(Least(Outcome.OPEN), self.service)
        problem, answer = self._allow(more)
        if not base.is_reached(answer):
            if base.is_too_dear(problem, answer.certificate):
                none = Least(Outcome.NONE, certificate=answer.certificate)
                return self.known(none, self.service)
            return self.known(Least(Outcome.OPEN), self.service)
        enough: list[str] = []
        first: Solution | None = None
        for name in more:
            if self.asking.over:
                break
            found = answer if len(more) == 1 else self._allow((name,))[1]
            if base.is_reached(found):
                first = first or found
                enough.append(name)
        if first is None:
            least = Least(Outcome.FOUND, solution=answer)
            return self.known(least, self._with_profiles(more), more)
        # nothing is less than one, if none at all is proved not to do
        outcome = Outcome.LEAST if base.proved else Outcome.FOUND
        certificate = base.solution.certificate if base.proved else None
        least = Least(outcome, solution=first, certificate=certificate)
        return self.known(least, self._with_profiles(enough[:1]), enough)

    def _with_profiles(self, more: Sequence[str]) -> Service:
        allowed = self.service.allowed_profiles or ()
        return replace(self.service, allowed_profiles=(*allowed, *more))

    def _allow(self, more: Sequence[str]) -> tuple[Problem, Solution]:
        problem = self.base.posing.anew(self._with_profiles(more)).problem
        return problem, self.asking.answer(problem, part=PARTS_OF_THE_TIME[0])


def list_questions(
    base: Base, services: Iterable[Service], asking: Asking, unasked: dict[str, None]
) -> Iterator[Question]:
    """Iterate over what can be asked of services; note why other numbers cannot be relaxed."""
    posing = base.posing
    rule, limited = posing.rule, False
    for service in services:
        if service.rate_rps:
            yield _OnLadder(base, service, What.RATE, asking)
        limited |= service.latency_limit_ms is not None or service.allowed_profiles is not None
        if posing.points is None:
            continue
        if service.latency_limit_ms is not None:
            if isinstance(rule, SteppedRule):
                yield _OnLadder(base, service, What.LATENCY_LIMIT, asking)
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


def order_questions(asked: Iterable[Question], asking: Asking) -> list[Question]:
    """Order questions by what may be enough: the smallest change first, then what is unknown."""

    def key(each: Question) -> tuple[bool, Fraction]:
        change = None if asking.over else each.least_change()
        return change is None, Fraction(0) if change is None else change

    return sorted(asked, key=key)
