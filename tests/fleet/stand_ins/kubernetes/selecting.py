"""Label and field selectors, as kubectl puts them into a query."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Test = Callable[[Json], bool]


def selector(labels: str, fields: str) -> Test:
    """Whether an object meets both selectors; empty ones are met by everything."""
    tests = [_label_test(part) for part in _parts(labels)]
    tests += [_field_test(part) for part in fields.split(",") if part]
    return lambda item: all(test(item) for test in tests)


def matches(labels: Json, wanted: Json | None) -> bool:
    """Whether `labels` meet a LabelSelector (matchLabels and matchExpressions)."""
    if wanted is None:
        return False
    return all(labels.get(k) == v for k, v in (wanted.get("matchLabels") or {}).items()) and all(
        meets(labels, term) for term in wanted.get("matchExpressions") or []
    )


def meets(labels: Json, term: Json) -> bool:
    """Whether `labels` meet one requirement {key, operator, values}."""
    value, values = labels.get(term["key"]), term.get("values") or []
    operator = term["operator"]
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    raise ValueError(f"unknown operator {operator!r}")


def _parts(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _label_test(part: str) -> Test:
    term: Json
    if listed := re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", part):
        operator = {"in": "In", "notin": "NotIn"}[listed[2]]
        values = [value.strip() for value in listed[3].split(",")]
        term = {"key": listed[1], "operator": operator, "values": values}
    elif equal := re.fullmatch(r"([^!=\s]+)\s*(!=|==?)\s*(\S*)", part):
        operator = "NotIn" if equal[2] == "!=" else "In"
        term = {"key": equal[1], "operator": operator, "values": [equal[3]]}
    elif part.startswith("!"):
        term = {"key": part[1:], "operator": "DoesNotExist"}
    else:
        term = {"key": part, "operator": "Exists"}
    return lambda item: meets(item["metadata"].get("labels") or {}, term)


def _field_test(part: str) -> Test:
    found = re.fullmatch(r"([\w.]+)(!=|==?)(.*)", part)
    if found is None:
        raise ValueError(f"not a field selector: {part!r}")
    keys, equal, wanted = found[1].split("."), found[2] != "!=", found[3]

    def test(item: Json) -> bool:
        value: Any = item
        for key in keys:
            value = value.get(key, "") if isinstance(value, dict) else ""
        return (str(value) == wanted) is equal

    return test
