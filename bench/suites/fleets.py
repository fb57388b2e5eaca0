"""Fleets of five GPU types, fleets that are too small, and shares of a GPU in steps of 5 %."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.row import RunRow
from bench.tables import Table
from bench.task import Task

from .suite import Settings, Suite
from .summary import summary

TYPES = 5
SIZES = (20, 1_000)
#: Jobs of the fleets that are too small, in turn.
INFEASIBLE_SIZES = (5, 20, 100, 300)
SHARES = ("size-bounded", "size-bounded-mixed")


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield fleets of both sizes, and infeasible ones."""
    for n in settings.sizes(SIZES):
        for seed in range(settings.seeds):
            source = settings.source("mixed-fleet", n=n, seed=seed, types=TYPES, limits="tight")
            yield from settings.solves("fleets", source)
    sizes = settings.sizes(INFEASIBLE_SIZES)
    for number in range(settings.instances if sizes else 0):
        n = sizes[number % len(sizes)]
        # as many kinds of sizes as of types: one changes while the other stays
        types = 2 + number // len(sizes) % (TYPES - 1)
        source = settings.source("mixed-fleet-infeasible", n=n, seed=number, types=types)
        yield from settings.solves("fleets", source)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each kind of fleet in a line."""

    def label(row: RunRow) -> str:
        return f"{row.family}, n={row.arguments['n']:,}"

    return [summary("fleets of several GPU types", rows, label, settings, heading="fleets")]


def share_tasks(settings: Settings) -> Iterator[Task]:
    """Yield shares alone and beside a MIG type, 1,000 jobs or the largest size wanted."""
    for family in SHARES:
        for seed in range(settings.seeds):
            source = settings.source(family, n=min(SIZES[-1], settings.largest), seed=seed)
            yield from settings.solves("size-bounded", source)


def share_tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each family in a line."""
    title = f"size-bounded configurations ({min(SIZES[-1], settings.largest):,} jobs)"
    return [summary(title, rows, lambda row: row.family, settings)]


FLEETS = Suite(
    "fleets",
    "five GPU types with costs and limits; fleets proved too small",
    Settings(seeds=10, time_limit=60.0, instances=200),
    tasks,
    tables,
)
SIZE_BOUNDED = Suite(
    "size-bounded",
    "MPS shares in steps of 5 %, alone and beside a MIG type",
    Settings(seeds=10, time_limit=60.0),
    share_tasks,
    share_tables,
)
