"""``cms show``: any document in the terminal, as a page, or as an app; two as their difference."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import cms.fleet
from cms.errors import UnsupportedProblem
from cms.files import Parsed, number_to_json
from cms.files.documents import parse_document
from cms.files.source import write_bytes
from cms.plugin.registry import load_function

from . import options
from .check import OF_TWO, recheck, say_what_does_not_hold
from .command import command
from .fleets import read_fleet, refuse_stale
from .options import File, Text, Texts, find_gpu, load_published, usage_error
from .searching import counted
from .session import Exit, Session, open_document

if TYPE_CHECKING:
    from cms.fleet.report.page import Page
    from cms.fleet.serving.rate_curve import RatePoint

_ROWS = ".jsonl"
_WITHOUT_A_PAGE = (
    "cms-problem", "cms-solution", "cms-colocation-solution", "cms-predictor",
)  # fmt: skip


@dataclass(kw_only=True)
class AppOptions(options.OptionGroup):
    """What the app in a browser plans to begin with, and how it is shown."""

    live: bool = False
    services: File = None
    operating_points: File = None
    published: Text = None
    gpu: Texts = None
    port: int | None = None
    browser: bool = True
    notebook: File = None

    def start(self) -> NoReturn:
        """Become the app: for whoever has the address with its token, until Ctrl-C."""
        if importlib.util.find_spec("marimo") is None:
            raise usage_error("--live needs marimo, an extra: pip install '.[explore]'")
        from cms.fleet import explore as room
        from cms.fleet.hardware.catalogue import is_device_file

        for name in self.gpu or ():
            find_gpu(name, "--gpu")
        given = {
            "services": self.services and self.services.resolve(),
            "operating-points": self.operating_points and self.operating_points.resolve(),
            "published": self.published,
            "gpu": [
                str(Path(name).resolve()) if is_device_file(name) else name
                for name in self.gpu or ()
            ],
        }
        if self.published is not None:
            if self.services or self.operating_points:
                raise usage_error("give --published or the two files, not both")
            load_published(self.published, cms.fleet.Scenario, "plan")
        room.read_scenario(given)  # what is wrong with the tables is said here, not in the browser
        app, own = Path(room.__file__).with_name("app.py"), self.notebook
        how = ["run", str(app)]
        if own is not None:
            if own.suffix != ".py":
                raise usage_error(f"{own}: expected a name that ends in .py", "--notebook")
            if not own.exists():
                write_bytes(app.read_bytes(), own)
            how = ["edit", str(own.absolute())]
        words = [sys.executable, "-P", "-m", f"{room.__name__}.server", "--yes", *how]
        words += ["--host", "127.0.0.1"]
        words += [] if self.port is None else ["--port", str(self.port)]
        words += ["--"] if self.browser else ["--headless", "--"]
        for name, value in given.items():
            for each in value if isinstance(value, list) else [value] if value is not None else []:
                words += [f"--{name}", str(each)]
        sys.stdout.flush()
        os.environ["MARIMO_SKIP_UPDATE_CHECK"] = "1"
        os.execv(sys.executable, words)  # it alone hears Ctrl-C


@command()
def show(
    session: Session,
    *,
    file: File = None,
    second: File = None,
    output: File = None,
    title: Text = None,
    curve: bool | None = None,
    exit_code: bool = False,
    app: AppOptions,
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
    json, own = session.json, {each.name for each in fields(AppOptions)}
    if app.live:
        why = "it goes without --live, which shows a plan in a browser"
        options.refuse_others(session.context, " ".join(own), why)
        app.start()
    others = session.context.params.keys() - own
    options.refuse_others(session.context, " ".join(others), "it goes with --live")
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
    kind, read, said = _ROWS, list[Parsed](), dict[str, Any]()
    with session.reading():
        if file.suffix == _ROWS:  # those who write such rows make a page of them
            found, faults = load_function("cms.reports", _ROWS.removeprefix("."))(file, called)
        else:
            kind, document = open_document(file)
            if kind == "cms-deployment" and second is not None:
                found, said = _differ(session, document, second, max_age, title)
                faults = []
            else:
                _refuse_kind(kind, file, second)
                read = [document] if second is None else [document, parse_document(second)]
                found, faults, *_ = recheck(kind, *read)
    if faults:
        return say_what_does_not_hold(session, faults)
    points: Sequence[RatePoint] | str = _points(session, found, how) if read and drawn else ()
    if read:
        sources = str(file) if second is None else (str(file), str(second))
        found = _page_of(session, kind, points)(found, called, sources)
    session.quiet = session.quiet or str(output) == "-"
    session.show(lambda: said or _document(kind, read, points), lambda: found, None, picture)
    if output is not None:
        from cms.fleet.report.web import html

        write_bytes(html(found).encode(), output)
    if exit_code and said and not said["is_empty"]:
        return Exit.FAILED
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER


def _refuse_kind(kind: str, file: Path, second: Path | None) -> None:
    """Refuse documents without a page, and a second one where one is enough."""
    if second is not None and kind not in OF_TWO:
        raise usage_error(
            f"{second} is for a deployment or co-location problem; {file} holds none; leave it out"
        )
    if kind in _WITHOUT_A_PAGE or (kind in OF_TWO and second is None):
        raise usage_error(
            f"{file} holds a {kind.removeprefix('cms-').replace('-', ' ')}; a page is made of a "
            "plan, a deployment, a transition, a simulation, a day of shared GPUs, or a "
            "co-location problem and its solution: cms show problem.json share.json -o page.html"
        )


def _points(session: Session, found: object, how: dict[str, Any]) -> Sequence[RatePoint] | str:
    """Plan again at multiples of all rates; in words why not, where that cannot be."""
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


def _page_of(session: Session, kind: str, points: Sequence[RatePoint] | str) -> Callable[..., Page]:
    """Return what makes a page of a kind of document, its title and its file."""
    from cms.fleet.report import colocation, deployments, plans, simulations, transitions

    own = session.fleet.transition.durations
    pages: dict[str, Callable[..., Page]] = {
        "cms-plan": partial(plans.plan_page, curve=points),
        "cms-deployment": partial(deployments.deployment_page, curve=points),
        "cms-transition": partial(transitions.transition_page, durations=own),
        "cms-simulation": simulations.simulation_page,
        "cms-colocation-day": simulations.shared_day_page,
        "cms-colocation-problem": lambda both, *more: colocation.colocation_page(*both, *more),
    }
    return pages[kind]


def _document(
    kind: str, read: Sequence[Parsed], points: Sequence[RatePoint] | str
) -> dict[str, Any]:
    """Return what is shown: the documents as they are in their files, and the curve."""
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
) -> tuple[Page, dict[str, Any]]:
    """Return what is kept, restarted, created and deleted, as a page and as JSON."""
    from cms.fleet.deployment.difference import difference, join_services
    from cms.fleet.deployment.observation.devices import renumber_gpus
    from cms.fleet.deployment.observation.sources import read_possible
    from cms.fleet.deployment.verifying import settle_guesses
    from cms.fleet.report.deployments import difference_page

    before, after = read_possible(document), read_fleet(target)
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
    return difference_page(found, both, title or names), said
