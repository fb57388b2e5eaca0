"""Compiled code is kept where it can be kept, and compiled again wherever it cannot."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numba
import pytest

from cms.knapsack.machine_code import compile_functions

SOURCE = "def double(n):\n    return 2 * n\n\n\ndef triple(n):\n    return double(n) + n\n"


class Process:
    """What a process finds: a source file, and the folders it may write."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(exist_ok=True)
        file.write_text(SOURCE)
        # numba's own last resort is in the home of whoever runs the tests
        (file.parent / "__pycache__").write_text("a file where a folder is wanted")

    def hits(self) -> int:
        """Call a function of the file in a new process; how often it was found compiled."""
        scope: dict[str, Any] = {"__name__": "builtins"}  # numba imports the module it loads from
        exec(compile(self.file.read_text(), str(self.file), "exec"), scope)
        (function,) = compile_functions(scope, ["double", "triple"], ["triple"])
        assert function(14) == scope["triple"](14) == 42
        assert function(2**40) == 3 * 2**40
        return sum(function.stats.cache_hits.values())  # type: ignore[attr-defined]


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    """One that may write to the folder "kept" only, whoever runs the tests."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "package" / "__pycache__" / "below"))
    return Process(tmp_path / "package" / "module.py")


def test_compiled_code_is_kept_for_the_next_process(process: Process) -> None:
    assert [process.hits(), process.hits()] == [0, 1]
    times = process.file.stat()
    process.file.write_text(SOURCE.replace("2 * n", "n + n"))
    os.utime(process.file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [process.hits(), process.hits()] == [0, 1]


def test_where_no_folder_can_be_written_code_is_compiled_without_one(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "package/module.py/below"))
    assert [process.hits(), process.hits()] == [0, 0]


def test_a_full_disk_costs_the_next_process_time_and_nobody_an_answer(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        assert process.hits() == 0
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert [process.hits(), process.hits()] == [0, 1]
