"""Problems in folders on the command line: solved out of core, written, and rechecked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import usage_error

if TYPE_CHECKING:
    from cms.schedule.faults import Violation
    from cms.shards.problem import ShardedProblem
    from cms.solving.solution import Solution

    from .searching import Search
    from .session import Session

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Of a problem folder: work on a cluster of Dask, whose scheduler is there.",
    ),
]
Journal = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FOLDER",
        help="Of a problem folder: keep there what is worked out, and go on from it.",
    ),
]


@contextmanager
def opened(
    path: Path,
    cluster: str | None = None,
    journal: Path | None = None,
    threads: int | None = None,
) -> Iterator[ShardedProblem]:
    """Open a problem folder, here or on a cluster, whose workers have threads of their own."""
    from cms.files import open_problem

    if cluster is None:
        from cms.shards.engine import Here

        yield open_problem(path, engine=Here(threads), journal=journal)
        return
    from cms.shards.cluster import cluster as connect

    with connect(cluster) as engine:
        yield open_problem(path, engine=engine, journal=journal)


def solve_folder(
    session: Session,
    path: Path,
    how: Search,
    output: Path | None,
    cluster: str | None,
    journal: Path | None,
) -> int:
    """Solve the problem of a folder, and write the solution to another one."""
    from cms.files import write_solution
    from cms.files.folders import refuse_existing
    from cms.files.solutions import solution_summary

    from .searching import heard, search

    if how.start is not None:
        raise usage_error("a problem folder is solved from nothing", "--start")
    if output is not None:
        refuse_existing(output)
    with opened(path, cluster, journal, how.threads) as problem:
        solution = search(session, problem, how, counted="cost", report="cms.solving.words")
        if output is not None:
            with _counted(session, problem):
                heard(session, lambda: write_solution(solution, output))
    if session.json:
        session.print_json(lambda: solution_summary(solution))
    elif not session.quiet:
        session.print_text(f"{solution}\n")
    return session.code_of(solution)


def check_folders(
    session: Session, problem: Path, solution: Path | None
) -> tuple[Solution, list[Violation]]:
    """Recheck a solution folder of a problem folder, shard by shard."""
    from cms.files import read_solution
    from cms.solving.recheck import faults_of

    from .searching import heard

    if solution is None or not solution.is_dir():
        what = "" if solution is None else f"{solution} is no folder; "
        raise usage_error(
            f"{what}{problem} is a problem folder; give its solution folder as well: cms check "
            "fleet/ plan/"
        )
    with opened(problem) as posed:
        answer = read_solution(solution)
        with _counted(session, posed):
            faults = heard(session, lambda: list(faults_of(posed, answer)))
    return answer, faults


@contextmanager
def _counted(session: Session, problem: ShardedProblem) -> Iterator[None]:
    """Say how many shards are through."""
    from .progress import CountProgress

    progress = CountProgress(None if session.quiet else sys.stderr, what="shards")
    problem.engine.watch = lambda what, done, of: progress(done, of, what)
    try:
        yield
    finally:
        progress.end()
