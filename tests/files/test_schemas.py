"""What is written is what the JSON Schemas in docs describe; and so is the example of a reader."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cms import ShardedProblem, solve, write_solution
from cms.files import lay_out, pack
from tests.samples import mig

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas"


@cache
def validator(kind: str) -> Draft202012Validator:
    path = FOLDER / f"{kind}.schema.json"
    return Draft202012Validator(json.loads(path.read_text("utf-8")))


def require_valid(kind: str, document: dict[str, Any] | str) -> None:
    text = document if isinstance(document, str) else lay_out(document)
    assert not [fault.message for fault in validator(kind).iter_errors(json.loads(text))]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A problem folder and its solution's; a row beyond 64 bits and a fraction among the jobs."""
    head = ShardedProblem.of(mig()).head
    supply: Any = [[1, 2, 3, 4], ["1/3", 2, 3, 4], [10**25, 1, 1, 1]]
    problem = pack(head, [([5, 7, 9], supply)], tmp_path / "fleet")
    write_solution(solve(problem), tmp_path / "plan")
    return tmp_path


@pytest.mark.parametrize("kind", ["problem", "solution"])
def test_the_documents_of_folders_fit_their_schemas(kind: str, folders: Path) -> None:
    place = folders / ("fleet" if kind == "problem" else "plan")
    document = json.loads((place / f"{kind}.json").read_text("utf-8"))
    require_valid(f"{kind}-folder", document)
    part = "jobs" if kind == "problem" else "schedule"
    for wrong in (
        {**document, "format": f"cms-{kind}"},
        {**document, "jobz": []},
        {**document, part: {**document[part], "shard": 1}},
        {key: value for key, value in document.items() if key != part},
    ):
        assert not validator(f"{kind}-folder").is_valid(wrong)
