"""``cms plan --near``: the plan that keeps most of what runs, on numbered GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError

from . import options
from .fleets import read_fleet, refuse_stale_now
from .place import refuse
from .searching import heard
from .session import Exit, Session, report_error

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment
    from cms.fleet.report.page import Page
    from cms.fleet.serving import Plan

Near = Annotated[
    Path | None,
    typer.Option(
        "--near", metavar="now.json",
        help="What runs today (cms observe): of all plans on as few GPUs, the one that keeps most "
        "of it, placed; -o then writes a deployment.",
    ),
]  # fmt: skip
ExtraGpus = Annotated[
    int | None,
    typer.Option(
        "--extra-gpus",
        metavar="K",
        min=0,
        help="With --near: use up to K more GPUs to keep more; of those that keep as much, few.",
    ),
]


def read_near(
    session: Session, near: Path | None, extra_gpus: int | None, max_age: str
) -> Deployment | None:
    """Read what runs, before the plan is made.

    Raises
    ------
    UsageError
        If there are options about it, but not itself.
    FileError, CmsError
        If it is no deployment, cannot be as it is written, or was observed too long ago.
    """
    if near is None:
        if extra_gpus is not None:
            raise options.usage_error("give --near now.json, or leave it out", "--extra-gpus")
        return None
    now = read_fleet(near)
    refuse_stale_now(session, now, max_age)
    return now


def show_nearest(
    session: Session,
    now: Deployment,
    plan: Plan,
    title: str,
    extra_gpus: int | None,
    how: tuple[float | None, int],
    files: tuple[Path | None, Path | None],
) -> int:
    """Find the plan near what runs, print it and write it.

    Parameters
    ----------
    session : Session
    now : Deployment
    plan : Plan
        With a schedule.
    title : str
    extra_gpus : int or None
    how : (float or None, int)
        Time limit and seed.
    files : (Path or None, Path or None)
        The deployment's, and the picture's.
    """
    from cms.fleet.deployment import Unplaceable, nearest

    limit, seed = how
    try:
        found = heard(
            session,
            lambda: nearest(
                now, plan, extra_gpus=extra_gpus or 0, time_limit=limit, seed=seed,
                cancel=session.interrupts.cancel,
            ),
            doing="looking for the nearest plan",
        )  # fmt: skip
    except CmsError as fault:
        if type(fault) is not CmsError or session.interrupts.pressed:
            raise
        # the one thing that is nobody's fault: time was up
        report_error(fault, Exit.NO_SCHEDULE, as_json=session.json)
        return Exit.NO_SCHEDULE
    if isinstance(found, Unplaceable):
        return refuse(session, found, "")

    def view() -> Page:
        from cms.fleet.report.deployments import deployment_page

        return deployment_page(found.deployment, title, end=str(found))

    def document() -> dict[str, Any]:
        from cms.fleet.deployment import deployment_to_json

        return deployment_to_json(found.deployment)

    session.show(document, view, *files)
    return session.code_of(plan.solution)
