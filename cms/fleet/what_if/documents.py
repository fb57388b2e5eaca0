"""Answers about plans as plain JSON values, for programs."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from ...files.documents import number_to_json
from .explaining import Alternative, BlockChoices, Explanation
from .least import Outcome, Relaxation, What
from .rightsizing import Rightsizing


def explanation_to_json(found: Explanation) -> dict[str, Any]:
    """Write an explanation; costs are those of any plan with the choice, at least."""
    return {
        "service": found.given.service.name,
        **_attributes(found.given.service, "model", "rate_rps"),
        **_attributes(found.given, "planned_rps", "provided_rps"),
        **_attributes(found, "cost", "bound", "lower_bound", "cases", "pays"),
        "choices": _plain(found.blocks),
        "useless": list(found.useless),
    }


def rightsizing_to_json(found: Rightsizing) -> dict[str, Any]:
    """Write what would save a GPU, the least change first."""
    return {
        **_attributes(found, "cost", "target", "proved"),
        "better": None if found.better is None else _plain(found.better.solution.cost),
        "least_of_all": found.is_least_of_all,
        **_attributes(found, "relaxations", "unasked"),
        "seconds": round(found.seconds, 3),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, BlockChoices):
        return _attributes(value, *(each.name for each in fields(value)))
    if isinstance(value, Alternative):
        possible = {"possible": value.bound is not None}
        return possible | _attributes(value, "bound", "more", "at_least")
    if isinstance(value, Relaxation):
        numbers = _attributes(value, "profiles")
        if value.what is not What.ALLOWED_PROFILES:
            # between the two numbers nothing changes, where the first is the least
            short = None if value.outcome is Outcome.LEAST else _plain(value.short)
            numbers = _attributes(value, "now", "enough", "above", "change")
            numbers["too_little"] = short
        cost = None if value.plan is None else _plain(value.plan.solution.cost)
        said = {"what": value.what.value, "outcome": value.outcome.value}
        return {"service": value.service, **said, **numbers, "cost": cost}
    return number_to_json(value) if isinstance(value, Fraction) else value


def _attributes(of: object, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(of, name)) for name in names}
