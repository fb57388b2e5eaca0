"""``cms explain``: why a plan serves a service so, and what would save a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import cms.fleet

from . import options
from .check import recheck, say_what_does_not_hold
from .command import command
from .options import File, Text, load_published, usage_error
from .searching import counted, heard
from .session import Exit, Session, open_document, report_error

if TYPE_CHECKING:
    from cms.fleet.serving.load_curve import PointKey


@command()
def explain(
    session: Session,
    plan: Path,
    service: Text = None,
    operating_points: File = None,
    published: Text = None,
    load_curves: File = None,
    to: Text = None,
    time_limit: str = "60",
    seed: int = 0,
    threads: int | None = None,
    output: File = None,
) -> int:
    """Explain a plan: why it serves so, and what would save a GPU.

    Of a SERVICE it says what each other choice of instances costs at least: exact reduced costs of
    the plan's certificate, which is rechecked. Without one it looks for the least change of a rate
    or, with the tables that the plan was made from, a limit that saves a GPU, proved from both
    sides, or it says that it is not.
    """
    seconds = options.time_limit(time_limit)
    given = options.given_options(session.context)  # the tables of fleet.toml may not be the plan's
    operating_points = operating_points if "operating_points" in given else None
    load_curves = load_curves if "load_curves" in given else None
    if service is not None:
        options.refuse_others(session.context, "plan service output", "it goes without a SERVICE")
    elif published is not None and (operating_points or load_curves):
        raise usage_error("give --published or the tables, not both")
    with session.reading():
        checked = recheck("cms-plan", open_document(plan)[1])
    if checked.faults:
        return say_what_does_not_hold(session, checked.faults)
    made: cms.fleet.Plan = checked.found
    if made.answer.status == "infeasible":
        what = f"{plan}: the plan is infeasible, so that nothing can be explained; "
        what += "'cms plan' says why, and sufficient changes"
        return report_error(what, Exit.INFEASIBLE, as_json=session.json, kind="Infeasible")
    from cms.fleet.report.what_if import explained_page, rightsized_page
    from cms.fleet.what_if.rightsizing import WANTED, explanation_to_json, rightsizing_to_json

    if service is not None:
        why = heard(session, lambda: cms.fleet.explain(made, service), doing="pricing the choices")
        session.show(
            lambda: explanation_to_json(why), lambda: explained_page(why, made, plan.name), output
        )
        return session.code_of(made.answer)
    if made.solution.cost is None:
        what = f"{plan}: the plan has no schedule, so that there is nothing to save"
        return report_error(what, Exit.NO_SCHEDULE, as_json=session.json)
    points: Iterable[cms.fleet.OperatingPoint] | None = None
    curves: Mapping[PointKey, cms.fleet.LoadCurve] | None = None
    with session.reading():
        if published is not None:
            scenario = load_published(published, cms.fleet.Scenario, "plan")
            points = scenario.operating_points
            curves = scenario.curves_for(made.unshared(WANTED).rule)
        elif operating_points is not None:
            if load_curves is not None:
                curves = cms.fleet.read_load_curves(load_curves)
            elif getattr(made.unshared(WANTED).rule, "curves", None):
                raise usage_error(
                    "the plan was made with load curves, and keeps those of the points in use "
                    "alone; give the table: --load-curves C.csv"
                )
            points = cms.fleet.read_operating_points(operating_points, session.columns)
        elif load_curves is not None:
            raise usage_error("they are of operating points: give these, too", "--load-curves")
    found = counted(
        session,
        "rates and limits",
        lambda progress: cms.fleet.rightsize(
            made, points, load_curves=curves, to=to, time_limit=seconds, seed=seed,
            threads=threads, cancel=session.interrupts.cancel, on_step=progress,
        ),
        patient=True,
    )  # fmt: skip
    session.show(
        lambda: rightsizing_to_json(found), lambda: rightsized_page(found, made, plan.name), output
    )
    return session.code()
