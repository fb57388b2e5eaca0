"""Problems in folders on the command line: solved out of core, written, and rechecked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import cms

from .options import File, Text, option, usage_error
from .searching import Search, heard, search
from .session import Session

Cluster = Annotated[
    Text,
    option(
        "--cluster ADDRESS",
        "Of a problem folder: work on a cluster of Dask, whose scheduler is there.",
    ),
]
Journal = Annotated[
    File,
    option(
        "--journal FOLDER",
        "Of a problem folder: keep there what is worked out, and go on from it.",
    ),
]


@contextmanager
def opened(
    path: Path,
    cluster: str | None = None,
    journal: Path | None = None,
    threads: int | None = None,
) -> Iterator[cms.ShardedProblem]:
    """Open a problem folder, here or on a cluster, whose workers have threads of their own."""
    if cluster is None:
        from cms.shards.engine import Here

        yield cms.open_problem(path, engine=Here(threads), journal=journal)
        return
    with cms.cluster(cluster) as engine:
        yield cms.open_problem(path, engine=engine, journal=journal)


def solve_folder(
    session: Session,
    path: Path,
    how: Search,
    output: Path | None,
    cluster: str | None,
    journal: Path | None,
) -> int:
    """Solve the problem of a folder, and write the solution to another one."""
    from cms.files.folders import refuse_existing
    from cms.files.solutions import solution_summary

    if how.start is not None:
        raise usage_error("a problem folder is solved from nothing", "--start")
    if output is not None:
        refuse_existing(output)
    with opened(path, cluster, journal, how.threads) as problem:
        solution = search(session, problem, how, counted="cost", report="cms.solving.words")
        if output is not None:
            with _counted(session, problem):
                heard(session, lambda: cms.write_solution(solution, output))
    session.say(solution_summary(solution), f"{solution}\n")
    return session.code_of(solution)


def check_folders(
    session: Session, problem: Path, solution: Path | None
) -> tuple[cms.Solution, list[cms.Violation]]:
    """Recheck a solution folder of a problem folder, shard by shard."""
    from cms.solving.recheck import faults_of

    if solution is None or not solution.is_dir():
        what = "" if solution is None else f"{solution} is no folder; "
        raise usage_error(
            f"{what}{problem} is a problem folder; give its solution folder as well: cms check "
            "fleet/ plan/"
        )
    with opened(problem) as posed:
        answer = cms.read_solution(solution)
        with _counted(session, posed):
            faults = heard(session, lambda: list(faults_of(posed, answer)))
    return answer, faults


@contextmanager
def _counted(session: Session, problem: cms.ShardedProblem) -> Iterator[None]:
    """Say how many shards are through."""
    from .progress import CountProgress

    with CountProgress(None if session.quiet else sys.stderr, what="shards") as progress:
        problem.engine.watch = lambda what, done, of: progress(done, of, what)
        yield
