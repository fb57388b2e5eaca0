"""Fleets of five GPU types with costs and limits, and fleets that are too small."""

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


SUITE = Suite(
    "fleets",
    "five GPU types with costs and limits; fleets proved too small",
    Settings(seeds=10, time_limit=60.0, instances=200),
    tasks,
    tables,
)
