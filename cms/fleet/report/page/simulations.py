"""A simulation as a page: which latency limits a plan kept when it was replayed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from ....values.words import decimal
from ..canvas import Canvas
from ..latency import draw_latencies
from ..simulation import COLUMNS, notes_of
from .parts import Cell, Column, Commands, Fact, Grid, Page, Part, Picture, Section

if TYPE_CHECKING:
    from ...simulation import ServiceResult, Simulation

__all__ = ["simulation_page"]

_TONES = {
    "kept": "good", "broken": "bad", "not replayed": "bad", "undecided": "fair", "no limit": "",
}  # fmt: skip
_SHOWN = ("limit", "rate/s", "p99 / limit", "late", "99 % interval", "load", "fill")


def simulation_page(simulation: Simulation, title: str, source: str = "") -> Page:
    """Put a simulation on a page.

    Parameters
    ----------
    simulation : Simulation
        Rechecked.
    title, source : str
    """
    canvas = Canvas()
    draw_latencies(canvas, simulation)
    sections = [
        Section("latency", "Latencies", [Picture(canvas, simulation.sentence)]),
        Section("services", "Services", [_grid(simulation)]),
    ]
    said = [*notes_of(simulation), *(f"Warning: {each}" for each in simulation.warnings)]
    if said:
        sections.append(Section("notes", "What broke a limit, and what came back", said))
    sections.append(_recheck(simulation, source))
    return Page(title, f"{simulation.sentence}.", list(_facts(simulation)), sections, source)


def _facts(simulation: Simulation) -> Iterator[Fact]:
    total = len(simulation.services)
    for verdict, tone in _TONES.items():
        number = sum(each.verdict == verdict for each in simulation.services)
        if number or verdict == "kept":
            good = tone != "good" or number == total
            yield Fact(
                f"Limits {verdict}" if verdict != "no limit" else "Without a limit",
                decimal(number), f"of {decimal(total)} services", tone if good else "",
            )  # fmt: skip
    requests = sum(each.requests for each in simulation.services)
    yield Fact("Requests replayed", decimal(requests), f"seed {simulation.seed}")


def _grid(simulation: Simulation) -> Grid:
    columns = [
        Column("service"), Column("verdict"), *(Column(name, number=True) for name in _SHOWN),
        *(Column(name, number=True) for name in ("median", "p90", "p99", "longest", "requests")),
    ]  # fmt: skip
    rows = []
    for each in simulation.services:
        keys = _keys(each)
        verdict = each.verdict.upper() + (" (overloaded)" if each.overloaded else "")
        times = (each.p50_ns, each.p90_ns, each.p99_ns, each.max_ns)
        rows.append(
            [
                Cell(each.name),
                Cell(verdict, tone=_TONES[each.verdict]),
                *(Cell(COLUMNS[name](each), keys[name]) for name in _SHOWN),
                *(Cell(f"{at / 1e6:.4g} ms", at) for at in times),
                Cell(decimal(each.requests), each.requests),
            ]
        )
    return Grid("Services", columns, rows)


def _keys(each: ServiceResult) -> dict[str, Fraction | float]:
    share = each.p99_share
    return {
        "limit": math.nan if each.limit_ns is None else each.limit_ns,
        "rate/s": each.rate_rps,
        "p99 / limit": math.nan if share is None else share,
        "late": each.late_share,
        "99 % interval": each.interval.high,
        "load": math.nan if each.load is None else each.load,
        "fill": each.mean_fill,
    }


def _recheck(simulation: Simulation, source: str) -> Section:
    parts: list[Part] = [
        "A replay is a measurement, no proof: it says what happened to these requests. That the "
        "verdicts follow from the counts was rechecked before this page was made. The same plan, "
        "seed and options give the same file, byte by byte, on any machine and any number of "
        "threads."
    ]
    if source:
        parts.append(
            Commands(
                ((f"cms check {shlex.quote(source)}", "that its numbers bear out its verdicts"),)
            )
        )
    if simulation.problem_sha256:
        parts.append(f"SHA-256 of the plan's problem: {simulation.problem_sha256}")
    return Section("proof", "What this shows", parts)
