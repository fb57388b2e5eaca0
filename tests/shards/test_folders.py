"""Folders: written, opened, solved, rechecked by both checkers, from Parquet, spoiled."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cms
from cms import (
    FileError,
    GroupLimit,
    InvalidProblem,
    Problem,
    open_problem,
    pack,
    read_solution,
    solve,
)
from cms.files.shards.parquet import parquet_chunks
from cms.files.shards.stored import read_array
from cms.solving.recheck import faults_of
from instances.families import generate
from tests.shards.folders import bytes_of, fleet, head_of


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
    answer = solve(problem, time_limit=None)
    assert (answer.status, answer.cost) == (cms.Status.OPTIMAL, solve(in_memory).cost)
    cms.write_solution(answer, tmp_path / "plan")
    again = read_solution(tmp_path / "plan")
    assert again.certificate == answer.certificate
    assert again.schedule.machines == answer.schedule.machines
    refuse_faults(tmp_path / "fleet", tmp_path / "plan")


@pytest.mark.parametrize("seed", range(8))
def test_numbers_of_any_kind_come_back_exactly(tmp_path: Path, seed: int) -> None:
    kinds: list[Any] = ["1/3", 7, 0.25, "12.5", 10**12, 10**25, "100000000000000000000/7", 3.5]
    table = np.random.default_rng(seed).integers(len(kinds), size=(30, 3)).tolist()
    demands, *columns = zip(*([kinds[at] for at in row] for row in table), strict=True)
    supply = list(zip(*columns, strict=True))
    whole = Problem.from_arrays(
        demands=np.array(demands, dtype=object),
        supply=np.array(supply, dtype=object),
        configurations=[[2, 0], [1, 1]],
        group_limits=[GroupLimit("all", {"machine": "1/3"}, 10**26)] if seed % 2 else [],
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
    answer = solve(problem)
    cms.write_solution(answer, tmp_path / "plan")
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


TABLE = np.arange(6).reshape(3, 2)


def npy(values: Any) -> bytes:
    target = BytesIO()
    np.save(target, values)
    return target.getvalue()


def written(place: Path, data: bytes) -> tuple[Path, str]:
    (place / "it").write_bytes(data)
    return place / "it", hashlib.sha256(data).hexdigest()


def test_a_file_that_is_changed_and_keeps_its_time_is_hashed_again(tmp_path: Path) -> None:
    path, sha256 = written(tmp_path, npy(TABLE))
    read_array(path, sha256, (3, 2))
    before = path.stat()
    time.sleep(0.05)  # the clock of files ticks more slowly than that of processors
    path.write_bytes(npy(TABLE + 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(FileError, match="SHA-256"):
        read_array(path, sha256, (3, 2))


def test_no_key_of_one_s_own_stands_among_the_hashes_of_files(tmp_path: Path) -> None:
    fleet(tmp_path / "fleet", 10)
    path = tmp_path / "fleet" / "problem.json"
    path.write_text(path.read_text().replace('"demand.npy":', '"x-mine": 1, "demand.npy":'))
    with pytest.raises(FileError, match="sha256.x-mine"):
        open_problem(tmp_path / "fleet")


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
HEAD = Problem(configurations=cms.Configuration({"a": 1, "b": 1}))


def rows_of(place: Path, columns: Any, head: Problem = HEAD) -> list[list[Fraction]]:
    """Write columns, pack them, and return each job's demand and supply."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, place / "jobs.parquet")
    packed = pack(head, parquet_chunks([place / "jobs.parquet"], head), place / "fleet").load()
    rows = [packed.rows.row(j) for j in range(packed.n_jobs)]
    return [
        [Fraction(number, row.denominator) for number in (row.demand, *row.supply)] for row in rows
    ]


@pytest.mark.parametrize(("precision", "scale"), [(2, 1), (9, 9), (15, 5), (15, 15), (18, 4)])
@pytest.mark.parametrize("kind", ["decimal128", "decimal256"])
def test_decimals_are_what_they_say(tmp_path: Path, precision: int, scale: int, kind: str) -> None:
    rng = random.Random(precision)
    wanted = [
        [Decimal(rng.randrange(10**precision)).scaleb(-scale) for _ in range(3)] for _ in range(500)
    ]
    columns = zip(*wanted, strict=True)
    arrays = [pa.array(column, getattr(pa, kind)(precision, scale)) for column in columns]
    found = rows_of(tmp_path, dict(zip(("demand", "a", "b"), arrays, strict=True)))
    assert found == [[Fraction(number) for number in row] for row in wanted]


def test_signed_and_unsigned_columns_keep_their_digits(tmp_path: Path) -> None:
    odd = 2**60 + 1
    columns = {
        "demand": pa.array([2**64 - 1], pa.uint64()),
        "a": pa.array([odd], pa.uint64()),
        "b": pa.array([odd], pa.int64()),
    }
    assert rows_of(tmp_path, columns) == [[2**64 - 1, odd, odd]]


def test_columns_of_two_meanings_are_refused(tmp_path: Path) -> None:
    one = pa.array([1, 2])
    with pytest.raises(FileError, match="several columns 'b'"):
        rows_of(tmp_path, pa.table([one, one, one, one], names=["demand", "a", "b", "b"]))
    head = Problem(configurations=cms.Configuration({"a": 1, "demand": 1}))
    with pytest.raises(FileError, match="one column 'demand', for a block"):
        rows_of(tmp_path, {"demand": one, "a": one}, head)


def test_a_spoiled_page_is_the_file_s_fault(tmp_path: Path) -> None:
    numbers = pa.array(random.Random(1).sample(range(10**9), 50_000))
    pq.write_table(pa.table({"demand": numbers, "a": numbers, "b": numbers}), tmp_path / "jobs")
    data = bytearray((tmp_path / "jobs").read_bytes())
    data[5_000:5_040] = b"\xff" * 40
    (tmp_path / "jobs").write_bytes(data)
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        pack(HEAD, parquet_chunks([tmp_path / "jobs"], HEAD), tmp_path / "fleet")
