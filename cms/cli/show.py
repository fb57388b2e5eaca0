"""``cms show``: any document in the terminal, as a page, or as an app; two as their difference."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import cms.fleet
from cms.files.source import write_bytes

from . import options
from .catalogue import find_gpu, load_published
from .check import RECHECKS_OF_TWO, recheck, say_what_does_not_hold
from .command import command
from .fleets import deployment_of, read_fleet, refuse_stale
from .options import File, Text, Texts, usage_error
from .searching import counted
from .session import Exit, Session, open_document

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.report.page import Page
    from cms.fleet.serving.rate_curve import RatePoint

_ROWS = ".jsonl"
_WITHOUT_A_PAGE = (
    "cms-problem", "cms-solution", "cms-colocation-solution", "cms-predictor",
)  # fmt: skip


@command()
def show(
    session: Session,
    file: File = None,
    second: File = None,
    output: File = None,
    title: Text = None,
    curve: bool | None = None,
    exit_code: bool = False,
    live: bool = False,
    services: File = None,
    operating_points: File = None,
    published: Text = None,
    gpu: Texts = None,
    port: int | None = None,
    browser: bool = True,
    notebook: File = None,
    max_age: str = "15min",
    time_limit: str = "60",
    seed: int = 0,
    threads: int | None = None,
    picture: File = None,
) -> int:
    """Recheck any document and show it, or write an HTML page.

    Of two deployments it shows what one has to change to become the other. The page fetches
    nothing. With --live the plan is shown in a browser with sliders for rates, limits and GPUs.
    """
    json = session.json
    apart = "services operating_points published gpu port browser notebook"
    if live:
        why = "it goes without --live, which shows a plan in a browser"
        options.refuse_others(session.context, f"live {apart}", why)
        _open_app(services, operating_points, published, gpu, port, notebook, browser=browser)
    alone = " ".join(session.context.params.keys() - set(apart.split()))
    options.refuse_others(session.context, alone, "it goes with --live")
    if second is None and exit_code:
        raise usage_error("it is for two deployments", "--exit-code")
    if file is None:
        raise usage_error("give a file, or --live to plan in a browser", "FILE")
    if str(output or "") == "-" and json:
        raise usage_error("'-' prints the page, and --json something else; name a file", "--output")
    if curve and output is None and not json:
        raise usage_error("the curve is drawn on a page; add -o PAGE.html, or --json", "--curve")
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
                page, said, is_empty = _differ(session, document, second, max_age, title)
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


def _differ(
    session: Session, document: Parsed, target: Path, max_age: str, title: str | None
) -> tuple[Page, dict[str, Any], bool]:
    """Return what is kept, restarted, created and deleted; whether nothing changes."""
    from cms.fleet.deployment import difference
    from cms.fleet.deployment.difference import join_services
    from cms.fleet.deployment.observation.devices import renumber_gpus
    from cms.fleet.deployment.verifying import settle_guesses
    from cms.fleet.report.deployments import difference_page

    before, after = deployment_of(document), read_fleet(target)
    before, after = renumber_gpus(before, after), renumber_gpus(after, before)
    refuse_stale(session, before, max_age, written=True)
    found = difference(settle_guesses(before, after), after)
    both = replace(after, services=join_services(after, before), plan=None)  # all have colours
    names = f"{Path(document.source.name).name} -> {target.name}"
    alone = "kept", "created", "deleted", "foreign"
    said = {
        "is_empty": found.is_empty,
        "counts": {"gpus_that_change": len(found.touched), **found.counts},
        "gpus": [
            {
                "gpu": each.now.name,
                "mode": [each.now.mode.value, each.then.mode.value],
                "restarted": [[str(one), str(other)] for one, other in each.restarted],
            }
            | {what: [*map(str, getattr(each, what))] for what in alone}
            for each in found.touched
        ],
        "untouched": [each.now.name for each in found.gpus if each.is_untouched],
    }
    return difference_page(found, both, title or names), said, found.is_empty


# -- the app ---------------------------------------------------------------------------------------


def _open_app(
    services: Path | None,
    operating_points: Path | None,
    published: str | None,
    gpu: list[str] | None,
    port: int | None,
    notebook: Path | None,
    *,
    browser: bool,
) -> NoReturn:
    """Become the app: for whoever has the address with its token, until Ctrl-C."""
    if importlib.util.find_spec("marimo") is None:
        raise usage_error("--live needs marimo, an extra: pip install '.[explore]'")
    from cms.fleet import explore as room

    given = {
        "services": services and services.resolve(),
        "operating-points": operating_points and operating_points.resolve(),
        "published": published,
        "gpu": [_found(name) for name in gpu or ()],
    }
    if published is not None:
        if services or operating_points:
            raise usage_error("give --published or the two files, not both")
        load_published(published, cms.fleet.Scenario, "plan")
    room.read_scenario(given)  # what is wrong with the tables is said here, not in the browser
    app = Path(room.__file__).with_name("app.py")
    how = ["run", str(app)]
    if notebook is not None:
        how = ["edit", str(_copied(app, notebook).absolute())]
    words = [sys.executable, "-P", "-m", f"{room.__name__}.server", "--yes", *how]
    words += ["--host", "127.0.0.1"]
    words += [] if port is None else ["--port", str(port)]
    words += ["--"] if browser else ["--headless", "--"]
    for name, value in given.items():
        for each in value if isinstance(value, list) else [value] if value is not None else []:
            words += [f"--{name}", str(each)]
    sys.stdout.flush()
    os.environ["MARIMO_SKIP_UPDATE_CHECK"] = "1"
    os.execv(sys.executable, words)  # it alone hears Ctrl-C


def _found(name: str) -> str:
    """Check a GPU's name; a device file by its whole path."""
    from cms.fleet.hardware.catalogue import is_device_file

    find_gpu(name, "--gpu")
    return str(Path(name).resolve()) if is_device_file(name) else name


def _copied(app: Path, notebook: Path) -> Path:
    """Copy the app to where the user wants it, unless something is there."""
    if notebook.suffix != ".py":
        raise usage_error(f"{notebook}: expected a name that ends in .py", "--notebook")
    if not notebook.exists():
        write_bytes(app.read_bytes(), notebook)
    return notebook
