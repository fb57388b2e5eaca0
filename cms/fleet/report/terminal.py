"""Plans for the terminal: GPUs as bars of slices, services as a table, the bound in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count, decimal, printable
from ..serving.capacity import CapacityRule
from ..serving.latency_rule import LatencyRule
from ..serving.neighbours import NeighbourServing
from ..serving.operating_point import mps_share
from ..serving.time_sharing import SharedServing
from .bars import Bar, bars, occupancy, widths_of
from .drawing import draw
from .promised import beside_one_another, between_classes, promised
from .reasons import plan_reasons
from .scarcity import scarcest_line, worth_line, worths
from .services import services_table, tightest_line
from .text_table import hanging, verdict_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ...shortages.shortage import Growth, Shortage
    from ..serving import Plan

MOST_BARS = 16
"""Distinct GPUs of one type of which a report draws all."""
SHOWN_OF_MANY = 8
"""Bars where there are more."""


def plan_report(
    plan: Plan,
    title: str,
    width: int,
    shortage: Shortage | None = None,
    growth: Growth | None = None,
) -> list[RenderableType]:
    """Describe a plan for a person.

    Parameters
    ----------
    plan : Plan
    title : str
        What is planned: a scenario's name, or the file of the services.
    width : int
        Columns of the terminal.
    shortage : Shortage, optional
        What would do, where there is no schedule.
    growth : Growth, optional
        How much all rates may grow on the plan's GPUs.

    Returns
    -------
    list of renderable
        To be printed one after the other with :class:`rich.console.Console`.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=400)
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, "60.5", 33)
    >>> serving = as_problem([service], [point], ["a30-24gb"])
    >>> plan = Plan(serving, solve(serving.problem))
    >>> console = Console(width=60, color_system=None)
    >>> for part in plan_report(plan, "chat", 60):
    ...     console.print(part)  # doctest: +NORMALIZE_WHITESPACE
    chat
    1 service on a30-24gb, 99 % within the limit
    ...
    1 GPU, proved >= 1: optimal, proof checked
    ...
    """
    report: list[RenderableType] = [_heading(plan, title)]
    if plan.answer.status == "infeasible":
        why = plan_reasons(plan, shortage)
        report += [Text(), hanging(*(("-", reason) for reason in why))]
    drawn = bars(plan)
    if drawn:
        scarcity = "\n".join(_scarcity(plan))
        report += [*_gpus(plan, drawn, width), Text(), *services_table(plan, width)]
        if tightest := tightest_line(plan):
            report.append(Text(f"\n{tightest}"))
        if scarcity:
            report.append(Text(f"\n{scarcity}"))
    if growth is not None and (grows := growth.sentence("GPU", "rate")):
        report.append(Text(f"\n{grows}"))
    if drawn:
        report.append(Text(f"\n{promised(plan.serving)}"))
    report.append(verdict_line(plan.answer, "GPU"))
    if left_open := between_classes(plan):
        report.append(Text(left_open))
    return report


def _heading(plan: Plan, title: str) -> Text:
    head = Text(printable(title), style="bold")
    return head.append(f"\n{subject_line(plan)}", "not bold")


def subject_line(plan: Plan) -> str:
    """Say how many services a plan serves, on which GPUs, by which rule."""
    serving = plan.serving
    rule = f"rule {serving.rule_name}"
    if isinstance(serving, SharedServing):
        rule = f"{serving.sharing}"
        if isinstance(serving, NeighbourServing):
            rule += f"; {beside_one_another(serving)}"
    elif isinstance(serving.rule, LatencyRule | CapacityRule):
        rule = f"{serving.rule}"
    free = sum(service.latency_limit_ms is None for service in serving.services)
    if free == len(serving.services):
        rule = "no service has a latency limit"
    elif free:
        rule += f" ({free:,} without a limit)"
    keys = ", ".join(gpu.key for gpu in serving.gpus)
    return f"{count(len(serving.services), 'service')} on {keys}, {rule}"


def _gpus(plan: Plan, drawn: Sequence[Bar], width: int) -> Iterator[RenderableType]:
    """Draw the GPUs of each type under a line that says how many there are."""
    places = {service.name: place for place, service in enumerate(plan.serving.services)}
    for gpu in plan.serving.gpus:
        own = [bar for bar in drawn if bar.gpu == gpu.key]
        if not own:
            continue
        there = occupancy(gpu, own)
        line = Text(f"\n{decimal(there.gpus)} x {printable(gpu.key)}", style="bold")
        if there.cut:
            line.append(
                f", {there.compute:,} of {there.cut * gpu.compute_slices:,} compute and "
                f"{there.memory:,} of {there.cut * gpu.memory_slices:,} memory slices serve",
                "not bold",
            )
        if there.gpus > there.cut:
            shared = decimal(there.gpus - there.cut) if there.cut else "all"
            line.append(f", {shared} shared by MPS (a bar is 100 % of a GPU)", "not bold")
        yield line
        for _, alike in groupby(own, key=lambda bar: bar.slices):
            group = list(alike)
            shown = group if len(group) <= MOST_BARS else group[:SHOWN_OF_MANY]
            yield draw(shown, places, width)
            if rest := group[len(shown) :]:
                gpus = count(sum(bar.count for bar in rest), "GPU")
                yield Text(f"      ... and {count(len(rest), 'more layout')} on {gpus}", "dim")
    note = f"width: {widths_of(drawn)}; p processes, b batch; /// no instance"
    if any(cell.profile and not cell.service for bar in drawn for cell in bar.cells):
        note += "; ░░░ idle"
    if any(cell.slots for bar in drawn for cell in bar.cells):
        note += "; ┊ in turn"
    yield Text(f"      {note}", "dim")


def _scarcity(plan: Plan) -> Iterator[str]:
    if isinstance(plan.serving, NeighbourServing):  # prices of what slows and is slowed
        return
    found = worths(plan.solution, plan.serving.problem)
    if found is None:
        return
    yield worth_line(found, "GPU")
    if line := scarcest(plan):
        yield line


def scarcest(plan: Plan) -> str:
    """Name the instance that is worth most beyond its slices; empty if none is."""
    found = worths(plan.solution, plan.serving.problem)
    slices = {}
    in_use = {group.gpu for group in plan.groups}
    for block in () if found is None else found.shares:
        key, profile = plan.serving.instance_of(block)
        gpu = plan.serving.gpu_of(key)
        if key in in_use and mps_share(profile) is None:
            slices[block] = gpu.profile(profile).compute, gpu.compute_slices
    return "" if found is None else scarcest_line(found, slices)
