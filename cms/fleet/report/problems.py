"""Solutions of abstract problems for the terminal: machines, jobs, the bound in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from ...errors import cut
from ...values.words import count, decimal, printable
from .jobs import job_rows
from .reasons import solution_reasons
from .scarcity import worth_line, worths
from .text_table import hanging, table, text, verdict_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from ...problem.machine_problem import MachineProblem
    from ...schedule.schedule import MachineGroup
    from ...shortages.shortage import Shortage
    from ...solving.solution import Solution

MOST_GROUPS = 20
"""Groups of machines that a report lists before it says how many more there are."""
MOST_JOBS = 20
_MOST_BLOCKS = 12  # of one machine


def solution_report(
    problem: MachineProblem, solution: Solution, title: str, shortage: Shortage | None = None
) -> list[RenderableType]:
    """Describe a solution for a person; its length does not depend on the number of jobs.

    Parameters
    ----------
    problem : MachineProblem
    solution : Solution
        Of this problem.
    title : str
        The problem's name or file.
    shortage : Shortage, optional
        What would do, where there is no schedule.

    Returns
    -------
    list of renderable
        To be printed one after the other with :class:`rich.console.Console`.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 3, {"b": 1})])
    >>> for part in solution_report(problem, solve(problem), "three halves"):
    ...     Console(width=70, color_system=None).print(part)
    three halves
    1 job, 1 block, 1 configuration
    ...
    2 machines, proved >= 2: optimal, proof checked
    ...
    """
    head = Text(printable(title), "bold").append(f"\n{sizes(problem)}\n", "not bold")
    report: list[RenderableType] = [head]
    if solution.status == "infeasible":
        why = solution_reasons(problem, solution, shortage)
        report.append(hanging(*(("-", reason) for reason in why)))
    if solution.schedule.machine_count:
        report += [_machines(problem, solution), Text(), _jobs(problem, solution)]
        if (found := worths(solution, problem)) is not None:
            report.append(Text(f"\n{worth_line(found)}"))
    report.append(verdict_line(solution))
    return report


def sizes(problem: MachineProblem) -> str:
    """Say how large a problem is: ``40 jobs, 5 blocks, 12 configurations``."""
    parts = {
        "job": len(problem.job_names),
        "block": len(problem.blocks),
        "configuration": len(problem.configurations),
    }
    return ", ".join(count(number, what) for what, number in parts.items())


def _machines(problem: MachineProblem, solution: Solution) -> Table:
    rows = table(">machines", "configuration", "blocks given to jobs")
    groups = solution.schedule.groups
    # Most machines first; a stable sort, so that equal runs print equal reports.
    order = np.argsort(-solution.schedule.columns.group_count, kind="stable")[:MOST_GROUPS]
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
        f"{f'{decimal(number)} x ' if number > 1 else ''}{block} -> {cut(str(content))}"
        for (block, content), number in group.assignment.items()
    ]
    if (more := len(parts) - _MOST_BLOCKS) > 0:
        parts[_MOST_BLOCKS:] = [f"and to {count(more, 'more job')}"]
    idle = sum(group.configuration.blocks.values()) - sum(group.assignment.values())
    if idle:
        parts.append(f"{decimal(idle)} idle")
    return text(", ".join(parts))


def _jobs(problem: MachineProblem, solution: Solution) -> Table:
    rows = table("job", ">wanted", ">provided", ">spare", "blocks")
    for row in job_rows(problem, solution, MOST_JOBS):
        rows.add_row(
            text(cut(row.name)),
            decimal(row.wanted),
            decimal(row.provided),
            row.spare,
            text(row.blocks),
        )
    if (more := len(problem.job_names) - MOST_JOBS) > 0:
        rows.add_row(Text(f"... and {count(more, 'more job')}", "dim"), "", "", "", "")
    return rows
