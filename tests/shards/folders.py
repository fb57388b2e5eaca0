"""Problem folders for tests: small problems whose shards are cut where leaves are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cms import Problem, ShardedProblem, pack
from instances.families import generate


def head_of(problem: Problem) -> Problem:
    """The machines of a problem, without its jobs."""
    return problem.replace(rows=problem.rows.part(0, 0), job_names=())


def packed(problem: Problem, folder: Path, *, size: int = 65_536, chunk: int = 50_000) -> Any:
    """Pack a problem of whole numbers, some jobs at a time."""
    rows = problem.rows
    assert (rows.denominators == 1).all()
    chunks = (
        (rows.demands[at : at + chunk], rows.supplies[at : at + chunk])
        for at in range(0, len(rows), chunk)
    )
    return pack(head_of(problem), chunks, folder, size=size)


def fleet(folder: Path, n: int = 150_000, family: str = "real-rows") -> ShardedProblem:
    """A folder of several shards."""
    found: ShardedProblem = packed(generate(family, n=n, seed=1), folder)
    return found


def bytes_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their names."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def mixed_numbers(rng: np.random.Generator, n: int) -> tuple[list[Any], list[list[Any]]]:
    """Demands and supply: whole numbers, decimals, thirds, and numbers beyond 64 bits."""
    kinds: list[Any] = ["1/3", 7, 0.25, "12.5", 10**12, 10**25, "100000000000000000000/7", 3.5]
    demands = [kinds[at] for at in rng.integers(len(kinds), size=n).tolist()]
    supply = [[kinds[at] for at in rng.integers(len(kinds), size=2).tolist()] for _ in range(n)]
    return demands, supply
