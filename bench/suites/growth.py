"""How time grows with the number of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import growth, middle, values
from bench.plots import Plot
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped
from bench.task import Task

from .suite import Settings, Suite
from .summary import how_measured, solves, times_by_load

FAMILY = "real-rows"
#: Half a power of ten apart.
SIZES = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
LOADS = (5, 30)


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every size, load and seed."""
    for n in settings.sizes(SIZES):
        for m in LOADS:
            for seed in range(settings.seeds):
                source = settings.source(FAMILY, n=n, m=m, seed=seed)
                yield from settings.solves("growth", source, fresh=True)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show the median time at each size, and the exponent fitted to all runs."""
    done = [
        row
        for row in solves(rows)
        if row.outcome is Outcome.ANSWERED and row.seconds is not None and row.seconds > 0
    ]
    done.sort(key=lambda row: (row.arguments["m"], row.arguments["n"]))
    sizes = sorted({int(row.arguments["n"]) for row in done})
    caption = (
        "Median seconds at each number of jobs; exponent: of time over jobs, by least squares of "
        "the logarithms over all runs, with its standard error. The times are to the run's end, "
        f"with a proof or without. m: load, as in the scale suite. {how_measured(settings)}"
    )
    headings = columns(
        "algorithm:text | m | runs | proved",
        *(f"n={n:,}:seconds" for n in sizes),
        "exponent:seconds | ± error:seconds",
    )
    table = Table("growth", caption, headings)
    for (algorithm, m), part in grouped(done, lambda r: (r.algorithm, r.arguments["m"])).items():
        by_size = grouped(part, lambda row: row.arguments["n"])
        medians = [middle(values(by_size.get(n, []), "seconds")) for n in sizes]
        fitted = growth([row.arguments["n"] for row in part], values(part, "seconds"))
        proved = sum(row.proved for row in part)
        table.add(algorithm, m, len(part), proved, *medians, *(fitted or (None, None)))
    return [table]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the seconds over the number of jobs."""
    return [times_by_load("growth_times", rows)]


SUITE = Suite(
    "growth",
    "the exponent of time over jobs, from 10^3 to 10^6",
    Settings(seeds=3, time_limit=600.0, largest=10**6),
    tasks,
    tables,
    plots,
)
