"""What problems in folders take, out of core, beside the same ones in memory and one bare pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.figures import values
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, exact, grouped
from bench.task import Kind, Source, Task

from .suite import Settings, Suite
from .summary import how_measured

SIZES = tuple(10**power for power in range(5, 9))
LOADS = (5, 30)
#: Jobs up to which the same problem is solved in memory as well.
IN_MEMORY = 10**7
#: Families at the smallest size alone, at the middle load; one draws its machines with its jobs.
OTHERS = ("near-ties", "mixed-fleet")


def sources_of(settings: Settings) -> Iterator[Source]:
    """Yield the instances; the smallest size is cut to the largest that is wanted."""
    sizes = sorted({min(n, settings.largest) for n in SIZES})
    for n in sizes:
        families = ("real-rows", *OTHERS) if n == sizes[0] else ("real-rows",)
        for family in families:
            for m in LOADS if family == "real-rows" else LOADS[:1]:
                for seed in range(settings.seeds if n < 10**7 else 1):
                    arguments = {"n": n, "m": m, "seed": seed, "families": settings.module}
                    yield Source(family=family, arguments=arguments, module="bench.chunks")


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every instance in a folder and, up to a size, in memory."""
    for source in sources_of(settings):
        how = {"warm_up": settings.warm_up, "fresh": True}
        yield from settings.tasks(Kind.SHARDS, "shards", source, settings.methods, **how)
        if source.arguments["n"] <= IN_MEMORY:
            yield from settings.solves("shards", source, fresh=True)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each instance in a line, a folder beside the run in memory."""
    caption = (
        "Each problem is drawn a chunk at a time, packed into a folder, solved from there in a "
        "process of its own, written, and rechecked from both folders by "
        "proofs_checks.streaming. m: load, as in the scale suite. CPU s, s and peak are of the "
        "solve alone: processor time of all threads, wall time, and the process's largest "
        "resident size. / memory: over those of the same problem in memory, up to 10^7 jobs; "
        "red: the two contradict each other. / pass: over the processor time in which every job "
        "is read once and priced once. checker: the second one's word. ns: processor time a job, "
        "of that checker, of writing, and of packing, drawing the jobs not counted. Up to 200,000 "
        "jobs a folder is loaded and solved in memory. "
        f"{how_measured(settings)}"
    )
    headings = columns(
        "family:text | n | m | algorithm:text | shards | passes | proved:text | cost:exact",
        "CPU s:seconds | s:seconds | peak:memory | peak / memory:times | CPU / memory:times",
        "CPU / pass:times | checker:text | check ns:seconds | write ns:seconds | pack ns:seconds",
    )
    table = Table("shards", caption, headings)
    for part in grouped(rows, lambda row: (row.instance, row.algorithm)).values():
        by_kind = {row.kind: row for row in part if row.outcome is Outcome.ANSWERED}
        row, beside = by_kind.get(Kind.SHARDS), by_kind.get(Kind.SOLVE)
        if row is not None:
            red = beside is not None and _contradict(row, beside)
            table.add(*_figures(row, beside), red=red)
    return [table]


def _contradict(row: RunRow, beside: RunRow) -> bool:
    """Whether the two are not of one problem, or both cannot be true."""
    if row.instance_sha256 != beside.instance_sha256:
        return True
    both = row, beside
    return any(low > cost for low in values(both, "lower_bound") for cost in values(both, "cost"))


def _figures(row: RunRow, beside: RunRow | None) -> tuple[Any, ...]:
    found, jobs = row.measurements, max(row.arguments["n"], 1)
    return (
        row.family,
        row.arguments["n"],
        row.arguments["m"],
        row.algorithm,
        found["shards"],
        row.passes,
        row.proof if row.proved else f"no, gap {exact(row.gap)}" if row.gap is not None else "no",
        row.cost,
        found["cpu_seconds"],
        row.seconds,
        row.peak_memory,
        _ratio(row.peak_memory, None if beside is None else beside.peak_memory),
        _ratio(
            found["cpu_seconds"], None if beside is None else beside.measurements["cpu_seconds"]
        ),
        _ratio(found["cpu_seconds"], found["pass_cpu_seconds"]),
        "accepts",  # of what it refuses there is no answer
        *(1e9 * found[f"{what}_cpu_seconds"] / jobs for what in ("check", "write", "pack")),
    )


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


SUITE = Suite(
    "shards",
    "problems in folders, out of core up to 10^8 jobs, beside the same in memory and a bare pass",
    Settings(seeds=1, time_limit=3600.0, largest=10**6),
    tasks,
    tables,
)
