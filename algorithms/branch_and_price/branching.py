"""What to branch on: the integers of a schedule that a fractional one leaves fractional."""

from __future__ import annotations

from itertools import product
from math import ceil, gcd
from typing import TYPE_CHECKING

from cms.certificate.quantity import BlocksOfJob, MachinesOf, MachinesWith
from cms.problem.parts import Configuration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.certificate.quantity import Quantity

    from ..prices.jobs import Jobs
    from ..prices.region import Region
    from .restricted_master import NodeSolution

#: Nearer to an integer than this counts as one where branches are chosen; nothing is proved by it.
NEAR = 1e-5
#: So many sums, of units down to so small a part of a machine, and about a cost step at least.
_SUMS, _MOST_PARTS, _MOST_WEIGHT, _FINEST = 12, 8, 1_000, 0.9
#: Blocks of a type that tell machines apart: so many, of the contents that are used most in part.
_FEW_OF_A_TYPE, _MOST_CONTENTS = 64, 40
#: Blocks of single jobs that are looked at.
_MOST_JOBS = 40


def is_whole(value: float) -> bool:
    """Whether a number is near an integer."""
    return abs(value - round(value)) <= NEAR


def find_sums(
    amounts: Sequence[float], worth: Sequence[float], step: float, gap: float
) -> list[list[int]]:
    """List weights of machine types by which these are ``worth`` as much; the best sums first.

    A cut of Chvátal and Gomory is a branch on such a sum, of which one side is empty: where all
    machines of which there may be more are worth a whole number of parts of one, costs are too.
    ``amounts`` are how many machines there are, and bounds are to rise by ``gap``.
    """
    found: dict[tuple[int, ...], float] = {}
    for m, parts in product(range(len(worth)), range(1, _MOST_PARTS + 1)):
        unit = worth[m] / parts
        if is_whole(amounts[m]) or unit < _FINEST * step:
            continue
        weights = tuple(round(each / unit) for each in worth)
        if gcd(*weights) != 1 or sum(map(bool, weights)) < 2:
            continue
        if min(weights) < 0 or max(weights) > _MOST_WEIGHT:
            continue
        total = sum(n * amount for n, amount in zip(weights, amounts, strict=True))
        found[weights] = min(unit * (ceil(total - NEAR) - total), gap)
    best = sorted(found, key=lambda weights: (-found[weights], weights))
    return [[*weights] for weights in best[:_SUMS]]


def find_contents(region: Region, solution: NodeSolution) -> Iterator[Quantity]:
    """Yield machines with some content, for where totals tell nothing: most used in part first."""
    mixed = [(x, row) for row, x in solution.contents.items() if not is_whole(x)]
    for _, row in sorted(mixed, key=lambda pair: -pair[0])[:_MOST_CONTENTS]:
        if row.shape is not None:
            if not any(region.problem.sets_with(row.shape)):
                yield MachinesOf(row.shape)
            continue
        for i, count in enumerate(row.counts):
            for n in range(max(1, count + 1 - _FEW_OF_A_TYPE), count + 1):
                content = Configuration({region.blocks[i]: n}, region.names[row.machine])
                yield MachinesWith(content)


def find_jobs(jobs: Jobs, region: Region, solution: NodeSolution) -> dict[BlocksOfJob, float]:
    """Return blocks that a job without equals has in part, those worth most first."""
    means: dict[tuple[int, int], float] = {}
    for (kind, option), x in solution.options.items():
        for i, n in enumerate(option) if jobs.weight(kind) == 1 else ():
            means[kind, i] = means.get((kind, i), 0.0) + x * n
    mixed = [at for at, x in means.items() if not is_whole(x)]
    mixed.sort(key=lambda at: (-solution.prices[at[1]] * abs(means[at] - round(means[at])), at))
    names = jobs.problem.job_names
    return {
        BlocksOfJob(region.blocks[i], names[int(jobs.members(kind)[0])]): means[kind, i]
        for kind, i in mixed[:_MOST_JOBS]
    }
