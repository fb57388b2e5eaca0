"""A plan, or a schedule of abstract machines, as a picture: one self-contained SVG file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ...solving.words import circumstances, verdict
from ...values.words import count, decimal
from ..serving.neighbours import NeighbourServing
from .bars import Bar, bars, occupancy, widths_of
from .canvas import (
    EDGE,
    FONT,
    LINE,
    MARGIN,
    WIDTH,
    Canvas,
    cut,
    draw_bar,
    draw_key,
    draw_ruler,
    draw_small_bars,
    escaped,
)
from .jobs import job_rows
from .machines import machine_bars
from .promised import beside_one_another, between_classes
from .reasons import plan_reasons, solution_reasons
from .scarcity import worth_line, worths
from .services import plans_for_more, spare, tightest_line

if TYPE_CHECKING:
    from ...problem.machine_problem import MachineProblem
    from ...shortages.shortage import Shortage
    from ...solving.solution import Solution
    from ..hardware import Gpu
    from ..serving import Plan

MOST_BARS = 48
"""Distinct machines of one type that a picture draws with words in them."""
MOST_KEYS = 120
"""Services or jobs in the legend."""
_NUMBERS = (390, 480, 560)  # where the columns of the legend end
_INSTANCES = 590  # where the last one begins


class _Entry(NamedTuple):
    """A line of the legend: a service or a job."""

    name: str
    numbers: tuple[str, str, str]
    given: str


def plan_picture(plan: Plan, title: str, shortage: Shortage | None = None) -> str:
    """Draw a plan: its GPUs as bars of slices, a legend of its services, its bound and proof.

    Parameters
    ----------
    plan : Plan
    title : str
        What is planned.
    shortage : Shortage, optional
        What would do, where there is no schedule.

    Returns
    -------
    str
        An SVG document that refers to nothing outside itself; all names are escaped.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
    >>> service = Service("chat <b>", "bert", rate_rps=100, latency_limit_ms=100)
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, "60.5", 33)
    >>> serving = as_problem([service], [point], ["a30-24gb"])
    >>> picture = plan_picture(Plan(serving, solve(serving.problem)), "chat")
    >>> picture.startswith("<svg"), "chat &lt;b&gt;" in picture, "<b>" in picture
    (True, True, False)
    """
    keys = ", ".join(gpu.key for gpu in plan.serving.gpus)
    subject = f"{count(len(plan.services), 'service')} on {keys}"
    canvas = _head(title, plan.answer, subject, "GPU", plan_reasons(plan, shortage))
    drawn = bars(plan)
    draw_gpus(canvas, plan, drawn)
    if drawn:
        more = plans_for_more(plan)
        entries = (
            _Entry(
                each.service.name,
                (
                    decimal(each.planned_rps if more else each.wanted_rps),
                    decimal(each.provided_rps),
                    spare(each, more),
                ),
                ", ".join(f"{decimal(use.count)} × {use.profile}" for use in each.uses),
            )
            for each in plan.services[:MOST_KEYS]
        )
        heads = ("planned/s" if more else "wanted/s", "served/s", "spare", "instances")
        _legend(canvas, heads, entries, len(plan.services))
        if isinstance(plan.serving, NeighbourServing):
            canvas.paragraph(beside_one_another(plan.serving), 11, "small soft")
        else:
            _worth(canvas, plan.solution, plan.serving.problem, "GPU")
        note = f"p: processes, b: batch size; width: {widths_of(drawn)}"
        if any(cell.slots for bar in drawn for cell in bar.cells):
            note += ", and where services take turns on it, a slot as wide as its part of the frame"
        if tightest := tightest_line(plan):
            canvas.paragraph(tightest, 11, "small soft")
        if left_open := between_classes(plan):
            canvas.paragraph(left_open, 11, "small soft")
        canvas.paragraph(note, 11, "small soft")
    return canvas.document(f"{title}: {verdict(plan.answer, 'GPU')}")


def draw_gpus(canvas: Canvas, plan: Plan, drawn: Sequence[Bar]) -> None:
    """Draw a plan's GPUs below what is there, each type under a line that says what serves."""
    places = {service.name: place for place, service in enumerate(plan.serving.services)}
    for gpu in plan.serving.gpus:
        own = [bar for bar in drawn if bar.gpu == gpu.key]
        for _, group in groupby(own, key=lambda bar: bar.shared):
            alike = list(group)
            canvas.text(_headline(gpu, alike), EDGE, FONT, "head", down=LINE + 4)
            if not alike[0].shared:
                draw_ruler(canvas, gpu.memory_slices)
            for bar in alike[:MOST_BARS]:
                draw_bar(canvas, bar, places)
            if rest := alike[MOST_BARS:]:
                gpus = count(sum(bar.count for bar in rest), "GPU")
                what = f"{count(len(rest), 'more layout')} on {gpus}, small:"
                canvas.text(what, EDGE, FONT, "soft", down=LINE)
                draw_small_bars(
                    canvas, [(f"{decimal(bar.count)} ×", [bar]) for bar in rest], places
                )
            canvas.y += 10


def solution_picture(
    problem: MachineProblem, solution: Solution, title: str, shortage: Shortage | None = None
) -> str:
    """Draw a schedule of abstract machines: bars of blocks, a legend of jobs, bound and proof.

    Parameters
    ----------
    problem : MachineProblem
    solution : Solution
        Of this problem.
    title : str
    shortage : Shortage, optional
        What would do, where there is no schedule.

    Returns
    -------
    str
        An SVG document; at most 48 bars and 120 jobs, whatever the size of the problem.
    """
    subject = f"{count(len(problem.job_names), 'job')}, {count(len(problem.blocks), 'block')}"
    why = solution_reasons(problem, solution, shortage)
    canvas = _head(title, solution, subject, "machine", why)
    drawn = machine_bars(problem, solution.schedule, MOST_BARS)
    places = {
        name: problem.job_index(name) for bar in drawn for c in bar.cells if (name := c.service)
    }
    for bar in drawn:
        draw_bar(canvas, bar, places)
    if (rest := len(solution.schedule.groups) - len(drawn)) > 0:
        _more(canvas, count(rest, "more group"))
    canvas.y += 10
    if solution.schedule.machine_count:
        entries = (
            _Entry(row.name, (decimal(row.wanted), decimal(row.provided), row.spare), row.blocks)
            for row in job_rows(problem, solution, MOST_KEYS)
        )
        heads = ("wanted", "provided", "spare", "blocks")
        _legend(canvas, heads, entries, len(problem.job_names))
        _worth(canvas, solution, problem, "machine")
    return canvas.document(f"{title}: {verdict(solution)}")


def _head(title: str, solution: Solution, subject: str, machine: str, why: Iterable[str]) -> Canvas:
    """Begin a picture: what it shows, what is proved, and why if it is impossible."""
    canvas = Canvas()
    canvas.text(title, EDGE, 20, "title", down=30)
    mark = "good" if solution.proof == "checked" else "fair"
    canvas.text(verdict(solution, machine), EDGE, 15, f"verdict {mark}", down=LINE)
    canvas.text(f"{subject}; {circumstances(solution)}", EDGE, FONT, "soft", down=LINE + 8)
    for reason in why:
        canvas.paragraph(reason, FONT, "")
    return canvas


def _headline(gpu: Gpu, alike: Sequence[Bar]) -> str:
    there = occupancy(gpu, alike)
    if alike[0].shared:
        return f"{decimal(there.gpus)} × {gpu.key}, shared by MPS: a bar is 100 % of a GPU"
    return (
        f"{decimal(there.gpus)} × {gpu.key}: {there.compute:,} of "
        f"{there.cut * gpu.compute_slices:,} compute and {there.memory:,} of "
        f"{there.cut * gpu.memory_slices:,} memory slices serve"
    )


def _more(canvas: Canvas, what: str) -> None:
    canvas.text(f"... and {what}", EDGE + MARGIN, FONT, "soft", down=LINE)


def _legend(canvas: Canvas, heads: Sequence[str], entries: Iterable[_Entry], total: int) -> None:
    """One line a service or job: its key in its colour, its name, what it wants and gets."""
    y = canvas.y + 11
    for x, head in zip(_NUMBERS, heads, strict=False):
        canvas.add(f'<text x="{x}" y="{y:g}" class="small soft right">{head}</text>')
    canvas.add(f'<text x="{_INSTANCES}" y="{y:g}" class="small soft">{heads[-1]}</text>')
    canvas.y += 18
    for place, entry in enumerate(entries):
        draw_key(canvas, place, entry.name)
        y = canvas.y + 13
        for x, number in zip(_NUMBERS, entry.numbers, strict=True):
            canvas.add(f'<text x="{x}" y="{y:g}" class="right">{number}</text>')
        given = escaped(cut(entry.given, WIDTH - EDGE - _INSTANCES, FONT))
        canvas.add(f'<text x="{_INSTANCES}" y="{y:g}" class="soft">{given}</text>')
        canvas.y += LINE
    if (more := total - MOST_KEYS) > 0:
        canvas.text(f"... and {decimal(more)} more", EDGE + 34, FONT, "soft", down=LINE)
    canvas.y += 8


def _worth(canvas: Canvas, solution: Solution, problem: MachineProblem, machine: str) -> None:
    if (found := worths(solution, problem)) is not None:
        canvas.paragraph(worth_line(found, machine), 11, "small soft")
