"""LP_DW, the linear program over options, to the last digit: a basic solution (theory 1.4 and 6).

Jobs take part in groups, which share a mixture of passes of the price search; only groups that need
more than one pass are looked at job by job. So the program stays small, however many jobs it has.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cms.certificate.certificate import BlockPrices

from ..solvers.simplex import cheapest
from .fraction import Fractional
from .jobs import Jobs
from .master import MOST_BLOCKS, cheapest_holder
from .region import Region, configuration_of
from .search import PriceSearch, fractional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

#: Blocks of each type.
Option: TypeAlias = tuple[int, ...]

#: Floats are rounded to denominators up to this.
_FINEST = 10**6


class BasicSolution(NamedTuple):
    """A basic solution of LP_DW, nearly always an optimal one; each job's options and weights.

    Otherwise its machines cost more than ``bound``, what the exact prices of ``leaf`` prove: by a
    small part of one where covering knapsacks end with a lower bound; by up to a ten-thousandth of
    the cheapest where no vertex of a dozen was optimal; by more if floats fail and there are more
    than 32 block types.
    """

    problem: Problem
    machines: dict[Configuration, Fraction]
    options: list[list[tuple[Option, Fraction]]]
    leaf: BlockPrices
    bound: Fraction


def solve_dantzig_wolfe(problem: Problem, budget: Budget) -> BasicSolution | None:
    """Solve LP_DW of a reduced problem without limits to a basic solution; None if stopped.

    Up to 32 block types machines and weights are exact, and with k block types and p configurations
    in use at most k - p jobs have several options. With more these numbers are rounded from floats:
    there may be too few machines, and more jobs with several options.
    """
    if not problem.n_jobs:
        return BasicSolution(problem, {}, [], BlockPrices(), Fraction(0))
    search = PriceSearch(Jobs(problem), budget, vertex=True)
    for _ in search.run():
        pass
    while len(search.coarse) and not budget.stopped:
        for _ in search.divided():
            pass
    if budget.stopped or search.best is None:
        return None
    mixture = _mixture(search, budget)
    if mixture is None:
        return None
    machines: dict[Configuration, Fraction] = {}
    for row, number in mixture.machines:
        shape = configuration_of(problem, row)
        machines[shape] = machines.get(shape, Fraction(0)) + number
    leaf = search.region.leaf(search.best.vector)
    # Where a knapsack gives up the pass may have proved more than the certificate's check does.
    return BasicSolution(problem, machines, _options(search, mixture), leaf, leaf.bound(problem))


def _mixture(search: PriceSearch, budget: Budget) -> Fractional | None:
    if search.exact:
        return fractional(search)
    if search.machines and len(search.region.blocks) > MOST_BLOCKS:
        return _short(fractional(search))
    # The solver failed, or never came near the optimum: everybody takes the last pass as it is.
    region, everybody = search.region, np.zeros(1, dtype=np.int64)
    load = search.jobs.loads(search.options[-1], everybody)[0]
    costs = [region.costs[row.machine] for row in region.rows]
    columns = [list(column) for column in zip(*(row.counts for row in region.rows), strict=True)]
    found = cheapest(costs, columns, load, lambda: budget.stopped)
    if found is None:
        return None
    machines = [(row, x) for row, x in zip(region.rows, found.values, strict=True) if x]
    whole = [(len(search.options) - 1, Fraction(1))]
    return Fractional([whole] * search.n_groups, machines)


def _short(mixture: Fractional) -> Fractional:
    """Return floats as rationals that are short, near enough to be rounded and repaired."""
    machines = [(row, x.limit_denominator(_FINEST)) for row, x in mixture.machines]
    shares = []
    for mine in mixture.shares:
        most, *others = sorted(mine, key=lambda share: -share[1])
        short = [(number, weight.limit_denominator(_FINEST)) for number, weight in others]
        left = 1 - sum((weight for _, weight in short), Fraction(0))
        shares.append([(number, x) for number, x in ((most[0], left), *short) if x])
    return Fractional(shares, [(row, x) for row, x in machines if x])


def _options(search: PriceSearch, mixture: Fractional) -> list[list[tuple[Option, Fraction]]]:
    """Return each job's options; jobs of one kind line up for the options of the kind."""
    jobs, taken = search.jobs, search.options
    options: list[list[tuple[Option, Fraction]]] = [[] for _ in range(jobs.problem.n_jobs)]
    for group, shares in enumerate(mixture.shares):
        part = search.kinds_of_group(group)
        for kind in range(part.start, part.stop):
            members = jobs.members(kind).tolist()
            parts: dict[Option, Fraction] = {}
            for number, share in shares:
                option = tuple(taken[number][kind].tolist())
                parts[option] = parts[option] + share if option in parts else share
            for job, mine in zip(members, in_line(parts, len(members)), strict=True):
                options[job] = mine
    return options


def in_line(shares: Mapping[Option, Fraction], count: int) -> list[list[tuple[Option, Fraction]]]:
    """Share options out among equal jobs by their weights, splitting no more than necessary."""
    options = [*shares]
    if len(options) == 1:
        return [[(options[0], Fraction(1))]] * count
    left, at = [share * count for share in shares.values()], 0
    lined_up = []
    for _ in range(count):
        missing = Fraction(1)
        mine: list[tuple[Option, Fraction]] = []
        while missing:
            taken = min(missing, left[at])
            mine.append((options[at], taken))
            missing -= taken
            left[at] -= taken
            at += not left[at]
        lined_up.append(mine)
    return lined_up


def additive_cost(problem: Problem) -> Fraction:
    """Return what the rounding costs more than a basic solution at most (Theorem B, theory 4).

    At most k - p jobs are split, which take their mean, rounded up, as are machines; so of each
    type at most k - p - 1 blocks are missing. None of that needs the solution to be optimal.
    """
    region, k = Region(problem), len(problem.blocks)
    costs = [region.costs[region.rows[cheapest_holder(region, i)].machine] for i in range(k)]
    repair = sum(costs, Fraction(0))
    return max(
        (p * region.dearest + max(0, k - p - 1) * repair for p in range(1, k + 1)),
        default=Fraction(0),
    )


def rounded(solution: BasicSolution) -> tuple[dict[Configuration, int], dict[tuple[str, str], int]]:
    """Round a basic solution to machines, and to blocks by (block, job) that serve all jobs."""
    problem = solution.problem
    given: dict[tuple[str, str], int] = {}
    load = [0] * len(problem.blocks)
    for name, options in zip(problem.job_names, solution.options, strict=True):
        for i, blocks in enumerate(taken(options)):
            if blocks:
                given[problem.blocks[i], name] = blocks
                load[i] += blocks
    machines = {shape: ceil(number) for shape, number in solution.machines.items()}
    return with_missing(problem, machines, load), given


def taken(options: Sequence[tuple[Option, Fraction]]) -> Option:
    """Return the blocks of a job: its option, or the mean of several rounded up."""
    if len(options) == 1:
        return options[0][0]
    columns = zip(*([weight * n for n in option] for option, weight in options), strict=True)
    return tuple(ceil(sum(column)) for column in columns)


def with_missing(
    problem: Problem, machines: dict[Configuration, int], load: Sequence[int]
) -> dict[Configuration, int]:
    """Add machines until there are enough blocks: of each type those that hold it most cheaply."""
    region, enough = Region(problem), dict(machines)
    for i, need in enumerate(load):
        block = problem.blocks[i]
        missing = need - sum(n * shape.blocks.get(block, 0) for shape, n in enough.items())
        if missing > 0:
            row = region.rows[cheapest_holder(region, i)]
            holder = configuration_of(problem, row)
            enough[holder] = enough.get(holder, 0) + -(-missing // row.counts[i])
    return enough
