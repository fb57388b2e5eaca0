"""GPUs that offline work shares with online services: matched and proved, and a day of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.figures import median
from bench.row import Outcome, RunRow
from bench.tables import Column, Table, grouped, plain, seconds
from bench.task import Kind, Source, Task

from .suite import Settings, Suite

MODULE = "instances.families.colocation"
OURS = "muxflow"
METHODS = (
    OURS, "colocation_greedy", "colocation_first_fit", "colocation_random", "colocation_dedicated",
    "colocation_dense",
)  # fmt: skip
#: GPUs, online and offline classes; the dense matching takes only the first.
SIZES = (
    (1_000, 85, 30), (20_000, 85, 30), (1_000_000, 93, 30), (1_000_000, 1_065, 100),
    (1_000_000, 1_065, 300),
)  # fmt: skip
PARTS = (4, 16, 64)
#: Where sub-clusters are drawn.
PARTED = 20_000
#: Policies of a day, each with the monitor or without.
DAY = (
    ("muxflow", True), ("muxflow", False), ("colocation_random", True), ("time_sharing", True),
    ("dedicated", True), ("clairvoyant", True),
)  # fmt: skip
_POLICIES = {"colocation_random": "random"}
_DAY_GPUS = 1_000


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every method on every size, and every policy on a day of a fleet."""
    for seed in range(settings.seeds):
        for gpus, online, offline in SIZES:
            if gpus > settings.largest:
                continue
            arguments = {"gpus": gpus, "online": online, "offline": offline, "seed": seed}
            source = Source(family="shared-gpus", arguments=arguments, module=MODULE)
            for method in settings.methods:
                if method != "colocation_dense" or gpus <= SIZES[0][0]:
                    yield _matched(settings, source, method, {})
            if gpus == PARTED and OURS in settings.methods:
                for parts in PARTS:
                    yield _matched(settings, source, OURS, {"parts": parts})
        arguments = {"gpus": min(_DAY_GPUS, settings.largest), "seed": seed}
        source = Source(family="daily-fleet", arguments=arguments, module=MODULE)
        for name, protection in DAY if settings.instances else ():
            yield Task(
                suite="colocation", kind=Kind.SHARED_DAY, source=source,
                method=_POLICIES.get(name, name),
                options={"hours": settings.instances, "protection": protection},
                time_limit=settings.time_limit, warm_up=False,
            )  # fmt: skip


def _matched(settings: Settings, source: Source, method: str, options: dict[str, Any]) -> Task:
    return Task(
        suite="colocation", kind=Kind.SHARE, source=source, method=method, options=options,
        time_limit=settings.time_limit, warm_up=False, fresh=True,
    )  # fmt: skip


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show what each method is worth and proves, and what a day of each policy is like."""
    found = []
    for kind, table in ((Kind.SHARE, _plans), (Kind.SHARED_DAY, _days)):
        if mine := [row for row in rows if row.kind == kind.value]:
            found.append(table(mine))
    return found


def _plans(rows: Sequence[RunRow]) -> Table:
    lines: list[tuple[Any, ...]] = []
    red = set()
    for (size, method), part in grouped(rows, lambda row: (_size(row), _method(row))).items():
        done = [row for row in part if row.measurements]
        if any(row.outcome is Outcome.FAILED for row in part) or not done:
            red.add(len(lines))

        def middle(key: str, done: Sequence[RunRow] = done) -> float | None:
            return median([row.measurements[key] for row in done]) if done else None

        value, bound = middle("value"), middle("upper_bound")
        gap = 100 * (bound - value) / bound if value is not None and bound else None
        times = [row.seconds for row in done if row.seconds is not None]
        peaks = [row.peak_memory for row in done if row.peak_memory is not None]
        lines.append(
            (
                size, method, value, bound, gap, middle("throughput_a_gpu"), middle("slowdown"),
                median(times) if times else None, max(peaks) / 10**6 if peaks else None,
                sum(row.proof == "checked" for row in done),
            )
        )  # fmt: skip
    caption = (
        "GPUs, online and offline classes (instances.families.colocation, made up); value, bound "
        "in GPU-equivalents, both checked, the bound by prices that a second checker accepts where "
        "there are at most 400,000 pairs; the gap in per cent of the bound; offline throughput a "
        "GPU; the online side's mean slowdown; seconds of the whole call; the largest memory in "
        "MB. Medians over the seeds, but for memory. Proved: how often the bound is the value. "
        "Red: a failed run."
    )
    columns = (
        Column("size", left=True), Column("method", left=True), Column("value", _amount),
        Column("bound", _amount), Column("gap %", _small), Column("a GPU", _share),
        Column("slowdown", _share), Column("seconds", seconds), Column("MB", _amount),
        Column("proved"),
    )  # fmt: skip
    return Table(
        "offline work beside online services", caption, columns, tuple(lines), frozenset(red)
    )


def _size(row: RunRow) -> str:
    own = row.arguments
    return f"{own['gpus']:,} in {own['online']:,} × {own['offline']}"


def _method(row: RunRow) -> str:
    parts = row.options.get("parts")
    name = row.algorithm.removeprefix("colocation_").replace("_", " ")
    return f"{name}, {parts} parts" if parts else name


def _days(rows: Sequence[RunRow]) -> Table:
    lines: list[tuple[Any, ...]] = []
    red = set()
    for name, part in grouped(rows, _policy).items():
        done = [row for row in part if row.measurements]
        if len(done) < len(part):
            red.add(len(lines))
        if not done:
            continue

        def each(key: str, done: Sequence[RunRow] = done) -> list[float]:
            return [float(row.measurements[key]) for row in done]

        lines.append(
            (
                name, median(each("throughput_a_gpu")), median(each("mean_slowdown")),
                max(each("p99_slowdown")), 100 * max(each("over_share")),
                median(each("evictions")), median(each("completion_h")),
                max(each("largest_wait_h")), median(each("cpu_seconds")),
            )
        )  # fmt: skip
    caption = (
        "A day in the closed loop, a matching every 15 minutes, a made-up truth of which the "
        "scheduler sees pairs that are wrong by 4 % (standard deviation): offline throughput a "
        "GPU, the online side's slowdown, shared GPU-hours over its limit of 1.2 in per cent, "
        "evictions, mean hours from arrival to end, the longest wait for a first start, seconds "
        "of processor time. Medians over the seeds, but for p99, the limit and the wait, which "
        "are the worst."
    )
    columns = (
        Column("policy", left=True), Column("a GPU", _share), Column("slowdown", _share),
        Column("p99", _share), Column("over %", _small), Column("evictions", _amount),
        Column("mean h", _share), Column("wait h", _share), Column("CPU s", seconds),
    )  # fmt: skip
    return Table("a day of shared GPUs", caption, columns, tuple(lines), frozenset(red))


def _policy(row: RunRow) -> str:
    name = row.algorithm.replace("_", " ")
    return name if row.options["protection"] else f"{name}, without protection"


def _amount(value: float) -> str:
    return plain(f"{value:,.6g}")


def _small(value: float) -> str:
    return f"{value:.4f}"


def _share(value: float) -> str:
    return f"{value:.3f}"


SUITE = Suite(
    "colocation",
    "offline work beside online services: matchings with their proofs, and a day of them",
    Settings(methods=METHODS, seeds=3, largest=1_000_000, instances=24, time_limit=120.0),
    tasks,
    tables,
)
