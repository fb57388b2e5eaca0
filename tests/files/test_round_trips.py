"""Documents there and back: exact, as their schemas say; what they say twice must agree."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    Branch,
    FileError,
    MachinesOfType,
    Problem,
    Solution,
    checker_for,
    explain_infeasibility,
    solve,
)
from cms.files import (
    Parsed,
    certificate_from_json,
    lay_out,
    problem_from_json,
    problem_to_json,
    schedule_from_json,
    schedule_to_json,
    solution_from_json,
    solution_to_json,
    write_document,
)
from cms.files.solutions import refuse_other_shortage
from proofs_checks import checker
from tests.files.documents import PROBLEM, SOLUTION, parsed, problems, solutions
from tests.files.test_schemas import require_valid, validator
from tests.property.problems import share
from tests.references.mixes import random_schedule, time_shared_toy
from tests.scripted import blocks


def problem_from(text: str) -> Problem:
    problem = problem_from_json(parsed(text))
    assert isinstance(problem, Problem)
    return problem


MINIMAL = """{"format": "cms-problem", "schema": 2,
 "configurations": [{"blocks": {"a": 2}}], "jobs": []}"""


def test_the_problem_shown_is_written_as_it_was_read() -> None:
    assert lay_out(problem_to_json(problem_from(PROBLEM))) == PROBLEM


@share(4)
@given(problem=problems())
def test_a_problem_comes_back_equal_from_its_file(problem: Problem) -> None:
    text = lay_out(problem_to_json(problem))
    require_valid("problem", text)
    again = problem_from(text)
    assert again == problem
    assert again.sha256 == problem.sha256
    assert again.blocks == problem.blocks
    assert again.configurations == problem.configurations
    assert lay_out(problem_to_json(again)) == text


def test_numbers_never_pass_through_a_float() -> None:
    digits = "0.1234567890123456789012345678901234567890"
    big = 10**400 + 1
    text = MINIMAL.replace(
        "[]",
        f'[{{"name": "x", "demand": {digits}, "demand_function": {{"a": {big}}}}},'
        ' {"name": "y", "demand": 2.5e-3, "demand_function": {"a": "1e3"}}]',
    )
    x, y = problem_from(text).jobs
    assert x.demand == Fraction(Decimal(digits))
    assert x.demand_function("a") == big
    assert (y.demand, y.demand_function("a")) == (Fraction(1, 400), 1000)
    written = problem_to_json(problem_from(text))["jobs"]
    assert written[0]["demand"] == digits.rstrip("0")
    assert written[0]["demand_function"]["a"] == big


def from_text(text: str) -> Solution:
    return solution_from_json(parsed(text))


def test_the_solution_shown_is_written_as_it_was_read() -> None:
    assert lay_out(solution_to_json(from_text(SOLUTION))) == SOLUTION


@given(solution=solutions())
def test_a_solution_comes_back_equal_from_its_file(solution: Solution) -> None:
    text = lay_out(solution_to_json(solution))
    require_valid("solution", text)
    assert from_text(text) == solution
    assert lay_out(solution_to_json(from_text(text))) == text


NOTHING: dict[str, Any] = {
    "status": "no_schedule", "cost": None, "gap": None, "machine_count": None,
    "schedule": {"groups": []},
}  # fmt: skip


def verified(factor: int) -> dict[str, Any]:
    guarantee: dict[str, Any] = json.loads(SOLUTION)["guarantee"]
    return guarantee | {"factor": factor, "verdict": "verified"}


def lines(*known: tuple[int | None, int]) -> list[dict[str, Any]]:
    """A history of these costs and lower bounds."""
    line = {"seconds": 0, "claimed_bound": None, "source": "greedy"}
    return [{**line, "cost": cost, "lower_bound": bound} for cost, bound in known]


def changed(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SOLUTION)
    return document | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine_count": 8}, "machine_count is 8, expected 7, as schedule, cost"),
        ({"cost": None}, 'cost is null, expected a number, since the status is "feasible"'),
        ({"status": "no_schedule"}, 'cost is "10.5", expected null, since the status is "no_sch'),
        (
            {"status": "infeasible", "cost": None, "gap": None, "machine_count": None},
            "schedule is an object, expected one without machines, since the",
        ),
        ({"problem_sha256": "b" * 64}, f'''certificate.problem_sha256 is "{"a" * 39}... (66 cha'''),
        ({"proof": "checked"}, 'proof is "checked", expected none, since the status is "feasi'),
        ({"claimed_bound": 11}, "claimed_bound is 11, expected at most 10.5, the cost of the"),
        ({"status": "optimal", "proof": "solver"}, "claimed_bound is null, expected the bound b"),
        ({"status": "optimal", "proof": "checked"}, "lower_bound is 9, expected the cost 10.5, "),
        ({"guarantee": verified(1)}, 'verdict is "verified", expected "open", since the cost '),
        ({"history": lines((10, 0))}, "history[0].cost is 10, expected at least 10.5, as"),
        ({"history": lines((11, 0), (12, 0))}, "history[0].cost is 11, expected at least 12, as"),
        ({"history": lines((11, 10))}, "history[0].lower_bound is 10, expected at most 9, as "),
        ({**NOTHING, "guarantee": None}, 'history[1].cost is "10.5", expected null, as the sol'),
        ({**NOTHING, "history": []}, "guarantee is an object, expected null, since there is no"),
        ({"status": "optimum"}, 'status is "optimum", expected one of optimal, feasible'),
        ({"seconds": "2.5"}, 'seconds is "2.5", expected a JSON number; write it without quotes'),
    ],
)
def test_contradictions_and_wrong_words_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FileError) as caught:
        solution_from_json(changed(**changes))
    assert message in str(caught.value)


def test_a_document_too_deep_for_any_reader_is_not_written(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"deep": deep}
    with pytest.raises(FileError, match="nested too deeply to be written"):
        write_document(lambda: deep, tmp_path / "s.json")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('["1g", "bert", 1]', "110: schedule.groups[0].assignment[1] gives blocks '1g' to job 'b"),
        ('["3g", "bert"]', "110: schedule.groups[0].assignment[1] has 2 entries, expected at le"),
        ("[]", "110: schedule.groups[0].assignment[1] has 0 entries, expected at least 1 ent"),
    ],
)
def test_blocks_are_given_once_and_counted(entry: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        from_text(SOLUTION.replace('["3g", "bert", 1]', entry))
    assert str(caught.value).startswith(f"p.json:17:{message}")


def test_a_type_counted_once_is_written_in_the_shorter_form() -> None:
    sums = MachinesOfType({"h100": 10, "a100": 3})
    assert sums.to_json() == {"machines_of_type": {"a100": 3, "h100": 10}}
    assert MachinesOfType({"a100": 1}).to_json() == {"machines_of_type": "a100"}
    read = certificate_from_json(GOOD | {"branch": {"machines_of_type": {"a100": 1}}})
    assert isinstance(read, Branch)
    assert read.quantity == MachinesOfType("a100")


LEAF: dict[str, Any] = {"prices": {}}
GOOD: dict[str, Any] = {"branch": {"blocks_of": "b"}, "at_most": 0, "below": LEAF, "above": LEAF}


@pytest.mark.parametrize("depth", [201, 900, 5_000])
def test_a_document_with_too_many_branches_is_refused_before_python_gives_up(depth: int) -> None:
    tree: dict[str, Any] = {"prices": {}}
    for _ in range(depth):
        tree = {"branch": {"blocks_of": "a"}, "at_most": 0, "below": {"prices": {}}, "above": tree}
    with pytest.raises(FileError, match="more than 200 branches"):
        certificate_from_json(tree)


seeds = st.integers(0, 10**9)


@given(seed=seeds)
def test_problems_and_schedules_come_back_and_fit_their_schemas(seed: int) -> None:
    rng = random.Random(seed)
    problem = time_shared_toy(rng)
    document = json.loads(lay_out(problem_to_json(problem)))
    assert problem_from_json(document) == problem
    require_valid("problem", document)
    schedule = random_schedule(rng, problem)
    written = json.loads(lay_out(schedule_to_json(schedule)))
    assert schedule_from_json(written) == schedule
    certificate = checker_for(problem).first().certificate
    assert certificate_from_json(json.loads(json.dumps(certificate.to_json()))) == certificate


def test_an_amount_has_one_length() -> None:
    document = problem_to_json(time_shared_toy(random.Random(0)))
    given_points = next(each for job in document["jobs"] for each in job["points"].values() if each)
    given_points.append(given_points[0])
    with pytest.raises(FileError, match=r"^<document>: jobs.*\[0\] .* two points of the amount"):
        problem_from_json(document)


SHORT = blocks(8, limit=3)


def lacking(**changes: Any) -> dict[str, Any]:
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
    made = lacking(**changes)
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
    told = Parsed(lacking(**{"unservable": {}, **changes})).at("shortage")
    with pytest.raises(FileError, match=r"\"?z\"?.* (not among the|expected one of b)"):
        refuse_other_shortage(told, SHORT)


def test_a_shortage_beside_a_schedule_is_refused() -> None:
    enough = blocks(8, limit=4)
    made = read_back(solution_to_json(solve(enough))) | {"shortage": lacking()["shortage"]}
    with pytest.raises(
        FileError, match='shortage is an object, expected none, since the status is "optimal"'
    ):
        solution_from_json(made)
    assert faults(enough, made) == ["there is a shortage, but the status is optimal"]
