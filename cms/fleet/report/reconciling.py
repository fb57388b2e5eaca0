"""What to do now and why, and policies side by side, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.numbers import shown
from ...values.words import decimal
from ..reconciling.reasons import headline, reasons, services_of
from .text_table import hanging, table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..reconciling import Compared, Scene, Tick

__all__ = ["policies_report", "tick_report"]


def tick_report(tick: Tick) -> Iterator[RenderableType]:
    """Yield each service's rate and what there is for it, the decision, and the reasons.

    Parameters
    ----------
    tick : Tick
    """
    rows = table("service", ">items/s now", ">there", ">afterwards")
    for each in services_of(tick):
        rows.add_row(
            text(each.service), decimal(each.rate_rps), decimal(each.has_rps),
            decimal(each.will_have_rps),
        )  # fmt: skip
    yield rows
    yield Text(f"\n{headline(tick)}", "bold")
    yield hanging(*(("-", why) for why in reasons(tick)))


def policies_report(scene: Scene, found: Sequence[Compared]) -> Iterator[RenderableType]:
    """Yield a row for each policy: what it takes, and how far that is from the least.

    Parameters
    ----------
    scene : Scene
    found : sequence of Compared
    """
    rows = table(
        "policy", ">GPU hours", ">re-plans", ">starts (+temp.)", ">spare", ">longest",
        ">shortage", ">to least",
    )  # fmt: skip
    for each in found:
        own = each.played
        rows.add_row(
            text(own.policy), decimal(own.gpu_hours), str(own.replans),
            f"{own.starts} ({own.temporary})", str(own.worst_spare),
            f"{decimal(own.longest_s / 60, 3)} min", f"{decimal(own.shortage_s, 3)} s",
            f"{float(100 * each.distance):+.1f} %",
        )  # fmt: skip
    yield rows
    hours = shown(scene.count * scene.terms.every_s / 3600)
    yield text(
        f"{hours} h from {scene.trace.said(scene.first)} on, {shown(100 * scene.planner.margin)} % "
        "margin; GPU hours of plans, what changes borrow besides is in --json. Starts: of "
        "instances, and of those that went again (temp.). Spare: the most GPUs that a change "
        "borrowed. Longest: of the changes, by assumed durations. Shortage: while some service had "
        "less than its rate. To least: GPU hours above the fewest that any windows with their "
        "rates known and as many re-plans take; below 0 %, plans had no room for what came."
    )
    for each in found:
        for why in each.played.refused:
            yield text(f"{each.played.policy}: a change was not possible {why}")
