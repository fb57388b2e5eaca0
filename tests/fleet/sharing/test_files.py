"""Problems of sharing and their solutions as files: round trips, schemas, errors, both checkers."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from cms.errors import FileError
from cms.files import lay_out
from cms.fleet import (
    OfflineClass,
    OnlineClass,
    SharingProblem,
    read_sharing_problem,
    read_sharing_solution,
    share,
    write_sharing_problem,
    write_sharing_solution,
)
from cms.fleet.sharing.edge_problems import SHARING_EDGE_PROBLEMS
from cms.fleet.sharing.files import (
    sharing_problem_from_json,
    sharing_problem_to_json,
    sharing_solution_from_json,
    sharing_solution_to_json,
)
from cms.fleet.sharing.recheck import sharing_faults
from proofs_checks import checker
from tests.files.test_schemas import require_valid, validator
from tests.references.sharing import drawn
from tests.samples import few, refusal

Document = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]

EXAMPLE = SharingProblem(
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
SOLVED = share(EXAMPLE)


def documents() -> tuple[Document, Document]:
    """As a reader of files has them."""
    pair = sharing_problem_to_json(EXAMPLE), sharing_solution_to_json(EXAMPLE, SOLVED)
    return json.loads(lay_out(pair[0])), json.loads(lay_out(pair[1]))


def changed(document: Document, path: tuple[str | int, ...], value: Any) -> Document:
    document = copy.deepcopy(document)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("named", SHARING_EDGE_PROBLEMS, ids=lambda named: named.name)
def test_what_is_written_is_read_again_and_both_checkers_pass_it(
    named: Any, tmp_path: Path
) -> None:
    there_and_back(named.make(), tmp_path)


@pytest.mark.parametrize("seed", few(5, range(100)))
def test_random_problems_come_back_and_fit_their_schemas(seed: int, tmp_path: Path) -> None:
    there_and_back(drawn(seed, 40), tmp_path)


def there_and_back(problem: SharingProblem, folder: Path) -> None:
    solution = share(problem)
    write_sharing_problem(problem, folder / "problem.json")
    write_sharing_solution(problem, solution, folder / "share.json")
    assert read_sharing_problem(folder / "problem.json") == problem
    assert read_sharing_solution(folder / "share.json", problem) == solution
    assert list(sharing_faults(problem, solution)) == []
    texts = [(folder / name).read_text("utf-8") for name in ("problem.json", "share.json")]
    assert checker.check_sharing(*map(checker.parse_document, texts)) == []
    require_valid("sharing-problem", json.loads(texts[0]))
    require_valid("sharing-solution", json.loads(texts[1]))


def test_every_field_of_the_schemas_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "guides" / "sharing.md").read_text("utf-8")
    for kind in ("sharing-problem", "sharing-solution", "shared-day"):
        validator(kind).check_schema(validator(kind).schema)
        missing = {name for name in fields_in(validator(kind).schema) if f"`{name}`" not in text}
        assert missing <= {"format", "schema"}


def fields_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from fields_in(part)


# --- what is refused ------------------------------------------------------------------------------

BAD_PROBLEMS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("margin",), 101, "margin is 101; expected whole per cent"),
    (("margin",), "10", 'margin is "10", expected a whole number >= 0; write 10 without quotes'),
    (("online", 0, "sm_activity"), 0.2, "which looks like a fraction; expected per cent: 20"),
    (("online", 0, "weights"), [1], 'online[0].weights (online class "quiet") has 1 entries'),
    (("online", 0, "weights", 1), -1, "is -1, expected a whole number >= 0"),
    (("online", 0, "weights", 1), 10**6 + 1, "is 1000001; expected at most 1000000"),
    (("online", 2, "weights", 1), 5, "is 5, expected null: no share is left there"),
    (("online", 1, "weights", 0), 5, "is 5, expected null: no share is left there, or the memory"),
    (("online", 0, "running"), "trian", "runs 'trian', which is no offline class"),
    (("online", 0, "memory_total_mib"), None, "has no memory_total_mib; give what its device has"),
    (("online", 1, "name"), "quiet", "two online classes are called 'quiet'"),
    (("offline", 0, "priority"), 0, "priority of offline class 'train' is 0"),
    (("offline", 0, "cuont"), 3, 'offline[0] has the unknown key "cuont"'),
    (("format",), "cms-problem", 'format is "cms-problem", expected'),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD_PROBLEMS)
def test_an_odd_problem_file_is_refused_by_both(
    path: tuple[str | int, ...], value: Any, words: str
) -> None:
    problem, solution = documents()
    bad = changed(problem, path, value)
    assert words in refusal(FileError, sharing_problem_from_json, bad)
    assert checker.check_sharing(read(bad), read(solution))


def read(document: Document) -> Any:
    return checker.parse_document(json.dumps(document))


#: A single number or word each: plan, prices, counts, value, bound.
CORRUPTIONS: list[tuple[str, tuple[str | int, ...], Any]] = [
    ("one workload more than there are", ("plan", 2, "count"), 501),
    ("one GPU more than there are", ("plan", 0, "count"), 41),
    ("a count of 0", ("plan", 0, "count"), 0),
    ("another share", ("plan", 0, "share"), 31),
    ("a forbidden pair", ("plan", 0, "offline"), "train"),
    ("an online class that is not there", ("plan", 0, "online"), "quite"),
    ("a higher value", ("value",), SOLVED.value + 1),
    ("a lower bound", ("upper_bound",), SOLVED.upper_bound - 1),
    ("another gap", ("gap",), 1),
    ("a lower price of an online class", ("certificate", "online", "quiet"), 549_999),
    ("a lower price of an offline class", ("certificate", "offline", "train"), 409_999),
    ("a price below 0", ("certificate", "offline", "train"), -1),
    ("a price of nobody", ("certificate", "offline", "trian"), 1),
    ("a price that is not whole", ("certificate", "online", "quiet"), 550_000.5),
    ("another problem", ("problem_sha256",), "0" * 64),
    ("another problem's certificate", ("certificate", "problem_sha256"), "0" * 64),
    ("less than is said", ("status",), "feasible"),
    ("no proof", ("proof",), "none"),
    ("a reason nobody knows", ("stop_reason",), "luck"),
    ("a time below 0", ("seconds",), -1),
    ("a history above the value", ("history", 0, "value"), SOLVED.value + 1),
    ("a history below the bound", ("history", 0, "upper_bound"), SOLVED.upper_bound - 1),
]


@pytest.mark.parametrize(("path", "value"), [c[1:] for c in CORRUPTIONS], ids=lambda c: str(c)[:40])
def test_a_single_corruption_is_refused_by_both(path: tuple[str | int, ...], value: Any) -> None:
    problem, solution = documents()
    assert verdicts(problem, solution) == (True, True)
    assert verdicts(problem, changed(solution, path, value)) == (False, False)


def test_a_solution_of_a_problem_that_was_changed_is_refused_by_both() -> None:
    problem, solution = documents()
    for path, value in (
        (("online", 0, "count"), 599),
        (("offline", 1, "count"), 901),
        (("online", 0, "weights", 0), 960_001),
        (("margin",), 11),
    ):
        assert verdicts(changed(problem, path, value), solution) == (False, False)


def verdicts(problem: Document, solution: Document) -> tuple[bool, bool]:
    """Whether the package passes the documents, and whether the second checker does."""
    try:
        posed = sharing_problem_from_json(problem)
        ours = not list(sharing_faults(posed, sharing_solution_from_json(solution, posed)))
    except FileError:
        ours = False
    return ours, not checker.check_sharing(read(problem), read(solution))


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "problem.json", tmp_path / "share.json"
    for path, document in zip(paths, documents(), strict=True):
        path.write_text(lay_out(document), "utf-8")
    return paths


def test_cms_check_takes_both_files(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *map(str, files)]) == 0
    assert capsys.readouterr().out == (
        "valid: 640 workloads share a GPU, 546.2 of at most 546.2 GPU-equivalents: optimal, proof "
        "checked\n"
    )
    assert run(["check", *map(str, files), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["valid"], said["placed"], said["value"]) == (True, 640, 546_200_000)


def test_cms_check_says_what_is_wrong(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    bad = changed(documents()[1], ("plan", 0, "count"), 41)
    files[1].write_text(json.dumps(bad), "utf-8")
    assert run(["check", *map(str, files)]) == 1
    assert "- online class 'busy' has 41 workloads, needs at most 40: one a GPU" in (
        capsys.readouterr().out
    )
    assert run(["check", str(files[0])]) == 2
    assert "holds a sharing problem alone; give both" in capsys.readouterr().err


def test_the_second_checker_takes_both_files(files: tuple[Path, Path]) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "proofs_checks.checker", *map(str, files)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert "640 workloads, worth 546200000; the certificate proves that no plan" in told.stdout
