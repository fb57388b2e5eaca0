"""Abstract problems and their solutions: machines, jobs, the bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from ...errors import InvalidOption, cut
from ...infeasibility.shortage import Shortage
from ...problem.machine_problem import MachineProblem
from ...problem.problem import Problem
from ...solving.solution import Solution
from ...time_sharing.problem import TimeSharedProblem
from ...values.numbers import exact, shown
from ...values.words import count, decimal, percent
from .bars import draw_machines
from .page import Bars, Fact, Page, Part, Section, Words
from .proofs import find_reasons, find_worths, format_worths, list_verdict, why_section
from .tables import Cell, Column, Grid, table

#: Groups of machines, and jobs, that are listed before it is said how many more there are.
MOST_GROUPS, MOST_JOBS, _MOST_BARS = 20, 20, 48
_MOST_BLOCKS = 12  # of one machine


def solved_page(
    problem: MachineProblem, solution: Solution, title: str, shortage: Shortage | None = None
) -> Page:
    """Describe a solution of a problem; its length does not depend on the number of jobs."""
    sizes = (len(problem.job_names), "job"), (len(problem.blocks), "block")
    every = (*sizes, (len(problem.configurations), "configuration"))
    lead = ", ".join(count(number, what) for number, what in every)
    sections = [*why_section(find_reasons(problem, solution, shortage))]
    if solution.schedule.machine_count:
        bars = draw_machines(solution.schedule, _MOST_BARS, problem)
        key = "width: the blocks' sizes; hatched: idle or left over"
        parts: list[Part] = [Bars(bars, key=key, only="web"), _machines(problem, solution)]
        rows = []
        for name, wanted, provided, given in _given_to_jobs(problem, solution):
            spare = percent(provided / wanted - 1) if wanted else "-"
            blocks = ", ".join(f"{decimal(number)} x {block}" for block, number in given.items())
            rows.append([cut(name), decimal(wanted), decimal(provided), spare, blocks])
        if (more := len(problem.job_names) - MOST_JOBS) > 0:
            rows.append([f"... and {count(more, 'more job')}", "", "", "", ""])
        parts.append(table("Jobs", "job|>wanted|>provided|>headroom|blocks", rows))
        if (found := find_worths(solution, problem)) is not None:
            parts.append(format_worths(found))
        sections.append(Section("machines", "Machines", parts, drawn=True))
    return Page(title, lead, (), sections, end=list_verdict(solution))


def _machines(problem: MachineProblem, solution: Solution) -> Grid:
    groups, rows = solution.schedule.groups, []
    order = np.argsort(-solution.schedule.columns.group_count, kind="stable")[:MOST_GROUPS]
    for group in (groups[index] for index in order.tolist()):
        parts = [
            f"{f'{decimal(number)} x ' if number > 1 else ''}{block} -> {cut(str(content))}"
            for (block, content), number in group.assignment.items()
        ]
        if (more := len(parts) - _MOST_BLOCKS) > 0:
            parts[_MOST_BLOCKS:] = [f"and to {count(more, 'more job')}"]
        idle = sum(group.configuration.blocks.values()) - sum(group.assignment.values())
        parts += [f"{decimal(idle)} idle"] if idle else []
        where = f" on {group.configuration.machine}" if len(problem.machine_types) > 1 else ""
        rows.append([decimal(group.count), f"{group.configuration}{where}", ", ".join(parts)])
    if (more := len(groups) - MOST_GROUPS) > 0:
        rows.append(["", f"... and {count(more, 'more group')}", ""])
    return table("Machines", ">machines | configuration | blocks given to jobs", rows)


def _given_to_jobs(
    problem: MachineProblem, solution: Solution
) -> Iterator[tuple[str, Fraction, Fraction, Mapping[str, int]]]:
    """Yield demand, supply and blocks of the first jobs, at no cost for the others."""
    if isinstance(problem, TimeSharedProblem):
        yield from _given_to_shared_jobs(problem, solution)
        return
    if not isinstance(problem, Problem):
        raise InvalidOption(f"a {type(problem).__name__} does not tell what its jobs are given")
    columns = solution.schedule.columns
    machines = np.repeat(columns.group_count, np.diff(columns.entry_start))
    for j, name in enumerate(problem.job_names[:MOST_JOBS]):
        given = Counter[str]()
        if name in columns.contents:
            own = np.flatnonzero(columns.entry_content == columns.contents.index(name))
            for entry in own.tolist():
                block = columns.blocks[int(columns.entry_block[entry])]
                given[block] += int(columns.entry_count[entry]) * int(machines[entry])
        row = problem.rows.row(j)
        served = row.served([given[block] for block in problem.blocks])
        yield name, problem.rows.demand(j), Fraction(served, row.denominator), given


def _given_to_shared_jobs(
    problem: TimeSharedProblem, solution: Solution
) -> Iterator[tuple[str, Fraction, Fraction, Mapping[str, int]]]:
    given: dict[str, Counter[str]] = {job.name: Counter() for job in problem.jobs[:MOST_JOBS]}
    provided = dict.fromkeys(given, Fraction(0))
    for group in solution.schedule.groups:
        for (block, mix), number in group.assignment.items():
            for name, rate in problem.duty_cycle(block, mix).rates.items():
                if name in given:
                    given[name][block] += number * group.count
                    provided[name] += rate * number * group.count
    for job in problem.jobs[:MOST_JOBS]:
        yield job.name, job.demand, provided[job.name], given[job.name]


def problem_page(problem: MachineProblem) -> Page:
    """Describe a problem: its machine types, and what its first jobs need and get."""
    lead = (
        f"{count(problem.n_jobs, 'job')}, {count(len(problem.blocks), 'block type')}, "
        f"{count(len(problem.machine_types), 'machine type')}"
    )
    parts: list[Part] = []
    machines = [
        [one.name, shown(one.cost), "none" if one.limit is None else decimal(one.limit)]
        for one in problem.machine_types[:MOST_JOBS]
    ]
    for it in problem.group_limits[:MOST_JOBS]:
        weights = " + ".join(f"{shown(n)} {name}" for name, n in it.weights.items())
        machines.append([f"group {it.name}: {weights}", "", shown(it.at_most)])
    parts.append(table("Machine types", "machine type|>cost|>limit", machines))
    if isinstance(problem, Problem) and problem.n_jobs:
        blocks = problem.blocks[:MOST_JOBS]
        needs = [
            [Cell(job.name), Cell(shown(job.demand)),
             *(Cell(shown(given) if (given := exact(job.demand_function(block), "a supply"))
                    else "-") for block in blocks)]
            for job in problem.jobs[:MOST_JOBS]
        ]  # fmt: skip
        more = f", the first of {problem.n_jobs:,}" if problem.n_jobs > len(needs) else ""
        parts.append(Words(f"Jobs{more}: their demand, and what a block gives them", "head"))
        columns = [Column("job"), Column("demand", True), *(Column(each, True) for each in blocks)]
        parts.append(Grid("Jobs", columns, needs))
    return Page(type(problem).__name__, lead, (), [Section("all", "", parts, drawn=True)])


def solution_page(solution: Solution) -> Page:
    """Describe a solution without its problem: what was found and proved, and its machines."""
    lines = str(solution).split("\n\n", 1)[0].splitlines()
    facts = [
        Fact(*(each.strip() for each in line.split("  ", 1))) for line in lines if "  " in line
    ]
    head, groups, more = solution.schedule.excerpt(MOST_GROUPS)
    parts: list[Part] = [table("Schedule", " | ".join(head), groups), *([more] if more else [])]
    if hasattr(solution.schedule, "groups"):  # of other kinds of problems there are no machines
        bars = draw_machines(solution.schedule, 16)
        parts.insert(0, Bars(bars, key="a box is a block, with its job"))
    section = Section("all", "", parts, drawn=True)
    return Page("", solution.status.replace("_", " "), facts, [section])
