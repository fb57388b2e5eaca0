"""What plans by each queueing rule cost, and how many of their limits hold when replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from bench.plans import DRAWN
from bench.row import RunRow
from bench.runs.promising import CONDITIONS
from bench.tables import Table, amount, columns, grouped
from bench.task import Kind, Source, Task

from .suite import Settings, Suite

#: How a plan is made: arguments of the source, and whether all rates grow as much as they can.
_WAYS: dict[str, tuple[dict[str, Any], bool]] = {
    "parvagpu": ({"rule": "parvagpu"}, False),
    "parvagpu, most growth": ({"rule": "parvagpu"}, True),
    "capacity": ({"rule": "capacity"}, False),
    "capacity, most growth": ({"rule": "capacity"}, True),
    "capacity, table only": ({"rule": "capacity", "curves": False}, False),
    "capacity, margin 10 %": ({"rule": "capacity", "margin": "0.1"}, False),
    "capacity_certified": ({"rule": "capacity_certified"}, False),
    "capacity_certified, most growth": ({"rule": "capacity_certified"}, True),
}
#: Published scenarios, and how many services each has.
_PUBLISHED = {"S1": 6, "S2": 11, "S3": 11, "S4": 11, "S5": 11, "S6": 11}
_PROCESSES = (5, 3)
_DRAWN_SIZE = 10


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every scenario and way to plan, once for each seed of the requests."""
    at_most = {name: n for name, n in _PUBLISHED.items() if n <= settings.largest}
    wanted = [(name, n, 0, most) for most in _PROCESSES for name, n in at_most.items()]
    size = min(_DRAWN_SIZE, settings.largest)
    wanted += [(DRAWN, size, seed, _PROCESSES[0]) for seed in range(settings.instances)]
    for family, n, number, most in wanted:
        for how, grow in _WAYS.values():
            arguments = {"n": n, "seed": number, "processes": most, **how}
            source = Source(family=family, arguments=arguments, module="bench.plans")
            options = {"growth": grow, "requests": settings.requests}
            for method in settings.methods:
                for seed in range(settings.seeds):
                    how = {"options": options, "seed": seed}
                    yield from settings.tasks(Kind.PROMISE, "promises", source, [method], **how)


class _Kept(NamedTuple):
    """Services that met their limits, and those of them that are sure to."""

    seen: float
    sure: float


def _kept(value: _Kept) -> str:
    return f"{value.seen:.4g}" + (f" ({value.sure:.4g})" if value.sure < value.seen else "")


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show what each way costs and keeps: published scenarios by processes, and drawn ones."""
    names = {(_arguments(how), grow): name for name, (how, grow) in _WAYS.items()}
    done = [row for row in rows if "services" in row.measurements]
    found = []
    by = grouped(done, lambda row: (row.family == DRAWN, row.arguments["processes"]))
    for (drawn, processes), part in by.items():
        ways = grouped(
            part,
            lambda row: (names[_arguments(row.arguments), row.options["growth"]], row.algorithm),
        )
        title = f"{'drawn' if drawn else 'S1 to S6'}, at most {processes} processes"
        lines = [_line(way, method, own, drawn=drawn) for (way, method), own in ways.items()]
        found.append(Table(title, _CAPTION, _COLUMNS, lines))
    return found


def _arguments(arguments: Any) -> tuple[Any, ...]:
    return tuple(arguments.get(key) for key in ("rule", "curves", "margin"))


def _line(way: str, method: str, rows: Sequence[RunRow], *, drawn: bool) -> tuple[Any, ...]:
    seeds = len({row.seed for row in rows})
    plans = [row for row in rows if row.seed == rows[0].seed]
    costs = [row.cost or Fraction(0) for row in plans]
    measured = [row.measurements for row in rows]
    kept = [
        _Kept(*(sum(each[name][at] for each in measured) / seeds for at in (0, 1)))
        for name in CONDITIONS
    ]
    return (
        way if method == "auto" else f"{way} ({method})",
        None if drawn else " ".join(map(amount, costs)),
        sum(costs, Fraction(0)),
        f"{sum(row.proved for row in plans)} of {len(plans)}",
        round(sum(row.measurements["services"] for row in plans)),
        *kept,
        max(max(each[name][2] for name in ("random", "shortest")) for each in measured),
    )


_CAPTION = (
    "GPUs of each scenario and together, how many are proved and checked; then services of which "
    "at most 1 % of the requests were late (in brackets, where fewer: those of which that is sure "
    "to 99 %; means over the seeds): Poisson arrivals with random routing and to the shortest "
    "queue, gamma gaps of CV2 4 with both, 10 % more rate and equal weights. Weights are the "
    "plan's supplies, but for the last. Worst: the largest p99 over its limit in the first two."
)
_COLUMNS = columns(
    "rule:text | GPUs:text | sum:amount | proved | services | random:kept | shortest:kept",
    "CV2 4, random:kept | CV2 4, shortest:kept | +10 %, shortest:kept | equal, random:kept",
    "worst:percent",
    kept=_kept,
)

SUITE = Suite(
    "promises",
    "GPUs and kept latency limits under each queueing rule",
    Settings(instances=12, largest=11, time_limit=20.0, requests=200_000),
    tasks,
    tables,
)
