"""Shortages in the documents of solutions: written, read past, and refused where malformed."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import FileError, Problem, Proof, Schedule, Shortage, explain_infeasibility, solve
from cms.files import Parsed, lay_out, problem_to_json, solution_from_json, solution_to_json
from cms.files.solutions import refuse_other_shortage
from cms.values.frozen import FrozenMap
from proofs_checks import checker
from tests.files.test_schemas import require_valid, validator
from tests.property.problems import share
from tests.scripted import blocks

SHORT = blocks(8, limit=3)


def document(**changes: Any) -> dict[str, Any]:
    """A solution that says what its problem lacks; with some of that changed, ``...`` left out."""
    solution = solve(SHORT)
    made = solution_to_json(solution, explain_infeasibility(SHORT, solution=solution))
    fields = made["shortage"] | changes
    made["shortage"] = {key: value for key, value in fields.items() if value is not ...}
    return read_back(made)


def read_back(made: Any) -> dict[str, Any]:
    back: dict[str, Any] = json.loads(lay_out(made))
    return back


def faults(problem: Problem, made: dict[str, Any]) -> list[str]:
    """What the second checker finds."""
    return checker.check_solution(read_back(problem_to_json(problem)), made)


@share(4)
@given(
    unservable=st.dictionaries(st.sampled_from("xyz"), st.lists(st.sampled_from("ab")), max_size=2),
    more=st.none() | st.dictionaries(st.sampled_from("mn"), st.integers(1, 10**30), max_size=2),
    parts=st.integers(0, 1000),
    proofs=st.tuples(*[st.sampled_from(Proof)] * 2),
)
def test_every_shortage_fits_the_schema_and_is_read_past(
    unservable: dict[str, list[str]],
    more: dict[str, int] | None,
    parts: int,
    proofs: tuple[Proof, Proof],
) -> None:
    found = Shortage(
        unservable=FrozenMap({job: tuple(names) for job, names in unservable.items()}),
        more_machines=None if more is None else FrozenMap(more),
        machines_schedule=Schedule(),
        machines_at_least=min(3, sum((more or {}).values())),
        machines_proof=proofs[0],
        less_demand=Fraction(parts, 1000),
        demand_schedule=Schedule(),
        too_much_demand=Fraction(parts + 1, 1000) if parts % 2 else None,
        demand_proof=proofs[1],
        seconds=0.25,
        problem_sha256=SHORT.sha256,
    )
    solution = solve(SHORT)
    made = solution_to_json(solution, found)
    require_valid("solution", made)
    assert solution_from_json(json.loads(lay_out(made))) == solution
    assert str(found)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no share known": ({"less_demand": ...}, 'no "less_demand"'),
    "a slip": ({"more_machine": {}}, 'unknown key "more_machine"'),
    "no list": ({"unservable": {"x": "b"}}, "expected an array"),
    "none of a type": ({"more_machines": {"machine": 0}}, "expected a whole number >= 1"),
    "no proof": ({"machines_proof": "perhaps"}, "expected one of checked, solver, none"),
    "no share": ({"less_demand": "much"}, "expected a number"),
}
#: No schema sees these.
CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "fewer than the fewest": (
        {"machines_at_least": 2}, "machines_at_least is 2, expected at most 1, the machines that",
    ),
    "too much would do": (
        {"too_much_demand": "1/2"}, 'too_much_demand is "1/2", expected more than 0.75, which',
    ),
    "more than all": ({"less_demand": 2, "too_much_demand": 3}, "expected a number from 0 to 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG | CONTRADICTIONS)
def test_a_malformed_shortage_is_refused_by_reader_checker_and_schema(name: str) -> None:
    changes, message = (WRONG | CONTRADICTIONS)[name]
    made = document(**changes)
    with pytest.raises(FileError) as caught:
        solution_from_json(made)
    assert "shortage" in str(caught.value)
    assert message in str(caught.value)
    assert faults(SHORT, made)
    assert name in CONTRADICTIONS or not validator("solution").is_valid(made)


@pytest.mark.parametrize(
    "changes",
    [{"unservable": {"z": []}}, {"more_machines": {"z": 1}}, {"unservable": {"x": ["z"]}}],
)
def test_a_shortage_of_another_problem_is_refused(changes: dict[str, Any]) -> None:
    told = Parsed(document(**{"unservable": {}, **changes})).at("shortage")
    with pytest.raises(FileError, match=r"\"?z\"?.* (not among the|expected one of b)"):
        refuse_other_shortage(told, SHORT)


def test_a_shortage_beside_a_schedule_is_refused() -> None:
    enough = blocks(8, limit=4)
    made = read_back(solution_to_json(solve(enough))) | {"shortage": document()["shortage"]}
    with pytest.raises(
        FileError, match='shortage is an object, expected none, since the status is "optimal"'
    ):
        solution_from_json(made)
    assert faults(enough, made) == ["there is a shortage, but the status is optimal"]
