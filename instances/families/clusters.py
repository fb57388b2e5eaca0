"""A family of the shape of real clusters: few kinds of jobs, many of each, many GPU types."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations

from .family import choice, draw_demands, family, integer, real
from .fleets import LIMITS, draw_costs
from .machines import Floats, Integers, Machines, Rng, joined, made

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: GPU types, slowest first.
_GPUS = ("t4-16gb", "p100-16gb", "v100-16gb", "v100-32gb", "a10-24gb", "a100-80gb", "h100-80gb")
_SLOWEST, _FASTEST = 0.5, 6.0
# How much GPU types' speeds and their worth differ from job to job, and from type to type.
_AFFINITY = 0.25
_COST_STEP = Fraction(1, 10)
# How unequal the kinds' numbers of jobs are: the standard deviation of the logarithm.
_WEIGHTS = 1.0
# A kind cannot use a GPU type with this chance; one type at least it can.
_BARRED = 0.25


@family(
    23,
    m=real(2, above=0, most=10**6),
    kinds=integer(70, 1, 10**6),
    types=integer(7, 1, len(_GPUS)),
    blocks=integer(147, "types", 10_000),
    serving=choice("pods", "rates"),
    limits=LIMITS,
)
def cluster_fleet(
    rng: Rng, n: int, *, kinds: int, types: int, blocks: int, serving: str, limits: str, m: Fraction
) -> Problem:
    """Jobs of few kinds, hundreds of each, on several GPU types cut into equal shares.

    GPU types' speeds are spread evenly over the logarithm from 0.5 to 6, with noise; a kind is
    faster or slower on a type by a factor of its own, and some types it cannot use. The number of
    jobs of a kind is in proportion to lognormal weights. Each GPU type is cut into the
    ``blocks // types``-th parts, and a block has one part or several. A job of ``"pods"`` is one
    share that is large enough, on any type; of ``"rates"`` it may have several, which give a
    throughput that grows more slowly than their size.
    """
    parts = blocks // types
    evenly = np.linspace(0, 1, types)
    speeds = _SLOWEST * (_FASTEST / _SLOWEST) ** evenly * rng.uniform(0.85, 1.15, types)
    costs = draw_costs(rng, speeds, _COST_STEP)
    whole = 10 ** rng.uniform(3, 4, kinds)[:, None] * speeds
    whole = whole * rng.lognormal(0.0, _AFFINITY, whole.shape)
    bend = 10 ** rng.uniform(-1, 1, kinds)[:, None, None]
    shares = np.arange(1, parts + 1) / parts
    curve = (1 + bend) * shares / (shares + bend)
    supply = np.maximum(np.rint(whole[:, :, None] * curve).astype(np.int64), 1)
    barred = rng.random(whole.shape) < _BARRED
    barred[np.arange(kinds), rng.integers(0, types, kinds)] = False
    supply[barred] = 0
    demands = draw_demands(rng, np.rint(whole.mean(axis=1)).astype(np.int64), m)
    if serving == "pods":
        most = supply[:, :, -1].max(axis=1)
        supply = (supply >= np.minimum(demands, most)[:, None, None]).astype(np.int64)
        demands = np.ones_like(demands)
    supply = supply.reshape(kinds, -1)
    weights = np.cumsum(rng.lognormal(0.0, _WEIGHTS, kinds))
    # the first jobs are one of each kind, so that few jobs are not of fewer kinds
    later = np.searchsorted(weights / weights[-1], rng.random(max(n - kinds, 0)))
    kind = np.concatenate([np.arange(min(n, kinds)), later])
    most_machines: Sequence[int | None] = [None] * types
    if limits != "none":
        prices = np.repeat(speeds * rng.uniform(0.8, 1.25, types) / parts, parts)
        prices *= np.tile(np.arange(1, parts + 1), types)
        bought = _plain_blocks(prices, demands, supply, np.bincount(kind, minlength=kinds))
        times = 1 if limits == "tight" else 2
        most_machines = [times * _next_fit(own) for own in bought.reshape(types, parts)]
    machines = _machines(costs, most_machines, parts)
    return machines.problem(demands[kind], supply[kind])


def _machines(costs: Sequence[Fraction], limits: Sequence[int | None], parts: int) -> Machines:
    found = []
    for gpu, cost, limit in zip(_GPUS, costs, limits, strict=False):
        sizes = {f"{gpu}:{size}/{parts}": size for size in range(1, parts + 1)}
        shape = SizeBoundedConfigurations(sizes, parts, gpu)
        machine = MachineType(gpu, cost=cost, limit=limit)
        found.append(made([*sizes], [shape], [machine], [*sizes.values()]))
    return joined(found)


def _plain_blocks(prices: Floats, demands: Integers, supply: Integers, many: Integers) -> Integers:
    """Count the blocks where each job takes equal ones, those that cost it least."""
    copies = -(-demands[:, None] // np.maximum(supply, 1))
    best = np.where(supply > 0, copies * prices, np.inf).argmin(axis=1)
    taken = copies[np.arange(len(best)), best] * many
    blocks = np.zeros(len(prices), dtype=np.int64)
    np.add.at(blocks, best, taken)
    return blocks


def _next_fit(counts: Integers) -> int:
    """Count the machines that next fit takes for so many blocks of 1, 2, ... parts, large first.

    >>> _next_fit(np.array([3, 0, 2, 1]))  # 4, then 3 + 1, 3 + 1, and 1
    4
    """
    capacity, machines, room = len(counts), 0, 0
    for size in range(capacity, 0, -1):
        left = int(counts[size - 1])
        here = min(left, room // size)
        left, room = left - here, room - here * size
        if left:
            more = -(-left // (capacity // size))
            machines += more
            room = capacity - (left - (more - 1) * (capacity // size)) * size
    return machines
