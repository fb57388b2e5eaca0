"""A dozen services: against one call of a linear-programming solver, and from a cold start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import median
from bench.row import RunRow
from bench.tables import Table, columns
from bench.task import NAMED, Kind, Source, Task

from .suite import Settings, Suite

SCENARIO = "S5"
#: How often each side runs, for every one of the seeds.
WARM, COLD = 10, 1


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield both comparisons for each algorithm."""
    source = Source(family=SCENARIO, module=NAMED)
    for kind, repetitions in ((Kind.WARM, WARM), (Kind.COLD, COLD)):
        repeated = {"repetitions": repetitions * settings.seeds, "fresh": True}
        how = {**repeated, "warm_up": settings.warm_up}
        yield from settings.tasks(kind, "small", source, settings.methods, **how)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show both comparisons, an algorithm a line."""
    what = {
        Kind.WARM.value: ("solve", "one scipy.optimize.linprog"),
        Kind.COLD.value: (f"cms plan --published {SCENARIO}", "import numpy, scipy.optimize"),
    }
    caption = (
        f"Scenario {SCENARIO}; both sides alternate, and their medians are compared. The first "
        "yardstick is one call on the linear relaxation of the same problem's compact program, in "
        "the same process, after an unmeasured run of both; the second a Python process that "
        "imports the two libraries and ends."
    )
    headings = columns(
        "solver:text | yardstick:text | algorithm:text | repetitions | solver s:seconds",
        "yardstick s:seconds | ratio:times",
    )
    table = Table("small problems", caption, headings)
    for row in rows:
        if measured := row.measurements:
            ours, yardstick = measured["ours"], measured["yardstick"]
            middle = median(ours), median(yardstick), measured["ratio"]
            table.add(*what[row.kind], row.algorithm, len(ours), *middle)
    return [table]


SUITE = Suite(
    "small",
    "scenario S5 against one linear program, and from a cold start",
    Settings(seeds=20, time_limit=10.0, peers=("highs",)),
    tasks,
    tables,
)
