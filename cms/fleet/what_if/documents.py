"""Answers about plans as plain JSON values, for programs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...files.documents import number_to_json
from .explaining import Alternative, Explanation
from .least import Outcome
from .relaxations import Relaxation, Rightsizing, What


def explanation_to_json(found: Explanation) -> dict[str, Any]:
    """Write an explanation; costs are those of any plan with the choice, at least."""
    return {
        "service": found.given.service.name,
        **_attributes(found.given.service, "model", "rate_rps"),
        **_attributes(found.given, "planned_rps", "provided_rps"),
        **_attributes(found, "cost", "bound", "lower_bound", "cases", "pays", "as_planned"),
        "choices": [
            _attributes(
                each, "block", "gpu", "profile", "supply_rps", "count", "worth", "one", "needed",
                "only", "without", "alone",
            )
            for each in found.blocks
        ],
        "useless": list(found.useless),
    }  # fmt: skip


def rightsizing_to_json(found: Rightsizing) -> dict[str, Any]:
    """Write what would save a GPU, the least change first."""
    return {
        **_attributes(found, "cost", "target", "proved"),
        "better": None if found.better is None else _plain(found.better.solution.cost),
        "least_of_all": found.is_least_of_all,
        "relaxations": [_relaxation(each) for each in found.relaxations],
        "unasked": list(found.unasked),
        "seconds": round(found.seconds, 3),
    }


def _relaxation(each: Relaxation) -> dict[str, Any]:
    numbers: dict[str, Any] = {"profiles": list(each.profiles)}
    if each.what is not What.ALLOWED_PROFILES:
        # between the two numbers nothing changes, where the first is the least
        short = None if each.outcome is Outcome.LEAST else _plain(each.short)
        numbers = {**_attributes(each, "now", "enough", "above", "change"), "too_little": short}
    return {
        "service": each.service,
        "what": each.what.value,
        "outcome": each.outcome.value,
        **numbers,
        "cost": None if each.plan is None else _plain(each.plan.solution.cost),
    }


def _attributes(of: object, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(of, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Alternative):
        possible = {"possible": value.bound is not None}
        return possible | _attributes(value, "bound", "more", "at_least")
    return number_to_json(value) if isinstance(value, Fraction) else value
