"""A search that is cut off goes on from its journal, with the same bytes in the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cms import FileError, open_problem, solve, write_solution
from cms.shards.engine import Here, Work
from tests.samples import so_many
from tests.shards.folders import bytes_of, fleet

#: Of two shards, in the long run of three.
JOBS = so_many(66_000, 140_000)


def told(folder: Path) -> dict[str, Any]:
    """A solution folder without what a clock says."""
    files: dict[str, Any] = dict(bytes_of(folder))
    document = json.loads(files.pop("solution.json"))
    del document["seconds"]
    for line in document["history"]:
        del line["seconds"]
    return {**files, "solution": document}


class Counting(Here):
    """Counts the passes that it prices."""

    passes = 0

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        self.passes += work.what == "pricing"
        return super().map(work)


def test_a_torn_line_is_forgotten_and_another_problem_s_journal_refused(tmp_path: Path) -> None:
    fleet(tmp_path / "fleet", 70_000)
    path, passes, whole, code = tmp_path / "run" / "journal.jsonl", [], b"", b""
    for change in ("", "a torn line", "a changed line", "no entry", "other code"):
        engine = Counting()
        changed = {
            "a torn line": whole[:-7],
            "a changed line": whole[:-7] + b"?" + whole[-6:],
            "no entry": whole + b"17\n" + b"[" * 10**5 + b"\n",
            "other code": whole.replace(code, b"0"),
        }
        if change:
            path.write_bytes(changed[change])
        problem = open_problem(tmp_path / "fleet", engine=engine, journal=tmp_path / "run")
        solve(problem, time_limit=None)
        passes.append(engine.passes)
        whole = path.read_bytes()
        code = json.loads(whole.split(b"\n")[0])["code"].encode()
    assert passes == [passes[0], 1, 1, 0, passes[0]]
    assert passes[0] == whole.count(b"\n") - 2 > 1
    fleet(tmp_path / "other", 65_000)
    with pytest.raises(FileError, match="is not the journal of this problem"):
        open_problem(tmp_path / "other", journal=tmp_path / "run")
    path.write_bytes(b"[no JSON\n")
    with pytest.raises(FileError, match="is not the journal of this problem"):
        open_problem(tmp_path / "fleet", journal=tmp_path / "run")
    assert path.read_bytes() == b"[no JSON\n"


CLIENT = """
import sys
from algorithms.prices import jobs
jobs.MOST_LISTED = 0
from cms import open_problem, solve, write_solution
problem = open_problem(sys.argv[1], journal=sys.argv[2])
write_solution(solve(problem, time_limit=None, threads=1), sys.argv[3])
"""


def test_a_client_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    fleet(tmp_path / "fleet", JOBS)
    journal = tmp_path / "run" / "journal.jsonl"
    command = [sys.executable, "-c", CLIENT, str(tmp_path / "fleet"), str(tmp_path / "run")]
    lines = 0
    for number in range(so_many(2, 4)):
        process = subprocess.Popen([*command, str(tmp_path / f"killed{number}")])
        while process.poll() is None and (
            not journal.exists() or journal.read_bytes().count(b"\n") < lines + 3
        ):
            time.sleep(0.002)
        process.kill()
        process.wait()
        lines = max(1, journal.read_bytes().count(b"\n"))
    subprocess.run([*command, str(tmp_path / "plan")], check=True)
    plain = open_problem(tmp_path / "fleet")
    write_solution(solve(plain, time_limit=None), tmp_path / "plain")
    assert told(tmp_path / "plan") == told(tmp_path / "plain")
