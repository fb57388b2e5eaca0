"""A transition in time, for the terminal: a row a GPU, and capacities against their floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count
from ..deployment.transition.curves import capacity_curves
from ..deployment.transition.durations import schedule
from ..deployment.transition.model import What
from .text_table import table, text
from .transition_gantt import Gantt
from .transition_panels import rates_of
from .transition_picture import transition_svg
from .transition_text import Axis, chart, rows
from .transition_words import (
    chain_words,
    clock,
    durations_words,
    headline,
    keys_of,
    short,
    still_words,
    untouched_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from rich.console import RenderableType

    from ..deployment.transition.curves import Curve, Steps
    from ..deployment.transition.durations import Durations
    from ..deployment.transition.model import Transition

__all__ = ["MOST_CHARTS", "MOST_LISTED", "MOST_ROWS", "transition_lines", "transition_svg"]

MOST_ROWS = 64
"""Rows of GPUs that the terminal shows."""
MOST_CHARTS = 12
"""Services whose capacity it draws: those that come nearest to their floors."""
MOST_LISTED = 40
"""Further ones of which it says the numbers."""
_MEANT = {
    What.CREATE: "+━ create", What.DELETE: "-┄ delete", What.RESTART: "~≈ restart in place",
    What.REWRITE: "*═ rewrite the GPU", What.SWITCH: ">─ switch shares",
}  # fmt: skip


def transition_lines(
    transition: Transition,
    *,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    by_node: bool = False,
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]] | None = None,
    width: int = 100,
) -> list[RenderableType]:
    """Describe for a person what happens when, if all takes as long as is assumed.

    Parameters
    ----------
    transition : Transition
    durations : Durations, optional
        Of what actions are made of; without them assumed ones, and it says so.
    max_parallel : int, optional
        At most so many actions at once.
    by_node : bool, default False
        As in `schedule`: whether the tool drains nodes.
    rates : Mapping of str to sequence of (number, number), optional
        As in `transition_svg`.
    width : int
        Columns of the terminal.

    Returns
    -------
    list of renderable
        Some hundred lines at most, however large the fleet is: GPUs with the same rows are drawn
        once, those without an action are named in one line.

    Raises
    ------
    InvalidOption
        If rates are of a service that is on neither side, or not in the order of time.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from rich.console import Console
    >>> from cms.fleet import OperatingPoint, Service, gpu
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Work
    >>> from cms.fleet.deployment.transition import Action, Kept, Spare, Transition, What
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, 60, 33)
    >>> held = Instance("2g.12gb", 0, Work("chat", point, Fraction(60)))
    >>> empty = FleetGpu("a", 0, gpu("a30-24gb"))
    >>> start, target = (
    ...     Deployment((FleetNode("a", (card,)),), (Service("chat", "bert", 50),))
    ...     for card in (empty, empty.with_instances([held]))
    ... )
    >>> action = Action(What.CREATE, "a", 0, adds=(held,))
    >>> found = Transition(start, target, {}, (action,), Spare(0), Kept(0, 0, "checked"))
    >>> console = Console(width=70, color_system=None)
    >>> for part in transition_lines(found, width=70):
    ...     console.print(part)  # doctest: +NORMALIZE_WHITESPACE
    0 -> 1 GPU: 1 action in 1 step (1 created), 1 min 20 s; nothing stays; no spare GPU
    <BLANKLINE>
                      0 s         20 s         40 s         1 min
                     ┌────────────┬────────────┬────────────┬───────────┬
    a/0              │+1━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
    +━ create; numbers: the services below
    Durations are assumed, not measured: create 1 min 20 s. Floors hold
    whatever the durations are.
    <BLANKLINE>
    capacity (─ with ● at its lowest) and floor (┄)
                      0 s         20 s         40 s         1 min
                     ┌────────────┬────────────┬────────────┬───────────┬
     1  chat 0 -> 60 items/s; lowest 0 at 0 s, no floor
                  60 ┤                                                  ┌
                     │                                                  │
                     │                                                  │
             floor 0 ┤●─────────────────────────────────────────────────┘
    """
    plan = schedule(transition, durations, max_parallel, by_node=by_node)
    places = keys_of(transition)
    known = rates_of(rates or {}, places)
    report: list[RenderableType] = [Text(headline(transition, plan), "bold")]
    gantt, curves = Gantt.of(transition, plan), capacity_curves(transition, plan)
    if gantt.rows:
        axis = Axis.of(gantt, width)
        report += [Text(), axis.head(), *rows(gantt, axis, places, MOST_ROWS)]
        if left := gantt.rows[MOST_ROWS:]:
            more = sum(len(own) for row in left for own in row.spans)
            gpus = count(sum(len(row.gpus) for row in left), "GPU")
            report.append(Text(f"... and {count(more, 'more action')} on {gpus}", "dim"))
    if line := untouched_words(gantt.untouched, max(60, 2 * width)):
        report.append(Text(line, "dim"))
    if gantt.rows:
        report += [Text(each, "dim") for each in _notes(transition, gantt)]
        report.append(Text(durations_words(transition, plan, durations, max_parallel), "dim"))
        if line := chain_words(transition, plan, places):
            report.append(Text(line, "dim"))
        report += _capacities(curves, axis, places, known)
    if line := still_words(curves):
        report.append(Text(f"\n{line}"))
    return report


def _notes(transition: Transition, gantt: Gantt) -> Iterator[str]:
    done = {action.what for action in transition.actions}
    parts = [word for what, word in _MEANT.items() if what in done]
    if any(action.is_temporary for action in transition.actions):
        parts.append("t temporary")
    if any(row.kept for row in gantt.rows):
        parts.append("2= two instances stay")
    yield f"{'; '.join(parts)}; numbers: the services below"


def _capacities(
    curves: Sequence[Curve], axis: Axis, places: dict[str, int], rates: Mapping[str, Steps]
) -> list[RenderableType]:
    """Draw the services that change, or whose rates are known.

    Of many, those that come nearest to their floors.
    """
    moving = [each for each in curves if each.changes or each.service in rates]
    nearest = sorted(moving, key=lambda each: each.lowest / each.floor if each.floor else 10**9)
    drawn = {each.service for each in nearest[:MOST_CHARTS]}
    report: list[RenderableType] = []
    if moving:
        what = "capacity (─ with ● at its lowest) and floor (┄)"
        if rates:
            what = "capacity (─ with ● at its lowest), floor (┄) and what comes (·, × above it)"
        report += [Text(f"\n{what}", "bold"), axis.head()]
    for each in moving:
        if each.service in drawn:
            report += chart(each, axis, places[each.service], rates.get(each.service, ()))
    if others := [each for each in moving if each.service not in drawn]:
        result = table("further service", ">now", ">then", ">lowest", ">at", ">floor")
        for each in others[:MOST_LISTED]:
            numbers = (short(value, up=False) for value in (each.before, each.after, each.lowest))
            result.add_row(
                text(f"{places[each.service] + 1} {each.service}"), *numbers,
                clock(each.lowest_s), short(each.floor, up=True),
            )  # fmt: skip
        report += [Text(), result]
        if (left := len(others) - MOST_LISTED) > 0:
            report.append(Text(f"... and {count(left, 'more service')}", "dim"))
    return report
