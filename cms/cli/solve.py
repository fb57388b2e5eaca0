"""``cms problem solve`` and ``program``: an abstract problem, without GPUs and services."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import cms
from cms.files import number_to_json, problem_from_json, solution_to_json
from cms.values.words import count, decimal

from . import options, shards
from .catalogue import load_published, names_of
from .options import File, Text, offering, option, usage_error
from .searching import Search, lacking, search
from .session import Exit, open_document, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.fleet.report.page import Page


def _problems() -> Iterable[str]:
    return names_of(cms.NamedProblem)


Published = Annotated[
    Text, option("NAME", "A named problem of the theory.", autocompletion=offering(_problems))
]


def solve(
    context: typer.Context,
    problem: Annotated[
        File,
        typer.Argument(
            metavar="problem.json", help="The problem, or its folder; '-' is standard input."
        ),
    ] = None,
    published: Published = None,
    method: options.Method = "auto",
    option: options.MethodOptions = None,
    time_limit: options.TimeLimit = "60",
    gap: options.Gap = "0",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    start: options.Start = None,
    cluster: shards.Cluster = None,
    journal: shards.Journal = None,
    picture: options.Picture = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Solve a problem file or folder, with a proved bound."""
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    is_folder = problem is not None and problem.is_dir()
    if is_folder and "time_limit" not in options.given_options(context):
        time_limit = "none"  # it takes what it takes: minutes for 100 million jobs
    how = Search(method, option, time_limit, gap, seed, threads, start)
    if problem is not None and is_folder:
        heeded = "problem method option time_limit gap cluster journal output"
        options.refuse_others(context, heeded, "it does not go with a problem folder")
        return shards.solve_folder(session, problem, how, output, cluster, journal)
    for value, name in ((cluster, "--cluster"), (journal, "--journal")):
        if value is not None:
            raise usage_error("is for problem folders, as cms problem pack writes them", name)
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers((problem, "problem.json"), (start, "--start"))
    with session.reading():
        title, posed = _posed_of(problem, published)
    solution = search(session, posed, how, counted="cost")
    shown = session.json or not quiet or (output, picture) != (None, None)
    short_of = lacking(session, posed, solution, how) if shown else None

    def view() -> Page:
        from cms.fleet.report.problems import solved_page

        return solved_page(posed, solution, title, short_of)

    session.show(lambda: solution_to_json(solution, short_of), view, output, picture)
    return session.code_of(solution)


def program(
    context: typer.Context,
    output: Annotated[Path, option("FILE.mps|FILE.lp", "Where it is written.", "--output", "-o")],
    file: Annotated[
        File,
        typer.Argument(
            metavar="FILE", help="A problem, or a plan of 'cms plan'; '-' is standard input."
        ),
    ] = None,
    published: Published = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write a problem as an integer program for other solvers.

    It is MPS or LP by the file's ending. The head of the file says what its variables and rows
    stand for.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
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
