"""What the first jobs of a problem want and get, at a cost that does not grow with the others."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import InvalidOption
from ...problem.problem import Problem
from ...time_sharing.problem import TimeSharedProblem
from ...values.words import decimal, percent

if TYPE_CHECKING:
    from ...problem.machine_problem import MachineProblem
    from ...solving.solution import Solution


class JobRow(NamedTuple):
    """A job and what a schedule gives it.

    Attributes
    ----------
    name : str
    wanted, provided : Fraction
        Its demand, and how much of it the blocks satisfy.
    given : Mapping of str to int
        Blocks of each type.
    """

    name: str
    wanted: Fraction
    provided: Fraction
    given: Mapping[str, int]

    @property
    def spare(self) -> str:
        """Head-room in per cent of the demand."""
        return percent((self.provided - self.wanted) / self.wanted) if self.wanted else "-"

    @property
    def blocks(self) -> str:
        """The blocks in words: ``3 x 1g, 1 x 7g``."""
        return ", ".join(f"{decimal(number)} x {block}" for block, number in self.given.items())


def job_rows(problem: MachineProblem, solution: Solution, most: int) -> list[JobRow]:
    """Return the rows of the first jobs.

    Parameters
    ----------
    problem : MachineProblem
    solution : Solution
        Of this problem.
    most : int
        How many rows at most.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 3, {"b": 2})])
    >>> (row,) = job_rows(problem, solve(problem), 10)
    >>> row.blocks, row.spare
    ('2 x b', '33.3 %')
    """
    if isinstance(problem, TimeSharedProblem):
        return _rows_of_mixes(problem, solution, most)
    if not isinstance(problem, Problem):
        raise InvalidOption(f"nobody knows what the jobs of a {type(problem).__name__} are given")
    columns = solution.schedule.columns
    machines = np.repeat(columns.group_count, np.diff(columns.entry_start))
    rows = []
    for j, name in enumerate(problem.job_names[:most]):
        given: dict[str, int] = {}
        if name in columns.contents:
            own = np.flatnonzero(columns.entry_content == columns.contents.index(name))
            for entry in own.tolist():
                block = columns.blocks[int(columns.entry_block[entry])]
                number = int(columns.entry_count[entry]) * int(machines[entry])
                given[block] = given.get(block, 0) + number
        provided = sum(
            (problem.rows.supply(j, problem.block_index[b]) * n for b, n in given.items()),
            Fraction(0),
        )
        rows.append(JobRow(name, problem.rows.demand(j), provided, given))
    return rows


def _rows_of_mixes(problem: TimeSharedProblem, solution: Solution, most: int) -> list[JobRow]:
    rows = {
        job.name: JobRow(job.name, job.demand, Fraction(0), dict[str, int]())
        for job in problem.jobs[:most]
    }
    for group in solution.schedule.groups:
        for (block, mix), number in group.assignment.items():
            for name, rate in problem.frame(block, mix).rates.items():
                if name in rows:
                    row, blocks = rows[name], number * group.count
                    given = {**row.given, block: row.given.get(block, 0) + blocks}
                    provided = row.provided + rate * blocks
                    rows[name] = row._replace(provided=provided, given=given)
    return list(rows.values())
