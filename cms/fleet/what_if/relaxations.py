"""What is known about relaxing rates and limits: the data of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ...certificate.certificate import Certificate
from ..serving.plan import Plan
from .least import Outcome


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
