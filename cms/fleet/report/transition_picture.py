"""A transition in time as one self-contained SVG file: a row a GPU, and each service's capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from ..deployment.transition.curves import capacity_curves
from ..deployment.transition.durations import schedule
from ..deployment.transition.model import What
from .canvas import EDGE, FONT, Canvas, escaped
from .transition_bars import DEFINITIONS, draw_gantt
from .transition_gantt import Gantt, longest_chain
from .transition_panels import draw_panels, rates_of
from .transition_words import durations_words, headline, keys_of, still_words, untouched_words

if TYPE_CHECKING:
    from ..deployment.transition.durations import Durations, Schedule
    from ..deployment.transition.model import Transition

__all__ = ["draw_transition", "transition_svg"]

_MOST_ARROWS = 20  # more of them cross each other beyond reading
_MEANT = {
    What.CREATE: "+ create: full colour", What.DELETE: "- delete: striped",
    What.RESTART: "~ restart in place: striped old work, then the new",
    What.REWRITE: "* rewrite the whole GPU: heavy border",
    What.SWITCH: "> switch shares: full colour",
}  # fmt: skip


def transition_svg(
    transition: Transition,
    *,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    by_node: bool = False,
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]] | None = None,
) -> str:
    """Draw what happens when on each GPU, and each service's capacity against its floor.

    Parameters
    ----------
    transition : Transition
    durations : Durations, optional
        Without them assumed ones, and the picture says so.
    max_parallel : int, optional
        At most so many actions at once.
    by_node : bool, default False
        As in `schedule`: whether the tool drains nodes.
    rates : Mapping of str to sequence of (number, number), optional
        By service: from when on, in seconds, how many items per second come; ascending.

    Returns
    -------
    str
        An SVG document that refers to nothing outside itself; all names are escaped.

    Raises
    ------
    InvalidOption
        If rates are of a service that is on neither side, or not in the order of time.
    """
    canvas = Canvas()
    plan = schedule(transition, durations, max_parallel, by_node=by_node)
    head = headline(transition, plan)
    what, _, how = head.partition(": ")
    canvas.text(what.replace("->", "→"), EDGE, 20, "title", down=30)
    canvas.paragraph(how, 15, "verdict")
    draw_transition(canvas, transition, plan, durations, max_parallel, rates)
    return canvas.document(head)


def draw_transition(
    canvas: Canvas,
    transition: Transition,
    plan: Schedule,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]] | None = None,
) -> None:
    """Draw what happens when, and each service's capacity, below what is there.

    Parameters
    ----------
    canvas : Canvas
    transition : Transition
    plan : Schedule
        Of its actions in time.
    durations, max_parallel, rates
        As of :func:`transition_svg`.

    Raises
    ------
    InvalidOption
        As :func:`transition_svg`.
    """
    places, gantt = keys_of(transition), Gantt.of(transition, plan)
    known, curves = rates_of(rates or {}, places), capacity_curves(transition, plan)
    timing = durations_words(transition, plan, durations, max_parallel)
    still, untouched = still_words(curves), untouched_words(gantt.untouched, 600)
    head = headline(transition, plan)
    described = " ".join(part for part in (f"{head}.", timing, f"{untouched}. {still}") if part)
    canvas.add(f"<desc>{escaped(described)}</desc>")
    canvas.add(DEFINITIONS)
    if timing:
        canvas.paragraph(timing, FONT, "soft")
    canvas.y += 8
    if gantt.rows:
        draw_gantt(canvas, gantt, places, _waits(transition, plan))
    if untouched:
        canvas.paragraph(untouched, FONT, "soft")
    if gantt.rows:
        canvas.paragraph(_legend(transition, gantt, plan), 11, "small soft")
    canvas.y += 10
    draw_panels(canvas, curves, gantt.end, places, known)
    if still:
        canvas.paragraph(still, FONT, "")


def _legend(transition: Transition, gantt: Gantt, plan: Schedule) -> str:
    done = {action.what for action in transition.actions}
    parts = [word for what, word in _MEANT.items() if what in done]
    if any(action.is_temporary for action in transition.actions):
        parts.append("t, broken border: temporary")
    if any(row.kept for row in gantt.rows):
        parts.append("faint line below: an instance that stays")
    if waits := _waits(transition, plan):
        which = "" if len(waits) == len(_binding(transition, plan)) else "what takes longest: "
        parts.append(f"arrow: {which}begins when that has ended")
    return "; ".join([*parts, "numbers and colours: the services below"])


# --- waits ----------------------------------------------------------------------------------------


def _binding(transition: Transition, plan: Schedule) -> list[tuple[int, int]]:
    """The waits for another GPU that decide when an action begins."""
    return [
        (before, at)
        for at, action in enumerate(transition.actions)
        for before in action.after
        if plan.end_s[before] == plan.begin_s[at] and transition.actions[before].gpu != action.gpu
    ]


def _waits(transition: Transition, plan: Schedule) -> list[tuple[int, int]]:
    """Those that are drawn: all where there are few, else those that make it take so long."""
    binding = _binding(transition, plan)
    if len(binding) <= _MOST_ARROWS:
        return binding
    chain = longest_chain(transition, plan)
    return sorted(set(binding) & set(pairwise(chain)))
