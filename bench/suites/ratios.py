"""How close each algorithm comes to the optimum, next to what is proved of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from bench.figures import middle, values
from bench.plots import Plot
from bench.row import Outcome, RunRow
from bench.tables import Table, columns, grouped
from bench.task import Task

from .quality import (
    is_breached,
    known_values,
    label,
    mean_and_worst,
    median_guarantee,
    ratio_plots,
    ratios,
)
from .suite import Settings, Suite
from .summary import how_measured

#: Who says what the optimum is.
REFERENCE = "cp_sat"
#: Families on the configurations of an A100; the others come second.
ON_A100 = ("real-rows", "arbitrary", "sparse", "near-ties", "superlinear", "sublinear")
#: The algorithms of the theory in their variants; the other methods have none.
VARIANTS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "greedy": (
        {},
        *(
            {"variant": "units", "inner": inner, "plain": True}
            for inner in ("greedy", "independent", "dependent", "exact")
        ),
        {"variant": "inflated", "inner": "exact", "plain": True},
        {"variant": "alone", "plain": True},
    ),
    "lp_rounding": (
        {},
        *(
            {"variant": variant, "plain": True}
            for variant in ("milp", "supports", "published", "enumeration", "doubling")
        ),
    ),
    "ptas": ({"epsilon": "1/2"}, {"epsilon": "1/4"}, {"epsilon": "1/10"}),
    "conic": ({}, {"route": "points", "plain": True}, {"route": "cells", "plain": True}),
}
#: A published scheduler's rule, beside MIG-serving's two phases.
PUBLISHED_RULES = ("parvagpu",)


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield, of every instance, the reference and each variant of each algorithm."""
    for family, arguments in _instances(settings):
        source = settings.source(family, **arguments)
        for method in dict.fromkeys([REFERENCE, *settings.methods]):
            for options in VARIANTS.get(method, ({},)):
                yield from settings.solves("ratios", source, (method,), options=options)
        yield from settings.rules("ratios", source, PUBLISHED_RULES)


def _instances(settings: Settings) -> Iterator[tuple[str, dict[str, object]]]:
    """List as many instances on an A100 as of other families."""
    module = import_module(settings.module)
    others = tuple(name for name in module.VARIANTS if name not in ON_A100)
    half = settings.instances // 2
    for seed in range(settings.seeds):
        yield from module.suite(half, settings.largest, seed, ON_A100)
        yield from module.suite(settings.instances - half, settings.largest, seed, others)


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show each variant's ratios to the optimum, on an A100 and on other families."""
    known = known_values(rows)
    caption = (
        "Of the instances that a method takes and whose optimum CP-SAT knows: mean and worst of "
        "cost / optimum, and the share where that is 1. guarantee: the median of what it allows, "
        "divided by the optimum. breached: runs below the optimum or above the guarantee. At most "
        f"{settings.largest} jobs, {settings.time_limit:g} s a run. {how_measured(settings)}"
    )
    headings = columns(
        "algorithm:text | instances | mean:ratio | worst:ratio | optimal:percent",
        "guarantee:ratio | breached | median s:seconds",
    )
    found = []
    for title, part in _halves(rows):
        table = Table(f"ratios: {title}", caption, headings)
        for name, runs in grouped(part, label).items():
            answered = [row for row in runs if row.outcome is Outcome.ANSWERED]
            seen = ratios(answered, known, "optimum")
            if seen:
                optimal = sum(value == 1 for value in seen) / len(seen)
                guarantee = median_guarantee(answered, known)
                breached = sum(is_breached(row, known.get(row.instance)) for row in runs)
                took = middle(values(answered, "seconds"))
                figures = len(seen), *mean_and_worst(seen), optimal, guarantee, breached, took
                table.add(name, *figures, red=breached > 0)
        if table.rows:
            found.append(table)
    return found


def _halves(rows: Sequence[RunRow]) -> Iterator[tuple[str, list[RunRow]]]:
    for title, wanted in (("A100", True), ("other families", False)):
        yield title, [row for row in rows if (row.family in ON_A100) == wanted]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the ratios on an A100 and on other families."""
    drawn = []
    for title, part in _halves(rows):
        name = f"ratios_{title.split()[0].lower()}"
        drawn += ratio_plots(name, f"Observed and proved ratios: {title}", part)
    return drawn


SUITE = Suite(
    "ratios",
    "how close each algorithm comes to CP-SAT's optimum, next to its guarantee",
    Settings(
        methods=(
            *("greedy", "lp_rounding", "ptas", "conic", "auto"),
            *("mig_serving_fast", "mig_serving"),
        ),
        time_limit=5.0,
        instances=2_000,
        largest=12,
        warm_up=False,
    ),
    tasks,
    tables,
    plots,
)
