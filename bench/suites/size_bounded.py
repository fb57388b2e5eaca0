"""Shares of a GPU in steps of 5 %, alone and beside a MIG type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.row import RunRow
from bench.tables import Table
from bench.task import Task

from .suite import Settings, Suite
from .summary import summary

FAMILIES = ("size-bounded", "size-bounded-mixed")
SIZE = 1_000


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield both families at 1,000 jobs, or fewer if that is the largest size wanted."""
    for family in FAMILIES:
        for seed in range(settings.seeds):
            source = settings.source(family, n=min(SIZE, settings.largest), seed=seed)
            yield from settings.solves("size-bounded", source)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each family in a line."""
    title = f"size-bounded configurations ({min(SIZE, settings.largest):,} jobs)"
    return [summary(title, rows, lambda row: row.family, settings)]


SUITE = Suite(
    "size-bounded",
    "MPS shares in steps of 5 %, alone and beside a MIG type",
    Settings(seeds=10, time_limit=60.0),
    tasks,
    tables,
)
