"""GPUs on the published scenarios S1 to S6: the algorithms, and the schedulers people use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from bench.figures import values
from bench.peers import PEERS
from bench.plots import Plot, gpus_by_scenario
from bench.row import Outcome, RunRow
from bench.rules import RULES
from bench.tables import Table, columns, grouped
from bench.task import NAMED, Kind, Source, Task
from cms.plugin.registry import load_algorithm

from .quality import label
from .suite import Settings, Suite
from .summary import failures_of, how_measured

SCENARIOS = ("S1", "S2", "S3", "S4", "S5", "S6")


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield, of every scenario, each algorithm, each rule and each peer."""
    for name in SCENARIOS:
        source = Source(family=name, module=NAMED)
        yield from settings.solves("published", source)
        yield from settings.rules("published", source)
        yield from settings.asks("published", source, settings.time_limit)


def gpus(rows: Sequence[RunRow]) -> dict[str, dict[str, Fraction]]:
    """Return, for each method, what its schedule costs in each scenario where it has one."""
    return {
        name: {
            row.family: row.cost
            for row in part
            if row.outcome is Outcome.ANSWERED and row.cost is not None
        }
        for name, part in grouped(rows, label).items()
    }


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each method in a line, each scenario in a column."""
    caption = (
        "GPUs (A100-80GB) for the scenarios of the ParvaGPU paper on its measurements, its latency "
        "rule, at most 3 processes in an instance. Every schedule is checked exactly; proved: "
        "optimal with a checked certificate. The best throughput of each profile within the limit "
        f"is the same for all. {how_measured(settings)}"
    )
    headings = columns(
        "scheduler:text",
        *(f"{scenario}:exact" for scenario in (*SCENARIOS, "all")),
        "proved | slowest s:seconds | what it is:text",
    )
    table = Table("published scenarios", caption, headings)
    for name, part in grouped(rows, label).items():
        costs = gpus(part)[name]
        whole = sum(costs.values()) if len(costs) == len(SCENARIOS) else None
        each = [costs.get(scenario) for scenario in SCENARIOS]
        slowest, said = max(values(part, "seconds"), default=None), _summary(part[0])
        red = failures_of(part) > 0
        table.add(name, *each, whole, proved_by_check(part), slowest, said, red=red)
    return [table]


def proved_by_check(rows: Sequence[RunRow]) -> int:
    """Count the runs proved optimal with a checked certificate."""
    return sum(row.proved and row.proof == "checked" for row in rows)


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the GPUs of every scheduler."""
    title = "GPUs on the published scenarios"
    proved = [
        name
        for name, part in grouped(rows, label).items()
        if proved_by_check(part) == len(SCENARIOS)
    ]
    return [gpus_by_scenario("published", title, gpus(rows), SCENARIOS, proved)]


def _summary(row: RunRow) -> str:
    """Say what a method is, in a line."""
    if row.kind == Kind.RULE:
        return RULES[row.algorithm].summary
    if row.kind == Kind.PEER:
        return f"compact integer program: {PEERS[row.algorithm].summary}"
    first = (load_algorithm(row.algorithm)[0].__doc__ or "").strip().splitlines()
    return first[0].rstrip(".") if first else ""


SUITE = Suite(
    "published",
    "GPUs on S1 to S6 beside ParvaGPU's rule and the rules of thumb",
    Settings(
        methods=(*("auto", "greedy", "lp_rounding", "ptas"), *("mig_serving", "mig_serving_fast")),
        time_limit=20.0,
        peers=("highs",),
        warm_up=False,
    ),
    tasks,
    tables,
    plots,
)
