"""Time to proof against general solvers on the compact integer program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import median, values
from bench.peers import GROUPS, PEERS
from bench.plots import Plot, performance_profile
from bench.row import RunRow
from bench.tables import AtLeast, Table, columns, grouped
from bench.task import Task

from .suite import Settings, Suite
from .summary import by_contestant, how_measured

FAMILY, LOAD = "real-rows", 30
SIZES = (20, 50, 100, 300, 1_000)
#: The largest size is run with this multiple of the limit as well.
LONGER = 3


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every size and seed for every algorithm and peer, side by side."""
    for n in settings.sizes(SIZES):
        limits = [settings.time_limit]
        if n == SIZES[-1]:
            limits.append(LONGER * settings.time_limit)
        for limit in limits:
            for seed in range(settings.seeds):
                source = settings.source(FAMILY, n=n, m=LOAD, seed=seed)
                yield from settings.solves("peers", source, time_limit=limit)
                yield from settings.asks("peers", source, limit)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each size and limit with every contestant in a line."""
    known = "; ".join(
        f"{PEERS[peer].name}: {PEERS[peer].summary}"
        for group in settings.peers
        for peer in GROUPS[group]
    )
    caption = (
        "The median over the seeds of the time to proof; a run without a proof counts as its "
        "limit, so that a median (and its ratio) with '>' is at least that. A peer's model is "
        "built beforehand, and of several settings the best on each instance is taken. The last "
        "column is the median divided by the first line's, where that is known. "
        f"{known}. {how_measured(settings)}"
    )
    headings = columns(
        "n | limit s:seconds | solver:text | seeds | proved | median s to proof:>seconds",
        "worst gap:exact | ratio:>times",
    )
    table = Table("peers", caption, headings)
    order = sorted(rows, key=lambda row: (row.arguments["n"], row.time_limit))
    for (n, limit), part in grouped(order, lambda r: (r.arguments["n"], r.time_limit)).items():
        first: AtLeast | None = None
        for name, best in by_contestant(part, settings.methods).items():
            proved = sum(row.proved for row in best)
            to_proof = AtLeast(median(values(best, "seconds_to_proof")), 2 * proved <= len(best))
            first = first or to_proof
            # nothing can be divided by a figure that is itself only a limit
            ratio = None if first.open else AtLeast(to_proof.figure / first.figure, to_proof.open)
            gap = max(values(best, "gap"), default=None)
            table.add(n, limit, name, len(best), proved, to_proof, gap, ratio)
    return [table]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the performance profile of all contestants."""
    found: dict[str, dict[str, float | None]] = {}
    for limit, part in grouped(rows, lambda row: row.time_limit).items():
        for name, runs in by_contestant(part, settings.methods).items():
            found.setdefault(name, {}).update(
                {
                    f"{row.instance}, {limit:g} s": row.seconds if row.proved else None
                    for row in runs
                }
            )
    return [performance_profile("peers_profile", "Performance profile: time to proof", found)]


SUITE = Suite(
    "peers",
    "time to proof against HiGHS, SCIP and CP-SAT on the compact integer program",
    Settings(seeds=10, time_limit=20.0, peers=("highs", "scip", "cp_sat")),
    tasks,
    tables,
    plots,
)
