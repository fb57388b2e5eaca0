"""Who shares a GPU with whom, as a page: the classes, what they are worth, and both bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from ....values.words import count, decimal, percent
from ...sharing.classes import FULL_WEIGHT
from ..canvas import Canvas
from ..sharing import forbidden_by, headline
from ..sharing_picture import MEANT, draw_sharing
from .charts import Known, bounds_chart
from .parts import Cell, Column, Fact, Grid, Page, Part, Picture, Section
from .proofs import recheck

if TYPE_CHECKING:
    from ...sharing.problem import SharingProblem
    from ...sharing.solution import SharingSolution

__all__ = ["sharing_page"]


def sharing_page(
    problem: SharingProblem, solution: SharingSolution, title: str, sources: tuple[str, ...] = ()
) -> Page:
    """Put a solution of a problem of sharing on a page.

    Parameters
    ----------
    problem : SharingProblem
    solution : SharingSolution
        Of this problem; rechecked.
    title : str
    sources : tuple of str
        The two files.
    """
    said = headline(problem, solution)
    sections = []
    if problem.online:
        canvas = Canvas()
        draw_sharing(canvas, problem, solution)
        sections.append(Section("fleet", "The GPUs", [MEANT, Picture(canvas, said)]))
    sections.append(Section("online", "Online classes", [_online(problem, solution)]))
    sections.append(Section("offline", "Offline classes", list(_offline(problem, solution))))
    if solution.history:
        sections.append(_bounds(solution))
    sections.append(_proof(problem, solution, sources))
    return Page(title, f"{said}.", list(_facts(problem, solution)), sections, " and ".join(sources))


def _facts(problem: SharingProblem, solution: SharingSolution) -> Iterator[Fact]:
    wanted, gpus = sum(f.count for f in problem.offline), sum(o.count for o in problem.online)
    placed = solution.plan.placed
    yield Fact(
        "Workloads placed", decimal(placed), f"of {decimal(wanted)}, on {count(gpus, 'GPU')}"
    )
    yield Fact(
        "Worth", _equivalents(solution.value, up=False), "GPUs that offline work would need alone"
    )
    yield Fact(
        "Bound",
        f"≤ {_equivalents(solution.upper_bound, up=True)}",
        "no plan is worth more",
    )
    if solution.proof == "checked":
        yield Fact("Proof", "optimal", "the proof was checked exactly", "good")
    else:
        gap = percent(solution.relative_gap, up=True)
        yield Fact("Proof", "of the bound", f"at most {gap} more is possible", "fair")


def _equivalents(value: int, *, up: bool) -> str:
    return decimal(Fraction(value, FULL_WEIGHT), rounding=math.ceil if up else math.floor)


# --- classes --------------------------------------------------------------------------------------


def _online(problem: SharingProblem, solution: SharingSolution) -> Grid:
    columns = (
        Column("class"), Column("device"), Column("GPUs", number=True),
        Column("SMs online", number=True), Column("share left", number=True),
        Column("taken", number=True), Column("one more is worth", number=True),
        Column("runs", long=True),
    )  # fmt: skip
    runs: dict[str, list[tuple[int, str]]] = {}
    for pair in solution.plan:
        runs.setdefault(pair.online, []).append((pair.count, pair.offline))
    rows = []
    for own, share in zip(problem.online, problem.shares, strict=True):
        mine = sorted(runs.get(own.name, []), reverse=True)
        taken = sum(n for n, _ in mine)
        rows.append(
            [
                Cell(own.name),
                Cell(own.device),
                Cell(decimal(own.count), own.count),
                Cell(f"{decimal(own.sm_activity)} %", own.sm_activity),
                Cell(f"{share} %" if share else "-", share),
                Cell(decimal(taken), taken),
                _worth(solution.certificate.online.get(own.name, 0)),
                Cell("\n".join(f"{decimal(n)} x {name}" for n, name in mine) or "-"),
            ]
        )
    return Grid("Online classes", columns, rows)


def _offline(problem: SharingProblem, solution: SharingSolution) -> Iterator[Part]:
    columns = (
        Column("#", number=True), Column("class"), Column("workloads", number=True),
        Column("placed", number=True), Column("left over", number=True),
        Column("priority", number=True), Column("one more is worth", number=True),
    )  # fmt: skip
    placed: dict[str, int] = {}
    for pair in solution.plan:
        placed[pair.offline] = placed.get(pair.offline, 0) + pair.count
    rows = []
    for place, work in enumerate(problem.offline):
        here = placed.get(work.name, 0)
        rows.append(
            [
                Cell("", place + 1, place),
                Cell(work.name),
                Cell(decimal(work.count), work.count),
                Cell(decimal(here), here),
                Cell(decimal(work.count - here), work.count - here),
                Cell(decimal(work.priority), work.priority),
                _worth(solution.certificate.offline.get(work.name, 0)),
            ]
        )
    yield Grid("Offline classes", columns, rows)
    if reasons := forbidden_by(problem):
        parts = ", ".join(f"{decimal(n)} {why}" for why, n in reasons.items())
        yield f"Pairs of classes that may not share a GPU: {parts}."


def _worth(price: int) -> Cell:
    """What one more of a class is worth at most, in GPU-equivalents."""
    return Cell(_equivalents(price, up=True) if price else "-", price)


# --- bounds and proof -----------------------------------------------------------------------------


def _bounds(solution: SharingSolution) -> Section:
    known = [
        Known(
            line.seconds, Fraction(line.value, FULL_WEIGHT),
            Fraction(line.upper_bound, FULL_WEIGHT), line.source,
        )
        for line in solution.history
    ]  # fmt: skip
    canvas = bounds_chart(known, solution.seconds, "worth found", "bound")
    columns = (
        Column("time", number=True), Column("worth", number=True), Column("bound", number=True),
        Column("by"),
    )  # fmt: skip
    rows = [
        [
            Cell(f"{line.seconds:.3f} s", line.seconds),
            Cell(_equivalents(line.value, up=False), line.value),
            Cell(_equivalents(line.upper_bound, up=True), line.upper_bound),
            Cell(line.source),
        ]
        for line in solution.history
    ]
    why = solution.stop_reason.replace("_", " ")
    run = f"The run: {solution.method}, {solution.seconds:.2f} s, ended: {why}. In GPU-equivalents."
    grid = Grid("Each improvement", columns, rows, folded=True)
    drawn = Picture(canvas, "What was found and what was proved over time")
    return Section("bounds", "Both bounds over time", [run, drawn, grid])


def _proof(problem: SharingProblem, solution: SharingSolution, sources: tuple[str, ...]) -> Section:
    return Section(
        "proof",
        "The proof",
        [
            "A price on every class, such that no allowed pair is worth more than its two prices. "
            "Then no plan is worth more than all prices together, each as often as its class "
            f"counts: {_equivalents(solution.upper_bound, up=True)} GPU-equivalents. A price is "
            "also the most that one more of its class is worth.",
            "Plan, value and prices were rechecked from the files before this page was made, in "
            "whole numbers. So can you; the second checker shares no code with the first and needs "
            "Python alone:",
            recheck(*(sources or ("problem.json", "share.json"))),
            f"SHA-256 of the problem: {problem.sha256}",
        ],
    )
