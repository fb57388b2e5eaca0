"""Label and field selectors, as kubectl puts them into a query."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Test = Callable[[Json], bool]


def selector(labels: str, fields: str) -> Test:
    """Whether an object meets both selectors, of equalities or that a label is there.

    Empty ones are met by everything.
    """
    tests = [_test(part, "metadata.labels.") for part in labels.split(",") if part]
    tests += [_test(part, "") for part in fields.split(",") if part]
    return lambda item: all(test(item) for test in tests)


def _test(part: str, prefix: str) -> Test:
    if prefix and re.fullmatch(r"[a-z./-]+", part):
        return lambda item: part in (item["metadata"].get("labels") or {})
    found = re.fullmatch(r"([^!=]+)(!=|==?)(.*)", part)
    if found is None:
        raise ValueError(f"not a selector that is served: {part!r}")
    keys = [*prefix.split(".")[:-1], *([found[1]] if prefix else found[1].split("."))]

    def test(item: Json) -> bool:
        value: Any = item
        for key in keys:
            value = value.get(key, "") if isinstance(value, dict) else ""
        return (str(value) == found[3]) is (found[2] != "!=")

    return test


def meets(labels: Json, term: Json) -> bool:
    """Whether `labels` meet one requirement {key, operator, values}."""
    if term["operator"] not in ("In", "NotIn"):
        raise ValueError(f"the operator {term['operator']!r} is not served")
    return (labels.get(term["key"]) in term["values"]) is (term["operator"] == "In")
