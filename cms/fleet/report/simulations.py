"""Simulations: of a plan that is replayed, and of a day of shared GPUs."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from ...values.numbers import exact
from ...values.words import count, decimal, percent, printable
from ..simulation.colocation_loop.loop import POLICIES
from .bars import fill_gaps
from .charts import DASHES, legend_beside, legend_name, make_axes
from .colours import TONES
from .page import Bar, Bars, Box, Bullets, Fact, Page, Part, Picture, Section, Words
from .proofs import list_reasons
from .tables import MOST_ROWS, Cell, limit_cell, number, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..simulation import ServiceResult, Simulation
    from ..simulation.colocation_loop.day import PlayedPolicy, SharedDay

_PARTS = 1000  # that the widest bar of a day is divided into
#: Services whose latencies are drawn, and those that are drawn over time
MOST_BARS, MOST_LINES = 60, 8
_TONES = {
    "met": "good", "violated": "bad", "not replayed": "bad", "undecided": "fair", "no limit": "",
}  # fmt: skip


def simulation_page(simulation: Simulation, title: str, source: str = "") -> Page:
    """Describe a simulation."""
    shown = simulation.services
    if len(shown) > MOST_ROWS:  # those nearest to their limits, or furthest beyond, first
        shown = tuple(sorted(shown, key=lambda each: -(each.p99_share or 0)))
    services: list[Part] = [table(
        "Services", "service|>limit:1|>rate/s:1|>p99 / limit|>late|>99 % interval:2|>load:1|"
        ">mean batch:1|verdict|>p99:9|>longest:9|>requests:9",
        map(_row, shown), "more service|, further from their limits (all with --json)",
    )]  # fmt: skip
    causes = [
        f"{'NOT REPLAYED' if each.verdict == 'not replayed' else each.name}: {each.cause}"
        for each in simulation.services
        if each.cause
    ]
    for nth, event in enumerate(simulation.events):
        back = (
            f"{each.name} not back before the next event" if one.back_after_seconds is None
            else f"{each.name} back after {decimal(one.back_after_seconds)} s"
            for each in simulation.services
            for one in each.recoveries
            if one.event == nth and one.back_after_seconds != 0
        )  # fmt: skip
        causes.append(f"{event}: {', '.join(back) or 'no late share rose above what is tolerated'}")
    if causes:
        services.append(list_reasons(causes))
    services += [Words(f"Warning: {each}", "fair", "web") for each in simulation.warnings]
    meaning: list[Part] = [
        "A replay is simulated, no proof: it says what happened to these requests. The verdicts "
        "were rechecked against the counts before this page was made. The same plan, seed and "
        "options give the same file."
    ]
    if source:
        line = f"cms check {shlex.quote(source)}"
        meaning.append(Bullets([(line, "that its numbers bear out its verdicts")]))
    if simulation.problem_sha256:
        meaning.append(f"SHA-256 of the plan's problem: {simulation.problem_sha256}")
    sections = [
        Section("latency", "Latencies", list(_pictures(simulation)), "web", drawn=True),
        Section("services", "Services", services),
        Section("proof", "What this shows", meaning, "web"),
    ]
    failed = any(_TONES[each.verdict] == "bad" for each in simulation.services)
    end = [Words(simulation.sentence, "bad" if failed else "best")]
    return Page(title, "", list(_facts(simulation)), sections, source, end)


def _facts(simulation: Simulation) -> Iterator[Fact]:
    found = Counter(str(each.verdict) for each in simulation.services)
    for verdict in [*_TONES] if found else []:
        if found[verdict] or verdict == "met":
            name = f"Limits {verdict}" if verdict != "no limit" else "Without a limit"
            tone = _TONES[verdict] if verdict != "met" or found.total() == found["met"] else ""
            yield Fact(name, decimal(found[verdict]), f"of {decimal(found.total())} services", tone)
    requests = sum(each.requests for each in simulation.services)
    yield Fact("Requests replayed", decimal(requests), f"seed {simulation.seed}")


def _row(each: ServiceResult) -> Iterator[Cell]:
    lost, limit, share = each.verdict == "not replayed", each.limit_ns, each.p99_share
    nothing = Cell("-", math.nan)
    yield Cell(each.name)
    yield limit_cell(None if limit is None else Fraction(limit, 10**6))
    yield number(each.rate_rps)
    p99 = _ms(each.p99_ns) if share is None else percent(share, up=True)
    yield nothing if lost else Cell(p99, math.nan if share is None else share)
    unlimited = limit is None and not each.late
    late = f"{float(each.late_share):.3%}".replace("%", " %")
    yield nothing if unlimited or lost else Cell(late, each.late_share)
    low, high = (f"{float(end):.3%}".removesuffix("%") for end in each.interval)
    yield nothing if limit is None or lost else Cell(f"{low} - {high} %", each.interval.high)
    yield number(each.load, lambda load: f"{float(load):.0%}".replace("%", " %"))
    yield number(each.mean_batch_size, lambda fill: f"{float(fill):.1f}")
    verdict = each.verdict.upper() + (" (overloaded)" if each.overloaded else "")
    yield Cell(verdict, tone=_TONES[each.verdict])
    yield from (number(at, _ms) for at in (each.p99_ns, each.max_ns))
    yield number(each.requests)


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.4g} ms"


def _pictures(simulation: Simulation) -> Iterator[Part]:
    """Draw latencies in units of their limits, and over time those of most late requests."""
    limited = [each for each in simulation.services if each.requests and each.limit_ns is not None]
    limited = sorted(limited, key=lambda each: -(each.p99_share or 0))[:MOST_BARS]
    if limited:
        said = "latency over the limit: bar from median to p99, line to the longest; beyond 1: late"
        yield Picture(
            f"{said}. {simulation.sentence}", partial(_draw_bars, drawn=limited, said=said),
            0.75 + 0.24 * len(limited),
        )  # fmt: skip
    for each in simulation.services:
        if each.requests and each.limit_ns is None:
            longest = f"p99 {_ms(each.p99_ns)}, longest {_ms(each.max_ns)}"
            yield f"{each.name}: no limit, median {_ms(each.p50_ns)}, {longest}"
    lines = [each for each in limited if each.timeline is not None]
    lines = sorted(lines, key=lambda each: -each.late_share)[:MOST_LINES]
    if lines:
        said = f"Mean latency over the limit in time: {', '.join(each.name for each in lines)}"
        yield Picture(said, lambda sheet: _draw_lines(sheet, lines, simulation), 3.0)


def _draw_bars(sheet: Figure, drawn: Sequence[ServiceResult], said: str) -> None:
    from matplotlib.ticker import LogLocator

    high = float(sheet.bbox.height / sheet.dpi)
    axes = sheet.add_axes((0.22, 0.4 / high, 0.53, 1 - 0.6 / high))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    for y, each in enumerate(drawn):
        times = (each.p50_ns, each.p99_ns, each.max_ns)
        median, p99, longest = (max(at / (each.limit_ns or 1), 1e-9) for at in times)
        tone = TONES[_TONES[each.verdict] or "soft"]
        axes.barh(y, p99 - median, 0.62, median, color=tone)
        axes.plot([p99, longest], [y, y], color=tone, lw=1.5)
        small = 0 < each.late_share < Fraction(1, 1000)
        late = "< 0.1 %" if small else percent(each.late_share, up=True)
        axes.annotate(f"{each.verdict.upper()}, {late} late", (1.01, y), va="center", fontsize=8,
                      xycoords=("axes fraction", "data"), color=tone)  # fmt: skip
    axes.axvline(1, color=TONES["ink"], lw=1)
    axes.grid(axis="x")
    low, far = axes.get_xlim()
    axes.set_xlim(max(low, 1e-4), max(far, 2))
    axes.set_yticks(range(len(drawn)), [legend_name(each.name) for each in drawn], fontsize=8)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    axes.set_xlabel(said, fontsize=8)


def _draw_lines(sheet: Figure, lines: Sequence[ServiceResult], simulation: Simulation) -> None:
    axes = make_axes(sheet, "seconds", right=0.7)
    for each, dash in zip(lines, DASHES, strict=False):
        line, limit = each.timeline, each.limit_ns
        assert line is not None
        assert limit is not None
        points = [
            ((at + 0.5) * line.cell_ns / 1e9, mean / limit)
            for at, (mean, requests) in enumerate(zip(line.mean_ns, line.requests, strict=True))
            if requests
        ]
        axes.plot(*zip(*points, strict=True), ls=dash, lw=1.5, label=legend_name(each.name))
    axes.axhline(1, color=TONES["ink"], lw=1)
    for nth, seconds in {o.event: float(o.seconds) for e in lines for o in e.recoveries}.items():
        axes.axvline(seconds, color=TONES["soft"], ls="--", lw=1)
        axes.annotate(printable(simulation.events[nth]), (seconds, 1), (3, -9), rotation=90,
                      xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
                      fontsize=7, color=TONES["soft"])  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_title("mean latency over the limit, by when requests arrived")
    legend_beside(axes)


_DAY_COLUMNS = (
    "Offline: work done beside the online service, in hours that it takes alone on a GPU. Over "
    "limit: the part of the shared GPU-hours with a slowdown beyond the limit. Evicted: taken from "
    "a GPU by the monitor; moved: by a new matching."
)


def shared_day_page(day: SharedDay, title: str, source: str = "") -> Page:
    """Describe a day of shared GPUs."""
    names = [name_policy(day, nth) for nth in range(len(day.policies))]
    every = list(zip(names, day.policies, strict=True))
    facts, told = _sum_up_day(day)
    heads = "policy|>offline|>a GPU|>slowdown|>p99|>shared|>over limit|>evicted|>moved|>starts"
    policies = table("Policies", heads, ([name, *_policy_cells(day, one)] for name, one in every))
    heads = "policy|>jobs|>ended|>mean h|>p99 h|>mean wait h|>largest wait h"
    rows = [
        [name, number(each.jobs[0]), number(each.jobs[2]),
         *(number(one, lambda one: f"{float(one) / 60:.1f}") for one in each.jobs[3:])]
        for name, each in every
    ]  # fmt: skip
    jobs: list[Part] = [table("Offline jobs", heads, rows)]
    if asked := [gpu for gpu in day.policies[0].sample if gpu.alone_p99_ms]:
        pairs = ((float(gpu.p99_ms), float(gpu.alone_p99_ms)) for gpu in asked)
        took = ", ".join(f"{beside:.1f} ms (alone {alone:.1f})" for beside, alone in pairs)
        on = f"p99 of requests to a made-up service on {count(len(asked), 'GPU')}, simulated"
        jobs.append(Words(f"{on}: {took}", "soft"))
    shown = [
        "The day is simulated, no proof: it says what happened to these jobs under these "
        "activities, minute by minute. The same problem, seed and terms give the same file.",
        f"Activities: {day.activity[:1].upper()}{day.activity[1:]}. Seed {day.seed}.",
        *["It was stopped early: later minutes were not played."] * day.stopped,
    ]
    if day.unmeasured:
        lacks = "Pairs that the truth lacks, and that never ran for it"
        shown.append(f"{lacks}: {decimal(day.unmeasured)}.")
    shown.append(f"SHA-256 of the plan's problem: {day.problem_sha256}")
    parts: list[Part] = [_day_bars(day, names), policies, Words(_DAY_COLUMNS, "soft", "web")]
    sections = [
        Section("policies", "What each policy came to", parts, drawn=True),
        Section("jobs", "Offline jobs", jobs),
        Section("proof", "What this shows", shown, "web"),
    ]
    tone = {"met": "best", "violated": "bad", "no limit": "open"}[day.verdict]
    return Page(title, "", facts, sections, source, [Words(told, tone)])


def _sum_up_day(day: SharedDay) -> tuple[list[Fact], str]:
    """Say in facts, and in a sentence, whether the limit was met and how much was done."""
    first, terms, gpus = day.policies[0], day.terms, count(day.gpus, "GPU")
    over = f"{percent(first.over_share, up=True)} of the shared GPU-hours"
    tolerated = percent(exact(terms.tolerated, "tolerated"))
    limit, note = "no GPU has a limit", "no GPU has one"
    if day.limited:
        limit = f"the limit was {day.verdict}: {over} were beyond it, {tolerated} are tolerated"
        note = f"{over} beyond it, {tolerated} tolerated"
    done = decimal(first.throughput, rounding=math.floor)
    slowdown = f"{float(first.p99_slowdown):.3f}"
    facts = [
        Fact("Limit", day.verdict.value, note, _TONES[day.verdict]),
        Fact("Offline work", done, f"GPU-hours, beside {gpus} that serve"),
        Fact("Slowdown, p99", slowdown, "of the online services, over all GPUs and minutes"),
    ]
    done += " GPU-hours of offline work"
    if day.of_clairvoyant is not None and first.name != "clairvoyant":
        done += f", {percent(day.of_clairvoyant)} of what is done where all is foreseen"
    protection = "with the monitor" if terms.protection else "without protection"
    span = decimal(Fraction(day.minutes, 60))
    return facts, f"{gpus} for {span} h, {protection}: {limit}; {done}"


def name_policy(day: SharedDay, nth: int) -> str:
    """Return the name of a policy, and whether it was unwatched."""
    each = POLICIES[day.policies[nth].name]
    watched = each.is_watched and each.method
    return each.says + (", unwatched" if watched and not day.terms.protection else "")


def _policy_cells(day: SharedDay, each: PlayedPolicy) -> Iterator[Cell]:
    yield number(each.throughput, partial(decimal, rounding=math.floor))
    for value in (each.oversold_gpu, each.mean_slowdown, each.p99_slowdown):
        yield number(value, lambda value: f"{float(value):.3f}")
    yield number(each.shared_gpu_hours / each.gpu_hours if each.gpu_hours else None, percent)
    over = each.over_share if day.limited and each.shared_gpu_hours else None
    yield number(over, partial(percent, up=True))
    yield from map(number, (each.evictions, each.moves, each.starts + each.restarts))


def _day_bars(day: SharedDay, names: list[str]) -> Bars:
    """Draw the work of each policy; dashed where more is over the limit than tolerated."""
    most, bars = max(each.throughput for each in day.policies) or Fraction(1), []
    for place, (name, each) in enumerate(zip(names, day.policies, strict=True)):
        words = f"{decimal(each.throughput, rounding=math.floor)} GPU-hours"
        if day.limited and each.shared_gpu_hours:
            words += f", {percent(each.over_share, up=True)} over the limit"
        over = day.limited and each.over_share > exact(day.terms.tolerated, "tolerated")
        width = max(int(each.throughput / most * _PARTS), 1)
        box = Box(0, width, words, name, place, state="too often over the limit" * over)
        blank = fill_gaps([box], _PARTS, "blank")
        bars.append(Bar("", _PARTS, blank, label="", caption=f"{name}: {words}"))
    key = "width: offline work; dashed: more over the limit than is tolerated"
    return Bars(bars, size="line", key=key, only="web")
