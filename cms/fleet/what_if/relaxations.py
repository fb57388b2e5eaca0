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
from .least import PARTS_OF_THE_TIME, Base, Climb, Least, Outcome, limit_ladder, rate_ladder


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

    def open(self, now: Fraction | None = None) -> Relaxation:
        """Return that nothing is known."""
        return Relaxation(service=self.service.name, what=self.what, outcome=Outcome.OPEN, now=now)

    def relaxation(
        self,
        found: Least,
        other: Service,
        now: Fraction | None = None,
        reached: Breakpoint | None = None,
        profiles: Sequence[str] = (),
    ) -> Relaxation:
        """Word what was found; ``other`` is the service as it was relaxed."""
        change = None
        if reached is not None and now is not None:
            change = abs(reached.limit_ms - now) / now
        ruled_out = change if found.outcome is Outcome.LEAST else None
        if found.outcome in (Outcome.FOUND, Outcome.OPEN):
            ruled_out = self.least_change() if self.base.proved else Fraction(0)
        plan = None
        if found.solution is not None:
            plan = Plan(self.base.posing.anew(other), found.solution)
        return Relaxation(
            service=self.service.name, what=self.what, outcome=found.outcome, now=now,
            enough=None if reached is None else reached.limit_ms,
            above=reached is not None and reached.above, change=change, short=found.short,
            profiles=tuple(profiles), plan=plan, certificate=found.certificate, ruled_out=ruled_out,
        )  # fmt: skip


class _OnLadder(Question):
    """A rate, or a latency limit."""

    @cached_property
    def _climb(self) -> Climb:
        posing = self.base.posing
        next_limit = getattr(posing.rule, "next_limit", None)
        if self.what is What.LATENCY_LIMIT and next_limit is not None:
            ladder = limit_ladder(posing, self.service, next_limit)
        else:
            ladder = rate_ladder(posing, self.service)
        return Climb(ladder, self.base, self.asking)

    def least_change(self) -> Fraction | None:
        now = self._climb.ladder.now
        return abs(self._climb.low - now) / now

    def answer(self) -> Relaxation:
        if self.asking.over and "_climb" not in vars(self):
            limited = self.what is What.LATENCY_LIMIT
            return self.open(self.service.latency_limit_ms if limited else self.service.rate_rps)
        found, ladder = self._climb.finish(), self._climb.ladder
        if found.reached is None:
            return self.relaxation(found, self.service, ladder.now)
        reached = Breakpoint(found.reached)
        if found.outcome is Outcome.LEAST and found.short is not None:
            reached = ladder.first_after(found.short)
        return self.relaxation(found, ladder.at(found.reached), ladder.now, reached)


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
        found = self._least()
        if found.reached is None:
            return self.relaxation(found, self.service, self._now)
        other = replace(self.service, late_share=found.reached)
        return self.relaxation(found, other, self._now, Breakpoint(found.reached))

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
            return self.open()
        problem, answer = self._allow(more)
        if not base.is_reached(answer):
            if not base.is_too_dear(problem, answer.certificate):
                return self.open()
            none = Least(Outcome.NONE, certificate=answer.certificate)
            return self.relaxation(none, self.service)
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
        outcome = Outcome.LEAST if base.proved else Outcome.FOUND
        certificate = base.solution.certificate if base.proved else None
        least = Least(outcome, solution=solution, certificate=certificate)
        return self.relaxation(least, self._with_profiles((first,)), profiles=[*enough])

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
    posing, limited = base.posing, False
    rule = posing.rule
    for service in services:
        if service.rate_rps:
            yield _OnLadder(base, service, What.RATE, asking)
        limited |= service.latency_limit_ms is not None or service.allowed_profiles is not None
        if posing.points is None:
            continue
        if service.latency_limit_ms is not None:
            if hasattr(rule, "next_limit"):
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
