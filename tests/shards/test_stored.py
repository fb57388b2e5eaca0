"""Arrays and lines beside a document: read as docs/reference/files.md has them, or refused."""

from __future__ import annotations

import hashlib
import os
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cms import FileError, open_problem
from cms.files.shards.stored import read_array, read_lines
from tests.shards.folders import fleet

TABLE = np.arange(6).reshape(3, 2)


def npy(values: Any) -> bytes:
    target = BytesIO()
    np.save(target, values)
    return target.getvalue()


def written(place: Path, data: bytes) -> tuple[Path, str]:
    (place / "it").write_bytes(data)
    return place / "it", hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (npy(np.asfortranarray(TABLE)), "integers of shape (3, 2) by rows"),
        (npy(TABLE) + b"x", "is no array"),
        (npy(TABLE).replace(b"(3, 2), }    ", b"(30000, 2), }"), "of shape (30000, 2)"),
        (npy(TABLE).replace(b"(3, 2), }", b"((((3, 2)"), "is no array"),
        (npy(TABLE.astype(">i8")), "holds >i8"),
        (npy(TABLE.astype(object)), "is no array"),
        (npy(TABLE).replace(b"Y\1", b"Y\2"), "is no array"),
        (npy(-TABLE), "holds the number -5"),
        (b"", "is no array"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(FileError) as fault:
        read_array(*written(tmp_path, data), (3, 2))
    assert words in str(fault.value)
    assert read_array(*written(tmp_path, npy(TABLE)), (3, 2)).tolist() == TABLE.tolist()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("0:1\n\n", "line 1 has no long number"),
        (f"0:{2**63}\n\n", "line 2 is no row"),
        (f"0:{2**63}", "does not end with a line"),
        (f"0:0{2**63}\n", "line 1 is no row"),
        (f"1:{2**63}\n0:{2**63}\n", "line 2 is about job 0"),
        (f"0:{2**63}\n0:{2**63}\n", "line 2 is about job 0"),
        (f"5:{2**63}\n", "line 1 is about job 5"),
    ],
)
def test_other_lines_are_refused(tmp_path: Path, lines: str, words: str) -> None:
    with pytest.raises(FileError) as fault:
        read_lines(*written(tmp_path, lines.encode()), 1, range(2))
    assert words in str(fault.value)
    good = written(tmp_path, f"1:{2**63}\n".encode())
    assert read_lines(*good, 1, range(2)) == {1: (2**63,)}


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
