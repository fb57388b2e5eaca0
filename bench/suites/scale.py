"""What large problems take, up to 10^7 jobs, beside HiGHS's linear relaxation, and how it grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.figures import growth, median, middle, values
from bench.peers import GROUPS
from bench.row import Outcome, RunRow
from bench.tables import AtLeast, Table, columns, grouped
from bench.task import Kind, Task

from .suite import Settings, Suite
from .summary import how_measured, is_checked, relative_gaps, solves, times_by_load

FAMILY = "real-rows"
SIZES = tuple(10**power for power in range(3, 8))
LOADS = (1, 5, 30)
#: Half a power of ten apart, at the larger loads: the sizes of suite growth.
HALF_POWERS = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
#: The size at which the linear relaxation is solved, and the load.
RELAXED = (10**5, 30)
METHODS = GROUPS["highs_lp"]


def runs_of(settings: Settings) -> Iterator[tuple[int, int, int]]:
    """Yield the sizes, loads and seeds of the instances.

    From 10^6 jobs on a third of the seeds is enough, and at 10^7 jobs one, at the middle load.
    """
    for n in settings.sizes(SIZES):
        seeds = settings.seeds if n < 10**6 else -(-settings.seeds // 3)
        for m in LOADS if n < 10**7 else LOADS[1:2]:
            for seed in range(seeds if n < 10**7 else 1):
                yield n, m, seed


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every size at every load, and the relaxations."""
    n_relaxed = min(RELAXED[0], settings.largest)
    for n, m, seed in runs_of(settings):
        source = settings.source(FAMILY, n=n, m=m, seed=seed)
        yield from settings.solves("scale", source, fresh=True)
        if (n, m) == (n_relaxed, RELAXED[1]):
            yield from settings.asks("scale", source, settings.peer_limit)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each size and load in a line."""
    relaxations = grouped(
        [row for row in rows if row.kind == Kind.PEER and row.outcome is not Outcome.FAILED],
        lambda row: row.instance,
    )
    order = sorted(solves(rows), key=lambda row: (row.arguments["n"], row.arguments["m"]))
    groups = grouped(order, lambda r: (r.arguments["n"], r.arguments["m"], r.algorithm))
    caption = (
        "m: the demand is lognormal around m/7 of a whole GPU's throughput. Every run has a "
        "process of its own; peak memory is the process's while it solves, the instance included. "
        "LP: HiGHS on the linear relaxation of the compact program alone, building the model not "
        "counted, by dual simplex (its default) and by interior point with crossover; LP / auto is "
        "the median ratio of the faster of the two to auto on the same instance; '>': at least "
        "that, since runs ended at the limit. "
        f"{how_measured(settings)}"
    )
    headings = columns(
        "n | m | algorithm:text | runs | gap 0 | checked | worst gap:exact | relative:percent",
        "median s:seconds | max s:seconds | passes:seconds | peak:memory | LP simplex s:>seconds",
        "LP interior s:>seconds | LP / auto:>times",
    )
    lines = [(*group, *_figures(part, relaxations)) for group, part in groups.items()]
    return [Table("scale", caption, headings, lines)]


def _figures(part: Sequence[RunRow], relaxations: Mapping[str, list[RunRow]]) -> tuple[object, ...]:
    """A line's figures: of the runs, and of the relaxations of their instances."""
    took, gaps = values(part, "seconds"), values(part, "gap")
    beside = [(relaxations[row.instance], row) for row in part if row.instance in relaxations]
    by_method = [
        [_relaxation_seconds(r) for relaxed, _ in beside for r in relaxed if r.algorithm == method]
        for method in METHODS
    ]
    ratios = [
        AtLeast(fastest.figure / row.seconds, fastest.open)
        for relaxed, row in beside
        if row.seconds
        for fastest in [min(map(_relaxation_seconds, relaxed))]
    ]
    worst = max(gaps, default=None), max(relative_gaps(part), default=None)
    effort = middle(values(part, "passes")), max(values(part, "peak_memory"), default=None)
    counts = len(part), gaps.count(0), sum(map(is_checked, part))
    relaxed = map(_median, [*by_method, ratios])
    return *counts, *worst, middle(took), max(took, default=None), *effort, *relaxed


def _relaxation_seconds(row: RunRow) -> AtLeast:
    """Its seconds, or at least its limit where it did not finish."""
    if row.outcome is Outcome.ANSWERED and row.seconds is not None:
        return AtLeast(row.seconds, False)
    return AtLeast(row.time_limit, True)


def _median(found: Sequence[AtLeast]) -> AtLeast | None:
    """The median; at least that, if a run in the middle ended at its limit."""
    if not found:
        return None
    ordered = sorted(found)
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    return AtLeast(median([one.figure for one in middle]), any(one.open for one in middle))


def growth_tasks(settings: Settings) -> Iterator[Task]:
    """Yield every size, load and seed."""
    for n in settings.sizes(HALF_POWERS):
        for m in LOADS[1:]:
            for seed in range(settings.seeds):
                source = settings.source(FAMILY, n=n, m=m, seed=seed)
                yield from settings.solves("growth", source, fresh=True)


def growth_tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
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


SCALE = Suite(
    "scale",
    "seconds, passes, gap and memory from 10^3 to 10^7 jobs; HiGHS's linear relaxation",
    Settings(seeds=10, time_limit=600.0, largest=10**6, peers=("highs_lp",), peer_limit=120.0),
    tasks,
    tables,
    lambda rows, settings: [times_by_load("scale_times", rows)],
)
GROWTH = Suite(
    "growth",
    "the exponent of time over jobs, from 10^3 to 10^6",
    Settings(seeds=3, time_limit=600.0, largest=10**6),
    growth_tasks,
    growth_tables,
    lambda rows, settings: [times_by_load("growth_times", rows)],
)
