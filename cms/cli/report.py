"""``cms report``: a file as a page that a browser shows, all of it in one file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .check import fault_lines
from .documents import open_document
from .options import usage_error
from .progress import CountProgress
from .rechecking import (
    recheck_deployment,
    recheck_plan,
    recheck_sharing,
    recheck_simulation,
    recheck_transition,
)
from .searching import heard
from .session import Exit, Session, refuse_two_readers, session_of
from .transition import DurationsFile

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.report.page import Page
    from cms.fleet.serving.rate_curve import RatePoint
    from cms.schedule.faults import Violation

_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A plan, deployment, transition or simulation, a day of shared GPUs, a problem of "
        "sharing, or rows of 'python -m bench' (.jsonl); '-' is standard input.",
    ),
]
_Solution = Annotated[
    Path | None, typer.Argument(metavar="[SOLUTION]", help="Of a problem of sharing, its solution.")
]
_Html = Annotated[
    Path, typer.Option("--output", "-o", metavar="PAGE.html", help="The page; '-' prints it.")
]
_Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="[default: the file's name]")
]
_Curve = Annotated[
    bool,
    typer.Option(
        "--curve/--no-curve", help="Plan again at multiples of all rates, 0.5 to 4, and draw that."
    ),
]
_TimeLimit = Annotated[
    str,
    typer.Option(
        "--time-limit", metavar="SECONDS",
        help="For planning again at all multiples together; 'none' for no limit.",
    ),
]  # fmt: skip
_ROWS = ".jsonl"
_WITHOUT_A_PAGE = (
    "cms-problem", "cms-solution", "cms-sharing-solution", "cms-predictor",
)  # fmt: skip


def report(
    context: typer.Context,
    file: _File,
    output: _Html,
    solution: _Solution = None,
    title: _Title = None,
    curve: _Curve = True,
    time_limit: _TimeLimit = "60",
    durations: DurationsFile = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Recheck a file and write it as one HTML page.

    The page fetches nothing.

    Plans, and deployments with one, are planned again at multiples of all rates, each point proved.
    """
    session = session_of(context)
    to_pipe = str(output) == "-"
    if to_pipe and json:
        raise usage_error("'-' prints the page, and --json something else; name a file", "--output")
    session.begin(output, json=json, quiet=quiet)
    session.json = json  # a page goes into a pipe as it is
    session.refuse_unwritable((output, "--output"))
    refuse_two_readers((file, "FILE"), (solution, "SOLUTION"), (durations, "--durations"))
    asked = _Asked(
        title or ("report" if str(file) == "-" else file.name), file, solution, durations,
        options.time_limit(time_limit) if curve else 0.0, seed, threads,
    )  # fmt: skip
    with session.reading():
        if file.suffix == _ROWS:
            kind, found, faults = _ROWS, *_rows(asked)
        else:
            kind, document = open_document(file)
            found, faults = _rechecked(kind, document, asked)
    if faults:
        said = {
            "valid": False,
            "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
        }
        if session.json:
            session.print_json(lambda: said)
        elif not quiet:
            session.print_text(fault_lines("not valid", faults))
        return Exit.FAILED
    points = _points(session, found, asked)
    made = found if kind == _ROWS else _page(kind, found, asked, points)
    return _write(session, kind, made, points, output)


def _rows(asked: _Asked) -> tuple[Page, list[Violation]]:
    """Let those who write such rows make a page of them, or say what is wrong."""
    from cms.plugin.registry import load_function

    found: tuple[Page, list[Violation]] = load_function("cms.reports", _ROWS.removeprefix("."))(
        asked.file, asked.title
    )
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line says."""

    title: str
    file: Path
    solution: Path | None
    durations: Path | None
    seconds: float | None
    seed: int
    threads: int | None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files' names, for whoever wants to recheck them."""
        return tuple(str(each) for each in (self.file, self.solution) if each is not None)


def _rechecked(kind: str, document: Parsed, asked: _Asked) -> tuple[Any, list[Violation]]:
    """Read a file and recheck it as ``cms check`` does."""
    from cms.files.documents import parse_document

    if kind == "cms-sharing-problem":
        if asked.solution is None:
            raise usage_error(
                f"{asked.file} holds a problem of sharing alone; give its solution, too: "
                "cms report problem.json share.json -o page.html"
            )

        posed, answer, faults = recheck_sharing(document, parse_document(asked.solution))
        return (posed, answer), faults
    if asked.solution is not None:
        raise usage_error(
            f"{asked.solution} is for a problem of sharing, and {asked.file} holds none; leave it "
            "out"
        )
    if kind == "cms-deployment":
        return recheck_deployment(document)
    if kind == "cms-transition":
        return recheck_transition(document)
    if kind == "cms-simulation":
        return recheck_simulation(document)
    if kind == "cms-shared-day":
        from cms.fleet.simulation.sharing_loop.result import shared_day_from_json

        return shared_day_from_json(document), []  # its reader recounts all that follows
    if kind in _WITHOUT_A_PAGE:
        raise usage_error(
            f"{asked.file} holds a {kind.removeprefix('cms-').replace('-', ' ')}; a page is made "
            "of a plan, a deployment, a transition, a simulation, a day of shared GPUs, or a "
            "problem of sharing and its solution"
        )
    plan, _, faults = recheck_plan(document)
    return plan, faults


def _points(session: Session, found: object, asked: _Asked) -> Sequence[RatePoint] | str:
    """Plan again at multiples of all rates; in words why not, where that cannot be."""
    from cms.errors import UnsupportedProblem
    from cms.fleet.serving import Plan
    from cms.fleet.serving.rate_curve import rate_curve

    plan = getattr(found, "plan", found)  # a deployment's, if it has one
    if not isinstance(plan, Plan) or plan.solution.cost is None or asked.seconds == 0:
        return ()
    progress = CountProgress(
        None if session.quiet or session.json else sys.stderr, what="multiples of all rates"
    )
    try:
        return heard(
            session,
            lambda: rate_curve(
                plan, time_limit=asked.seconds, seed=asked.seed, threads=asked.threads,
                cancel=session.interrupts.cancel, on_point=progress,
            ),
            patient=lambda: True,  # the page is worth it, with the points there are
        )  # fmt: skip
    except UnsupportedProblem as fault:
        return f"Not drawn: {fault}."
    finally:
        progress.end()


def _page(kind: str, found: Any, asked: _Asked, points: Sequence[RatePoint] | str) -> Page:
    source = asked.sources[0]
    if kind == "cms-plan":
        from cms.fleet.report.plans import plan_page

        return plan_page(found, asked.title, source, points)
    if kind == "cms-deployment":
        from cms.fleet.report.deployments import deployment_page

        return deployment_page(found, asked.title, source, points)
    if kind == "cms-transition":
        from cms.fleet.deployment.transition import read_durations
        from cms.fleet.report.transitions import transition_page

        own = None if asked.durations is None else read_durations(asked.durations)
        return transition_page(found, asked.title, source, durations=own)
    if kind == "cms-simulation":
        from cms.fleet.report.simulations import simulation_page

        return simulation_page(found, asked.title, source)
    if kind == "cms-shared-day":
        from cms.fleet.report.simulations import shared_day_page

        return shared_day_page(found, asked.title, source)
    from cms.fleet.report.sharing import sharing_page

    posed, answer = found
    return sharing_page(posed, answer, asked.title, asked.sources)


def _write(
    session: Session, kind: str, page: Page, points: Sequence[RatePoint] | str, output: Path
) -> int:
    from cms.files import number_to_json
    from cms.files.source import write_bytes
    from cms.fleet.report.web import html

    text = html(page).encode("utf-8")
    write_bytes(text, output)
    said: Mapping[str, Any] = {
        "page": str(output),
        "of": kind,
        "bytes": len(text),
        "curve": [
            {
                "rate": number_to_json(each.rate),
                "cost": None if each.cost is None else number_to_json(each.cost),
                "lower_bound": number_to_json(each.bound),
                "status": each.status.value,
            }
            for each in points
            if not isinstance(each, str)
        ],
    }
    if session.json:
        session.print_json(lambda: said)
    elif not session.quiet and str(output) != "-":
        session.print_text(f"{output}: {len(text):,} bytes, rechecked before they were drawn\n")
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER
