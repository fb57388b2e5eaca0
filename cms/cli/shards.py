"""Problems in folders: made by ``cms problem pack``, solved out of core, and rechecked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import cms
from cms.files import problem_from_json
from cms.files.folders import refuse_existing
from cms.files.solutions import solution_summary
from cms.shards.engine import Here
from cms.solving.recheck import faults_of
from cms.values.words import count

from . import options
from .options import File, Text, option, usage_error
from .progress import CountProgress
from .searching import Search, heard, search
from .session import Exit, Session, open_document, session_of

Cluster = Annotated[
    Text,
    option("ADDRESS", "Of a problem folder: work on a cluster of Dask, whose scheduler is there."),
]
Journal = Annotated[
    File, option("FOLDER", "Of a problem folder: keep there what is worked out, and go on from it.")
]


def pack(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="JOBS.parquet",
            help="The jobs, file after file: a column 'demand' and one for each block.",
        ),
    ],
    head: Annotated[
        Path,
        option("HEAD.json", "A problem file without jobs: machines, blocks and configurations."),
    ],
    output: Annotated[Path, option("FOLDER", "The problem folder to write.", "--output", "-o")],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Pack tables of very many jobs into a problem folder.

    'cms problem solve' and 'cms check' take it.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    from cms.files.shards.parquet import parquet_chunks

    refuse_existing(output)
    with session.reading("reading the jobs"):
        problem = _read_head(head)
        found = cms.pack(problem, parquet_chunks(files, problem), output)
    document = {
        "folder": str(output),
        "jobs": found.n_jobs,
        "shards": len(found.shards),
        "problem_sha256": found.stated_sha256(),
    }
    jobs, shards = count(found.n_jobs, "job"), count(len(found.shards), "shard")
    session.say(
        document, f"{output}: {jobs} in {shards}; next: cms problem solve {output} -o plan\n"
    )
    return Exit.ANSWER


def _read_head(path: Path) -> cms.Problem:
    """Read a problem without jobs."""
    kind, document = open_document(path)
    if kind != "cms-problem":
        what = f"holds no problem (its format is {kind!r}); expected a cms-problem without jobs"
        raise usage_error(f"{path} {what}", "--head")
    problem = problem_from_json(document)
    if not isinstance(problem, cms.Problem):
        raise usage_error(f"{path}: its jobs share blocks in time", "--head")
    if problem.n_jobs:
        what = f"has {problem.n_jobs} jobs; expected none: they come from the tables"
        raise usage_error(f"{path} {what}", "--head")
    return problem


@contextmanager
def opened(
    path: Path, cluster: str | None = None, journal: Path | None = None, threads: int | None = None
) -> Iterator[cms.ShardedProblem]:
    """Open a problem folder, here or on a cluster, whose workers have threads of their own."""
    if cluster is None:
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
    if output is not None:
        refuse_existing(output)
    with opened(path, cluster, journal, how.threads) as problem:
        solution = search(session, problem, how, counted="cost")
        if output is not None:
            with _counted(session, problem):
                heard(session, lambda: cms.write_solution(solution, output))
    session.say(solution_summary(solution), f"{solution}\n")
    return session.code_of(solution)


def check_folders(
    session: Session, problem: Path, solution: Path | None
) -> tuple[cms.Solution, list[cms.Violation]]:
    """Recheck a solution folder of a problem folder, shard by shard."""
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
    with CountProgress(None if session.quiet else sys.stderr, what="shards") as progress:
        problem.engine.watch = lambda what, done, of: progress(done, of, what)
        yield
