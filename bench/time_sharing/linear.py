"""Linear bounds from the definition: all mixes, and the dearest of them at some prices, by SciPy.

The dual of the program over whole machines has a variable a job: what its whole demand is worth. No
machine may be worth more than 1. Contents that are worth more join as cuts until there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cms import Configuration, TimeSharedProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How much more than a machine costs what is on it may be worth.
_MORE = 1e-10


#: What the parts of a machine can give: a matrix each, a row a choice, a column a job. Entries are
#: shares of demands, at most 1 each; a part may give nothing, too.
Choices: TypeAlias = "tuple[NDArray[np.float64], ...]"


def linear_bound(problem: TimeSharedProblem) -> Fraction:
    """Return the value of the linear program over all mixes, to five decimal places.

    Rates count up to the demand; there are no cuts. It is written here from the definition, for a
    handful of jobs and machines that cost 1.
    """
    value = least_machines(machines_of(problem), len(problem.jobs))
    return Fraction(round(value * 10**5), 10**5)


def machines_of(problem: TimeSharedProblem) -> list[Choices]:
    """Return what a machine of each configuration can give."""
    gives: dict[str, list[list[float]]] = {block: [] for block in problem.blocks}
    for block, rates in admitted_mixes(problem):
        row = [0.0] * len(problem.jobs)
        for job, rate in rates.items():
            demand = problem.jobs[job].demand
            row[job] = float(min(rate, demand) / demand)
        gives[block].append(row)
    tables = {b: np.array(r).reshape(len(r), len(problem.jobs)) for b, r in gives.items()}
    return [
        tuple(tables[block] for block, n in shape.blocks.items() for _ in range(n))
        for shape in problem.configurations
        if isinstance(shape, Configuration)
    ]


def admitted_mixes(problem: TimeSharedProblem) -> Iterator[tuple[str, Mapping[int, Fraction]]]:
    """Iterate over all mixes that are admitted, with the rate of each job."""
    for block in problem.blocks:
        for size in range(1, min(problem.max_jobs or 3, len(problem.jobs)) + 1):
            for chosen in combinations(range(len(problem.jobs)), size):
                own = [problem.jobs[job].points.get(block, ()) for job in chosen]
                for points in product(*own):
                    cycle = sum((point.length for point in points), Fraction(0))
                    if all(
                        problem.rule.admits(cycle, point.length, problem.jobs[job].limit)
                        for job, point in zip(chosen, points, strict=True)
                    ):
                        pairs = zip(chosen, points, strict=True)
                        yield block, {job: point.amount / cycle for job, point in pairs}


def least_machines(machines: Sequence[Choices], jobs: int) -> float:
    """Return the least fractional number of machines that give each job all of its demand."""
    from scipy.optimize import linprog

    most = [
        [sum(float(part[:, job].max(initial=0.0)) for part in machine) for job in range(jobs)]
        for machine in machines
    ]
    cuts = list(np.diag(np.max(most, axis=0)))
    while True:
        matrix = np.array(cuts)
        found = linprog(-np.ones(jobs), A_ub=matrix, b_ub=np.ones(len(cuts)), method="highs")
        if found.x is None:
            raise ValueError("there is no solution: some job has no mix that serves it")
        new = []
        for machine in machines:
            rows = (part[int(np.argmax(part @ found.x))] for part in machine if len(part))
            best = sum(rows, np.zeros(jobs))
            if float(best @ found.x) > 1 + _MORE:
                new.append(best)
        if not new:
            return float(found.x.sum())
        cuts += new
