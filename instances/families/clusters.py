"""A family of the shape of real clusters: few kinds of jobs, many of each, many GPU types."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations
from cms.values.numbers import Number, exact

from .family import Demanding
from .fleets import LIMITS
from .machines import Machines, joined, made

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.problem import Problem

#: GPU types, slowest first.
GPUS = ("t4-16gb", "p100-16gb", "v100-16gb", "v100-32gb", "a10-24gb", "a100-80gb", "h100-80gb")
SERVINGS = ("pods", "rates")
_SLOWEST, _FASTEST = 0.5, 6.0
# How much GPU types' speeds and their worth differ from job to job, and from type to type.
_AFFINITY = 0.25
# How unequal the kinds' numbers of jobs are: the standard deviation of the logarithm.
_WEIGHTS = 1.0
# A kind cannot use a GPU type with this chance; one type at least it can.
_BARRED = 0.25


@dataclass(frozen=True)
class ClusterFleet(Demanding):
    """Jobs of few kinds, hundreds of each, on several GPU types cut into equal shares.

    GPU types' speeds are spread evenly over the logarithm from 0.5 to 6, with noise, and costs are
    around the speeds; a kind is faster or slower on a type by a factor of its own, and some types
    it cannot use. How many jobs of a kind there are is drawn in proportion to lognormal weights.

    Parameters
    ----------
    m : number, default 2
        The median of what a job needs, in sevenths of what a whole GPU gives it on average.
    sigma : number, default 0.5
    kinds : int, default 70
        Different jobs, at most.
    types : int, default 7
        GPU types, 1 to 7.
    blocks : int, default 147
        Block types in all: each GPU type is cut into the ``blocks // types``-th parts, and a block
        has one part or several.
    serving : {"pods", "rates"}
        ``"pods"``: a job is one share that is large enough, on any type. ``"rates"``: shares give a
        throughput that grows more slowly than their size, and a job may have several.
    cost_step : number, default 1/10
        Costs are whole multiples of it.
    limits : {"none", "ample", "tight"}
        ``"tight"``: as many machines of each type as a plain schedule takes that shares the jobs
        out by prices of its own, not by the costs; ``"ample"``: twice as many. Both can serve.
    """

    name = "cluster-fleet"
    number = 23
    title = "70 kinds of jobs, hundreds of each, on seven GPU types with costs in tenths"
    stresses = "about 150 prices, costs with a fine step, limits on all types, equal jobs"
    source = "the shape of GPU clusters in production; all figures are ours"

    m: Number = 2
    kinds: int = 70
    types: int = 7
    blocks: int = 147
    serving: str = "pods"
    cost_step: Number = "1/10"
    limits: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("kinds", least=1, most=10**6)
        self._whole("types", least=1, most=len(GPUS))
        self._whole("blocks", least=self.types, most=10_000)
        self._one_of("serving", SERVINGS)
        self._number("cost_step", above=0, most=1000)
        self._one_of("limits", LIMITS)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        parts = self.blocks // self.types
        evenly = np.linspace(0, 1, self.types)
        speeds = _SLOWEST * (_FASTEST / _SLOWEST) ** evenly * rng.uniform(0.85, 1.15, self.types)
        step = exact(self.cost_step, "cost_step")
        steps = np.rint(speeds * rng.uniform(0.85, 1.15, self.types) / float(step))
        costs = [step * max(int(number), 1) for number in steps]
        demands, supply = self._kinds(rng, speeds, parts)
        weights = np.cumsum(rng.lognormal(0.0, _WEIGHTS, self.kinds))
        # the first jobs are one of each kind, so that few jobs are not of fewer kinds
        later = np.searchsorted(weights / weights[-1], rng.random(max(n - self.kinds, 0)))
        kind = np.concatenate([np.arange(min(n, self.kinds)), later])
        limits: list[int | None] = [None] * self.types
        if self.limits != "none":
            prices = np.repeat(speeds * rng.uniform(0.8, 1.25, self.types) / parts, parts)
            prices *= np.tile(np.arange(1, parts + 1), self.types)
            many = np.bincount(kind, minlength=self.kinds)
            bought = _plain_blocks(prices, demands, supply, many).reshape(self.types, parts)
            times = 1 if self.limits == "tight" else 2
            limits = [times * _next_fit(own) for own in bought]
        machines = self._machines(costs, limits, parts)
        return machines.problem(demands[kind], supply[kind])

    def _machines(self, costs: list[Fraction], limits: list[int | None], parts: int) -> Machines:
        found = []
        for gpu, cost, limit in zip(GPUS, costs, limits, strict=False):
            sizes = {f"{gpu}:{size}/{parts}": size for size in range(1, parts + 1)}
            shape = SizeBoundedConfigurations(sizes, parts, gpu)
            machine = MachineType(gpu, cost=cost, limit=limit)
            found.append(made([*sizes], [shape], [machine], [*sizes.values()]))
        return joined(found)

    def _kinds(
        self, rng: np.random.Generator, speeds: NDArray[np.float64], parts: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw each kind's demand, and what blocks give it: shape (kinds, types x parts)."""
        whole = 10 ** rng.uniform(3, 4, self.kinds)[:, None] * speeds
        whole = whole * rng.lognormal(0.0, _AFFINITY, whole.shape)
        bend = 10 ** rng.uniform(-1, 1, self.kinds)[:, None, None]
        shares = np.arange(1, parts + 1) / parts
        curve = (1 + bend) * shares / (shares + bend)
        supply = np.maximum(np.rint(whole[:, :, None] * curve).astype(np.int64), 1)
        barred = rng.random(whole.shape) < _BARRED
        barred[np.arange(self.kinds), rng.integers(0, self.types, self.kinds)] = False
        supply[barred] = 0
        demands = self._demands(rng, np.rint(whole.mean(axis=1)).astype(np.int64))
        if self.serving == "pods":
            most = supply[:, :, -1].max(axis=1)
            supply = (supply >= np.minimum(demands, most)[:, None, None]).astype(np.int64)
            demands = np.ones_like(demands)
        return demands, supply.reshape(self.kinds, -1)


def _plain_blocks(
    prices: NDArray[np.float64],
    demands: NDArray[np.int64],
    supply: NDArray[np.int64],
    many: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count the blocks where each job takes equal ones, those that cost it least."""
    copies = -(-demands[:, None] // np.maximum(supply, 1))
    best = np.where(supply > 0, copies * prices, np.inf).argmin(axis=1)
    taken = copies[np.arange(len(best)), best] * many
    blocks = np.zeros(len(prices), dtype=np.int64)
    np.add.at(blocks, best, taken)
    return blocks


def _next_fit(counts: NDArray[np.int64]) -> int:
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
