"""``cms problem``: abstract problems, without GPUs and services, in files and in folders."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import cms
from cms.files import number_to_json, problem_from_json, solution_to_json
from cms.files.folders import refuse_existing
from cms.files.solutions import solution_summary
from cms.plugin import registry
from cms.shards.engine import Here
from cms.solving.recheck import faults_of
from cms.values.words import count, decimal

from . import options
from .command import command
from .options import File, Text, attributes, load_published, usage_error
from .progress import CountProgress
from .searching import Search, heard, lacking, search
from .session import Exit, Session, open_document

if TYPE_CHECKING:
    from cms.fleet.report.page import Page


@command(settings=False, checks_output=False)
def solve(
    session: Session,
    *,
    problem: File = None,
    published: Text = None,
    how: Search,
    cluster: Text = None,
    journal: File = None,
    picture: File = None,
    output: File = None,
) -> int:
    """Solve a problem file or folder, with a proved bound."""
    if problem is not None and problem.is_dir():
        if "time_limit" not in options.given_options(session.context):
            how.time_limit = None  # it takes what it takes: minutes for 100 million jobs
        heeded = "problem method option time_limit gap cluster journal output"
        options.refuse_others(session.context, heeded, "it does not go with a problem folder")
        if output is not None:
            refuse_existing(output)
        with _opened(problem, cluster, journal, how.threads) as folder:
            found = search(session, folder, how, counted="cost")
            if output is not None:
                with _counted(session, folder):
                    heard(session, lambda: cms.write_solution(found, output))
        session.say(solution_summary(found), f"{found}\n")
        return session.code_of(found)
    for value, name in ((cluster, "--cluster"), (journal, "--journal")):
        if value is not None:
            raise usage_error("is for problem folders, as cms problem pack writes them", name)
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    with session.reading():
        title, posed = _posed_of(problem, published)
    solution = search(session, posed, how, counted="cost")
    shown = session.json or not session.quiet or (output, picture) != (None, None)
    short_of = lacking(session, posed, solution, how) if shown else None

    def view() -> Page:
        from cms.fleet.report.problems import solved_page

        return solved_page(posed, solution, title, short_of)

    session.show(lambda: solution_to_json(solution, short_of), view, output, picture)
    return session.code_of(solution)


@command(settings=False)
def program(session: Session, output: Path, file: File = None, published: Text = None) -> int:
    """Write a problem as an integer program for other solvers.

    It is MPS or LP by the file's ending. The head of the file says what its variables and rows
    stand for.
    """
    with session.reading():
        _, posed = _posed_of(file, published, plans=True)
    written = cms.write_program(posed, output)
    step = "" if written.step == 1 else f"; 1 of the objective costs {decimal(written.step)}"
    session.say(
        {**written._asdict(), "step": number_to_json(written.step), "file": str(output)},
        f"{output}: {written.program} program of {count(written.variables, 'variable')} and "
        f"{count(written.rows, 'row')}{step}\n",
    )
    return Exit.ANSWER


@command(settings=False)
def algorithms(session: Session, output: File = None) -> int:
    """List the installed algorithms with their options."""
    from cms.fleet.report.catalogue import algorithms_page

    with warnings.catch_warnings(record=True) as broken:
        warnings.simplefilter("always")
        found = registry.algorithm_details()
    for warning in broken:
        session.warn(str(warning.message))
    document = {
        "algorithms": [
            attributes(one, "name summary distribution trusted")
            | {"options": {name: _json_value(value) for name, value in one.options.items()}}
            for one in found
        ]
    }
    names = [one.name for one in found]
    return session.list_names(names, lambda: document, lambda: algorithms_page(found), output)


def _json_value(default: object) -> object:
    """An option's default in its own type, as far as JSON has it; a fraction becomes a text."""
    return default if default is None or isinstance(default, bool | int | float) else str(default)


def _posed_of(
    path: Path | None, published: str | None, *, plans: bool = False
) -> tuple[str, cms.MachineProblem]:
    """Read a problem file, a plan's problem where plans are taken, or find a named problem."""
    if path is not None and published is None:
        return path.name, _read(path, plans=plans)
    if path is not None or published is None:
        raise usage_error("give a problem file, or --published NAME")
    named = load_published(published, cms.NamedProblem, "solve")
    return f"{named.name}: {named.title}", named.make()


def _read(path: Path, *, plans: bool) -> cms.MachineProblem:
    """Read a problem file; for another document of the package, name the command that takes it."""
    kind, document = open_document(path)
    if kind == "cms-plan" and plans:
        return problem_from_json(document.at("problem"))
    others = {
        "cms-plan": ("a plan, which is solved", "", "plan ..."),
        "cms-solution": ("a solution", "problem.json ", "problem solve problem.json"),
    }
    if kind in others:
        what, beside, better = others[kind]
        raise usage_error(
            f"{path} holds {what}; to recheck it: cms check {beside}{path}; to improve on it: "
            f"cms {better} --start {path}"
        )
    return problem_from_json(document)


# -- folders, out of core --------------------------------------------------------------------------


@command(settings=False)
def pack(session: Session, files: list[Path], head: Path, output: Path) -> int:
    """Pack tables of very many jobs into a problem folder.

    'cms problem solve' and 'cms check' take it.
    """
    from cms.files.shards.parquet import parquet_chunks

    refuse_existing(output)
    with session.reading("reading the jobs"):
        kind, document = open_document(head)
        if kind != "cms-problem":
            what = f"holds no problem (its format is {kind!r}); expected a cms-problem without jobs"
            raise usage_error(f"{head} {what}", "--head")
        problem = problem_from_json(document)
        if not isinstance(problem, cms.Problem):
            raise usage_error(f"{head}: its jobs share blocks in time", "--head")
        if problem.n_jobs:
            what = f"has {problem.n_jobs} jobs; expected none: they come from the tables"
            raise usage_error(f"{head} {what}", "--head")
        found = cms.pack(problem, parquet_chunks(files, problem), output)
    said = {"folder": str(output), "jobs": found.n_jobs, "shards": len(found.shards)}
    said["problem_sha256"] = found.stated_sha256()
    jobs, shards = count(found.n_jobs, "job"), count(len(found.shards), "shard")
    next_ = f"next: cms problem solve {output} -o plan"
    session.say(said, f"{output}: {jobs} in {shards}; {next_}\n")
    return Exit.ANSWER


@contextmanager
def _opened(
    path: Path, cluster: str | None = None, journal: Path | None = None, threads: int | None = None
) -> Iterator[cms.ShardedProblem]:
    """Open a problem folder, here or on a cluster, whose workers have threads of their own."""
    with nullcontext(Here(threads)) if cluster is None else cms.cluster(cluster) as engine:
        yield cms.open_problem(path, engine=engine, journal=journal)


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
    with _opened(problem) as posed:
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
