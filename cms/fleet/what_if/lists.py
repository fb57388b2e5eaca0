"""Relaxations of which there are a few: tolerated late shares, and profiles allowed as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ...problem.problem import Problem
from ...shortages.search import Asking
from ...solving.solution import Solution
from ..serving.capacity import CapacityRule
from ..serving.service import Service
from .least import PARTS_OF_THE_TIME, Base, Least, Outcome
from .posing import Posing


def looser_shares(posing: Posing, service: Service, rule: CapacityRule) -> list[Fraction]:
    """Return the late shares at which more may be sustained than a service tolerates now."""
    points = [point for own in posing.candidates(service).values() for point in own]
    return rule.looser_late_shares(service, points)


def least_late_share(
    base: Base, service: Service, shares: Sequence[Fraction], asking: Asking
) -> Least:
    """Find the least late share at which a plan costs little enough.

    One by one: a load curve that a larger share lets count may say less than the table that counted
    before it.
    """
    posing = base.posing
    proof = base.solution.certificate if base.proved else None
    short, certificate = None, proof
    unsettled = proof is None
    for share in shares:
        if asking.over:
            unsettled = True
            break
        problem = posing.with_row(service.name, posing.row(replace(service, late_share=share)))
        if proof is not None and base.is_too_dear(problem, proof):
            short = short if unsettled else share
            continue
        answer = asking.answer(problem, part=PARTS_OF_THE_TIME[0])
        if base.is_reached(answer):
            outcome = Outcome.FOUND if unsettled else Outcome.LEAST
            return Least(outcome, share, short, answer, certificate)
        if not base.is_too_dear(problem, answer.certificate):
            unsettled = True
        elif not unsettled:
            short, certificate = share, answer.certificate
    outcome = Outcome.OPEN if unsettled else Outcome.NONE
    return Least(outcome, None, short, None, certificate)


def forbidden(posing: Posing, service: Service) -> tuple[str, ...]:
    """Return the instances that its model was measured on and that a service does not allow."""
    if service.allowed_profiles is None:
        return ()
    everything = posing.candidates(replace(service, allowed_profiles=None))
    return tuple(block for block in everything if block not in posing.candidates(service))


def with_profiles(service: Service, more: Sequence[str]) -> Service:
    """Return a service that allows these instances as well."""
    return replace(service, allowed_profiles=(*(service.allowed_profiles or ()), *more))


def least_profiles(
    base: Base, service: Service, asking: Asking
) -> tuple[Least, tuple[str, ...], Service]:
    """Find single profiles that would be enough if they were allowed as well.

    Where none is known to be, those returned are enough together. The service allows what the
    solution needs.
    """
    more = forbidden(base.posing, service)
    problem, answer = _allowing(base, service, more, asking)
    if not base.is_reached(answer):
        proved = base.is_too_dear(problem, answer.certificate)
        outcome = Outcome.NONE if proved else Outcome.OPEN
        return Least(outcome, certificate=answer.certificate if proved else None), (), service
    enough: list[str] = []
    first: Solution | None = None
    for name in more:
        if asking.over:
            break
        found = answer if len(more) == 1 else _allowing(base, service, (name,), asking)[1]
        if base.is_reached(found):
            first = first or found
            enough.append(name)
    if first is None:
        return Least(Outcome.FOUND, solution=answer), more, with_profiles(service, more)
    # nothing is less than one, if none at all is proved not to do
    outcome = Outcome.LEAST if base.proved else Outcome.FOUND
    certificate = base.solution.certificate if base.proved else None
    least = Least(outcome, solution=first, certificate=certificate)
    return least, tuple(enough), with_profiles(service, enough[:1])


def _allowing(
    base: Base, service: Service, more: Sequence[str], asking: Asking
) -> tuple[Problem, Solution]:
    problem = base.posing.anew(with_profiles(service, more)).problem
    return problem, asking.answer(problem, part=PARTS_OF_THE_TIME[0])
