"""Everything in three minutes: every family, every algorithm, and the rules of thumb."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

from bench.plots import Plot, gap_over_time
from bench.row import RunRow
from bench.tables import Table, grouped
from bench.task import Task

from .quality import known_values, quality, ratio_plots
from .suite import Settings, Suite
from .summary import how_measured, solves


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield, of every instance, each algorithm and each rule."""
    module = import_module(settings.module)
    for seed in range(settings.seeds):
        for family, arguments in module.suite(settings.instances, settings.largest, seed):
            source = settings.source(family, **arguments)
            yield from settings.solves("overview", source)
            yield from settings.rules("overview", source)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each family in a table, and all of them in the last."""
    known = known_values(rows)
    most = f"At most {settings.largest:,} jobs, {settings.time_limit:g} s a run."
    note = f"{most} {how_measured(settings)}"
    parts = [*grouped(rows, lambda row: row.family).items(), ("all families", rows)]
    found = [quality(name, part, known, note) for name, part in parts]
    return [table for table in found if table is not None]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the ratios of all families together, and how the gaps fall."""
    drawn = ratio_plots("overview_ratios", "Observed and proved ratios, all families", rows)
    by_algorithm = grouped(solves(rows), lambda row: row.algorithm)
    return [*drawn, gap_over_time("overview_gaps", "Gap over time, all families", by_algorithm)]


SUITE = Suite(
    "overview",
    "every family, every algorithm and rule of thumb, in three minutes",
    Settings(
        methods=("auto", "greedy", "lp_rounding", "ptas", "conic", "mig_serving_fast"),
        time_limit=2.0,
        instances=52,
        largest=300,
        warm_up=False,
    ),
    tasks,
    tables,
    plots,
)
