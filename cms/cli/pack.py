"""``cms problem pack``: tables of very many jobs become a problem folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import cms

from . import options
from .documents import open_document
from .options import argument, option, usage_error
from .session import Exit, session_of


def pack(
    context: typer.Context,
    files: Annotated[
        list[Path],
        argument(
            "JOBS.parquet", "The jobs, file after file: a column 'demand' and one for each block."
        ),
    ],
    head: Annotated[
        Path,
        option(
            "--head HEAD.json", "A problem file without jobs: machines, blocks and configurations."
        ),
    ],
    output: Annotated[Path, option("--output -o FOLDER", "The problem folder to write.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Pack tables of very many jobs into a problem folder.

    'cms problem solve' and 'cms check' take it.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    from cms.files.folders import refuse_existing
    from cms.files.shards.parquet import parquet_chunks
    from cms.values.words import count

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
    from cms.files import problem_from_json

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
