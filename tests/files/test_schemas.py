"""The JSON Schemas in docs say what documents are, as the models, writers and checkers do."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cms import ShardedProblem, solve, write_solution
from cms.files import lay_out, pack
from proofs_checks import checker
from tests.proofs_checks.documents import (
    INFEASIBLE,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    Document,
    changed,
    places,
)
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


DOCS = FOLDER.parent
SCHEMAS = {path.name: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.schema.json")}


def is_valid(document: Any, kind: str = "") -> bool:
    return validator(kind or document["format"].removeprefix("cms-")).is_valid(document)


BRANCHED = {
    "branch": {"machines_of": {"machine": "machine", "blocks": {"7g": 1}}},
    "at_most": 1,
    "below": {"prices": {"7g": "1/7"}, "multipliers": [0]},
    "above": {
        "branch": {"blocks_of_job": {"block": "3g", "job": "vgg"}},
        "at_most": -1,
        "below": {"prices": {}, "limit_prices": {}, "multipliers": [0, "1/2"]},
        "above": {"prices": {}, "limit_prices": {}, "multipliers": [0, 0.5]},
    },
}
WITH_BRANCHES = changed(SOLUTION, "certificate", "tree", to=BRANCHED)


def test_the_schemas_are_those_of_the_models() -> None:
    generated = runpy.run_path(str(DOCS.parent / "_ext" / "document_schemas.py"))["generate"]()
    assert {name: json.loads(text) for name, text in generated.items()} == SCHEMAS
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def test_the_documents_shown_in_the_documentation_are_valid() -> None:
    text = (DOCS / "files.md").read_text("utf-8")
    shown = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert [is_valid(json.loads(block)) for block in shown] == [True] * 3


def fields_in(schema: Any) -> Iterator[str]:
    """The name of every field anywhere in a schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from fields_in(part)


@pytest.mark.parametrize("name", ["problem", "solution", "plan", "deployment", "transition"])
def test_every_field_of_a_schema_is_in_the_documentation(name: str) -> None:
    text = (DOCS / "files.md").read_text("utf-8")
    fields = set(fields_in(SCHEMAS[f"{name}.schema.json"]))
    missing = [f for f in fields if not re.search(rf'[`."]{f}[`"]', text)]
    assert "demand_function" in set(fields_in(SCHEMAS["problem.schema.json"]))
    assert not missing


#: What stands nowhere in a document; ``...`` takes a value away.
JUNK: list[Any] = [..., None, True, -1, "", "1/0", "a\nb", 10**4000, [], {"luck": 1}]


@pytest.mark.parametrize(
    ("document", "kind"),
    [(SERVICES, "problem"), (WITH_BRANCHES, "solution"), (INFEASIBLE, "solution")],
)
def test_what_a_schema_refuses_the_checker_refuses(document: Document, kind: str) -> None:
    of = ONE_IS_TOO_FEW if document is INFEASIBLE else SERVICES
    refused = 0
    for path in places(document):
        for to in JUNK:
            bad = changed(document, *path, to=to)
            faults = (
                checker.check_problem(bad) if kind == "problem" else checker.check_solution(of, bad)
            )
            if not is_valid(bad, kind):
                refused += 1
                assert faults, (path, repr(to)[:40])
    assert refused > 200


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (["branch"], {}),
        (["branch"], {"luck": 1}),
        (["above"], ...),
        (["above", "multipliers"], [0, -1]),
    ],
)
def test_what_stands_below_a_branch_is_refused_without_a_schema(path: list[Any], to: Any) -> None:
    bad = changed(WITH_BRANCHES, "certificate", "tree", "above", *path, to=to)
    assert checker.check_solution(SERVICES, checker.parse_document(json.dumps(bad)))
