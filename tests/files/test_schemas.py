"""What is written is what the JSON Schemas in docs describe; and so is the example of a reader."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from cms.files import lay_out, problem_to_json, solution_to_json
from cms.problem.problem import Problem
from cms.solving.solution import Solution
from tests.files.documents import PROBLEM, SOLUTION, problems, solutions
from tests.property.problems import share

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas"


@cache
def validator(kind: str) -> Draft202012Validator:
    schemas = {path.name: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
    resources = [(name, Resource.from_contents(schema)) for name, schema in schemas.items()]
    registry: Registry[Any] = Registry().with_resources(resources)
    return Draft202012Validator(schemas[f"{kind}.schema.json"], registry=registry)


def require_valid(kind: str, document: dict[str, Any]) -> None:
    faults = [fault.message for fault in validator(kind).iter_errors(json.loads(lay_out(document)))]
    assert not faults


@share(4)
@given(problem=problems())
def test_a_written_problem_fits_its_schema(problem: Problem) -> None:
    require_valid("problem", problem_to_json(problem))


@share(4)
@given(solution=solutions())
def test_a_written_solution_fits_its_schema(solution: Solution) -> None:
    require_valid("solution", solution_to_json(solution))


@pytest.mark.parametrize(("kind", "text"), [("problem", PROBLEM), ("solution", SOLUTION)])
def test_the_examples_fit_their_schemas(kind: str, text: str) -> None:
    require_valid(kind, json.loads(text))
