"""The Parquet door: whatever column types there are, not a digit changes."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import Configuration, FileError, Problem, pack
from cms.files.shards.parquet import parquet_chunks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
HEAD = Problem(configurations=Configuration({"a": 1, "b": 1}))


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
    head = Problem(configurations=Configuration({"a": 1, "demand": 1}))
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
