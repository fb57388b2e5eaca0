"""Time to proof against general solvers on the compact integer program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import median
from bench.peers import GROUPS, PEERS
from bench.plots import Plot, performance_profile
from bench.row import RunRow
from bench.tables import AtLeast, Column, Table, at_least, exact, grouped, seconds, times
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
    lines = []
    order = sorted(rows, key=lambda row: (row.arguments["n"], row.time_limit))
    for (n, limit), part in grouped(order, lambda r: (r.arguments["n"], r.time_limit)).items():
        first: AtLeast | None = None
        for name, best in by_contestant(part, settings.methods).items():
            to_proof = median([row.seconds_to_proof for row in best])
            gaps = [row.gap for row in best if row.gap is not None]
            proved = sum(row.proved for row in best)
            censored = 2 * proved <= len(best)
            if first is None:
                first = AtLeast(to_proof, censored)
            # nothing can be divided by a figure that is itself only a limit
            ratio = None if first.open else AtLeast(to_proof / first.figure, censored)
            line = (n, limit, name, len(best), proved, AtLeast(to_proof, censored))
            lines.append((*line, max(gaps, default=None), ratio))
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
    columns = (
        Column("n"),
        Column("limit s", seconds),
        Column("solver", left=True),
        Column("seeds"),
        Column("proved"),
        Column("median s to proof", at_least(seconds)),
        Column("worst gap", exact),
        Column("ratio", at_least(times)),
    )
    return [Table("peers", caption, columns, tuple(lines))]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the performance profile of all contestants."""
    seconds = {
        name: {
            f"{row.instance}, {row.time_limit:g} s": row.seconds if row.proved else None
            for row in runs
        }
        for name, runs in _by_limit(rows, settings.methods).items()
    }
    title = "Performance profile: time to proof"
    return [performance_profile("peers_profile", title, seconds)]


def _by_limit(rows: Sequence[RunRow], methods: Sequence[str]) -> dict[str, list[RunRow]]:
    """Return each contestant's best run on each instance under each limit."""
    found: dict[str, list[RunRow]] = {}
    for part in grouped(rows, lambda row: row.time_limit).values():
        for name, runs in by_contestant(part, methods).items():
            found.setdefault(name, []).extend(runs)
    return found


SUITE = Suite(
    "peers",
    "time to proof against HiGHS, SCIP and CP-SAT on the compact integer program",
    Settings(seeds=10, time_limit=20.0, peers=("highs", "scip", "cp_sat")),
    tasks,
    tables,
    plots,
)
