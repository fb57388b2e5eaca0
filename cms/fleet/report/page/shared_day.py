"""A day of shared GPUs as a page: whether the limit was kept, and what each policy came to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from ....values.numbers import exact
from ....values.words import count, decimal, percent
from ..canvas import EDGE, FONT, WIDTH, Canvas, cut, escaped
from ..palette import colour
from ..shared_day import COLUMNS, JOBS, cells, job_cells, policy_name, sampled, sentence
from .parts import Cell, Column, Fact, Grid, Page, Part, Picture, Section

if TYPE_CHECKING:
    from ...simulation.sharing_loop.result import PlayedPolicy, SharedDay

__all__ = ["shared_day_page"]

#: What rows are sorted by, cell by cell.
_Keys: TypeAlias = "Callable[[PlayedPolicy], list[Fraction | float]]"
_NAMES, _VALUES, _BAR = 200, 220, 20
_TONES = {"kept": "good", "broken": "bad", "no limit": ""}


def shared_day_page(day: SharedDay, title: str, source: str = "") -> Page:
    """Put a day of shared GPUs on a page.

    Parameters
    ----------
    day : SharedDay
    title, source : str
    """
    drawn = _bars(day)
    policies: list[Part] = [
        "A bar is the offline work that a policy got done; hatched where more of the shared "
        "GPU-hours than tolerated were beyond the limit.",
        Picture(drawn, f"Offline work by policy: {sentence(day)}"),
        "Offline: work done beside the online side, in hours that it takes alone on a GPU. Over "
        "limit: the part of the shared GPU-hours with a slowdown beyond the limit. Evicted: taken "
        "from a GPU by the monitor; moved: by a new matching.",
        _grid(day, "Policies", COLUMNS, [cells(day, each) for each in day.policies], _keys),
    ]
    if words := sampled(day.policies[0]):
        policies.append(f"{words}.")
    jobs = _grid(day, "Offline jobs", JOBS, [job_cells(each) for each in day.policies], _job_keys)
    sections = [
        Section("policies", "What each policy came to", policies),
        Section("jobs", "Offline jobs", [jobs]),
        Section("proof", "What this shows", list(_shown(day))),
    ]
    return Page(title, f"{sentence(day)}.", list(_facts(day)), sections, source)


def _bars(day: SharedDay) -> Canvas:
    """Draw what each policy got done."""
    canvas = Canvas()
    most = max(each.throughput for each in day.policies) or Fraction(1)
    tolerated = exact(day.terms.tolerated, "tolerated")
    for nth, each in enumerate(day.policies):
        name = escaped(cut(policy_name(day, nth), _NAMES - 10, FONT))
        wide = float(each.throughput / most) * (WIDTH - 2 * EDGE - _NAMES - _VALUES)
        left, y, broken = EDGE + _NAMES, canvas.y, day.limited and each.over_share > tolerated
        said = decimal(each.throughput, rounding=math.floor)
        if day.limited and each.shared_gpu_hours:
            said += f", {percent(each.over_share, up=True)} over"
        canvas.add(
            f'<text x="{EDGE}" y="{y + 15:g}">{name}</text>'
            f'<rect x="{left}" y="{y:g}" width="{max(wide, 1):.1f}" height="{_BAR}" '
            f'fill="{"url(#idle)" if broken else colour(0)}" stroke="#59636e" stroke-width="0.8"/>'
            f'<text x="{left + wide + 8:.1f}" y="{y + 15:g}" class="{"bad" if broken else ""}">'
            f"{escaped(said)}</text>"
        )
        canvas.y += _BAR + 8
    return canvas


def _facts(day: SharedDay) -> Iterator[Fact]:
    first = day.policies[0]
    note = "no GPU has one"
    if day.limited:
        tolerated = percent(exact(day.terms.tolerated, "tolerated"))
        over = percent(first.over_share, up=True)
        note = f"{over} of the shared GPU-hours beyond it, {tolerated} tolerated"
    yield Fact("Limit", day.verdict.value, note, _TONES[day.verdict])
    done = decimal(first.throughput, rounding=math.floor)
    yield Fact(
        "Offline work", done, f"GPU-hours, beside the online side of {count(day.gpus, 'GPU')}"
    )
    if day.of_clairvoyant is not None and first.name != "clairvoyant":
        part = percent(day.of_clairvoyant)
        yield Fact("Of what can be done", part, "of the policy that foresees all")
    slowdown = f"{float(first.p99_slowdown):.3f}"
    yield Fact("Slowdown, p99", slowdown, "of the online side, over all GPUs and minutes")


def _grid(
    day: SharedDay, name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], keys: _Keys
) -> Grid:
    columns = [Column("policy"), *(Column(head.lstrip(">"), number=True) for head in heads)]
    return Grid(
        name,
        columns,
        [
            [Cell(policy_name(day, nth)), *map(Cell, row, keys(each))]
            for nth, (each, row) in enumerate(zip(day.policies, rows, strict=True))
        ],
    )


def _keys(each: PlayedPolicy) -> list[Fraction | float]:
    shared = each.shared_gpu_hours / each.gpu_hours if each.gpu_hours else math.nan
    return [
        each.throughput, each.oversold_gpu, each.mean_slowdown, each.p99_slowdown, shared,
        each.over_share, each.evictions, each.moves, each.starts + each.restarts,
    ]  # fmt: skip


def _job_keys(each: PlayedPolicy) -> list[Fraction | float]:
    own = each.jobs
    times = (
        own.mean_completion_minutes, own.p99_completion_minutes, own.mean_wait_minutes,
        own.largest_wait_minutes,
    )  # fmt: skip
    return [own.arrived, own.ended, *(math.nan if at is None else at for at in times)]


def _shown(day: SharedDay) -> Iterator[str]:
    yield (
        "A simulation is a measurement, no proof: it says what happened to these jobs under these "
        "activities, minute by minute. The same problem, seed and terms give the same file."
    )
    activity = day.activity[:1].upper() + day.activity[1:]
    yield f"Activities: {activity}. Seed {day.seed}."
    if day.stopped:
        yield "It was stopped early: later minutes were not played."
    if day.unmeasured:
        yield f"Pairs that the truth lacks, and that never ran for it: {decimal(day.unmeasured)}."
    yield f"SHA-256 of the plan's problem: {day.problem_sha256}"
