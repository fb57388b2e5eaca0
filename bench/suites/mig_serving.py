"""MIG-serving's pipeline beside proved optima, and beside what its evaluation compares it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from bench.figures import middle, values
from bench.plots import Plot
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped
from bench.task import NAMED, Source, Task

from .published import SCENARIOS
from .quality import is_breached, known_values, mean_and_worst, ratio_plots, ratios
from .suite import Settings, Suite
from .summary import failures_of, how_measured, is_checked, is_worse, solves

FAST, PIPELINE, AUTO = "mig_serving_fast", "mig_serving", "auto"
AS_IS, RULES = "whole_gpus", ("whole_gpus", "smallest", "static_mix")
FAMILY, SIZES, RATES = "mig-serving", (24, 49), ("normal", "lognormal")
#: Seconds after which the pipeline is looked at before its end, and what it is called then.
EARLY = 10.0
AT_EARLY = f"{PIPELINE}, {EARLY:g} s"
#: What the columns of GPUs are of: a heading, who, and which field of the row.
GPUS = (
    ("fast", FAST, "cost"), (f"pipeline {EARLY:g} s", AT_EARLY, "cost"),
    ("pipeline", PIPELINE, "cost"), ("auto", AUTO, "cost"), ("bound", AUTO, "lower_bound"),
    ("as is", AS_IS, "cost"), ("all 1/7", "smallest", "cost"), ("4-2-1", "static_mix", "cost"),
    ("layouts ignored", "partition_free", "lower_bound"),
)  # fmt: skip
SAVERS = ("fast", "pipeline", "auto")


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield, of every instance, each algorithm, the evaluation's baselines and its bound."""
    for source in _sources(settings):
        for method in settings.methods:
            # The published rule ends the search long before the limit.
            options = {"rounds_without_gain": 10**9} if method == PIPELINE else {}
            yield from settings.solves("mig-serving", source, (method,), options=options)
        yield from settings.rules("mig-serving", source, RULES)
        yield from settings.bounds("mig-serving", source)


def _sources(settings: Settings) -> Iterator[Source]:
    for name in SCENARIOS:
        yield Source(family=name, module=NAMED)
    for n in settings.sizes(SIZES):
        for seed in range(settings.seeds):
            yield settings.source(FAMILY, n=n, seed=seed, rates=RATES[seed % len(RATES)])


def cost_at(row: RunRow, limit: float) -> Fraction | None:
    """Return the cost of the schedule that a run had after so many seconds; None without one."""
    costs = [cost for at, cost, *_ in row.history if at <= limit and cost is not None]
    return Fraction(costs[-1]) if costs else None


def seconds_to_best(row: RunRow) -> float | None:
    """Return when a run had the schedule with which it ended; None without one."""
    return min(
        (at for at, cost, *_ in row.history if cost is not None and Fraction(cost) == row.cost),
        default=None,
    )


def contestants(rows: Sequence[RunRow]) -> dict[str, list[RunRow]]:
    """Return the runs by method, without failed ones, and the pipeline's as they stood early."""
    found: dict[str, list[RunRow]] = {}
    for name, part in grouped(rows, lambda row: row.algorithm).items():
        fine = [row for row in part if row.outcome is not Outcome.FAILED]
        if name == PIPELINE:
            found[AT_EARLY] = [replace(row, cost=cost_at(row, EARLY)) for row in fine]
        found[name] = fine
    return found


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show the GPUs of everybody, and how far the pipeline is from what is proved."""
    return [table for table in (_gpus(rows), _distance(rows, settings)) if table.rows]


def _gpus(rows: Sequence[RunRow]) -> Table:
    """Show each scenario, and each kind of drawn instances, in a line."""
    known = known_values(rows)
    caption = (
        "GPUs (A100-80GB), of several instances the mean; '-': not all of them have a figure. "
        "fast: MIG-serving's greedy phase alone; pipeline: with its search, when it ends; bound: "
        "the lower bound that auto proves, checked; as is: whole GPUs; all 1/7: the smallest "
        "instances alone; layouts ignored: each service on the whole instances "
        "that cost it fewest slices, 7 to a GPU, which no layout need allow. The last columns are "
        "GPUs saved against as is. Every schedule and bound is checked exactly. Red: a failed run, "
        "answers that contradict, or a pipeline worse than fast."
    )
    headings = columns(
        "problems:text | instances",
        *(f"{heading}:amount" for heading, _, _ in GPUS),
        *(f"{saver} saves:percent" for saver in SAVERS),
    )
    table = Table("GPUs beside as is", caption, headings)
    for name, part in grouped(rows, _instances).items():
        count = len({row.instance for row in part})
        found = contestants(part)
        means = {
            heading: _mean(values(found.get(who, []), field), count) for heading, who, field in GPUS
        }
        breached = sum(is_breached(row, known.get(row.instance)) for row in part)
        red = failures_of(part) + breached + _worse(found.get(PIPELINE, []), found) > 0
        base, costs = means["as is"], [means[saver] for saver in SAVERS]
        savings = [None if c is None or not base else float(1 - c / base) for c in costs]
        table.add(name, count, *means.values(), *savings, red=red)
    return table


def _distance(rows: Sequence[RunRow], settings: Settings) -> Table:
    """Show each algorithm but the one that proves in a line, the pipeline early in one more."""
    mine = solves(rows)
    known = known_values([row for row in mine if row.algorithm == AUTO and is_checked(row)])
    found = contestants(mine)
    caption = (
        f"{PIPELINE}, {EARLY:g} s: the schedule that it had by then; it searches until the limit, "
        "not ten rounds without gain. nothing: no schedule; "
        f"compared: instances on which {AUTO} proved the optimum and the certificate was checked; "
        "the ratios are mean and worst of cost / optimum there. s to best: until the run had the "
        "schedule with which it ended. worse than fast: instances on which fast alone needs fewer "
        f"GPUs, which must not be. {how_measured(settings)}"
    )
    headings = columns(
        "algorithm:text | runs | failed | nothing | compared | optimal | / optimum:ratio",
        "worst / optimum:ratio | median s to best:seconds | worst s to best:seconds",
        "worse than fast",
    )
    table = Table("distance to the optimum", caption, headings)
    for name, part in found.items():
        if name == AUTO:
            continue
        method = PIPELINE if name == AT_EARLY else name
        failed = failures_of([row for row in mine if row.algorithm == method])
        worse = None if name == FAST else _worse(part, found)
        compared = ratios(part, known, "optimum")
        times = [] if name == AT_EARLY else [seconds_to_best(row) for row in part]
        took = [at for at in times if at is not None]
        red = bool(failed or (method == PIPELINE and worse) or min(compared, default=1) < 1)
        counts = len(part) + failed, failed, sum(row.cost is None for row in part), len(compared)
        distance = compared.count(Fraction(1)), *mean_and_worst(compared)
        table.add(name, *counts, *distance, middle(took), max(took, default=None), worse, red=red)
    return table


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the ratios to what is proved."""
    # One variant of each algorithm: no name needs its options.
    plain = [replace(row, options={}) for row in rows]
    return ratio_plots("mig_serving_ratios", "MIG-serving beside the optimum", plain)


def _instances(row: RunRow) -> str:
    """Say which line of the table a run belongs to."""
    if row.module == NAMED:
        return row.family
    return f"n={row.arguments['n']}, {row.arguments['rates']}"


def _mean(found: Sequence[Fraction], count: int) -> Fraction | None:
    """Return the mean over so many instances; None unless all of them have a value."""
    return sum(found, Fraction(0)) / count if len(found) == count else None


def _worse(part: Sequence[RunRow], found: Mapping[str, Sequence[RunRow]]) -> int:
    """Count the runs that end worse than the fast phase alone on the same instance."""
    fast = {row.instance: row.cost for row in found.get(FAST, [])}
    return sum(is_worse(row.cost, fast.get(row.instance)) for row in part)


SUITE = Suite(
    "mig-serving",
    "MIG-serving's pipeline, its baselines and its bound beside proved optima",
    Settings(methods=(FAST, PIPELINE, AUTO), seeds=20, time_limit=60.0, warm_up=False),
    tasks,
    tables,
    plots,
)
