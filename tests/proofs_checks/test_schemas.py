"""The JSON Schemas in ``docs/reference/schemas`` say what the documents are, as the readers do."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import cms
from cms.files.documents import lay_out
from cms.files.problems import problem_to_json
from cms.files.solutions import solution_to_json
from cms.fleet import gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    Observation,
    Placed,
    State,
    deployment_to_json,
    place,
    wanted_of,
)
from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
from cms.fleet.serving.plan_document import plan_to_json
from cms.values.frozen import FrozenMap
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


def written(document: Any) -> Any:
    """What a reader of JSON makes of a document after it was written to a file."""
    return json.loads(lay_out(document))


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
        (SERVICES, ["schema"], 2),
        (SERVICES, ["blocks"], ["1g", "1g"]),
        (SERVICES, ["machine_types"], [{"name": "a", "limt": 3}]),
        (SERVICES, ["machine_types"], [{"name": "", "limit": 3}]),
        (SERVICES, ["machine_types"], [{"name": "machine", "limit": -1}]),
        (SERVICES, ["machine_types"], [{"name": "machine", "cost": "-1"}]),
        (SERVICES, ["configurations", 0, "blocks"], {"7g": -1}),
        (SERVICES, ["configurations", 0, "blocks"], {"7g": "1"}),
        (SERVICES, ["configurations", 0, "blocks"], {}),
        (SERVICES, ["configurations", 0, "sizes"], {"7g": 1}),
        (SERVICES, ["configurations", 0], {"sizes": {}, "capacity": 1}),
        (SERVICES, ["configurations", 0], {"sizes": {"7g": 1}}),
        (SERVICES, ["configurations", 0], {"sizes": {"7g": 1}, "capacity": 1, "max_blocks": 0}),
        (SERVICES, ["jobs", 0, "name"], "a\nb"),
        (SERVICES, ["jobs", 0, "demand"], -1),
        (SERVICES, ["jobs", 0, "demand"], None),
        (SERVICES, ["jobs", 0, "demand"], "1,5"),
        (SERVICES, ["jobs", 0, "demand"], "1/0"),
        (SERVICES, ["jobs", 0, "demand"], "12 ms"),
        (SERVICES, ["jobs", 0, "demand"], "NaN"),
        (SERVICES, ["jobs", 0, "priority"], 1),
        (SOLUTION, ["status"], "perfect"),
        (SOLUTION, ["status"], "feasible"),
        (SOLUTION, ["status"], "infeasible"),
        (SOLUTION, ["proof"], "none"),
        (SOLUTION, ["proof"], "solver"),
        (SOLUTION, ["stop_reason"], "bored"),
        (SOLUTION, ["cost"], None),
        (SOLUTION, ["cost"], "three"),
        (SOLUTION, ["seconds"], "1"),
        (SOLUTION, ["schedule", "groups", 0, "count"], "1"),
        (SOLUTION, ["schedule", "groups", 0, "configuration"], {}),
        (SOLUTION, ["schedule", "groups", 0, "assignment", 0], ["7g", "bert"]),
        (SOLUTION, ["schedule", "groups", 0, "assignment", 0], ["7g", "bert", "1"]),
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


def test_what_the_package_writes_is_valid_and_holds() -> None:
    wide = Fraction(10**30 + 1, 3)
    several = cms.Problem(
        configurations=[
            cms.Configuration({"3g": 2}, "a100"),
            cms.SizeBoundedConfigurations({"s": "33.3", "t": "1/7"}, 100, "shared", max_blocks=3),
        ],
        jobs=[
            cms.Job("bert", "333.25", {"3g": 150, "s": "0.1"}),
            cms.Job("wide", wide, {"3g": wide, "s": wide / 2, "t": wide / 3}),
            cms.Job("nothing", 0, {}),
        ],
        machine_types=[cms.MachineType("a100", "1.5", limit=4), cms.MachineType("shared", "1/3")],
    )
    nobody = several.replace(
        machine_types=[cms.MachineType("a100", limit=1), cms.MachineType("shared", limit=0)]
    )
    for each, status in [(several, "optimal"), (nobody, "infeasible")]:
        solution = cms.solve(each)
        documents = written(problem_to_json(each)), written(solution_to_json(solution))
        assert [is_valid(document) for document in documents] == [True, True]
        assert documents[1]["status"] == status
        assert checker.problem_sha256(documents[0]) == each.sha256
        assert checker.check_solution(*documents) == []


def test_a_plan_that_the_package_writes_is_valid_and_holds() -> None:
    services = [
        Service("chat", "bert", 100, 100),
        Service("lost", "bert", 1, 1),  # no batch is done within a millisecond
    ]
    points = [OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "60.5", 33)]
    for wanted, status in [(services[:1], "optimal"), (services, "infeasible")]:
        serving = as_problem(wanted, points)
        plan = written(plan_to_json(Plan(serving, cms.solve(serving.problem))))
        assert is_valid(plan)
        assert plan["solution"]["status"] == status
        assert checker.check_solution(plan["problem"], plan["solution"]) == []
        for key in required("plan"):
            assert not is_valid(changed(plan, key, to=...), "plan")


def test_a_deployment_that_the_package_writes_is_valid() -> None:
    serving = as_problem(
        [Service("chat", "bert", 100, 100)],
        [OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "60.5", 33)],
    )
    wanted = wanted_of(Plan(serving, cms.solve(serving.problem)))
    others = Instance("1g.10gb", 6, owner="pod team-x/a", state=State.DRAINING)
    a100 = gpu("a100-80gb")
    cards = (FleetGpu("a", 0, a100, instances=(others,)), FleetGpu("a", 1, a100, Mode.WHOLE))
    seen = Observation("2026-11-23T10:15:00Z", ("lgi.txt",))
    node = FleetNode("a", cards, FrozenMap({"zone": "east"}), "550.54.15", seen)
    empty = FleetNode("b", (FleetGpu("b", 0, a100),))
    now = Deployment((node, empty))
    placed = place(wanted, now)
    assert isinstance(placed, Placed)
    for each in (Deployment(()), now, placed.deployment):
        document = written(deployment_to_json(each))
        assert is_valid(document)
        for key in required("deployment"):
            assert not is_valid(changed(document, key, to=...), "deployment")
    for path, to in (
        (["nodes", 0, "observed"], "today"),
        (["nodes", 0, "gpus", 0, "mode"], "mixed"),
        (["nodes", 0, "gpus", 0, "index"], -1),
        (["nodes", 0, "gpus", 0, "instances", 0, "state"], "asleep"),
        (["nodes", 0, "gpus", 0, "instances", 0, "start"], "4"),
        (["nodes", 0, "gpus", 0, "instances", 0, "ownr"], None),
    ):
        assert not is_valid(changed(document, *path, to=to)), path
