"""A search that is cut off goes on from its journal, with the same bytes in the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from algorithms.prices import jobs
from cms import FileError, open_problem, solve, write_solution
from tests.samples import so_many
from tests.shards.folders import bytes_of, fleet

#: Of two shards, in the long run of three.
JOBS = so_many(66_000, 140_000)


@pytest.fixture(autouse=True)
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_LISTED", 0)


def told(folder: Path) -> dict[str, Any]:
    """A solution folder without what a clock says."""
    files: dict[str, Any] = dict(bytes_of(folder))
    document = json.loads(files.pop("solution.json"))
    del document["seconds"]
    for line in document["history"]:
        del line["seconds"]
    return {**files, "solution": document}


def test_a_torn_or_spoiled_line_is_forgotten_and_another_problem_s_journal_refused(
    tmp_path: Path,
) -> None:
    fleet(tmp_path / "fleet", 70_000)
    one = open_problem(tmp_path / "fleet", journal=tmp_path / "run")
    solve(one, time_limit=None)
    path = tmp_path / "run" / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    two = open_problem(tmp_path / "fleet", journal=tmp_path / "run")
    solve(two, time_limit=None)
    engine: Any = two.engine
    assert engine.worked_out == 1
    assert path.read_bytes() == whole
    lines = path.read_text().split("\n")
    key, _, digest = json.loads(lines[2])
    lines[2] = json.dumps([key, [7, []], digest])
    path.write_text("\n".join(lines))
    three = open_problem(tmp_path / "fleet", journal=tmp_path / "run")
    solve(three, time_limit=None)
    engine = three.engine
    assert engine.worked_out == 1
    fleet(tmp_path / "other", 65_000)
    with pytest.raises(FileError, match="is not the journal of this problem"):
        open_problem(tmp_path / "other", journal=tmp_path / "run")


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
