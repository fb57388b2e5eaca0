"""Co-location problems and their solutions as files: round trips, errors, both checkers."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cms.errors import FileError
from cms.files import lay_out
from cms.fleet import (
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    colocate,
    read_colocation_problem,
    read_colocation_solution,
    write_colocation_problem,
    write_colocation_solution,
)
from cms.fleet.colocation.edge_problems import SHARING_EDGE_PROBLEMS
from cms.fleet.colocation.files import (
    colocation_problem_from_json,
    colocation_problem_to_json,
    colocation_solution_from_json,
    colocation_solution_to_json,
)
from cms.fleet.colocation.solution import colocation_faults
from proofs_checks import checker
from tests.files.test_schemas import require_valid, validator
from tests.references.colocation import drawn
from tests.samples import few

Document = dict[str, Any]
Path_ = tuple[str | int, ...]
ROOT = Path(__file__).resolve().parents[3]

EXAMPLE = ColocationProblem(
    online=[
        OnlineClass(
            "a100-80gb", count=600, sm_activity="22.5", memory_mib=9_000, memory_total_mib=81_920,
            model="bert", slowdown_limit="1.2", running="train", name="quiet",
        ),
        OnlineClass("a30", count=40, sm_activity=60, memory_total_mib=24_576, name="busy"),
        OnlineClass("a30", count=5, sm_activity=90, memory_total_mib=24_576, name="full"),
    ],
    offline=[
        OfflineClass("train", count=500, memory_mib=30_000, priority="1.5", model="resnet50"),
        OfflineClass("index", count=900, memory_mib=4_000),
    ],
    weights=[[960_000, 550_000], [100_000, 280_000], [5, 5]],
)  # fmt: skip
SOLVED = colocate(EXAMPLE)


def documents() -> tuple[Document, Document]:
    """As a reader of files has them."""
    pair = colocation_problem_to_json(EXAMPLE), colocation_solution_to_json(EXAMPLE, SOLVED)
    return json.loads(lay_out(pair[0])), json.loads(lay_out(pair[1]))


def changed(document: Document, path: Path_, value: Any) -> Document:
    document = copy.deepcopy(document)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


@pytest.mark.parametrize("seed", [*range(len(SHARING_EDGE_PROBLEMS)), *few(5, range(100, 200))])
def test_what_is_written_is_read_again_fits_its_schema_and_passes_both_checkers(
    seed: int, tmp_path: Path
) -> None:
    edges = seed < len(SHARING_EDGE_PROBLEMS)
    problem: Any = SHARING_EDGE_PROBLEMS[seed].make() if edges else drawn(seed - 100, 40)
    solution, paths = colocate(problem), (tmp_path / "problem.json", tmp_path / "share.json")
    write_colocation_problem(problem, paths[0])
    write_colocation_solution(problem, solution, paths[1])
    assert read_colocation_problem(paths[0]) == problem
    assert read_colocation_solution(paths[1], problem) == solution
    assert list(colocation_faults(problem, solution)) == []
    texts = [path.read_text("utf-8") for path in paths]
    assert checker.check_colocation(*map(checker.parse_document, texts)) == []
    require_valid("colocation-problem", json.loads(texts[0]))
    require_valid("colocation-solution", json.loads(texts[1]))


def test_every_field_of_the_schemas_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "guides" / "colocation.md").read_text("utf-8")
    for kind in ("colocation-problem", "colocation-solution", "colocation-day"):
        validator(kind).check_schema(validator(kind).schema)
        missing = {name for name in fields_in(validator(kind).schema) if f"`{name}`" not in text}
        assert missing <= {"format", "schema"}


def fields_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from fields_in(part)


def read(document: Document) -> Any:
    return checker.parse_document(json.dumps(document))


#: A single number or word each: plan, prices, counts, value, bound; then of the problem.
CORRUPTIONS: list[tuple[Path_, Any]] = [
    (("plan", 2, "count"), 501), (("plan", 0, "count"), 41), (("plan", 0, "share"), 31),
    (("plan", 0, "offline"), "train"), (("value",), SOLVED.value + 1), (("gap",), 1),
    (("upper_bound",), SOLVED.upper_bound - 1), (("certificate", "online", "quiet"), 549_999),
    (("certificate", "offline", "trian"), 1), (("problem_sha256",), "0" * 64), (("proof",), "none"),
    (("status",), "feasible"), (("seconds",), -1), (("history", 0, "value"), SOLVED.value + 1),
    (("history", 0, "upper_bound"), SOLVED.upper_bound - 1), (("problem", "margin"), "10"),
    (("problem", "online", 0, "weights", 0), 960_001), (("problem", "online", 0, "weights"), [1]),
    (("problem", "online", 2, "weights", 1), 5), (("problem", "online", 0, "running"), "trian"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), CORRUPTIONS)
def test_a_single_corruption_is_refused_by_both(path: Path_, value: Any) -> None:
    problem, solution = documents()
    assert verdicts(problem, solution) == (True, True)
    if path[0] == "problem":
        problem = changed(problem, path[1:], value)
    else:
        solution = changed(solution, path, value)
    assert verdicts(problem, solution) == (False, False)


def verdicts(problem: Document, solution: Document) -> tuple[bool, bool]:
    """Whether the package passes the documents, and whether the second checker does."""
    try:
        posed = colocation_problem_from_json(problem)
        ours = not list(colocation_faults(posed, colocation_solution_from_json(solution, posed)))
    except FileError:
        ours = False
    return ours, not checker.check_colocation(read(problem), read(solution))
