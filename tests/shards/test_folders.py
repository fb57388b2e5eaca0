"""Problem and solution folders: written, opened, solved, rechecked by both checkers, spoiled."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cms import (
    FileError,
    InvalidProblem,
    Problem,
    Status,
    open_problem,
    pack,
    read_solution,
    solve,
    write_solution,
)
from cms.files.shards import stored
from cms.solving.recheck import faults_of
from instances.families import generate
from tests.shards.folders import bytes_of, fleet, head_of, mixed_numbers


def rechecked(problem: Path, plan: Path) -> subprocess.CompletedProcess[str]:
    """Ask the second checker."""
    command = [sys.executable, "-m", "proofs_checks.streaming", str(problem), str(plan)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refuse_faults(problem: Path, plan: Path) -> None:
    """Let both checkers accept a plan."""
    assert not [*faults_of(open_problem(problem), read_solution(plan))]
    assert "the schedule is valid" in rechecked(problem, plan).stdout


def test_a_fleet_is_packed_solved_written_and_rechecked(tmp_path: Path) -> None:
    problem = fleet(tmp_path / "fleet", 140_000)
    in_memory = generate("real-rows", n=140_000, seed=1)
    assert len(problem.shards) == 3
    assert problem.sha256 == problem.stated_sha256() == in_memory.sha256
    assert problem.load() == in_memory
    solution = solve(problem, time_limit=None)
    assert (solution.status, solution.cost) == (Status.OPTIMAL, solve(in_memory).cost)
    write_solution(solution, tmp_path / "plan")
    again = read_solution(tmp_path / "plan")
    assert again.certificate == solution.certificate
    assert again.schedule.machines == solution.schedule.machines
    refuse_faults(tmp_path / "fleet", tmp_path / "plan")


@pytest.mark.parametrize("seed", range(8))
def test_numbers_of_any_kind_come_back_exactly(tmp_path: Path, seed: int) -> None:
    demands, supply = mixed_numbers(np.random.default_rng(seed), 30)
    whole = Problem.from_arrays(
        demands=np.array(demands, dtype=object),
        supply=np.array(supply, dtype=object),
        configurations=[[2, 0], [1, 1]],
    )
    problem = pack(
        head_of(whole),
        [(np.array(demands[:11], dtype=object), np.array(supply[:11], dtype=object)),
         (np.array(demands[11:], dtype=object), np.array(supply[11:], dtype=object))],
        tmp_path / "fleet",
    )  # fmt: skip
    assert problem.sha256 == whole.sha256
    (shard,) = problem.shards
    assert [shard.row(j) for j in range(30)] == [whole.rows.row(j) for j in range(30)]
    solution = solve(problem)
    write_solution(solution, tmp_path / "plan")
    refuse_faults(tmp_path / "fleet", tmp_path / "plan")


def test_folders_that_are_there_or_cannot_be_are_refused(tmp_path: Path) -> None:
    fleet(tmp_path / "fleet", 100)
    before = bytes_of(tmp_path / "fleet")
    with pytest.raises(FileError, match="is there already"):
        fleet(tmp_path / "fleet", 50)
    assert bytes_of(tmp_path / "fleet") == before
    with pytest.raises(FileError, match="no folder"):
        fleet(tmp_path / "not" / "there", 50)
    head = head_of(generate("real-rows", n=5, seed=1))
    with pytest.raises(InvalidProblem, match="of job 'j3' is -1"):
        pack(
            head, [([1, 2], np.ones((2, 5), int)), ([3, -1], np.ones((2, 5), int))], tmp_path / "x"
        )
    with pytest.raises(InvalidProblem, match="expected none"):
        pack(generate("real-rows", n=5, seed=1), [], tmp_path / "x")
    with pytest.raises(InvalidProblem, match="65536"):
        pack(head, [], tmp_path / "x", size=1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet"]
    with pytest.raises(FileError, match="is no folder"):
        open_problem(tmp_path / "nowhere")


# --- spoiled --------------------------------------------------------------------------------------

Spoil = Callable[[Path, Path], object]


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


def _edit(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def _recount(folder: Path, plan: Path) -> None:
    """Take a block from a job, and say that the file has always been so."""
    path = plan / "counts" / "000001.npy"
    table = np.load(path)
    job, block = (int(at[0]) for at in np.nonzero(table))
    table[job, block] -= 1
    sha256 = stored.write_files(path.with_suffix(""), {"npy": stored.array_bytes(table)})
    _edit(plan / "solution.json", lambda d: _counts(d)[1]["sha256"].update(sha256))


def _counts(document: Any) -> Any:
    return document["schedule"]["counts"]


def _machines(document: Any) -> Any:
    return document["schedule"]["machines"][0]


SPOILED: dict[str, tuple[Spoil, str]] = {
    "a row": (lambda f, p: _flip(f / "jobs" / "000001.supply.npy"), "SHA-256"),
    "a file less": (lambda f, p: (f / "jobs" / "000001.demand.npy").unlink(), "cannot be read"),
    "a block, hashed anew": (_recount, "of its demand served"),
    "a leaf": (
        lambda f, p: _edit(
            f / "problem.json",
            lambda d: d["jobs"]["shards"][0]["leaves"].__setitem__(0, "0" * 64),
        ),
        "other jobs than its leaves",
    ),
    "a job more": (
        lambda f, p: _edit(
            f / "problem.json", lambda d: d["jobs"].update({"count": d["jobs"]["count"] + 1})
        ),
        "the jobs of all shards",
    ),
    "a machine less": (
        lambda f, p: _edit(
            p / "solution.json", lambda d: _machines(d).update({"count": _machines(d)["count"] - 1})
        ),
        "machine_count",
    ),
    "counts of a shard more": (
        lambda f, p: _edit(
            p / "solution.json",
            lambda d: _counts(d).append({**_counts(d)[0], "file": "000003"}),
        ),
        "counts of 4 shards",
    ),
    "counts of a shard less": (
        lambda f, p: _edit(p / "solution.json", lambda d: _counts(d).pop()),
        "counts of 2 shards",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    problem = fleet(place / "fleet", 140_000)
    write_solution(solve(problem, time_limit=None), place / "plan")
    return place


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_folder_is_refused_by_both(whole: Path, tmp_path: Path, name: str) -> None:
    for part in ("fleet", "plan"):
        shutil.copytree(whole / part, tmp_path / part)
    spoil, words = SPOILED[name]
    spoil(tmp_path / "fleet", tmp_path / "plan")
    try:
        problem = open_problem(tmp_path / "fleet")
        found = [str(fault) for fault in faults_of(problem, read_solution(tmp_path / "plan"))]
    except (FileError, InvalidProblem) as fault:
        found = [str(fault)]
    assert any(words in text for text in found), found
    run = rechecked(tmp_path / "fleet", tmp_path / "plan")
    assert run.returncode in (1, 2), run.stdout
