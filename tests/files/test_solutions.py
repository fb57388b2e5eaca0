"""Solutions as files: exact round trips; what a solution says twice must agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from cms.errors import FileError
from cms.files import lay_out, solution_from_json, solution_to_json, write_document
from cms.solving.solution import Solution
from tests.files.documents import SOLUTION, parsed, solutions
from tests.files.test_schemas import require_valid


def from_text(text: str) -> Solution:
    return solution_from_json(parsed(text))


def test_the_example_is_written_as_it_was_read() -> None:
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
        (
            '["1g", "bert", 1]',
            "110: schedule.groups[0].assignment[1] gives blocks '1g' to job 'bert' a second time, "
            "expected one entry for each block and job; add the counts up",
        ),
        (
            '["3g", "bert"]',
            "110: schedule.groups[0].assignment[1] has 2 entries, expected at least 3 entries",
        ),
        ("[]", "110: schedule.groups[0].assignment[1] has 0 entries, expected at least 1 entry"),
    ],
)
def test_blocks_are_given_once_and_counted(entry: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        from_text(SOLUTION.replace('["3g", "bert", 1]', entry))
    assert str(caught.value) == f"p.json:17:{message}"
