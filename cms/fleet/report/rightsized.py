"""What would save a GPU, for the terminal: the least relaxation of each rate and limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count, decimal, percent, printable
from ..what_if.least import Outcome
from ..what_if.relaxations import What
from .explained import unit_of
from .text_table import table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..serving import Plan
    from ..what_if import Relaxation, Rightsizing

__all__ = ["rightsized_report"]

_DIGITS = 7
_SHOWN = 40
"""Relaxations of which a report shows all."""
_NAMED = 20
"""Services that are named where there is nothing to save, or it is not known."""
_WORDS = {
    What.RATE: "rate",
    What.LATENCY_LIMIT: "latency limit",
    What.LATE_SHARE: "late share",
    What.ALLOWED_PROFILES: "allowed profiles",
}


def rightsized_report(found: Rightsizing, plan: Plan, title: str) -> list[RenderableType]:
    """Describe for a person what would save a GPU.

    Parameters
    ----------
    found : Rightsizing
    plan : Plan
        The one it is of.
    title : str

    Returns
    -------
    list of renderable

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, rightsize
    >>> serving = load_instance("S4").as_problem()
    >>> plan = Plan(serving, solve(serving.problem))
    >>> console = Console(width=90, color_system=None)
    >>> for part in rightsized_report(rightsize(plan, services=["vgg16"]), plan, "S4"):
    ...     console.print(part)  # doctest: +ELLIPSIS +NORMALIZE_WHITESPACE
    S4: what would save a GPU, 7 -> 6
    ...
    vgg16    rate  1,169/s 840.592/s -28.1 %  the least, proved
    ...
    """
    return list(_parts(found, plan, title))


def _parts(found: Rightsizing, plan: Plan, title: str) -> Iterator[RenderableType]:
    one, cost = unit_of(plan) == "GPU", decimal(found.cost, rounding=math.ceil)
    saves = "save a GPU" if one and found.cost - found.target == 1 else "save so much"
    target = decimal(found.target)
    head = Text(f"{printable(title)}: what would {saves}, {cost} -> {target}", style="bold")
    if found.better is not None:
        head.append(
            f"\nThe plan can be had for {cost} without any relaxation: plan again.", "bold yellow"
        )
    if found.cost <= found.target:
        yield head
        return
    if not found.proved:
        head.append(
            f"\nThat {target} will not do as it is, was not proved: what is found here may save "
            "nothing by itself.",
            "not bold",
        )
    yield head
    enough = [each for each in found.relaxations if each.plan is not None]
    if enough:
        yield Text()
        yield _table(enough)
    if more := enough[_SHOWN:]:
        yield Text(f"... and {decimal(len(more))} more (all with --json)", "dim")
    lines = [*_named(found, Outcome.NONE, "alone is not enough, proved")]
    lines += _named(found, Outcome.OPEN, "not known")
    lines += [f"not looked at: {printable(each)}" for each in found.unasked]
    if enough:
        lines += ["", *_meaning(found, enough, one)]
    yield Text("\n" + "\n".join(lines))


def _table(enough: list[Relaxation]) -> RenderableType:
    result = table("service", "relaxed", ">now", ">enough", ">change", "")
    for each in enough[:_SHOWN]:
        proved = each.outcome is Outcome.LEAST
        result.add_row(
            text(each.service),
            _WORDS[each.what],
            _now(each),
            _enough(each),
            _change(each),
            Text("the least, proved", "green") if proved else Text(_found(each), "yellow"),
        )
    return result


def _now(each: Relaxation) -> str:
    if each.now is None:
        return "-"
    return _number(each.what, each.now, up=False)


def _enough(each: Relaxation) -> str:
    if each.enough is None:
        joint = " or " if each.outcome is Outcome.LEAST else " and "
        return joint.join(map(printable, each.profiles))
    if each.what is What.RATE and not each.enough:
        return "0: without it"
    above = "above " if each.above else ""
    # what is shown must be enough as well
    return above + _number(each.what, each.enough, up=each.what is not What.RATE)


def _number(what: What, value: Fraction, *, up: bool) -> str:
    rounding = math.ceil if up else math.floor
    if what is What.LATE_SHARE:
        return f"{decimal(100 * value, _DIGITS, rounding)} %"
    unit = "/s" if what is What.RATE else " ms"
    return decimal(value, _DIGITS, rounding) + unit


def _change(each: Relaxation) -> str:
    if each.change is None:
        return "-"
    sign = "-" if each.what is What.RATE else "+"
    return sign + percent(each.change, up=True)


def _found(each: Relaxation) -> str:
    if each.what is What.ALLOWED_PROFILES:
        return "found together; fewer not proved"
    if each.short is None:
        return "found, not proved"
    return (
        f"found; {_number(each.what, each.short, up=each.what is What.RATE)} is proved too little"
    )


def _named(found: Rightsizing, outcome: Outcome, words: str) -> Iterator[str]:
    """Name what is not enough, or not known, by what it is; and what is proved of the latter."""
    for what, name in _WORDS.items():
        own = [
            each
            for each in found.relaxations
            if each.plan is None and each.outcome is outcome and each.what is what
        ]
        if own:
            shown = ", ".join(printable(each.service) + _beyond(each) for each in own[:_NAMED])
            more = f" and {decimal(len(own) - _NAMED)} more" if len(own) > _NAMED else ""
            yield f"{name}: {words}: {shown}{more}"


def _beyond(each: Relaxation) -> str:
    """Than which change no smaller one is enough, of what is not known: proved."""
    if each.outcome is not Outcome.OPEN or not each.ruled_out:
        return ""
    return f" (at least {percent(each.ruled_out)})"


def _meaning(found: Rightsizing, enough: list[Relaxation], one: bool) -> Iterator[str]:
    target = decimal(found.target)
    if one and found.target.denominator == 1:
        target = count(int(found.target), "GPU")
    plan = f"a plan {'of' if one else 'that costs'} at most {target}"
    if any(each.outcome is Outcome.LEAST for each in enough):
        yield (
            f"The least, proved: with that number, and all else as it is, {plan} was found and "
            "checked; and a checked certificate proves that anything short of it needs more."
        )
    if found.is_least_of_all and len(found.relaxations) > 1:
        first = enough[0]
        yield (
            f"No smaller change of any one of these numbers is enough, proved: "
            f"{_change(first)} of the {_WORDS[first.what]} of {printable(first.service)} is least."
        )
