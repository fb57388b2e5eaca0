"""Block prices from one look at the jobs: a checked bound beside a schedule without any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from ..certificate.certificate import BlockPrices
from ..certificate.price_conditions import most_worth
from ..problem.parts import held_blocks
from ..problem.problem import Problem
from ..running.stopping import look, never

#: What the weights of blocks are told apart by.
_STEPS = 2**20
#: Configurations read between two looks at the clock.
_AT_ONCE = 2**12


@singledispatch
def rough_certificates(problem: Any, stopped: Callable[[], bool]) -> Iterable[Any]:
    """Return certificates that are cheap to guess, if any; Stopped once ``stopped`` is true."""
    return ()


@rough_certificates.register(Problem)
def rough_prices(
    problem: Problem, stopped: Callable[[], bool] = never
) -> tuple[BlockPrices, BlockPrices]:
    """Price a block by what it gives the jobs, compared with their best blocks or their demands.

    The first weigh a block by its share of the best block's supply, and a job by the number of best
    blocks that it needs: good where demands are large. The second weigh a block by the share of a
    job's demand that it covers. Either are scaled so that the most valuable machine is worth just
    its cost; blocks on machines that cost nothing have price 0.
    """
    rows = problem.rows
    demand, supply = rows.outer if rows.is_wide.any() else (rows.demands, rows.supplies)
    largest = supply.max(axis=1, initial=1)
    by_best, by_demand = [], []
    for column in supply.T:
        look(stopped)
        by_best.append((column / largest * (demand / largest)).sum())
        by_demand.append((np.minimum(column, demand) / np.maximum(demand, 1)).sum())
    return _scaled(problem, by_best, stopped), _scaled(problem, by_demand, stopped)


def _scaled(
    problem: Problem, weights: list[np.float64], stopped: Callable[[], bool]
) -> BlockPrices:
    most = max(weights, default=0)
    if not most > 0:
        return BlockPrices()
    worth = {
        block: int(weight / most * _STEPS)
        for block, weight in zip(problem.blocks, weights, strict=True)
    }
    costs: dict[str | None, Fraction] = {m.name: m.cost for m in problem.machine_types}
    free = [shape for shape in problem.configurations if not costs[shape.machine]]
    worth |= dict.fromkeys(held_blocks(free), 0)
    fullest: dict[str | None, Fraction | int] = dict.fromkeys(costs, 0)
    for number, shape in enumerate(problem.configurations):
        if not number % _AT_ONCE:
            look(stopped)
        fullest[shape.machine] = max(fullest[shape.machine], most_worth(shape, worth))
    scale = max([value / costs[name] for name, value in fullest.items() if costs[name]], default=0)
    if not scale:
        return BlockPrices()
    return BlockPrices({block: value / scale for block, value in worth.items() if value})
