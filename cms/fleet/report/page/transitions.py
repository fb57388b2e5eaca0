"""A transition as a page: what happens when on each GPU, and how low each service gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....values.words import count, decimal
from ...deployment.transition.checking import RECHECKED
from ...deployment.transition.curves import capacity_curves
from ...deployment.transition.durations import schedule
from ..canvas import Canvas
from ..transition_picture import draw_transition
from ..transition_words import clock, headline, keys_of, said, short
from .deployments import fleet_section
from .parts import Cell, Column, Fact, Grid, Page, Picture, Section
from .proofs import recheck

if TYPE_CHECKING:
    from ...deployment.transition.durations import Durations, Schedule
    from ...deployment.transition.model import Transition

__all__ = ["transition_page"]


def transition_page(
    transition: Transition, title: str, source: str = "", durations: Durations | None = None
) -> Page:
    """Put a transition on a page.

    Parameters
    ----------
    transition : Transition
        Rechecked.
    title, source : str
    durations : Durations, optional
        Without them assumed ones, and the page says so.
    """
    plan = schedule(transition, durations)
    canvas = Canvas()
    draw_transition(canvas, transition, plan, durations)
    drawn = Picture(canvas, headline(transition, plan))
    sections = [
        Section("time", "What happens when", [drawn, _actions(transition, plan)]),
        _services(transition, plan),
        fleet_section(transition.start, "before", "The GPUs before"),
        fleet_section(transition.target, "after", "The GPUs after"),
        _proof(transition, source),
    ]
    lead = headline(transition, plan).replace("->", "→")
    return Page(title, f"{lead}.", list(_facts(transition, plan)), sections, source)


def _facts(transition: Transition, plan: Schedule) -> Iterator[Fact]:
    before, after = (len(side.used_gpus()) for side in (transition.start, transition.target))
    yield Fact("GPUs", f"{decimal(before)} → {decimal(after)}", "in use before and after")
    number, steps = len(transition.actions), len(transition.steps)
    yield Fact("Actions", decimal(number), f"in {count(steps, 'step')}, {clock(plan.makespan_s)}")
    kept, spare = transition.kept, transition.spare
    best = kept.count >= kept.most
    most = "no transition keeps more" if best else f"none keeps more than {decimal(kept.most)}"
    word = " (a solver's word)" if kept.proof == "solver" else ""
    yield Fact("Stay untouched", count(kept.count, "instance"), most + word, "good" if best else "")
    least = "fewer are proved not to do" if spare.is_least else f"{spare.least} at least"
    yield Fact(
        "Spare GPUs", decimal(spare.count), least if spare.count else "none is needed",
        "good" if spare.is_least else "fair",
    )  # fmt: skip


def _actions(transition: Transition, plan: Schedule) -> Grid:
    columns = (
        Column("action", number=True), Column("what", long=True), Column("begins", number=True),
        Column("ends", number=True), Column("after"),
    )  # fmt: skip
    rows = []
    times = zip(transition.actions, plan.begin_s, plan.end_s, strict=True)
    for at, (action, begin, end) in enumerate(times, start=1):
        waits = ", ".join(str(before + 1) for before in action.after)
        rows.append(
            [
                Cell(decimal(at), at),
                Cell(said(action)),
                Cell(clock(begin), begin),
                Cell(clock(end), end),
                Cell(waits or "-"),
            ]
        )
    return Grid("Every action, and what it waits for", columns, rows, folded=True)


def _services(transition: Transition, plan: Schedule) -> Section:
    places = keys_of(transition)
    columns = (
        Column("#", number=True), Column("service"), Column("before/s", number=True),
        Column("lowest/s", number=True), Column("at", number=True),
        Column("floor/s", number=True), Column("after/s", number=True), Column("floor is"),
    )  # fmt: skip
    rows = []
    for each in capacity_curves(transition, plan):
        floor = transition.floors.get(each.service)
        low = each.lowest < each.floor
        rows.append(
            [
                Cell("", places[each.service] + 1, places[each.service]),
                Cell(each.service),
                Cell(short(each.before, up=False), each.before),
                Cell(short(each.lowest, up=False), each.lowest, tone="bad" if low else ""),
                Cell(clock(each.lowest_s), each.lowest_s),
                Cell(short(each.floor, up=True), each.floor),
                Cell(short(each.after, up=False), each.after),
                Cell("none: it comes or goes" if floor is None else floor.reason),
            ]
        )
    note = "Capacities in items/s; the floors hold in every execution, whatever the durations are."
    grid = Grid("Each service's capacity on the way", columns, rows)
    return Section("services", "Services on the way", [note, grid])


def _proof(transition: Transition, source: str) -> Section:
    parts = [f"Rechecked exactly from the file before this page was made: {'; '.join(RECHECKED)}."]
    if transition.spare.least:
        needed = count(transition.spare.least, "spare GPU")
        parts.append(f"At least {needed}: {transition.spare.reason}.")
    borrowed = ", ".join(transition.spare.borrowed)
    if borrowed:
        parts.append(f"Borrowed meanwhile: {borrowed}.")
    return Section("proof", "The proof", [*parts, recheck(source or "transition.json")])
