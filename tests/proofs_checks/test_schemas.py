"""The JSON Schemas in ``docs/reference/schemas`` say what the documents are, as the readers do."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from proofs_checks import checker
from tests.proofs_checks.documents import SERVICES, SOLUTION, Document, changed

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
SCHEMAS = {
    path.name: json.loads(path.read_text("utf-8"))
    for path in sorted((DOCS / "schemas").glob("*.schema.json"))
}


def is_valid(document: Any, kind: str = "") -> bool:
    kind = kind or document["format"].removeprefix("cms-")
    return Draft202012Validator(SCHEMAS[f"{kind}.schema.json"]).is_valid(document)


def required(kind: str) -> list[str]:
    """The keys that a document must have: of two kinds of a document, the first."""
    schema: Any = SCHEMAS[f"{kind}.schema.json"]
    first = schema["anyOf"][0]["$ref"].rpartition("/")[2] if "anyOf" in schema else ""
    keys: list[str] = (schema["$defs"][first] if first else schema)["required"]
    return keys


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


#: What is a document in form, and contradicts itself.
CONTRADICTIONS: list[tuple[list[Any], Any]] = [
    (["blocks"], ["1g", "1g"]),
    (["configurations", 0, "blocks"], {}),
    (["configurations", 0], {"sizes": {}, "capacity": 1}),
    *((["status"], status) for status in ("feasible", "infeasible")),
    *((["proof"], proof) for proof in ("none", "solver")),
    (["cost"], None),
    (["schedule", "groups", 0, "configuration"], {}),
    # what stands below a branch is described by no schema
    (["certificate", "tree", "above", "branch"], {}),
    (["certificate", "tree", "above", "branch"], {"luck": 1}),
    (["certificate", "tree", "above", "above"], ...),
    (["certificate", "tree", "above", "above", "multipliers"], [0, -1]),
]


@pytest.mark.parametrize(
    ("document", "path", "to"),
    [
        *((SERVICES, [key], ...) for key in required("problem")),
        *((SOLUTION, [key], ...) for key in required("solution")),
        (SERVICES, ["limit"], 3),
        (SERVICES, ["schema"], 1),
        (SERVICES, ["blocks"], ["1g", "1g"]),
        (SERVICES, ["machine_types"], [{"name": "a", "limt": 3}]),
        (SERVICES, ["machine_types"], [{"name": "", "limit": 3}]),
        (SERVICES, ["machine_types"], [{"name": "machine", "limit": -1}]),
        (SERVICES, ["configurations", 0, "blocks"], {"7g": -1}),
        (SERVICES, ["configurations", 0, "blocks"], {}),
        (SERVICES, ["configurations", 0, "sizes"], {"7g": 1}),
        (SERVICES, ["configurations", 0], {"sizes": {}, "capacity": 1}),
        (SERVICES, ["configurations", 0], {"sizes": {"7g": 1}, "capacity": 1, "max_blocks": 0}),
        (SERVICES, ["jobs", 0, "name"], "a\nb"),
        (SERVICES, ["jobs", 0, "demand"], -1),
        (SERVICES, ["jobs", 0, "demand"], "1/0"),
        (SERVICES, ["jobs", 0, "demand"], "NaN"),
        (SERVICES, ["jobs", 0, "priority"], 1),
        (SOLUTION, ["status"], "perfect"),
        (SOLUTION, ["status"], "feasible"),
        (SOLUTION, ["status"], "infeasible"),
        (SOLUTION, ["proof"], "none"),
        (SOLUTION, ["proof"], "solver"),
        (SOLUTION, ["stop_reason"], "bored"),
        (SOLUTION, ["cost"], None),
        (SOLUTION, ["seconds"], "1"),
        (SOLUTION, ["schedule", "groups", 0, "count"], "1"),
        (SOLUTION, ["schedule", "groups", 0, "configuration"], {}),
        (SOLUTION, ["schedule", "groups", 0, "assignment", 0], ["7g", "bert"]),
        (SOLUTION, ["certificate", "tree"], {}),
        (SOLUTION, ["certificate", "tree", "prices", "7g"], -1),
        (SOLUTION, ["certificate", "tree", "price"], {}),
        (SOLUTION, ["history"], [{}]),
        (SOLUTION, ["guarantee"], {"verdict": "verified"}),
        (WITH_BRANCHES, ["certificate", "tree", "at_most"], "1"),
        (WITH_BRANCHES, ["certificate", "tree", "above", "branch"], {}),
        (WITH_BRANCHES, ["certificate", "tree", "above", "branch"], {"luck": 1}),
        (WITH_BRANCHES, ["certificate", "tree", "above", "above"], ...),
        (WITH_BRANCHES, ["certificate", "tree", "above", "above", "multipliers"], [0, -1]),
    ],
)
def test_a_document_that_the_schema_refuses_is_refused_by_the_checker(
    document: Document, path: list[Any], to: Any
) -> None:
    bad = changed(document, *path, to=to)
    kind = "problem" if document is SERVICES else "solution"
    assert (path, to) in CONTRADICTIONS or not is_valid(bad, kind)
    of = bad if document is SERVICES else SERVICES
    assert checker.check_solution(of, checker.parse_document(json.dumps(bad)))
