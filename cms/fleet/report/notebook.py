"""Plans, deployments, GPUs, problems and solutions as notebooks show them: facts, picture, tables.

The picture is an image of its own, so that neither its styles nor the notebook's meet.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from ...problem.parts import Configuration, SizeBoundedConfigurations
from ...values.numbers import Number, exact, shown
from ...values.views import View
from ...values.words import count, decimal, printable
from .canvas import BARS_WIDTH, EDGE, FONT, LINE, MARGIN, Canvas, cut, draw_ruler, escaped
from .fleet_pictures import deployment_picture
from .page.deployments import deployment_page
from .page.parts import Grid
from .page.plans import plan_page
from .palette import colour
from .svg import plan_picture

if TYPE_CHECKING:
    from ...problem.machine_problem import MachineProblem
    from ...schedule.schedule import MachineGroup
    from ...solving.solution import Solution
    from ..deployment.model import Deployment
    from ..hardware import Gpu
    from ..serving import Plan
    from .page.parts import Page

__all__ = ["deployment_view", "gpu_view", "plan_view", "problem_view", "solution_view"]

#: A caption, the heads of the columns, and the rows.
_Table: TypeAlias = "tuple[str, Sequence[str], Sequence[Sequence[str]]]"
#: Rows of a table, configurations of a picture, and blocks of one of them.
MOST_ROWS, MOST_BARS, _MOST_CELLS, _MOST_SIZES = 20, 16, 60, 8
_BAR, _SPACE = 24, 6


def plan_view(plan: Plan) -> View:
    """Show a plan: its facts, its GPUs and its services."""
    title = f"{count(len(plan.services), 'service')}"
    picture = plan_picture(plan, title)
    return View(_page(plan_page(plan, title), picture), picture)


def deployment_view(deployment: Deployment) -> View:
    """Show a deployment: its facts, its GPUs and its services."""
    picture = deployment_picture(deployment, "Deployment")
    return View(_page(deployment_page(deployment, "Deployment"), picture), picture)


def gpu_view(gpu: Gpu) -> View:
    """Show a GPU: where an instance of each profile may start."""
    canvas = Canvas()
    canvas.text(f"{gpu.key}: {gpu.architecture}", EDGE, 20, "title", down=30)
    draw_ruler(canvas, gpu.memory_slices)
    scale = BARS_WIDTH / gpu.memory_slices
    for place, profile in enumerate(gpu.profiles):
        canvas.text(profile.name, EDGE, FONT, "head", down=LINE)
        for row in _rows(profile.starts, profile.memory):
            for start in row:
                box = EDGE + MARGIN + start * scale, profile.memory * scale
                _box(canvas, box, place, f"{profile.name} at {start}", str(start))
            canvas.y += _BAR + _SPACE
    note = "an instance stands at one of the starts; where two overlap, one of them can be there"
    canvas.paragraph(note, 11, "small soft")
    picture = canvas.document(f"{gpu.key}: where instances may start")
    heads = ("profile", "compute", "memory", "starts", "most", "SMs")
    rows = [
        (one.name, str(one.compute), str(one.memory), ", ".join(map(str, one.starts)),
         str(one.max), "-" if one.sms is None else str(one.sms))
        for one in gpu.profiles
    ]  # fmt: skip
    lead = (
        f"{gpu.compute_slices} compute and {gpu.memory_slices} memory slices, "
        f"{count(len(gpu.configurations), 'maximal configuration')} of the plain profiles"
    )
    return View(_html(gpu.key, lead, picture, [("Profiles", heads, rows)]), picture)


def problem_view(problem: MachineProblem) -> View:
    """Show a problem: its configurations, and what its first jobs need and get."""
    lead = (
        f"{count(problem.n_jobs, 'job')}, {count(len(problem.blocks), 'block type')}, "
        f"{count(len(problem.machine_types), 'machine type')}"
    )
    canvas = Canvas()
    canvas.text(lead, EDGE, FONT, "head", down=LINE + 4)
    places = dict(problem.block_index)
    for shape in problem.configurations[:MOST_BARS]:
        _draw_shape(canvas, shape, places)
    if (rest := len(problem.configurations) - MOST_BARS) > 0:
        canvas.text(f"... and {rest:,} more", EDGE, FONT, "soft", down=LINE)
    picture = canvas.document(f"Configurations of a problem of {lead}")
    machines = [
        (one.name, shown(one.cost), "none" if one.limit is None else decimal(one.limit))
        for one in problem.machine_types[:MOST_ROWS]
    ]
    tables: list[_Table] = [("Machine types", ("machine type", "cost", "limit"), machines)]
    tables += _jobs(problem)
    return View(_html(type(problem).__name__, lead, picture, tables), picture)


def solution_view(solution: Solution) -> View:
    """Show a solution: what was found and what is proved, and its machines."""
    canvas = Canvas()
    canvas.text(f"{solution.status.replace('_', ' ')}", EDGE, 20, "title", down=30)
    schedule = solution.schedule
    # of other kinds of problems there are no machines to draw
    groups: Sequence[MachineGroup] = getattr(schedule, "groups", ())
    places: dict[str, int] = {}
    for group in islice(groups, MOST_BARS):
        counts = {
            block: [str(job) for (given, job), n in group.assignment.items() if given == block
                    for _ in range(min(n, _MOST_CELLS))]
            for block in group.configuration.blocks
        }  # fmt: skip
        cells = [
            (block, counts[block][at] if at < len(counts[block]) else "")
            for block, number in group.configuration.blocks.items()
            for at in range(min(number, _MOST_CELLS))
        ]
        _draw_cells(canvas, f"{decimal(group.count)} ×", cells[:_MOST_CELLS], places)
    if (left := len(groups) - MOST_BARS) > 0:
        canvas.text(f"... and {left:,} more groups", EDGE, FONT, "soft", down=LINE)
    picture = canvas.document(f"Machines of a solution: {solution.status}")
    lines = str(solution).split("\n\n", 1)
    facts = [tuple(line.split("  ", 1)) for line in lines[0].splitlines()]
    rows = [(name.strip(), *(value.strip() for value in after)) for name, *after in facts]
    head, groups_shown, more = schedule.excerpt(MOST_ROWS)
    tables = [("", (), rows), ("Schedule", tuple(head), groups_shown)]
    rest = f"<p>{_said(more)}</p>" if more else ""
    return View(_html("", "", picture, tables, rest), picture)


# --- parts ----------------------------------------------------------------------------------------


def _jobs(problem: MachineProblem) -> Iterator[_Table]:
    from ...problem.problem import Problem

    if not isinstance(problem, Problem) or not problem.n_jobs:
        return
    blocks = problem.blocks[:MOST_ROWS]
    rows = [
        (
            job.name,
            shown(job.demand),
            *(_supply(exact(job.demand_function(block), "")) for block in blocks),
        )
        for job in problem.jobs[:MOST_ROWS]
    ]
    left = problem.n_jobs - len(rows)
    more = f", the first of {problem.n_jobs:,}" if left else ""
    yield f"Jobs{more}: their demand, and what a block gives them", ("job", "demand", *blocks), rows


def _supply(value: Number) -> str:
    return shown(exact(value, "a throughput")) if value else "-"


def _draw_shape(
    canvas: Canvas,
    shape: Configuration | SizeBoundedConfigurations,
    places: dict[str, int],
) -> None:
    where = shape.machine or ""
    if isinstance(shape, SizeBoundedConfigurations):
        said = f"{where}: all blocks of at most {shown(shape.capacity)} together, of the sizes "
        sizes = islice(shape.sizes.items(), _MOST_SIZES)
        said += ", ".join(f"{block} {shown(size)}" for block, size in sizes)
        said += ", ..." if len(shape.sizes) > _MOST_SIZES else ""
        if shape.max_blocks is not None:
            said += f"; at most {shape.max_blocks} blocks"
        canvas.paragraph(said, FONT, "")
        return
    cells = [
        (block, "")
        for block, number in shape.blocks.items()
        for _ in range(min(number, _MOST_CELLS))
    ]
    _draw_cells(canvas, where, cells[:_MOST_CELLS], places)


def _draw_cells(
    canvas: Canvas, label: str, cells: Sequence[tuple[str, str]], places: dict[str, int]
) -> None:
    """Draw a machine: a box a block, equally wide, with its job; each type in its colour."""
    name = cut(label, MARGIN + EDGE - 12, FONT)
    canvas.add(
        f'<text x="{EDGE + MARGIN - 10}" y="{canvas.y + 16:g}" class="count">{escaped(name)}</text>'
    )
    wide = BARS_WIDTH / max(len(cells), 1)
    for at, (block, job) in enumerate(cells):
        said = f"{block} {job}".strip()
        box = EDGE + MARGIN + at * wide, wide
        _box(canvas, box, places.setdefault(block, len(places)), said, said)
    canvas.y += _BAR + _SPACE


def _box(canvas: Canvas, box: tuple[float, float], place: int, tip: str, label: str) -> None:
    x, wide = box
    words = cut(label, wide - 8, FONT)
    canvas.add(
        f'<g><title>{escaped(tip)}</title><rect x="{x:.1f}" y="{canvas.y:g}" width="{wide:.1f}" '
        f'height="{_BAR}" fill="{colour(place)}" stroke="#59636e" stroke-width="0.8"/>'
        f'<text x="{x + 4:.1f}" y="{canvas.y + 16:g}" class="on">{escaped(words)}</text></g>'
    )


def _rows(starts: Iterable[int], wide: int) -> list[list[int]]:
    """Put starts into rows in which no two instances overlap."""
    rows: list[list[int]] = []
    for start in sorted(starts):
        row = next((row for row in rows if row[-1] + wide <= start), None)
        if row is None:
            rows.append([start])
        else:
            row.append(start)
    return rows


def _page(page: Page, picture: str) -> str:
    """Put the facts, the picture and the services of a page together."""
    facts = [(fact.name, fact.value, fact.note) for fact in page.facts]
    grids = [
        (part.name, [column.name for column in part.columns],
         [[" ".join(cell.lines) for cell in row] for row in part.rows])
        for section in page.sections if section.name == "services"
        for part in section.parts if isinstance(part, Grid)
    ]  # fmt: skip
    return _html("", page.lead, picture, [("", (), facts), *grids])


def _html(
    title: str,
    lead: str,
    picture: str,
    tables: Iterable[_Table],
    rest: str = "",
) -> str:
    """Write a fragment, with the rest at its end; every text is escaped."""
    parts = [f"<p><strong>{_said(title)}</strong> {_said(lead)}</p>"] if title or lead else []
    data = base64.b64encode(picture.encode()).decode("ascii")
    shown_before, *others = [_table(*each) for each in tables] or [""]
    parts += [
        shown_before,
        f'<img alt="{_said(lead or title)}" style="max-width: 100%" '
        f'src="data:image/svg+xml;base64,{data}" />',
        *others,
        rest,
    ]
    return f"<div>{''.join(parts)}</div>"


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    said = f"<caption>{_said(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{_said(each)}</th>" for each in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{_said(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    rest = f"<p>... and {left:,} more rows</p>" if left > 0 else ""
    return f"<table>{said}<tr>{head}</tr>{body}</table>{rest}"


def _said(text: str) -> str:
    return escape(printable(text))
