"""``cms show``: any document in the terminal, as a page, or as an app; two as their difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .check import RECHECKS_OF_TWO, recheck, say_what_does_not_hold
from .difference import differ
from .fleet_file import FleetFile, with_fleet_file
from .fleets import MaxAge
from .live import Browser, Live, Notebook, Port, open_app
from .options import option, usage_error
from .plan import Gpus, Points, Published, Services
from .searching import counted
from .session import Exit, Session, open_document, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.report.page import Page
    from cms.fleet.serving.rate_curve import RatePoint

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
    Path | None, option("PAGE.html", "Write it as a page; '-' prints it.", "--output", "-o")
]
_Title = Annotated[str | None, option("TEXT", "[default: the file's name]")]
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
    alone = " ".join(context.params.keys() - set(apart.split()))
    options.refuse_others(context, alone, "it goes with --live")
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
    how = {"time_limit": options.time_limit(time_limit), "seed": seed, "threads": threads}
    called = title or ("report" if str(file) == "-" else file.name)
    with session.reading():
        from cms.files.documents import parse_document
        from cms.plugin.registry import load_function

        kind = _ROWS
        read: list[Parsed] = []
        if file.suffix == _ROWS:  # those who write such rows make a page of them
            found, faults = load_function("cms.reports", _ROWS.removeprefix("."))(file, called)
        else:
            kind, document = open_document(file)
            if kind == "cms-deployment" and second is not None:
                page, said, is_empty = differ(session, document, second, max_age, title)
                _print(session, lambda: said, page, output, picture)
                return Exit.FAILED if exit_code and not is_empty else Exit.ANSWER
            _refuse_kind(kind, file, second)
            read = [document] if second is None else [document, parse_document(second)]
            found, faults, *_ = recheck(kind, *read)
    if faults:
        return say_what_does_not_hold(session, faults)
    points: Sequence[RatePoint] | str = ()
    if read:
        points = _points(session, found, how) if drawn else ()
        sources = tuple(str(each) for each in (file, second) if each is not None)
        found = _page(session, kind, found, called, sources, points)
    _print(session, lambda: _document(kind, read, points), found, output, picture)
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER


def _print(
    session: Session,
    make: Callable[[], dict[str, Any]],
    page: Page,
    output: Path | None,
    picture: Path | None,
) -> None:
    session.quiet = session.quiet or str(output) == "-"
    session.show(make, lambda: page, None, picture)
    if output is not None:
        from cms.files.source import write_bytes
        from cms.fleet.report.web import html

        write_bytes(html(page).encode(), output)


def _refuse_kind(kind: str, file: Path, second: Path | None) -> None:
    """Refuse documents without a page, and a second one where one is enough."""
    if second is not None and kind not in RECHECKS_OF_TWO:
        raise usage_error(
            f"{second} is for a deployment or co-location problem; {file} holds none; leave it out"
        )
    if kind in _WITHOUT_A_PAGE or (kind in RECHECKS_OF_TWO and second is None):
        raise usage_error(
            f"{file} holds a {kind.removeprefix('cms-').replace('-', ' ')}; a page is made of a "
            "plan, a deployment, a transition, a simulation, a day of shared GPUs, or a "
            "co-location problem and its solution: cms show problem.json share.json -o page.html"
        )


def _points(session: Session, found: object, how: dict[str, Any]) -> Sequence[RatePoint] | str:
    """Plan again at multiples of all rates; in words why not, where that cannot be."""
    from cms.errors import UnsupportedProblem
    from cms.fleet.serving import Plan
    from cms.fleet.serving.rate_curve import rate_curve

    plan = getattr(found, "plan", found)  # a deployment's, if it has one
    if not isinstance(plan, Plan) or plan.solution.cost is None:
        return ()
    how["cancel"] = session.interrupts.cancel
    try:  # a page is worth it with the points there are
        return counted(
            session,
            "multiples of all rates",
            lambda progress: rate_curve(plan, **how, on_point=progress),
            patient=True,
        )
    except UnsupportedProblem as fault:
        return f"Not drawn: {fault}."


def _page(
    session: Session,
    kind: str,
    found: Any,
    title: str,
    sources: tuple[str, ...],
    points: Sequence[RatePoint] | str,
) -> Page:
    from cms.fleet.report import colocation, deployments, plans, simulations, transitions

    given = found, title, sources[0]
    if kind == "cms-transition":
        own = session.fleet.transition.durations
        return transitions.transition_page(*given, durations=own)
    if kind == "cms-colocation-problem":
        posed, answer = found
        return colocation.colocation_page(posed, answer, title, sources)
    if kind == "cms-simulation":
        return simulations.simulation_page(*given)
    if kind == "cms-colocation-day":
        return simulations.shared_day_page(*given)
    draw = deployments.deployment_page if kind == "cms-deployment" else plans.plan_page
    return draw(*given, points)


def _document(
    kind: str, read: Sequence[Parsed], points: Sequence[RatePoint] | str
) -> dict[str, Any]:
    """Return what is shown: the documents as they are in their files, and the curve."""
    from cms.files import number_to_json

    documents = (loads(each.source.text) for each in read)
    return {
        "of": kind,
        **dict(zip(("document", "solution"), documents, strict=False)),
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
