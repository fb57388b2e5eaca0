"""Compiled code is kept where it can be kept, and compiled again wherever it cannot."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from cms.knapsack import compiled, machine_code
from tests.samples import few
from tests.source_tree import ROOT

SOURCE = "def triple(number):\n    return 3 * number\n"


class Process:
    """What a process finds: a source file, and the folders it may write."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(exist_ok=True)
        file.write_text(SOURCE)
        # numba's own last resort is in the home of whoever runs the tests
        (file.parent / "__pycache__").write_text("a file where a folder is wanted")

    def compiled(self) -> Any:
        """Compile the function in the file, as a new process would."""
        scope: dict[str, Any] = {"__name__": "builtins"}  # numba imports the module it loads from
        exec(compile(self.file.read_text(), str(self.file), "exec"), scope)
        return machine_code.compiled(scope["triple"], [str(self.file)])

    def hits(self) -> int:
        """Call the function in a new process; how often it was found compiled."""
        function = self.compiled()
        assert function(14) == 42
        assert function(2**40) == 3 * 2**40
        hits: int = sum(function.stats.cache_hits.values())
        return hits


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    """One that may write to the folder "kept" only, whoever runs the tests."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "package" / "__pycache__" / "below"))
    return Process(tmp_path / "package" / "module.py")


def kept(tmp_path: Path, kind: str) -> Path:
    (found,) = (tmp_path / "kept").rglob(f"*.{kind}")
    return found


def test_compiled_code_is_kept_for_the_next_process(process: Process) -> None:
    assert [process.hits(), process.hits()] == [0, 1]
    process.file.write_text(SOURCE.replace("3 * number", "number + number + number"))
    assert [process.hits(), process.hits()] == [0, 1]


def test_where_no_folder_can_be_written_code_is_compiled_without_one(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "package/module.py/below"))
    assert [process.hits(), process.hits()] == [0, 0]
    process.file.unlink()  # nor is there a source that a folder could be found by
    assert machine_code.compiled(lambda number: number + 1, [str(process.file)])(1) == 2


def test_a_process_without_a_home_leaves_no_folder_called_tilde(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # HOME unset, a user unknown
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.chdir(tmp_path)
    assert process.hits() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["package"]


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


def emptied(text: bytes) -> bytes:
    return b""


def halved(text: bytes) -> bytes:
    return text[: len(text) // 2]


def of_another_kind(text: bytes) -> bytes:
    return b"\x80\x04]."  # an empty list, pickled


def flipped(text: bytes) -> bytes:
    """A bit in the middle of the machine code, which no pickle notices."""
    at = text.index(b"\x7fELF" if b"\x7fELF" in text else b".nbc") + 2
    return text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]


def naming_what_is_not_there(text: bytes) -> bytes:
    return text.replace(b".1.nbc", b".7.nbc")


@pytest.mark.parametrize("damage", few(2, [halved, flipped, emptied, of_another_kind]))
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_damaged_files_are_replaced(
    process: Process, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
) -> None:
    process.hits()
    file = kept(tmp_path, kind)
    file.write_bytes(damage(file.read_bytes()))
    assert [process.hits(), process.hits()] == [0, 1]


@pytest.mark.long
def test_a_damaged_file_is_never_run_whatever_the_damage(process: Process, tmp_path: Path) -> None:
    process.hits()
    texts = {kept(tmp_path, kind): kept(tmp_path, kind).read_bytes() for kind in ("nbi", "nbc")}
    chance = random.Random(1)
    for _ in range(200):
        file = chance.choice(list(texts))
        text = bytearray(texts[file])
        for _ in range(chance.choice([1, 1, 30])):
            text[chance.randrange(len(text))] ^= 1 << chance.randrange(8)
        del text[chance.choice([len(text), chance.randrange(len(text))]) :]
        file.write_bytes(text)
        process.hits()
        assert process.hits() == 1
        for each, original in texts.items():
            each.write_bytes(original)


def test_a_damaged_file_that_cannot_be_replaced_stands_in_nobodys_way(
    process: Process, tmp_path: Path
) -> None:
    process.hits()
    index = kept(tmp_path, "nbi")
    index.unlink()
    index.mkdir()  # neither read nor written over, by any user
    assert [process.hits(), process.hits()] == [0, 0]


def test_an_index_without_its_data_is_a_miss(process: Process, tmp_path: Path) -> None:
    process.hits()
    kept(tmp_path, "nbc").unlink()
    assert [process.hits(), process.hits()] == [0, 1]


@pytest.mark.long
def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(
    process: Process, tmp_path: Path
) -> None:
    code = (
        "import sys; from cms.knapsack import machine_code\n"
        "scope, text = {'__name__': 'builtins'}, open(sys.argv[1]).read()\n"
        "exec(compile(text, sys.argv[1], 'exec'), scope)\n"
        "function = machine_code.compiled(scope['triple'], [sys.argv[1]])\n"
        "assert function(14) == 42"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(ROOT)}

    def run(_: int) -> None:
        command = [sys.executable, "-c", code, str(process.file)]
        subprocess.run(command, check=True, env=environment)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(2)))
    assert process.hits() == 1


# --- what is compiled for -------------------------------------------------------------------------


def test_rows_that_can_be_written_to_are_not_compiled_for_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: set[bool] = set()

    def spy(*arguments: Any) -> Any:
        seen.update(rows.flags.writeable for rows in arguments[3:5])
        return arguments[12]  # all is done

    monkeypatch.setattr(compiled, "_compiled_price_rows", spy)
    demand, supply = np.array([3]), np.array([[2]])
    for _ in range(2):
        marks = np.zeros(1, dtype=np.int8)
        assert compiled.Kernel([1], 1, None).price(demand, supply, None, marks, None) is not None
        assert demand.flags.writeable == supply.flags.writeable
        demand.flags.writeable = supply.flags.writeable = False
    assert seen == {False}
