"""Solutions of abstract problems for the terminal: machines, jobs, the bound in words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from ...model import Block, Configuration
from .scarcity import worth_line, worths
from .tables import hanging, table, text
from .words import circumstances, count, decimal, percent, printable, verdict

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from ...problem import Problem
    from ...schedule import MachineGroup
    from ...solution import Solution

MOST_GROUPS = 20
"""Groups of machines that a report lists before it says how many more there are."""
MOST_JOBS = 20


def solution_report(problem: Problem, solution: Solution, title: str) -> list[RenderableType]:
    """Describe a solution for a person; its length does not depend on the number of jobs.

    Parameters
    ----------
    problem : Problem
    solution : Solution
        Of this problem.
    title : str
        The problem's name or file.

    Returns
    -------
    list of renderable
        To be printed one after the other with :class:`rich.console.Console`.
    """
    head = Text(printable(title), "bold")
    sizes = (
        count(len(problem.job_names), "job"),
        count(len(problem.blocks), "block"),
        count(len(problem.configurations), "configuration"),
    )
    head.append(f"\n{', '.join(sizes)}\n", "not bold")
    report: list[RenderableType] = [head]
    if solution.status == "infeasible":
        report.append(hanging(*(("-", line) for line in _impossible(problem))))
    if solution.schedule.machine_count:
        report += [_machines(problem, solution), _jobs(problem, solution)]
        found = worths(solution, problem)
        if found is not None:
            report.append(Text(worth_line(found)))
    proved = solution.proof == "checked"
    end = Text("\n").append(verdict(solution), "bold green" if proved else "bold yellow")
    report.append(end.append(f"\n({circumstances(solution)})", "dim"))
    return report


def _machines(problem: Problem, solution: Solution) -> Table:
    rows = table(">machines", "configuration", "blocks given to jobs")
    groups = solution.schedule.groups
    columns = solution.schedule.columns
    # Most machines first; a stable sort, so that equal runs print equal reports.
    order = np.argsort(-columns.group_count, kind="stable")[:MOST_GROUPS]
    several = len(problem.machine_types) > 1
    for index in order.tolist():
        group = groups[index]
        where = f" on {group.configuration.machine}" if several else ""
        rows.add_row(decimal(group.count), text(f"{group.configuration}{where}"), _given(group))
    if (more := len(groups) - MOST_GROUPS) > 0:
        rows.add_row("", Text(f"... and {count(more, 'more group')}", "dim"), "")
    return rows


def _given(group: MachineGroup) -> Text:
    parts = [
        f"{f'{number} x ' if number > 1 else ''}{block} -> {job}"
        for (block, job), number in group.assignment.items()
    ]
    idle = sum(group.configuration.blocks.values()) - sum(group.assignment.values())
    if idle:
        parts.append(f"{idle} idle")
    return text(", ".join(parts))


def _jobs(problem: Problem, solution: Solution) -> Table:
    rows = table("job", ">wanted", ">provided", ">spare", "blocks")
    shown = problem.jobs[:MOST_JOBS]
    given = _blocks_of(solution, [job.name for job in shown])
    for j, job in enumerate(shown):
        own = given[job.name]
        provided = sum(
            (
                problem.rows.supply(j, problem.block_index[block]) * number
                for block, number in own.items()
            ),
            Fraction(0),
        )
        spare = percent((provided - job.demand) / job.demand) if job.demand else "-"
        listed = ", ".join(f"{decimal(number)} x {block}" for block, number in own.items())
        rows.add_row(
            text(job.name),
            decimal(job.demand),
            decimal(provided),
            spare,
            text(listed),
        )
    if (more := len(problem.job_names) - MOST_JOBS) > 0:
        rows.add_row(Text(f"... and {count(more, 'more job')}", "dim"), "", "", "", "")
    return rows


def _blocks_of(solution: Solution, names: list[str]) -> Mapping[str, dict[str, int]]:
    """Sum up the blocks that a few jobs get, without an object for any other job."""
    columns = solution.schedule.columns
    place = {name: j for j, name in enumerate(columns.jobs)} if names else {}
    sizes = np.diff(columns.entry_start)
    machines = np.repeat(columns.group_count, sizes)
    result: dict[str, dict[str, int]] = {name: {} for name in names}
    for name in names:
        if name not in place:
            continue
        for entry in np.flatnonzero(columns.entry_job == place[name]).tolist():
            block = columns.blocks[int(columns.entry_block[entry])]
            number = int(columns.entry_count[entry]) * int(machines[entry])
            result[name][block] = result[name].get(block, 0) + number
    return result


def _impossible(problem: Problem) -> list[str]:
    """Name the jobs that no block can serve, or say that the limits are the reason."""
    rows = problem.rows
    usable = np.array([_exists(problem, block) for block in problem.blocks], dtype=bool)
    lost = np.flatnonzero((rows.demands > 0) & ~(rows.supplies[:, usable] > 0).any(axis=1)).tolist()
    for j, row in rows.wide.items():
        if row.demand and not any(f for f, there in zip(row.supply, usable, strict=True) if there):
            lost.append(j)
    lines = [
        f"job {printable(problem.job_names[j])!r}: no block supplies any of its demand"
        for j in lost[:MOST_JOBS]
    ]
    if len(lost) > MOST_JOBS:
        lines.append(f"... and {count(len(lost) - MOST_JOBS, 'more job')}")
    limits = [
        f"{decimal(machine.limit)} of {printable(machine.name)}"
        for machine in problem.machine_types
        if machine.limit is not None
    ]
    if not lines and limits:
        lines.append(f"the machines do not suffice: there are only {' and '.join(limits)}")
    return lines


def _exists(problem: Problem, block: Block) -> bool:
    """Whether any machine can have such a block."""
    return any(
        block in shape.blocks
        if isinstance(shape, Configuration)
        else block in shape.sizes and shape.largest_count(block) > 0
        for shape in problem.configurations
    )
