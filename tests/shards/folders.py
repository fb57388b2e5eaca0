"""Problem folders for tests: small problems whose shards are cut where leaves are."""

from __future__ import annotations

from pathlib import Path

from cms import Problem, ShardedProblem, pack
from instances.families import generate


def head_of(problem: Problem) -> Problem:
    """The machines of a problem, without its jobs."""
    return problem.replace(rows=problem.rows.part(0, 0), job_names=())


def fleet(folder: Path, n: int = 150_000) -> ShardedProblem:
    """A folder of several shards, packed some jobs at a time."""
    problem = generate("real-rows", n=n, seed=1)
    rows = problem.rows
    parts = [slice(at, at + 50_000) for at in range(0, n, 50_000)]
    chunks = ((rows.demands[part], rows.supplies[part]) for part in parts)
    found: ShardedProblem = pack(head_of(problem), chunks, folder, size=65_536)
    return found


def bytes_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their names."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
