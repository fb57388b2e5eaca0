"""The settings of instances that services share in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import usage_error

if TYPE_CHECKING:
    from cms.fleet.serving import TimeSharing

    from .session import Session

Shared = Annotated[
    bool,
    typer.Option(
        "--time-sharing/--no-time-sharing",
        help="Let services take turns on an instance, by [time_sharing] of fleet.toml; --rule is "
        "then round_robin (a round and the service's own batch within the limit) or "
        "collect_then_run (two rounds).",
    ),
]  # fmt: skip


def read_time_sharing(session: Session, rule: str | None) -> TimeSharing:
    """Return the terms on which services share instances."""
    from cms.fleet.serving import Headroom, TimeSharing
    from cms.fleet.serving.time_sharing import DEFAULT_FRAME_RULE, read_overheads

    given = session.fleet.time_sharing
    more = None
    if given.headroom is not None:
        table = session.beside(given.batching_overheads)
        more = Headroom(given.headroom, None if table is None else read_overheads(table))
    elif given.batching_overheads is not None:
        raise usage_error("it goes with headroom", "[time_sharing] batching_overheads")
    return TimeSharing(
        rule or DEFAULT_FRAME_RULE, given.max_services, given.splits or "pairs", more
    )


def read_slowdowns(session: Session) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what batches take beside others, and warnings; nothing if nothing is said of it."""
    from cms.fleet.serving import predicted, read_interference, read_utilisations

    given = session.fleet.time_sharing
    pairs, utilisations = session.beside(given.interference), session.beside(given.utilisations)
    if pairs is None:
        for name in ("utilisations", "classes"):
            if getattr(given, name) is not None:
                raise usage_error("it goes with interference", f"[time_sharing] {name}")
        return {}, ()
    if given.splits == "any":
        what = "'any': what slows a batch is measured beside one other share; leave one of both out"
        raise usage_error(what, "[time_sharing] splits")
    table = read_interference(pairs)
    said: tuple[str, ...] = ()
    if utilisations is not None:
        table, said = predicted(table, read_utilisations(utilisations))
    return {"interference": table, "classes": given.classes}, said
