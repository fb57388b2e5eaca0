"""The table of a plan's services: wanted, served, spare, and what each instance runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ...errors import cut
from ...values.words import decimal, percent, printable
from ..serving.operating_point import mps_share
from ..serving.time_sharing import SharedServing
from .bars import setting
from .palette import colour
from .text_table import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..serving import Plan, ServicePlan, Use

MOST_SERVICES = 40
"""Services of which a report shows all."""
SHOWN_OF_MANY = 20
"""Rows where there are more: the services that take most slices."""
_NARROWEST_NAME = 8


class _Style(NamedTuple):
    """How much a table says: the richest one that fits into the terminal is taken."""

    model: bool
    limit: bool
    terse: bool
    planned: bool = False


_STYLES = (
    _Style(model=True, limit=True, terse=False),
    _Style(model=False, limit=True, terse=False),
    _Style(model=False, limit=True, terse=True),
    _Style(model=False, limit=False, terse=True),
)


def services_table(plan: Plan, width: int) -> list[RenderableType]:
    """Return the table of the services, and a line about those it leaves out.

    Parameters
    ----------
    plan : Plan
    width : int
        Columns of the terminal.

    Returns
    -------
    list of renderable
    """
    shown = list(enumerate(plan.services))
    if len(shown) > MOST_SERVICES:
        largest = sorted(shown, key=lambda entry: -_slices(plan, entry[1]))[:SHOWN_OF_MANY]
        shown = sorted(largest, key=lambda entry: entry[0])
    planned = plans_for_more(plan)
    own_names = all(one.service.name == one.service.model for one in plan.services)
    for style in _STYLES:
        if style.model and own_names:
            continue
        style = style._replace(planned=planned)
        heads = _heads(style)
        rows = [_row(plan, place, service, style) for place, service in shown]
        columns = _widths(heads, rows)
        excess = sum(columns) + (1 if style.terse else 2) * (len(heads) - 1) - width
        if excess <= 0:
            break
    result = table(*heads)
    if style.terse:
        result.padding = (0, 0, 0, 0)
    if excess > 0:  # long names are folded before anything else is
        result.columns[1].max_width = max(_NARROWEST_NAME, columns[1] - excess)
    for (place, _), (key, *cells) in zip(shown, rows, strict=True):
        result.add_row(
            Text(key, Style(color="#000000", bgcolor=colour(place))), *map(_lines, cells)
        )
    if (more := len(plan.services) - len(shown)) == 0:
        return [result]
    note = f"... and {decimal(more)} more services, which take fewer slices (all with --json)"
    return [result, Text(note, "dim")]


def _slices(plan: Plan, service: ServicePlan) -> int:
    """Memory slices, or hundredths of a GPU under MPS in the same measure."""
    total = 0
    for use in service.uses:
        gpu, percents = plan.serving.gpu_of(use.gpu), mps_share(use.profile)
        if percents is None:
            total += use.count * gpu.profile(use.profile).memory
        else:
            total += use.count * percents * gpu.memory_slices // 100
    return total


def _heads(style: _Style) -> list[str]:
    model = ["model"] if style.model else []
    limit = [">limit"] if style.limit else []
    wanted = [">stated/s", ">planned/s"] if style.planned else [">wanted/s"]
    return [">#", "service", *model, *limit, *wanted, ">served/s", ">spare", "instances"]


def _row(plan: Plan, place: int, service: ServicePlan, style: _Style) -> list[str]:
    asked, least = service.service, service.planned_rps if style.planned else service.wanted_rps
    return [
        str(place + 1),
        cut(asked.name),
        *([cut(asked.model)] if style.model else []),
        *([_limit(asked.latency_limit_ms)] if style.limit else []),
        decimal(service.wanted_rps),
        *([decimal(least)] if style.planned else []),
        decimal(service.provided_rps),
        spare(service, style.planned),
        "\n".join(instance_words(plan, use, terse=style.terse) for use in service.uses) or "-",
    ]


def _limit(milliseconds: Fraction | None) -> str:
    return "none" if milliseconds is None else f"{decimal(milliseconds)} ms"


def instance_words(plan: Plan, use: Use, *, terse: bool = False) -> str:
    """Say how many instances run what: ``3 x 2g.20gb (p=2 b=8, 812/s, 41 ms)``."""
    where = f" on {use.gpu}" if len(plan.serving.gpus) > 1 else ""
    what = f"{decimal(use.count)} x {use.profile}{where}"
    if use.frame_ms is not None:
        return f"{what} {_turn(use, terse=terse)}"
    point = setting(use.point)
    rate, latency = f"{decimal(use.supply_rps)}/s", f"{decimal(use.point.latency_ms)} ms"
    if terse:
        return f"{what} {point} {rate} {latency}"
    return f"{what} ({point}, {rate}, {latency})"


def _turn(use: Use, *, terse: bool) -> str:
    """Say what a service gets of a frame: ``(b=8 of a 24.1 ms frame, 331/s, 12.3 ms to spare)``."""
    point, rate = setting(use.point, brief=True), f"{decimal(use.supply_rps)}/s"
    frame, slack = use.frame_ms or Fraction(0), decimal(use.slack_ms or Fraction(0))
    shared = use.length_ms != frame
    if terse:
        return f"{point} {f'/ {decimal(frame)} ms' if shared else 'alone'} {rate}"
    of = f" of a {decimal(frame)} ms frame" if shared else f" alone, {decimal(frame)} ms"
    return f"({point}{of}, {rate}, {slack} ms to spare)"


def tightest_line(plan: Plan) -> str:
    """Say which frame is nearest to a limit; empty where nothing is shared in time."""
    uses = [
        (use.slack_ms, service.service, use)
        for service in plan.services
        for use in service.uses
        if use.frame_ms is not None and use.slack_ms is not None
    ]
    if not uses:
        return ""
    slack, service, use = min(uses, key=lambda each: each[0])
    return (
        f"tightest frame: {decimal(use.frame_ms or Fraction(0))} ms on {use.profile}, "
        f"{decimal(slack, rounding=math.floor)} ms to spare within the "
        f"{_limit(service.latency_limit_ms)} of {printable(cut(service.name))}"
    )


def plans_for_more(plan: Plan) -> bool:
    """Whether more is planned for than is stated, beyond a margin on all rates alike."""
    sharing = isinstance(plan.serving, SharedServing)
    return sharing and any(each.planned_rps != each.wanted_rps for each in plan.services)


def spare(service: ServicePlan, planned: bool) -> str:
    """Say how much more than wanted, or than planned, a service gets."""
    least = service.planned_rps if planned else service.wanted_rps
    return percent(service.provided_rps / least - 1) if least else "-"


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns' widths if nothing is folded."""
    columns = zip((head.lstrip(">") for head in heads), *rows, strict=True)
    return [max(map(cell_len, "\n".join(column).splitlines())) for column in columns]


def _lines(cell: str) -> Text:
    return Text("\n".join(printable(line) for line in cell.splitlines()))
