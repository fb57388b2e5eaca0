"""What can be asked of each service: one number that is relaxed, all else as it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from ...shortages.search import Asking
from ..serving.capacity import CapacityRule
from ..serving.latency_rule import Breakpoint
from ..serving.plan import Plan
from ..serving.service import Service
from .ladders import Ladder, LimitLadder, RateLadder, SteppedRule
from .least import Base, Climb, Least, Outcome
from .lists import forbidden, least_late_share, least_profiles, looser_shares
from .relaxations import Relaxation, What


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
        self, found: Least, now: Fraction, other: Service, reached: Breakpoint | None
    ) -> Relaxation:
        """Word what was found; ``other`` is the service as it was relaxed."""
        plan = None
        if found.solution is not None:
            plan = Plan(self.base.posing.anew(other), found.solution)
        change = None if reached is None else abs(reached.limit_ms - now) / now
        ruled_out = None
        if found.outcome is Outcome.LEAST:
            ruled_out = change
        elif found.outcome is not Outcome.NONE:
            ruled_out = self.least_change() if self.base.proved else Fraction(0)
        return Relaxation(
            service=self.service.name,
            what=self.what,
            outcome=found.outcome,
            now=now,
            enough=None if reached is None else reached.limit_ms,
            above=reached is not None and reached.above,
            change=change,
            short=found.short,
            plan=plan,
            certificate=found.certificate,
            ruled_out=ruled_out,
        )


class _OnLadder(Question):
    """A rate, or a latency limit."""

    @cached_property
    def ladder(self) -> Ladder:
        """The states it leads through."""
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
        """Return how much changes up to where the certificate reaches."""
        return abs(self._climb.low - self.ladder.now) / self.ladder.now

    def answer(self) -> Relaxation:
        if self.asking.over and "_climb" not in vars(self):
            now = self.service.rate_rps
            if self.what is What.LATENCY_LIMIT:
                now = self.service.latency_limit_ms or now
            return Relaxation(
                service=self.service.name, what=self.what, outcome=Outcome.OPEN, now=now
            )
        found, ladder = self._climb.finish(), self.ladder
        reached = None if found.reached is None else Breakpoint(found.reached)
        if found.outcome is Outcome.LEAST and found.short is not None:
            reached = ladder.first_after(found.short)
        other = self.service if found.reached is None else ladder.at(found.reached)
        return self.relaxation(found, ladder.now, other, reached)


class _LateShare(Question):
    """How many requests may be late."""

    def __init__(self, base: Base, service: Service, rule: CapacityRule, asking: Asking) -> None:
        super().__init__(base, service, What.LATE_SHARE, asking)
        self._rule, self._now = rule, rule.tolerated(service)
        self._shares = looser_shares(base.posing, service, rule)

    def least_change(self) -> Fraction | None:
        """Return how much larger the next share is at which something changes."""
        return (self._shares[0] - self._now) / self._now if self._shares else None

    def answer(self) -> Relaxation:
        """Try one share after the other."""
        found = least_late_share(self.base, self.service, self._shares, self.asking)
        reached, other = None, self.service
        if found.reached is not None:
            reached, other = Breakpoint(found.reached), replace(other, late_share=found.reached)
        return self.relaxation(found, self._now, other, reached)


class _Profiles(Question):
    """Which instances it allows."""

    def least_change(self) -> Fraction | None:
        """Return None: there is no telling how much one profile is."""
        return None

    def answer(self) -> Relaxation:
        """Allow all, then each."""
        if self.asking.over:
            return Relaxation(service=self.service.name, what=self.what, outcome=Outcome.OPEN)
        found, names, other = least_profiles(self.base, self.service, self.asking)
        plan = None
        if found.solution is not None:
            plan = Plan(self.base.posing.anew(other), found.solution)
        return Relaxation(
            service=self.service.name, what=self.what, outcome=found.outcome, profiles=names,
            plan=plan, certificate=found.certificate,
        )  # fmt: skip


def questions(
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
        if forbidden(posing, service):
            yield _Profiles(base, service, What.ALLOWED_PROFILES, asking)
    if limited and posing.points is None:
        unasked[
            "limits: a looser one may admit operating points that the plan does not keep; give all "
            "that were measured"
        ] = None


def in_turn(asked: Iterable[Question], asking: Asking) -> list[Question]:
    """Order questions by what may be enough: the smallest change first, then what is unknown."""

    def key(each: Question) -> tuple[bool, Fraction]:
        change = None if asking.over else each.least_change()
        return change is None, Fraction(0) if change is None else change

    return sorted(asked, key=key)
