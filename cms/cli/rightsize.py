"""``cms rightsize``: which rate or limit, relaxed least, saves a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .plans import read_rechecked
from .progress import CountProgress
from .published import load_published
from .searching import heard
from .session import Exit, refuse_two_readers, report_error, session_of

if TYPE_CHECKING:
    from cms.fleet.report.page import Page
    from cms.fleet.serving import LoadCurve, OperatingPoint, Plan
    from cms.fleet.serving.load_curve import PointKey
    from cms.fleet.what_if import Rightsizing

_Plan = Annotated[
    Path, typer.Argument(metavar="plan.json", help="A plan file; '-' is standard input.")
]
_Points = Annotated[
    Path | None,
    typer.Option(
        "--operating-points", "-p", metavar="P.csv",
        help="The table that the plan was made from: without it only rates are looked at.",
    ),
]  # fmt: skip
_Published = Annotated[
    str | None,
    typer.Option(
        "--published", metavar="NAME",
        help="In place of the table, of a plan of a published scenario: S1 to S6.",
    ),
]  # fmt: skip
_LoadCurves = Annotated[
    Path | None,
    typer.Option(
        "--load-curves", metavar="C.csv", help="The load curves, if the plan was made with any."
    ),
]
_Services = Annotated[
    list[str] | None,
    typer.Option(
        "--service", metavar="SERVICE", help="Look at this one; may be repeated.  [default: all]"
    ),
]
_To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="COST",
        help="The cost that is wanted.  [default: the next one below the plan's: one GPU less]",
    ),
]  # fmt: skip


def rightsize(
    context: typer.Context,
    plan: _Plan,
    operating_points: _Points = None,
    published: _Published = None,
    load_curves: _LoadCurves = None,
    service: _Services = None,
    to: _To = None,
    time_limit: options.TimeLimit = "60",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Find the least change of a rate or limit that saves a GPU.

    Each answer is proved from both sides, or it says that it is not: a checked plan with the
    relaxation, and a checked certificate that anything short of it needs the GPU.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
    refuse_two_readers(
        (plan, "plan.json"),
        (operating_points, "--operating-points"),
        (load_curves, "--load-curves"),
    )
    if published is not None and (operating_points or load_curves):
        raise options.usage_error("give --published or the tables, not both")
    seconds = options.time_limit(time_limit)
    with session.reading():
        made = read_rechecked(session, plan, "rightsized")
        if isinstance(made, int):
            return made
        if made.solution.cost is None:
            report_error(
                f"{plan}: the plan has no schedule, so that there is nothing to save",
                Exit.NO_SCHEDULE, as_json=session.json,
            )  # fmt: skip
            return Exit.NO_SCHEDULE
        points, curves = _measured(made, operating_points, published, load_curves)
    progress = CountProgress(
        None if session.quiet or session.json else sys.stderr, what="rates and limits"
    )

    def search() -> Rightsizing:
        from cms.fleet.what_if import rightsize as rightsized

        return rightsized(
            made, points, load_curves=curves, services=service, to=to, time_limit=seconds,
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
    plan: Plan, points: Path | None, published: str | None, load_curves: Path | None
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
    return read_operating_points(points), curves
