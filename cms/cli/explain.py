"""``cms explain``: why a plan serves a service so, and what would save a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .check import recheck, say_what_does_not_hold
from .documents import open_document
from .fleet_file import FleetFile, with_fleet_file
from .plan import LoadCurves, Points, Published
from .progress import CountProgress
from .published import load_published
from .searching import heard
from .session import Exit, Session, refuse_two_readers, report_error, session_of

if TYPE_CHECKING:
    from cms.fleet.report.page import Page
    from cms.fleet.serving import LoadCurve, OperatingPoint, Plan
    from cms.fleet.serving.load_curve import PointKey
    from cms.fleet.what_if import Rightsizing

_Plan = Annotated[
    Path, typer.Argument(metavar="plan.json", help="A plan file; '-' is standard input.")
]
_Service = Annotated[
    str | None,
    typer.Argument(
        metavar="SERVICE",
        help="Why it is served so.  [default: what would save a GPU, of all services]",
    ),
]
_To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="COST",
        help="The cost that is wanted.  [default: the next one below the plan's: one GPU less]",
    ),
]  # fmt: skip


@with_fleet_file
def explain(
    context: typer.Context,
    plan: _Plan,
    service: _Service = None,
    operating_points: Points = None,
    published: Published = None,
    load_curves: LoadCurves = None,
    to: _To = None,
    fleet: FleetFile = None,
    time_limit: options.TimeLimit = "60",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Explain a plan: why it serves so, and what would save a GPU.

    Of a SERVICE it says what each other choice of instances costs at least: exact reduced costs of
    the plan's certificate, which is rechecked. Without one it looks for the least change of a rate
    or, with the tables that the plan was made from, a limit that saves a GPU, proved from both
    sides, or it says that it is not.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
    refuse_two_readers(
        (plan, "plan.json"), (operating_points, "--operating-points"),
        (load_curves, "--load-curves"),
    )  # fmt: skip
    seconds = options.time_limit(time_limit)
    given = options.given_options(context)  # the tables of fleet.toml may not be the plan's
    operating_points = operating_points if "operating_points" in given else None
    load_curves = load_curves if "load_curves" in given else None
    if service is not None:
        options.refuse_others(context, "plan service output", "it goes without a SERVICE")
        return _explain(session, plan, service, output)
    if published is not None and (operating_points or load_curves):
        raise options.usage_error("give --published or the tables, not both")
    with session.reading():
        made = read_rechecked(session, plan, "explained")
        if isinstance(made, int):
            return made
        if made.solution.cost is None:
            report_error(
                f"{plan}: the plan has no schedule, so that there is nothing to save",
                Exit.NO_SCHEDULE, as_json=session.json,
            )  # fmt: skip
            return Exit.NO_SCHEDULE
        points, curves = _measured(made, operating_points, published, load_curves, session.columns)
    progress = CountProgress(
        None if session.quiet or session.json else sys.stderr, what="rates and limits"
    )

    def search() -> Rightsizing:
        from cms.fleet.what_if import rightsize as rightsized

        return rightsized(
            made, points, load_curves=curves, to=to, time_limit=seconds,
            seed=seed, threads=threads, cancel=session.interrupts.cancel, on_step=progress,
        )  # fmt: skip

    try:
        found = heard(session, search, patient=lambda: True)
    finally:
        progress.end()

    def view() -> Page:
        from cms.fleet.report.what_if import rightsized_page

        return rightsized_page(found, made, plan.name)

    from cms.fleet.what_if.documents import rightsizing_to_json

    session.show(lambda: rightsizing_to_json(found), view, output)
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER


def _measured(
    plan: Plan,
    points: Path | None,
    published: str | None,
    load_curves: Path | None,
    columns: dict[str, str],
) -> tuple[Iterable[OperatingPoint] | None, Mapping[PointKey, LoadCurve] | None]:
    """All that was measured, as far as it is given."""
    from cms.fleet.serving import Scenario, read_load_curves, read_operating_points

    if published is not None:
        scenario = load_published(published, Scenario, "plan")
        return scenario.operating_points, scenario.curves_for(plan.unshared("rightsizing").rule)
    if points is None:
        if load_curves is not None:
            raise options.usage_error(
                "they are of operating points: give these, too", "--load-curves"
            )
        return None, None
    curves = None if load_curves is None else read_load_curves(load_curves)
    rule = plan.unshared("rightsizing").rule
    if curves is None and getattr(rule, "curves", None):
        raise options.usage_error(
            "the plan was made with load curves, and keeps those of the points in use alone; give "
            "the table: --load-curves C.csv"
        )
    return read_operating_points(points, columns), curves


def _explain(session: Session, path: Path, service: str, output: Path | None) -> int:
    with session.reading():
        found = read_rechecked(session, path, "explained")
    if isinstance(found, int):
        return found
    from cms.fleet.what_if.documents import explanation_to_json
    from cms.fleet.what_if.explaining import explain as explained

    answer = heard(session, lambda: explained(found, service), doing="pricing the choices")

    def view() -> Page:
        from cms.fleet.report.what_if import explained_page

        return explained_page(answer, found, path.name)

    session.show(lambda: explanation_to_json(answer), view, output)
    return session.code_of(found.answer)


def read_rechecked(session: Session, path: Path, done: str) -> Plan | int:
    """Read a plan file and recheck it as ``cms check`` does."""
    kind, document = open_document(path)
    if kind == "cms-deployment":
        raise options.usage_error(
            f"{path} holds a deployment, and plans are {done}: give the plan that 'cms plan -o' "
            "wrote"
        )
    found = recheck("cms-plan", document)
    if found.faults:
        return say_what_does_not_hold(session, found.faults)
    plan: Plan = found.found
    if plan.answer.status == "infeasible":
        report_error(
            f"{path}: the plan is infeasible, so that nothing can be {done}; 'cms plan' says why, "
            "and sufficient changes",
            Exit.INFEASIBLE, as_json=session.json, kind="Infeasible",
        )  # fmt: skip
        return Exit.INFEASIBLE
    return plan
