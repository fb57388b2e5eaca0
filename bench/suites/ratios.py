"""How close each algorithm of the theory comes to the optimum, next to what is proved of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module

from bench.figures import median
from bench.row import Outcome, Row
from bench.tables import Column, Table, grouped, percent, seconds
from bench.task import Task

from .suite import Settings, Suite
from .summary import solves

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
        {"variant": "lp", "plain": True},
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
            alone = replace(settings, methods=(method,))
            for options in VARIANTS.get(method, ({},)):
                yield from alone.solves("ratios", source, options=options)


def _instances(settings: Settings) -> Iterator[tuple[str, dict[str, object]]]:
    """List as many instances on an A100 as of other families."""
    module = import_module(settings.module)
    others = tuple(name for name in module.VARIANTS if name not in ON_A100)
    half = settings.instances // 2
    for seed in range(settings.seeds):
        yield from module.suite(half, settings.largest, seed, ON_A100)
        yield from module.suite(settings.instances - half, settings.largest, seed, others)


def tables(rows: Sequence[Row], settings: Settings) -> list[Table]:
    """Show each variant's ratios to the optimum, on an A100 and on other families."""
    mine = solves(rows)
    optima = {
        row.instance: row.cost
        for row in mine
        if row.algorithm == REFERENCE and row.status == "optimal" and row.cost is not None
    }
    found = []
    for title, wanted in (("A100", True), ("other families", False)):
        part = [row for row in mine if (row.family in ON_A100) == wanted]
        if part:
            found.append(_table(title, part, optima))
    return found


def _table(title: str, rows: Sequence[Row], optima: Mapping[str, Fraction]) -> Table:
    lines: list[tuple[object, ...]] = []
    red = set()
    for name, part in grouped(rows, _label).items():
        answered = [row for row in part if row.cost is not None and optima.get(row.instance)]
        ratios = [(row.cost or 0) / optima[row.instance] for row in answered]
        proved = [
            allowed / optima[row.instance]
            for row in answered
            if (allowed := _allowed(row, optima[row.instance])) is not None
        ]
        breached = sum(_breached(row, optima.get(row.instance)) for row in part)
        if breached or any(row.outcome is Outcome.FAILED for row in part):
            red.add(len(lines))
        took = [row.seconds for row in part if row.seconds is not None]
        lines.append(
            (
                name,
                sum(row.outcome is Outcome.ANSWERED for row in part),
                sum(row.outcome is Outcome.UNSUPPORTED for row in part),
                sum(ratio == 1 for ratio in ratios) / len(ratios) if ratios else None,
                float(sum(ratios) / len(ratios)) if ratios else None,
                float(max(ratios)) if ratios else None,
                float(median([float(ratio) for ratio in proved])) if proved else None,
                float(min(proved)) if proved else None,
                breached,
                median(took) if took else None,
            )
        )
    caption = (
        f"Ratios are cost / optimum, where {REFERENCE} proved the optimum; proved: what the "
        "guarantee allows at the optimum, divided by it (a guarantee against a smaller value "
        "promises more). breached: runs below the checked bound, below the optimum, or above the "
        "guarantee."
    )
    columns = (
        Column("algorithm", left=True),
        Column("answered"),
        Column("refused"),
        Column("optimal", percent),
        Column("mean ratio", seconds),
        Column("worst ratio", seconds),
        Column("proved: median", seconds),
        Column("proved: least", seconds),
        Column("breached"),
        Column("median s", seconds),
    )
    return Table(f"ratios: {title}", caption, columns, tuple(lines), frozenset(red))


def _label(row: Row) -> str:
    options = ", ".join(
        name if value is True else f"{value}" for name, value in dict(row.options).items()
    )
    return f"{row.algorithm} ({options})" if options else row.algorithm


def _allowed(row: Row, optimum: Fraction) -> Fraction | None:
    """Return what the guarantee allows if its reference were the optimum."""
    if not row.guarantee:
        return None
    return Fraction(row.guarantee["factor"]) * optimum + Fraction(row.guarantee["additive"])


def _breached(row: Row, optimum: Fraction | None) -> bool:
    """Whether a run contradicts bound <= optimum <= cost <= guarantee."""
    if row.outcome is not Outcome.ANSWERED or row.cost is None:
        return False
    if row.guarantee.get("verdict") == "breached":
        return True
    if optimum is None:
        return False
    allowed = _allowed(row, optimum)
    low = row.lower_bound is not None and row.lower_bound > optimum
    return low or row.cost < optimum or (allowed is not None and row.cost > allowed)


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
)
