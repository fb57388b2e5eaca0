"""A simulated day of shared GPUs for the terminal: a line a policy, and the verdict."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.numbers import exact
from ...values.words import count, decimal, percent, printable
from ..simulation.sharing_loop.loop import POLICIES
from .text_table import table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..simulation.sharing_loop.result import PlayedPolicy, SharedDay

#: What the columns of the two tables are called, beside the policy's name.
COLUMNS = (
    ">offline", ">a GPU", ">slowdown", ">p99", ">shared", ">over limit", ">evicted", ">moved",
    ">starts",
)  # fmt: skip
JOBS = (">jobs", ">ended", ">mean h", ">p99 h", ">mean wait h", ">largest wait h")
_STYLES = {"kept": "bold green", "broken": "bold red", "no limit": "bold yellow"}


def shared_day_report(day: SharedDay, title: str) -> list[RenderableType]:
    """Describe a day of shared GPUs for a person.

    Parameters
    ----------
    day : SharedDay
    title : str
        What was simulated: the plan's file.

    Returns
    -------
    list of renderable
        To be printed one after the other with :class:`rich.console.Console`.
    """
    report: list[RenderableType] = [Text(printable(title), style="bold")]
    lines, jobs = table("policy", *COLUMNS), table("policy", *JOBS)
    for nth, each in enumerate(day.policies):
        name = text(policy_name(day, nth))
        lines.add_row(name, *cells(day, each))
        jobs.add_row(name, *job_cells(each))
    report += [lines, Text(), jobs]
    if words := sampled(day.policies[0]):
        report += [Text(), Text(words, "dim")]
    report.append(Text(f"\n{sentence(day)}", _STYLES[day.verdict]))
    return report


def sentence(day: SharedDay) -> str:
    """Say in a sentence whether the limit was kept, and how much was done."""
    first, terms = day.policies[0], day.terms
    span = f"{decimal(Fraction(day.minutes, 60))} h"
    tolerated = percent(exact(terms.tolerated, "tolerated"))
    if day.verdict == "no limit":
        kept = "no GPU has a limit"
    else:
        kept = (
            f"the limit was {day.verdict}: {percent(first.over_share, up=True)} of the shared "
            f"GPU-hours were beyond it, {tolerated} are tolerated"
        )
    part = day.of_clairvoyant
    done = f"{decimal(first.throughput, rounding=math.floor)} GPU-hours of offline work"
    if part is not None and first.name != "clairvoyant":
        done += f", {percent(part)} of what is done where all is foreseen"
    protection = "with the monitor" if terms.protection else "without protection"
    return f"{count(day.gpus, 'GPU')} for {span}, {protection}: {kept}; {done}"


def policy_name(day: SharedDay, nth: int) -> str:
    """Return what a policy is called, and whether it went unwatched."""
    each = POLICIES[day.policies[nth].name]
    watched = each.is_watched and each.method
    return each.says + (", unwatched" if watched and not day.terms.protection else "")


def cells(day: SharedDay, each: PlayedPolicy) -> list[str]:
    """Return what stands below :data:`COLUMNS`."""
    over = percent(each.over_share, up=True) if day.limited and each.shared_gpu_hours else "-"
    return [
        decimal(each.throughput, rounding=math.floor),
        f"{float(each.oversold_gpu):.3f}",
        f"{float(each.mean_slowdown):.3f}",
        f"{float(each.p99_slowdown):.3f}",
        percent(each.shared_gpu_hours / each.gpu_hours) if each.gpu_hours else "-",
        over,
        decimal(each.evictions),
        decimal(each.moves),
        decimal(each.starts + each.restarts),
    ]


def job_cells(each: PlayedPolicy) -> list[str]:
    """Return what stands below :data:`JOBS`."""
    own = each.jobs
    return [
        decimal(own.arrived), decimal(own.ended), _hours(own.mean_completion_minutes),
        _hours(own.p99_completion_minutes), _hours(own.mean_wait_minutes),
        _hours(own.largest_wait_minutes),
    ]  # fmt: skip


def _hours(minutes: Fraction | None) -> str:
    return "-" if minutes is None else f"{float(minutes) / 60:.1f}"


def sampled(each: PlayedPolicy) -> str:
    """Say what requests to some GPUs took, beside what they take alone."""
    asked = [gpu for gpu in each.sample if gpu.alone_p99_ms]
    if not asked:
        return ""
    words = (f"{float(gpu.p99_ms):.1f} ms (alone {float(gpu.alone_p99_ms):.1f})" for gpu in asked)
    return f"p99 of requests to a made-up service on {count(len(asked), 'GPU')}: {', '.join(words)}"
