"""The simulator's loops: events a second, beside the plain loop and SimPy in the same run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import middle
from bench.row import RunRow
from bench.tables import Table, columns, grouped
from bench.task import Kind, Source, Task

from .suite import Settings, Suite

#: Instances and processes in each.
_SHAPES = ((1, 1), (16, 4), (128, 4), (1_000, 4))
_ROUTINGS = ("weighted_random", "round_robin", "shortest_queue", "two_choices")
#: Who works the requests off, and how many requests he gets, so that each is done in a second.
_LOOPS = {"compiled": 1_000_000, "plain": 20_000, "simpy": 10_000}
#: SimPy is asked where its model needs no more than a draw, or a look at few stations.
_ASKED = {("weighted_random", 16), ("shortest_queue", 16)}


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every shape, routing and loop, as often as there are seeds."""
    for n, processes in _SHAPES:
        if n > settings.largest:
            continue
        arguments = {"instances": n, "processes": processes}
        source = Source(family="one-service", arguments=arguments, module="bench.queues")
        for routing in _ROUTINGS:
            for method, requests in _LOOPS.items():
                if method == "simpy" and (routing, n) not in _ASKED:
                    continue
                for seed in range(settings.seeds):
                    options = {"routing": routing, "requests": requests}
                    how = {"options": options, "seed": seed, "warm_up": True}
                    yield from settings.tasks(Kind.REPLAY, "replay", source, [method], **how)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show millions of events a second of each loop, a shape and routing a line."""
    caption = (
        "Millions of events (arrivals and ends of batches) a second of one core's time: load 0.9, "
        "padded batches of 8. Arrivals and draws are made, and code is compiled, beforehand. To "
        "find the shortest queue, or whose turn it is, the plain loop looks at all instances. "
        "Medians over the seeds; the ratios are those of the compiled loop to the others."
    )
    headings = columns(
        "instances x processes:text | routing:text | compiled:millions | plain:millions",
        "SimPy:millions | to plain:times | to SimPy:times",
        millions=lambda value: f"{value:.2g}" if value < 10 else f"{value:.0f}",
    )
    table = Table("replay", caption, headings)
    done = [row for row in rows if row.measurements]
    by = grouped(done, lambda row: (*row.arguments.values(), row.options["routing"]))
    for (n, processes, routing), part in by.items():
        runs = grouped(part, lambda row: row.algorithm)
        ours, *others = (middle([_speed(row) for row in runs.get(name, [])]) for name in _LOOPS)
        ratios = [ours / other if ours and other else None for other in others]
        table.add(f"{n} x {processes}", routing.replace("_", " "), ours, *others, *ratios)
    return [table]


def _speed(row: RunRow) -> float:
    return float(row.measurements["events"]) / float(row.measurements["cpu_seconds"]) / 1e6


SUITE = Suite(
    "replay",
    "the simulator's loops against the plain one and SimPy",
    Settings(seeds=3, largest=1_000, time_limit=60.0),
    tasks,
    tables,
)
