"""Why a service is served so, for the terminal: what each other choice costs at least."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import brief, count, decimal, fraction, printable
from .services import instance_words
from .text_table import table, text, verdict_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..serving import Plan
    from ..what_if import Alternative, BlockChoices, Explanation

__all__ = ["explained_report"]


def explained_report(found: Explanation, plan: Plan, title: str) -> list[RenderableType]:
    """Describe an explanation for a person.

    Parameters
    ----------
    found : Explanation
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
    >>> from cms.fleet import Plan, explain
    >>> serving = load_instance("S1").as_problem()
    >>> plan = Plan(serving, solve(serving.problem))
    >>> console = Console(width=90, color_system=None)
    >>> for part in explained_report(explain(plan, "bert"), plan, "S1"):
    ...     console.print(part)  # doctest: +ELLIPSIS +NORMALIZE_WHITESPACE
    S1: why bert is served so
    ...
    """
    return [*_head(found, plan, title), *_choices(found, plan), verdict_line(plan.answer, "GPU")]


def unit_of(plan: Plan) -> str:
    """What costs are counted in: GPUs, unless some cost something else than 1."""
    costs = {machine.cost for machine in plan.serving.problem.machine_types}
    return "GPU" if costs == {1} else "cost"


def _head(found: Explanation, plan: Plan, title: str) -> Iterator[RenderableType]:
    service = found.given.service
    head = Text(f"{printable(title)}: why {printable(service.name)} is served so", style="bold")
    lines = [printable(str(service))]
    if found.given.planned_rps != service.rate_rps:
        lines[0] += f", planned for {decimal(found.given.planned_rps)}"
    uses = [instance_words(plan, use) for use in found.given.uses]
    if uses:
        lines.append(
            f"gets {decimal(found.given.provided_rps, rounding=math.floor)} items/s from "
            + ", ".join(uses)
        )
    yield head.append("\n" + "\n".join(lines), "not bold")
    if not found.given.planned_rps:
        yield Text("\nIt wants nothing, so that there is nothing to choose.")


def _choices(found: Explanation, plan: Plan) -> Iterator[RenderableType]:
    if not found.blocks:
        return
    unit, cost = unit_of(plan), found.cost
    worth = any(each.worth is not None for each in found.blocks)
    alone = any(each.alone is not None for each in found.blocks)
    result = table(
        "instance", ">gives/s", ">in use", *([">worth"] if worth else []), ">one or more",
        *([">one alone"] if alone else []), ">only these", ">none",
    )  # fmt: skip
    result.columns[0].no_wrap, result.columns[0].overflow = True, "ellipsis"
    for each in sorted(found.blocks, key=lambda each: (each.gpu, each.supply_rps)):
        result.add_row(
            text(each.block),
            brief(each.supply_rps),
            brief(each.count) if each.count else "-",
            *([_worth(each)] if worth else []),
            _cell(each.one, cost),
            *([_cell(each.alone, cost)] if alone else []),
            Text(f"{brief(each.needed)}: ").append_text(_cell(each.only, cost)),
            _cell(each.without, cost),
        )
    yield Text()
    yield result
    if found.useless:
        names = ", ".join(map(printable, found.useless))
        yield Text(f"of no use to it (too slow, not allowed or not measured): {names}", "dim")
    yield Text("\n" + "\n".join(_meaning(found, unit)))


def _worth(each: BlockChoices) -> str:
    return "-" if each.worth is None else fraction(each.worth)


def _cell(choice: Alternative | None, cost: object) -> Text:
    """``>= 13 (+0.31)``: what a plan costs at least, and what that adds to the bound."""
    if choice is None:
        return Text("-")
    if choice.bound is None or choice.more is None or choice.at_least is None:
        return Text("impossible", "bold yellow")
    words = f">= {brief(choice.at_least)} (+{brief(choice.more, 2)})"
    dearer = cost is not None and choice.at_least > cost  # type: ignore[operator]
    return Text(words, "bold yellow" if dearer else "")


def _meaning(found: Explanation, unit: str) -> Iterator[str]:
    """Say exactly what the numbers mean."""
    things = "GPUs" if unit == "GPU" else "cost"
    bound = decimal(found.bound, rounding=math.floor)
    yield (
        f"No plan in which {printable(found.given.service.name)} is served so "
        f"{'takes fewer GPUs' if unit == 'GPU' else 'costs less'} than the number, by the proof of "
        f"this plan: its bound {bound}, and in brackets what the choice adds, rounded up to what "
        "plans can cost. It is a bound, no promise: such a plan may cost more, and there may be "
        "none. +0 says only that the proof does not tell the choice from the one that was made."
    )
    if found.cases > 1:
        yield (
            f"The proof has {count(found.cases, 'case')}; each number is the least of all of them."
        )
    elif found.pays is not None and found.bound > 0:
        yield (
            f"At the prices of the proof the service pays {decimal(found.pays)} of the bound's "
            f"{bound} {things}."
        )
    if found.bound <= 0:
        yield "The plan has no proof that says anything: plan with more time for better numbers."
