"""``cms problem pack``: tables of very many jobs become a problem folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .documents import open_document
from .session import Exit, session_of

if TYPE_CHECKING:
    from cms.problem.problem import Problem

_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="JOBS.parquet",
        help="The jobs, file after file: a column 'demand' and one for each block.",
    ),
]
_Head = Annotated[
    Path,
    typer.Option(
        "--head",
        metavar="HEAD.json",
        help="A problem file without jobs: machines, blocks and configurations.",
    ),
]
_Folder = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="The problem folder to write.")
]


def pack(
    context: typer.Context,
    files: _Files,
    head: _Head,
    output: _Folder,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Pack tables of very many jobs into a problem folder.

    'cms problem solve' and 'cms check' take it.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    from cms.files.folders import refuse_existing
    from cms.files.shards.folders import pack as packed
    from cms.files.shards.parquet import parquet_chunks
    from cms.values.words import count

    refuse_existing(output)
    with session.reading("reading the jobs"):
        problem = _head(head)
        found = packed(problem, parquet_chunks(files, problem), output)
    said = {
        "folder": str(output),
        "jobs": found.n_jobs,
        "shards": len(found.shards),
        "problem_sha256": found.stated_sha256(),
    }
    if session.json:
        session.print_json(lambda: said)
    elif not quiet:
        jobs, shards = count(found.n_jobs, "job"), count(len(found.shards), "shard")
        session.print_text(
            f"{output}: {jobs} in {shards}; next: cms problem solve {output} -o plan\n"
        )
    return Exit.ANSWER


def _head(path: Path) -> Problem:
    """Read a problem without jobs."""
    from cms.files import problem_from_json
    from cms.problem.problem import Problem

    kind, document = open_document(path)
    if kind != "cms-problem":
        raise options.usage_error(
            f"{path} holds no problem (its format is {kind!r}); expected a cms-problem without "
            "jobs",
            "--head",
        )
    problem = problem_from_json(document)
    if not isinstance(problem, Problem):
        raise options.usage_error(f"{path}: its jobs share blocks in time", "--head")
    if problem.n_jobs:
        raise options.usage_error(
            f"{path} has {problem.n_jobs} jobs; expected none: they come from the tables", "--head"
        )
    return problem
