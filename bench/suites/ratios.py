"""How close each algorithm of the theory comes to the optimum, next to what is proved of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from bench.plots import Plot
from bench.row import RunRow
from bench.tables import Table
from bench.task import Task

from .quality import known_values, quality, ratio_plots
from .suite import Settings, Suite
from .summary import how_measured, solves

#: Who says what the optimum is.
REFERENCE = "cp_sat"
#: Families on the configurations of an A100; the others come second.
ON_A100 = ("real-rows", "arbitrary", "sparse", "near-ties", "superlinear", "sublinear")
#: The algorithms and their variants.
VARIANTS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "greedy": (
        {},
        {"variant": "units", "inner": "exact", "plain": True},
        {"variant": "units", "inner": "greedy", "plain": True},
        {"variant": "inflated", "inner": "exact", "plain": True},
        {"variant": "alone", "plain": True},
    ),
    "lp_rounding": (
        {},
        {"variant": "milp", "plain": True},
        {"variant": "published", "plain": True},
        {"variant": "supports", "plain": True},
        {"variant": "doubling", "plain": True},
    ),
    "ptas": ({"epsilon": "1/2"}, {"epsilon": "1/4"}, {"epsilon": "1/10"}),
    "conic": ({}, {"route": "points", "plain": True}, {"route": "cells", "plain": True}),
}


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield, of every instance, the reference and each variant of each algorithm."""
    for family, arguments in _instances(settings):
        source = settings.source(family, **arguments)
        for method in dict.fromkeys([REFERENCE, *settings.methods]):
            for options in VARIANTS.get(method, ({},)):
                yield from settings.solves("ratios", source, (method,), options=options)


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
    mine = solves(rows)
    known = known_values(mine)
    note = f"n <= {settings.largest}. {how_measured(settings)}"
    found = []
    for title, wanted in (("A100", True), ("other families", False)):
        part = [row for row in mine if (row.family in ON_A100) == wanted]
        found.append(quality(f"ratios: {title}", part, known, note))
    return [table for table in found if table is not None]


def plots(rows: Sequence[RunRow], settings: Settings) -> list[Plot]:
    """Draw the ratios on an A100 and on other families."""
    drawn = []
    for name, title, wanted in (("a100", "A100", True), ("others", "other families", False)):
        part = [row for row in solves(rows) if (row.family in ON_A100) == wanted]
        drawn += ratio_plots(f"ratios_{name}", f"Observed and proved ratios: {title}", part)
    return drawn


SUITE = Suite(
    "ratios",
    "the algorithms of the theory against the optimum and their guarantees",
    Settings(
        methods=("greedy", "lp_rounding", "ptas", "conic"),
        time_limit=5.0,
        instances=2_000,
        largest=12,
        warm_up=False,
    ),
    tasks,
    tables,
    plots,
)
