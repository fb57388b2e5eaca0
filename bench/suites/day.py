"""A day of a fleet whose rates change: what each policy of planning again takes and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from bench.days import SHARED
from bench.figures import measured, median
from bench.row import RunRow
from bench.tables import Table, columns, grouped
from bench.task import Kind, Source, Task
from cms.fleet.replanner import CONTENDERS, SHARING_CONTENDERS

from .suite import Settings, Suite

#: Days that are drawn, of which the last is played and the others are history.
_DAYS = 8
_SERVICES, _SHARED_SERVICES = 16, 4
#: Seconds of each plan of services that share GPUs: now and then one more would not do either.
_SHARED_LIMIT = 5.0


class _Days(NamedTuple):
    """Services, policies and the longest time of a plan, and what the table is called."""

    services: int
    names: tuple[str, ...]
    time_limit: float
    title: str


_KINDS = {
    "waves": _Days(_SERVICES, CONTENDERS, inf, "day"),
    SHARED: _Days(_SHARED_SERVICES, SHARING_CONTENDERS, _SHARED_LIMIT, "day of shared GPUs"),
}
#: Of both kinds of days.
_POLICIES = tuple(dict.fromkeys(name for kind in _KINDS.values() for name in kind.names))


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every policy on every seed's days, of services that share nothing and that do."""
    for seed in range(settings.seeds):
        for family, kind in _KINDS.items():
            n = min(kind.services, settings.largest)
            arguments = {"n": n, "seed": seed, "days": _DAYS, "hours": settings.instances}
            source = Source(family=family, arguments=arguments, module="bench.days")
            names = [name for name in kind.names if name in settings.methods]
            limit = min(settings.time_limit, kind.time_limit)
            yield from settings.tasks(Kind.DAY, "day", source, names, time_limit=limit)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show what each policy takes: medians over the seeds, but the worst spare and the longest."""
    done = [row for row in rows if row.measurements]
    found = []
    for family, kind in _KINDS.items():
        table = Table(kind.title, _CAPTION, _COLUMNS)
        mine = grouped([row for row in done if row.family == family], lambda row: row.algorithm)
        for name in (name for name in kind.names if name in mine):
            every = measured(mine[name])
            starts, gone = median(every["starts"]), median(every["temporary_starts"])
            table.add(
                name.replace("_", " "),
                *(median(every[key]) for key in ("gpu_hours", "change_gpu_hours", "replans")),
                f"{starts:.0f} ({gone:.0f})",
                max(every["worst_spare_gpus"]),
                max(every["longest_transition_s"]) / 60,
                *(
                    median(every[key])
                    for key in ("shortage_s", "best_gpu_hours", "distance", "peak_gpus")
                ),
                sum(every["refused"]),
            )
        if table.rows:
            found.append(table)
    return found


_CAPTION = (
    "GPU hours of plans, and of what changes borrow besides; changes of plan; instances started, "
    "and in brackets those that went again; the most GPUs a change borrowed; the longest change, "
    "in minutes of assumed durations; seconds in which some service had less than its rate; the "
    "fewest GPU hours with as many changes at best, rates known, and how far from it; the most "
    "GPUs planned; changes that were not possible. Medians over the seeds, but for spare, longest "
    "and refused."
)
_COLUMNS = columns(
    "policy:text | GPU hours:n | borrowed:n | re-plans:n | starts | spare:n | longest:n | short:n",
    "least:n | to least:signed | peak:n | refused:n",
    n="{:.4g}".format,
    signed=lambda value: f"{100 * value:+.1f} %",
)

SUITE = Suite(
    "day",
    "policies of planning again on a day of changing rates",
    Settings(methods=_POLICIES, instances=24, largest=_SERVICES, time_limit=600.0),
    tasks,
    tables,
    contestants=_POLICIES,
)
