"""Answers about plans as plain JSON values, for programs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...files.documents import number_to_json
from .explaining import Alternative, BlockChoices, Explanation
from .least import Outcome
from .relaxations import Relaxation, Rightsizing, What


def explanation_to_json(found: Explanation) -> dict[str, Any]:
    """Write an explanation; costs are those of any plan with the choice, at least."""
    service = found.given.service
    return {
        "service": service.name,
        "model": service.model,
        "rate_rps": number_to_json(service.rate_rps),
        "planned_rps": number_to_json(found.given.planned_rps),
        "provided_rps": number_to_json(found.given.provided_rps),
        "cost": _number(found.cost),
        "bound": number_to_json(found.bound),
        "lower_bound": number_to_json(found.lower_bound),
        "cases": found.cases,
        "pays": _number(found.pays),
        "as_planned": _alternative(found.as_planned),
        "choices": [_choices(each) for each in found.blocks],
        "useless": list(found.useless),
    }


def _choices(each: BlockChoices) -> dict[str, Any]:
    return {
        "block": each.block,
        "gpu": each.gpu,
        "profile": each.profile,
        "supply_rps": number_to_json(each.supply_rps),
        "count": each.count,
        "worth": _number(each.worth),
        "one": _alternative(each.one),
        "needed": each.needed,
        "only": _alternative(each.only),
        "without": _alternative(each.without),
        "alone": _alternative(each.alone),
    }


def _alternative(found: Alternative | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "possible": found.bound is not None,
        "bound": _number(found.bound),
        "more": _number(found.more),
        "at_least": _number(found.at_least),
    }


def rightsizing_to_json(found: Rightsizing) -> dict[str, Any]:
    """Write what would save a GPU, the least change first."""
    return {
        "cost": number_to_json(found.cost),
        "target": number_to_json(found.target),
        "proved": found.proved,
        "better": None if found.better is None else _number(found.better.solution.cost),
        "least_of_all": found.is_least_of_all,
        "relaxations": [_relaxation(each) for each in found.relaxations],
        "unasked": list(found.unasked),
        "seconds": round(found.seconds, 3),
    }


def _relaxation(each: Relaxation) -> dict[str, Any]:
    # between the two numbers nothing changes, where the first is the least
    least = each.outcome is Outcome.LEAST
    numbers = {
        "now": _number(each.now),
        "enough": _number(each.enough),
        "above": each.above,
        "change": _number(each.change),
        "too_little": None if least else _number(each.short),
    }
    return {
        "service": each.service,
        "what": each.what.value,
        "outcome": each.outcome.value,
        **({"profiles": list(each.profiles)} if each.what is What.ALLOWED_PROFILES else numbers),
        "cost": None if each.plan is None else _number(each.plan.solution.cost),
    }


def _number(value: Fraction | None) -> Any:
    return None if value is None else number_to_json(value)
