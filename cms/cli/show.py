"""``cms show``: any document in the terminal, as a page, or as an app; two as their difference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .check import RECHECKS_OF_TWO, recheck, say_what_does_not_hold
from .difference import show_difference
from .documents import open_document
from .fleet_file import FleetFile, with_fleet_file
from .fleets import MaxAge
from .live import Browser, Live, Notebook, Port, open_app
from .options import usage_error
from .pages import write_page
from .plan import Gpus, Points, Published, Services
from .progress import CountProgress
from .searching import heard
from .session import Exit, Session, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.report.page import Page
    from cms.fleet.serving.rate_curve import RatePoint
    from cms.schedule.faults import Violation

_File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="A plan, deployment, transition or simulation, a day of shared GPUs, a problem of "
        "co-location, or rows of 'python -m bench' (.jsonl); '-' is standard input.",
    ),
]
_Second = Annotated[
    Path | None,
    typer.Argument(
        metavar="SECOND",
        help="Of a deployment, the one it is to become; of a co-location problem, its solution.",
    ),
]
_Html = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PAGE.html", help="Write it as a page; '-' prints it."),
]
_Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="[default: the file's name]")
]
_Curve = Annotated[
    bool | None,
    typer.Option(
        "--curve/--no-curve",
        help="Plan again at multiples of all rates, 0.5 to 4, within --time-limit in all.  "
        "[default: on a page]",
    ),
]
_ExitCode = Annotated[
    bool,
    typer.Option("--exit-code", help="Of two deployments: exit with 1 unless they are the same."),
]
_ROWS = ".jsonl"
_WITHOUT_A_PAGE = (
    "cms-problem", "cms-solution", "cms-colocation-solution", "cms-predictor",
)  # fmt: skip


@with_fleet_file
def show(
    context: typer.Context,
    file: _File = None,
    second: _Second = None,
    output: _Html = None,
    title: _Title = None,
    curve: _Curve = None,
    exit_code: _ExitCode = False,
    live: Live = False,
    services: Services = None,
    operating_points: Points = None,
    published: Published = None,
    gpu: Gpus = None,
    port: Port = None,
    browser: Browser = True,
    notebook: Notebook = None,
    fleet: FleetFile = None,
    max_age: MaxAge = "15min",
    time_limit: options.TimeLimit = "60",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    picture: options.Picture = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Recheck any document and show it, or write an HTML page.

    Of two deployments it shows what one has to change to become the other. The page fetches
    nothing. With --live the plan is shown in a browser with sliders for rates, limits and GPUs.
    """
    session = session_of(context)
    apart = "services operating_points published gpu port browser notebook"
    if live:
        why = "it goes without --live, which shows a plan in a browser"
        options.refuse_others(context, f"live {apart}", why)
        session.begin(None, quiet=quiet)
        open_app(services, operating_points, published, gpu, port, notebook, browser=browser)
    for name in apart.split():
        if name in options.given_options(context):
            raise usage_error("it goes with --live", f"--{name.replace('_', '-')}")
    if second is None and exit_code:
        raise usage_error("it is for two deployments", "--exit-code")
    if file is None:
        raise usage_error("give a file, or --live to plan in a browser", "FILE")
    if str(output or "") == "-" and json:
        raise usage_error("'-' prints the page, and --json something else; name a file", "--output")
    if curve and output is None and not json:
        raise usage_error("the curve is drawn on a page; add -o PAGE.html, or --json", "--curve")
    session.begin(output, json=json, quiet=quiet)
    session.json = json  # a page goes into a pipe as it is
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers((file, "FILE"), (second, "SECOND"))
    drawn = output is not None if curve is None else curve
    asked = _Asked(
        title or ("report" if str(file) == "-" else file.name), file, second,
        options.time_limit(time_limit) if drawn else 0.0, seed, threads,
    )  # fmt: skip
    code = Exit.ANSWER
    points: Sequence[RatePoint] | str = ()
    with session.reading():
        if file.suffix == _ROWS:
            kind, found, faults = _ROWS, *_rows(asked)
        else:
            kind, document = open_document(file)
            if kind == "cms-deployment" and second is not None:
                to = output, picture
                return show_difference(
                    session, document, second, max_age, to, title, exit_code=exit_code
                )
            found, faults = _rechecked(kind, document, asked)
    if faults:
        return say_what_does_not_hold(session, faults)
    if kind != _ROWS:
        points = _points(session, found, asked)
        found = _page(session, kind, found, asked, points)
    session.quiet = quiet or str(output) == "-"
    session.show(lambda: _said(kind, points), lambda: found, None, picture)
    if output is not None:
        write_page(found, output)
    return Exit.INTERRUPTED if session.interrupts.pressed else code


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
    seconds: float | None
    seed: int
    threads: int | None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files' names, for whoever wants to recheck them."""
        return tuple(str(each) for each in (self.file, self.solution) if each is not None)


def _rechecked(kind: str, document: Parsed, asked: _Asked) -> tuple[Any, list[Violation]]:
    """Read a file and recheck it as ``cms check`` does."""
    if kind == "cms-colocation-problem" and asked.solution is None:
        raise usage_error(
            f"{asked.file} holds a co-location problem alone; give its solution, too: "
            "cms show problem.json share.json -o page.html"
        )
    if asked.solution is not None and kind not in RECHECKS_OF_TWO:
        raise usage_error(
            f"{asked.solution} is for a deployment or co-location problem; {asked.file} holds "
            "none; leave it out"
        )
    if kind in _WITHOUT_A_PAGE:
        raise usage_error(
            f"{asked.file} holds a {kind.removeprefix('cms-').replace('-', ' ')}; a page is made "
            "of a plan, a deployment, a transition, a simulation, a day of shared GPUs, or a "
            "co-location problem and its solution"
        )
    found = recheck(kind, document, asked.solution)
    return found.found, found.faults


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


def _page(
    session: Session, kind: str, found: Any, asked: _Asked, points: Sequence[RatePoint] | str
) -> Page:
    from cms.fleet.report import colocation, deployments, plans, simulations, transitions

    given = found, asked.title, asked.sources[0]
    if kind == "cms-transition":
        own = session.fleet.transition.durations
        return transitions.transition_page(*given, durations=own)
    if kind == "cms-colocation-problem":
        posed, answer = found
        return colocation.colocation_page(posed, answer, asked.title, asked.sources)
    if kind == "cms-simulation":
        return simulations.simulation_page(*given)
    if kind == "cms-colocation-day":
        return simulations.shared_day_page(*given)
    draw = deployments.deployment_page if kind == "cms-deployment" else plans.plan_page
    return draw(*given, points)


def _said(kind: str, points: Sequence[RatePoint] | str) -> dict[str, Any]:
    from cms.files import number_to_json

    return {
        "of": kind,
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
