"""Small documents for the tests of the independent checker, written by hand."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from proofs_checks import checker

Document = dict[str, Any]


def problem(
    configurations: list[Document],
    jobs: dict[str, tuple[Any, Document]],
    machine_types: list[Document] | None = None,
) -> Document:
    """A problem document; jobs are {name: (demand, demand function)}."""
    types = {} if machine_types is None else {"machine_types": machine_types}
    return {
        "format": "cms-problem",
        "schema": 2,
        **types,
        "configurations": configurations,
        "jobs": [
            {"name": name, "demand": demand, "demand_function": function}
            for name, (demand, function) in jobs.items()
        ],
    }


def group(
    configuration: Document,
    assignment: list[list[Any]],
    count: int = 1,
    machine: str | None = "machine",
) -> Document:
    return {
        "machine": machine,
        "configuration": configuration,
        "count": count,
        "assignment": assignment,
    }


def solution(of: Document, groups: list[Document], tree: Document, **changes: Any) -> Document:
    """A solution document; by default an optimal one of cost 1 a machine."""
    count = sum(each["count"] for each in groups)
    sha256 = checker.problem_sha256(of)
    return {
        "format": "cms-solution",
        "schema": 2,
        "problem_sha256": sha256,
        "status": "optimal",
        "proof": "checked",
        "stop_reason": "proved",
        "method": "by hand",
        "seconds": 0,
        "machine_count": count,
        "cost": count,
        "lower_bound": count,
        "claimed_bound": None,
        "gap": 0,
        "schedule": {"groups": groups},
        "certificate": {"problem_sha256": sha256, "tree": tree},
        "guarantee": None,
        "history": [],
        **changes,
    }


def leaf(prices: Document, *multipliers: Any, **more: Any) -> Document:
    return {"prices": prices, "multipliers": list(multipliers), **more}


def branch(on: Any, at_most: Any, below: Document, above: Document) -> Document:
    return {"branch": on, "at_most": at_most, "below": below, "above": above}


def changed(document: Document, *path: Any, to: Any) -> Document:
    """A copy with the value at a path exchanged; ``...`` as the value removes the key."""
    copied = copy.deepcopy(document)
    inner: Any = copied
    for step in path[:-1]:
        inner = inner[step]
    if to is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return copied


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value of a document."""
    if path:
        yield path
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from places(document[key], (*path, key))


# The A100's twelve maximal multisets of instances: all have 7 slices but the pair of 3g, with 6.
A100 = [
    {"blocks": blocks}
    for blocks in (
        {"7g": 1},
        {"4g": 1, "3g": 1},
        {"4g": 1, "2g": 1, "1g": 1},
        {"4g": 1, "1g": 3},
        {"3g": 2},
        {"3g": 1, "2g": 2},
        {"3g": 1, "2g": 1, "1g": 2},
        {"3g": 1, "1g": 4},
        {"2g": 3, "1g": 1},
        {"2g": 2, "1g": 3},
        {"2g": 1, "1g": 5},
        {"1g": 7},
    )
]
SLICES = {"1g": "1/7", "2g": "2/7", "3g": "3/7", "4g": "4/7", "7g": 1}

# Two services on A100s, at the prices (1, 2, 3, 4, 7)/7:
# bert: 7g and 4g cover 800 + 420 = 1220 for 11/7. 10/7 do not suffice: beside a 7g, 3/7 cover at
#   most 310.5 (1110.5 in all); without one, 4g, 4g and 2g cover most: 1040. So h = 11/7.
# vgg: one 3g, 4g or 7g covers 60, smaller ones nothing; 100 need two, at best two 3g: h = 6/7.
# Together 17/7, so at least 3 machines: and (7g), (4g, 3g), (3g, 3g) are enough.
SERVICES = problem(
    A100,
    {
        "bert": (1200, {"1g": 90, "2g": 200, "3g": "310.5", "4g": 420, "7g": 800}),
        "vgg": (100, {"3g": 60, "4g": 60, "7g": 60}),
    },
)
SCHEDULE = [
    group({"7g": 1}, [["7g", "bert", 1]]),
    group({"4g": 1, "3g": 1}, [["4g", "bert", 1], ["3g", "vgg", 1]]),
    group({"3g": 2}, [["3g", "vgg", 1]]),
]
SOLUTION = solution(SERVICES, SCHEDULE, {"prices": SLICES})

# Weaker claims that are true. 2.5 machines by a solver's word are 3, for costs are whole.
FEASIBLE = {"status": "feasible", "proof": "none", "stop_reason": "time_limit"}
WEAK = solution(
    SERVICES, SCHEDULE, {"prices": {}}, **FEASIBLE, lower_bound=0, gap=3, claimed_bound=2
)
NOTHING = solution(
    SERVICES,
    [],
    {"prices": SLICES},
    **{**FEASIBLE, "status": "no_schedule", "machine_count": None, "cost": None, "gap": None},
    lower_bound=3,
)
BY_WORD = {**WEAK, "status": "optimal", "proof": "solver", "claimed_bound": "2.5"}

# Four blocks of one kind, two on a machine.
PAIRS = problem([{"blocks": {"a": 2}}], {"j": (4, {"a": 1})})

# One machine exists and two are needed. The price 1 of the block and 1 of the limit prove it: a
# machine that costs nothing is worth 1 <= 0 + 1, and 2 - 1 > 0.
ONE_IS_TOO_FEW = problem(
    [{"blocks": {"a": 1}}], {"j": (2, {"a": 1})}, [{"name": "machine", "limit": 1}]
)
INFEASIBLE = solution(
    ONE_IS_TOO_FEW,
    [],
    {"prices": {"a": 1}, "limit_prices": {"machine": 1}},
    status="infeasible",
    machine_count=None,
    cost=None,
    gap=None,
    lower_bound=1,
)
INFEASIBLE_BY_WORD = {
    **changed(INFEASIBLE, "certificate", "tree", to={"prices": {"a": 1}}),
    "proof": "solver",
    "stop_reason": "finished",
}
