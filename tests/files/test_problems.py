"""Problems as files: exact round trips, readable layout, what may be left out."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given

from cms.files import lay_out, problem_from_json, problem_to_json
from cms.problem.problem import Problem
from tests.files.documents import PROBLEM, parsed, problems
from tests.files.test_schemas import require_valid
from tests.property.problems import share


def from_text(text: str) -> Problem:
    problem = problem_from_json(parsed(text))
    assert isinstance(problem, Problem)
    return problem


MINIMAL = """{"format": "cms-problem", "schema": 2,
 "configurations": [{"blocks": {"a": 2}}], "jobs": []}"""


def test_the_example_is_written_as_it_was_read() -> None:
    assert lay_out(problem_to_json(from_text(PROBLEM))) == PROBLEM


@share(4)
@given(problem=problems())
def test_a_problem_comes_back_equal_from_its_file(problem: Problem) -> None:
    text = lay_out(problem_to_json(problem))
    require_valid("problem", text)
    again = from_text(text)
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
    x, y = from_text(text).jobs
    assert x.demand == Fraction(Decimal(digits))
    assert x.demand_function("a") == big
    assert (y.demand, y.demand_function("a")) == (Fraction(1, 400), 1000)
    written = problem_to_json(from_text(text))["jobs"]
    assert written[0]["demand"] == digits.rstrip("0")
    assert written[0]["demand_function"]["a"] == big
