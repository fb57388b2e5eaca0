"""GPUs that offline work shares with online services: matched and proved, and a day of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bench.figures import measured, median, middle, values
from bench.row import RunRow
from bench.tables import Table, columns, grouped
from bench.task import Kind, Source, Task

from .suite import Settings, Suite
from .summary import failures_of

MODULE = "instances.families.colocation"
OURS = "muxflow"
DENSE = "colocation_dense"
_BASELINES = ("greedy", "first_fit", "random", "dedicated")
METHODS = (OURS, *(f"colocation_{name}" for name in _BASELINES), DENSE)
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
    ("muxflow", True), ("muxflow", False), ("random", True), ("time_sharing", True),
    ("dedicated", True), ("clairvoyant", True),
)  # fmt: skip
_DAY_GPUS = 1_000


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every method on every size, and every policy on a day of a fleet."""
    for seed in range(settings.seeds):
        for gpus, online, offline in SIZES:
            if gpus > settings.largest:
                continue
            arguments = {"gpus": gpus, "online": online, "offline": offline, "seed": seed}
            source = Source(family="shared-gpus", arguments=arguments, module=MODULE)
            methods = [m for m in settings.methods if m != DENSE or gpus <= SIZES[0][0]]
            yield from settings.tasks(Kind.SHARE, "colocation", source, methods, fresh=True)
            for parts in PARTS if gpus == PARTED and OURS in settings.methods else ():
                how = {"options": {"parts": parts}, "fresh": True}
                yield from settings.tasks(Kind.SHARE, "colocation", source, [OURS], **how)
        arguments = {"gpus": min(_DAY_GPUS, settings.largest), "seed": seed}
        source = Source(family="daily-fleet", arguments=arguments, module=MODULE)
        for name, protection in DAY if settings.instances else ():
            options = {"hours": settings.instances, "protection": protection}
            kind = Kind.SHARED_DAY
            yield from settings.tasks(kind, "colocation", source, [name], options=options)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show what each method is worth and proves, and what a day of each policy is like."""
    found = []
    for kind, table in ((Kind.SHARE, _plans), (Kind.SHARED_DAY, _days)):
        if mine := [row for row in rows if row.kind == kind.value]:
            found.append(table(mine))
    return found


def _plans(rows: Sequence[RunRow]) -> Table:
    caption = (
        "GPUs, online and offline classes (instances.families.colocation, made up); value, bound "
        "in GPU-equivalents, both checked, the bound by prices that a second checker accepts where "
        "there are at most 400,000 pairs; the gap in per cent of the bound; offline throughput a "
        "GPU; the online side's mean slowdown; seconds of the whole call; the largest memory in "
        "MB. Medians over the seeds, but for memory. Proved: how often the bound is the value. "
        "Red: a failed run."
    )
    headings = columns(
        "size:text | method:text | value:amounts | bound:amounts | gap %:small | a GPU:share",
        "slowdown:share | seconds:seconds | MB:amounts | proved",
        **_WRITERS,
    )
    table = Table("offline work beside online services", caption, headings)
    for (size, method), part in grouped(rows, lambda row: (_size(row), _method(row))).items():
        done = [row for row in part if row.measurements]
        every = measured(done) if done else {}
        value, bound, *rates = (
            middle(every.get(key, []))
            for key in ("value", "upper_bound", "throughput_a_gpu", "slowdown")
        )
        gap = 100 * (bound - value) / bound if value is not None and bound else None
        took, peaks = middle(values(done, "seconds")), values(done, "peak_memory")
        memory, proved = max(peaks) / 10**6 if peaks else None, [row.proof for row in done]
        red = failures_of(part) > 0 or not done
        found = value, bound, gap, *rates, took, memory, proved.count("checked")
        table.add(size, method, *found, red=red)
    return table


def _size(row: RunRow) -> str:
    own = row.arguments
    return f"{own['gpus']:,} in {own['online']:,} × {own['offline']}"


def _method(row: RunRow) -> str:
    parts = row.options.get("parts")
    name = row.algorithm.removeprefix("colocation_").replace("_", " ")
    return f"{name}, {parts} parts" if parts else name


def _days(rows: Sequence[RunRow]) -> Table:
    caption = (
        "A day in the closed loop, a matching every 15 minutes, a made-up truth of which the "
        "scheduler sees pairs that are wrong by 4 % (standard deviation): offline throughput a "
        "GPU, the online side's slowdown, shared GPU-hours over its limit of 1.2 in per cent, "
        "evictions, mean hours from arrival to end, the longest wait for a first start, seconds "
        "of processor time. Medians over the seeds, but for p99, the limit and the wait, which "
        "are the worst."
    )
    headings = columns(
        "policy:text | a GPU:share | slowdown:share | p99:share | over %:small | evictions:amounts",
        "mean h:share | wait h:share | CPU s:seconds",
        **_WRITERS,
    )
    table = Table("a day of shared GPUs", caption, headings)
    for name, part in grouped(rows, _policy).items():
        done = [row for row in part if row.measurements]
        if done:
            every = measured(done)
            middles = {key: median(found) for key, found in every.items()}
            speeds = middles["throughput_a_gpu"], middles["mean_slowdown"]
            worst = max(every["p99_slowdown"]), 100 * max(every["over_share"])
            hours = middles["completion_h"], max(every["largest_wait_h"])
            rest = middles["evictions"], *hours, middles["cpu_seconds"]
            table.add(name, *speeds, *worst, *rest, red=len(done) < len(part))
    return table


def _policy(row: RunRow) -> str:
    name = row.algorithm.replace("_", " ")
    return name if row.options["protection"] else f"{name}, without protection"


_WRITERS: dict[str, Callable[[float], str]] = {
    "amounts": "{:,.6g}".format,
    "small": "{:.4f}".format,
    "share": "{:.3f}".format,
}

SUITE = Suite(
    "colocation",
    "offline work beside online services: matchings with their proofs, and a day of them",
    Settings(methods=METHODS, seeds=3, largest=1_000_000, instances=24, time_limit=120.0),
    tasks,
    tables,
)
