"""Blocks that services share in time: the exact method beside first fit, gpulet and its rivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from bench.figures import values
from bench.row import RunRow
from bench.tables import Table, columns, grouped
from bench.task import Source, Task

from .suite import Settings, Suite
from .summary import failures_of, is_checked, solves, summary

MODULE = "instances.families.time_sharing"
AUTO = "auto"
METHODS = (AUTO, "mix_first_fit", "gpulet", "gpulet_sbp", "gpulet_guided")
RULES = ("round_robin", "collect_then_run")
#: Of each of the three services, in items per second.
RATES = (50, 100, 300, 500, 600, 900, 1200, 2400, 5000)
#: Services of the larger mixes.
SIZES = (10, 20, 50)


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield every algorithm on each instance."""
    for source in _sources(settings):
        yield from settings.solves("gpulet", source)


def _sources(settings: Settings) -> Iterator[Source]:
    for rule in RULES:
        for rate in RATES[: settings.instances]:
            yield _source("scenario-3", rate=rate, rule=rule)
    for seed in range(settings.seeds):
        yield _source("random-mix", seed=seed, rule=RULES[seed % 2])
    for n in settings.sizes(SIZES):
        # Each takes as long as the limit, so there are fewer.
        for seed in range(-(-settings.seeds // 10)):
            yield _source("larger-mix", n=n, seed=seed)


def _source(family: str, **arguments: object) -> Source:
    return Source(family=family, arguments=arguments, module=MODULE)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show the GPUs of everybody, and what is proved how fast."""
    return [
        _gpus(rows, settings),
        summary("shared blocks", rows, label, settings, heading="services"),
    ]


def label(row: RunRow) -> str:
    """Say which line of a table a run belongs to."""
    if row.family == "larger-mix":
        return f"larger mixes of {row.n}"
    return f"{row.family.replace('-', ' ')}, {row.arguments['rule']}"


def _gpus(rows: Sequence[RunRow], settings: Settings) -> Table:
    """Show each kind of instances in a line: GPUs in all, by whom."""
    mine = solves(rows)
    methods = list(dict.fromkeys([*settings.methods, *(row.algorithm for row in mine)]))
    caption = (
        "GPUs in all, each left whole or cut into two shares; '-': not all instances have a "
        "schedule. The tables of batches and shares are made up (instances.families.time_sharing). "
        f"bound: what {AUTO} proves, checked; proved: instances on which that is its own number of "
        "GPUs, by a certificate that the independent checker accepts. Red: a failed run, or fewer "
        "GPUs than a bound."
    )
    amounts = [f"{name}:amount" for name in [*methods, "bound"]]
    headings = columns("services:text | instances", *amounts, "proved")
    table = Table("GPUs that services share in time", caption, headings)
    for name, part in grouped(mine, label).items():
        by_method = grouped(part, lambda row: row.algorithm)
        count = len({row.instance for row in part})
        ours = by_method.get(AUTO, [])
        gpus = [_total(by_method.get(who, []), "cost", count) for who in methods]
        proved = _total(ours, "lower_bound", count), sum(map(is_checked, ours))
        table.add(name, count, *gpus, *proved, red=failures_of(part) > 0 or _below(part))
    return table


def _total(rows: Sequence[RunRow], field: str, count: int) -> Fraction | None:
    """Add up a field; None if not all instances have it."""
    found = values(rows, field)
    return sum(found, Fraction(0)) if len(found) == count else None


def _below(rows: Sequence[RunRow]) -> bool:
    """Whether a method takes less than is proved to be needed."""
    parts = grouped(rows, lambda row: row.instance).values()
    found = [(values(part, "lower_bound"), values(part, "cost")) for part in parts]
    return any(bounds and costs and min(costs) < max(bounds) for bounds, costs in found)


SUITE = Suite(
    "gpulet",
    "services that share GPUs in time: auto beside first fit, gpulet, Nexus' packing, self-tuning",
    Settings(methods=METHODS, seeds=40, instances=len(RATES), largest=50, time_limit=60.0),
    tasks,
    tables,
)
