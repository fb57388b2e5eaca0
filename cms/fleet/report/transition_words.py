"""What is said of a transition in time: the head, the durations, what stays as it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from ...values.words import count, decimal, printable
from ..deployment.observation.age import format_age
from ..deployment.transition.curves import service_names
from ..deployment.transition.model import What
from .fleet_bars import names
from .transition_gantt import SIGNS, longest_chain

if TYPE_CHECKING:
    from ..deployment.model import FleetGpu
    from ..deployment.transition.curves import Curve
    from ..deployment.transition.durations import Durations, Schedule
    from ..deployment.transition.model import Action, Transition

__all__ = [
    "chain_words", "clock", "durations_words", "headline", "keys_of", "lowest_words", "said",
    "short", "still_words", "ticks", "untouched_words",
]  # fmt: skip

_MINUTE, _HOUR = 60, 3600
#: Seconds between two ticks of the time axis.
_TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)
_MOST_NAMES = 12
_MOST_CHAIN = 8
_DONE = {
    What.CREATE: "created", What.DELETE: "deleted", What.RESTART: "restarted in place",
    What.REWRITE: "rewritten", What.SWITCH: "switched",
}  # fmt: skip


def clock(seconds: Fraction) -> str:
    """Write seconds for reading.

    Examples
    --------
    >>> clock(Fraction(0)), clock(Fraction(25, 2)), clock(Fraction(200)), clock(Fraction(7500))
    ('0 s', '12.5 s', '3 min 20 s', '2 h 5 min')
    """
    if seconds < _MINUTE:
        return f"{decimal(seconds)} s"
    return format_age(timedelta(seconds=round(seconds)))


def ticks(end: Fraction, most: int) -> tuple[Fraction, ...]:
    """Return where a time axis has its ticks: at most so many after the one at 0.

    Examples
    --------
    >>> [clock(tick) for tick in ticks(Fraction(500), 5)]
    ['0 s', '2 min', '4 min', '6 min', '8 min']
    """
    step = next((each for each in _TICKS if end <= each * most), None)
    if step is None:
        step = _TICKS[-1] * -(-end // (_TICKS[-1] * most))
    return tuple(Fraction(at * step) for at in range(int(end // step) + 1))


def keys_of(transition: Transition) -> dict[str, int]:
    """Each service's place, which gives its colour and key."""
    return {name: place for place, name in enumerate(service_names(transition))}


def headline(transition: Transition, plan: Schedule) -> str:
    """Say in a sentence what happens: GPUs, actions, time, what stays."""
    before, after = (len(side.used_gpus()) for side in (transition.start, transition.target))
    if not transition.actions:
        return f"nothing to do: {count(after, 'GPU')} stay as they are"
    done = Counter(each.what for each in transition.actions)
    actions = ", ".join(
        f"{decimal(done[what])} {word}" for what, word in _DONE.items() if done[what]
    )
    spare, kept = transition.spare.count, transition.kept.count
    stays = (
        f"{count(kept, 'instance')} {'stays' if kept == 1 else 'stay'}" if kept else "nothing stays"
    )
    return (
        f"{decimal(before)} -> {count(after, 'GPU')}: {count(len(transition.actions), 'action')} "
        f"in {count(len(transition.steps), 'step')} ({actions}), {clock(plan.makespan_s)}; "
        f"{stays}; "
        f"{count(spare, 'spare GPU') if spare else 'no spare GPU'}"
    )


def durations_words(
    transition: Transition, plan: Schedule, durations: Durations | None, max_parallel: int | None
) -> str:
    """Say what the time axis rests on."""
    if not transition.actions:
        return ""
    takes: dict[What, set[Fraction]] = {}
    for action, begin, end in zip(transition.actions, plan.begin_s, plan.end_s, strict=True):
        takes.setdefault(action.what, set()).add(end - begin)
    parts = []
    for what in What:
        if own := takes.get(what):
            least, most = min(own), max(own)
            span = clock(most) if least == most else f"{clock(least)} to {clock(most)}"
            parts.append(f"{what} {span}")
    given = "assumed, not measured" if durations is None else "as given"
    side = "" if max_parallel is None else f", at most {count(max_parallel, 'action')} at once"
    return (
        f"Durations are {given}: {', '.join(parts)}{side}. Floors hold whatever the durations are."
    )


def untouched_words(untouched: Sequence[FleetGpu], most: int) -> str:
    """Name the GPUs on which nothing is done, in so many characters.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import FleetGpu
    >>> untouched_words([FleetGpu("a", index, gpu("a30-24gb")) for index in range(3)], 60)
    '3 GPUs untouched (3 empty): a/0-2'
    """
    if not untouched:
        return ""
    empty = sum(card.is_empty for card in untouched)
    used = [f"{decimal(len(untouched) - empty)} in use"] if empty < len(untouched) else []
    held = ", ".join(used + [f"{decimal(empty)} empty"] * bool(empty))
    head = f"{count(len(untouched), 'GPU')} untouched ({held}): "
    return head + names(((card.node, card.index) for card in untouched), most - len(head))


def still_words(curves: Iterable[Curve]) -> str:
    """Name the services whose capacity never changes."""
    still = [each.service for each in curves if not each.changes]
    if not still:
        return ""
    shown = ", ".join(map(printable, still[:_MOST_NAMES]))
    more = f" and {decimal(rest)} more" if (rest := len(still) - _MOST_NAMES) > 0 else ""
    changes = "keeps its capacity" if len(still) == 1 else "keep their capacity"
    return f"{count(len(still), 'service')} {changes} all the time: {shown}{more}"


def lowest_words(curve: Curve) -> str:
    """Say how low a service's capacity gets, and what its floor is.

    Examples
    --------
    >>> from cms.fleet.deployment.transition.curves import Curve
    >>> lowest_words(Curve("a", Fraction(9), ((Fraction(0), Fraction(8)),), Fraction(8)))
    'lowest 8 at 0 s, on its floor'
    >>> lowest_words(Curve("a", Fraction(9), ((Fraction(0), Fraction(9)),), Fraction(8)))
    'lowest 9 at 0 s, floor 8'
    """
    at = f"lowest {short(curve.lowest, up=False)} at {clock(curve.lowest_s)}"
    if not curve.floor:
        return f"{at}, no floor"
    if curve.lowest == curve.floor:
        return f"{at}, on its floor"
    return f"{at}, floor {short(curve.floor, up=True)}"


def short(rps: Fraction, *, up: bool) -> str:
    """Write a rate in four digits: a floor rounded up, a capacity down, so that neither flatters.

    Examples
    --------
    >>> short(Fraction(12345), up=False), short(Fraction(100001, 1000), up=True)
    ('12,345', '100.1')
    """
    return decimal(rps, rounding=math.ceil if up else math.floor)


def said(action: Action) -> str:
    """Say an action in one line: ``create on a/3: 3g.40gb@4 chat (2p b8, 60 items/s)``."""
    return f"{action}{', temporary' if action.is_temporary else ''}"


def chain_words(transition: Transition, plan: Schedule, places: Mapping[str, int]) -> str:
    """Say which actions, one after the other, make it take so long."""
    chain = longest_chain(transition, plan)
    if len(chain) < 2:
        return ""
    parts = []
    for at in chain:
        action = transition.actions[at]
        keys = ",".join(
            str(places[name] + 1) for name in sorted(action.services, key=places.__getitem__)
        )
        parts.append(f"{SIGNS[action.what]}{keys} on {printable(action.name)}")
    if len(parts) > _MOST_CHAIN:
        left = len(parts) - _MOST_CHAIN
        parts[_MOST_CHAIN // 2 : -_MOST_CHAIN // 2] = [f"({decimal(left)} more)"]
    return f"What takes longest, one after the other: {', '.join(parts)}"
