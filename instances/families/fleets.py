"""Families of fleets of several GPU types, with costs and with limits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cms.errors import InvalidOption
from cms.problem.parts import MachineType
from cms.problem.problem import Problem
from cms.values.numbers import whole

from .family import LOAD, choice, draw_demands, family, integer, noisy, real, whole_machine
from .machines import Floats, Integers, Machines, Rng, cut, draw_rows, joined, mig, pieces
from .synthetic import EXPONENTS

#: GPU types of 7 compute slices and 5 plain profiles each, oldest first.
_GPUS = ("a100-40gb", "a100-80gb", "h100-80gb", "h200-141gb", "b200-180gb")
#: "tight": as many machines of each type as a plain schedule takes that goes by prices of its own,
#: not by the costs; "ample": twice as many. Both can serve.
LIMITS = choice("none", "ample", "tight")
_SLOWEST, _FASTEST = 0.7, 3.0
# Speeds of GPU types differ from job to job by this (standard deviation of the logarithm).
_AFFINITY = 0.25
# How often a job needs blocks of at least 1, 2 and 3 slices.
_MEMORY = (0.6, 0.25, 0.15)
# A shortage in per cent needs this many machines of each type, or it is a matter of rounding.
_MACHINES_A_TYPE = 10
#: The jobs' options are worth more than the machines by a share that is uniform between these, or
#: slightly more where limits had to be rounded down.
_SHORTAGES = (0.02, 0.3)
_TYPES = integer(3, 1, len(_GPUS))
_COST_STEP = real("1/2", above=0, most=1000)


class _Fleet(NamedTuple):
    """GPU types beside each other, each with the same blocks in slices; jobs drawn for them.

    A GPU type's `worth` is a price of its own; `prices` (k,) are its blocks' shares of that: no
    configuration is priced above its machine.
    """

    parts: tuple[Machines, ...]
    worth: Floats
    prices: Floats
    costs: list[Fraction]
    demands: Integers
    supply: Integers

    def problem(self, limits: Sequence[int | None]) -> Problem:
        """Make the problem of a number of machines of each type."""
        machine_types = tuple(map(MachineType, _GPUS, self.costs, limits))
        machines = joined(self.parts)._replace(machine_types=machine_types)
        return machines.problem(self.demands, self.supply)


def draw_costs(rng: Rng, speeds: Floats, step: Fraction) -> list[Fraction]:
    """Draw costs around the speeds, whole multiples of the step."""
    steps = np.rint(speeds * rng.uniform(0.85, 1.15, len(speeds)) / float(step))
    return [step * max(int(number), 1) for number in steps]


def _draw(rng: Rng, n: int, types: int, cost_step: Fraction, m: Fraction) -> _Fleet:
    """Draw a fleet and jobs for it; speeds and costs are made up.

    A job's supply is a power law of the block's slices, times the type's speed, times a factor of
    the job's own for each type.
    """
    parts = tuple(mig(key, f"{key}:") for key in _GPUS[:types])
    speeds = np.sort(_SLOWEST * (_FASTEST / _SLOWEST) ** rng.random(types))
    worth = speeds * rng.uniform(0.8, 1.25, types)
    costs = draw_costs(rng, speeds, cost_step)
    slices = parts[0].slices

    def draw(count: int) -> tuple[Integers, Integers]:
        exponent = rng.uniform(*EXPONENTS, count)
        unit = 100 * 10 ** rng.random(count)
        curve = unit[:, None] * slices ** exponent[:, None]
        own = speeds * rng.lognormal(0.0, _AFFINITY, (count, types))
        smooth = own[:, :, None] * curve[:, None, :]
        supply = noisy(rng, smooth)
        least = rng.choice(len(_MEMORY), count, p=_MEMORY)
        supply *= np.arange(len(slices)) >= least[:, None, None]
        demands = draw_demands(rng, supply[:, :, -1].sum(axis=1) // types, m)
        return demands, supply.reshape(count, -1)

    demands, supply = draw_rows(n, types * len(slices), draw)
    prices = np.concatenate([own * part.slices / 7 for own, part in zip(worth, parts, strict=True)])
    return _Fleet(parts, worth, prices, costs, demands, supply)


@family(7, m=LOAD, types=_TYPES, cost_step=_COST_STEP, limits=LIMITS)
def mixed_fleet(
    rng: Rng, n: int, *, types: int, cost_step: Fraction, limits: str, m: Fraction
) -> Problem:
    """Fleets of 1 to 5 GPU types, each with 5 profiles, with costs and, if wanted, limits."""
    fleet = _draw(rng, n, types, cost_step, m)
    if limits == "none":
        return fleet.problem([None] * types)
    times = 1 if limits == "tight" else 2
    return fleet.problem([times * number for number in _plain_schedule(fleet)])


@family(8, types=_TYPES)
def mixed_fleet_infeasible(rng: Rng, n: int, *, types: int) -> Problem:
    """Fleets that fall short of the demands by a few per cent, on all GPU types together.

    With w_t the worth of GPU type t and a block of s slices priced at w_t s / 7, the jobs' cheapest
    fractional options are worth more than all machines; limits follow what jobs would then buy.
    """
    whole(n, "n of family 'mixed-fleet-infeasible'", least=1, error=InvalidOption)
    fleet = _draw(rng, n, types, Fraction(1, 2), Fraction(30))
    smallest = _SHORTAGES[0]
    shortage = rng.uniform(*_SHORTAGES)
    while True:
        bought = _worth_bought(fleet)
        if bought.sum() < _MACHINES_A_TYPE * fleet.worth.sum():
            fleet = fleet._replace(demands=fleet.demands * 2)
            continue
        limits = _short_limits(fleet.worth, bought, shortage)
        alone = np.zeros(n, dtype=np.int64)
        for limit, part in zip(limits, np.split(fleet.supply, types, axis=1), strict=True):
            alone += limit * whole_machine(part, fleet.parts[0].counts)
        if n == 1 or (fleet.demands <= alone).all():
            return fleet.problem(limits)
        # One job outweighs the rest; the fleet is to fall short of all, not of one. Two equal jobs
        # that each suit another GPU type are served alone if the shortage is small.
        cut = np.minimum(fleet.demands, np.maximum(alone * 9 // 10, 1))
        fleet = fleet._replace(demands=cut)
        shortage -= (shortage - smallest) / 10


def _worth_bought(fleet: _Fleet) -> Floats:
    """Return what the jobs' cheapest fractional options are worth (theory 6.1), by GPU type."""
    types = len(fleet.parts)
    bought = np.zeros(types)
    for piece in pieces(len(fleet.demands)):
        wanted, given = fleet.demands[piece, None], fleet.supply[piece]
        with np.errstate(divide="ignore"):
            each = fleet.prices * wanted / np.minimum(given, wanted)
        best = each.argmin(axis=1)
        worth = each[np.arange(len(best)), best]
        bought += np.bincount(best * types // given.shape[1], weights=worth, minlength=types)
    return bought


def _short_limits(worth: Floats, bought: Floats, shortage: float) -> list[int]:
    """Limit machines so that all together are worth too little."""
    enough = bought.sum() / (1 + shortage)
    limits = np.maximum(np.floor(bought / worth / (1 + shortage)), 1).astype(np.int64)
    while limits @ worth > enough:  # types that had less than a machine got one
        limits[np.where(limits > 1, limits, 0).argmax()] -= 1
    # limits rounded down leave room for some more machines
    for at in np.argsort(-worth):
        room = enough - limits @ worth
        limits[at] += int(room // worth[at])
    return [int(limit) for limit in limits]


def _plain_schedule(fleet: _Fleet) -> list[int]:
    """Count the machines if each job takes blocks of one type and one more, the cheapest such."""
    k, width = len(fleet.prices), len(fleet.prices) // len(fleet.parts)
    blocks = np.zeros(k, dtype=np.int64)
    for piece in pieces(len(fleet.demands)):
        wanted, given = fleet.demands[piece], fleet.supply[piece]
        jobs = np.arange(len(wanted))
        best = np.full(len(wanted), np.inf)
        main, number, last = (np.zeros(len(wanted), dtype=np.int64) for _ in range(3))
        for i in range(k):
            times, rest = np.divmod(wanted, np.maximum(given[:, i], 1))
            mine = slice(i // width * width, (i // width + 1) * width)
            final = np.where(given[:, mine] >= rest[:, None], fleet.prices[mine], np.inf)
            # without a rest no block finishes the job: `last` is then not counted
            filler = final.argmin(axis=1)
            price = times * fleet.prices[i] + np.where(rest > 0, final[jobs, filler], 0)
            better = (given[:, i] > 0) & (price < best)
            best[better], main[better], number[better] = price[better], i, times[better]
            last[better] = np.where(rest > 0, mine.start + filler, -1)[better]
        blocks += np.bincount(last[last >= 0], minlength=k)
        np.add.at(blocks, main, number)
    bought = np.split(blocks, len(fleet.parts))
    return [machines_for(own, part) for own, part in zip(bought, fleet.parts, strict=True)]


def machines_for(blocks: Integers, machines: Machines) -> int:
    """Count machines that hold at least these blocks (k,), packed by a plain rule."""
    left, total = blocks.copy(), 0
    for shape in machines.counts:  # whole machines first, as the catalogue lists them
        held = shape > 0
        number = (left[held] // shape[held]).min()
        left -= number * shape
        total += int(number)
    while left.any():
        best = (np.minimum(machines.counts, left) @ machines.slices).argmax()
        shape = machines.counts[best]
        used = (shape > 0) & (left > 0)
        number = max((left[used] // shape[used]).min(), 1)
        left = np.maximum(left - number * shape, 0)
        total += int(number)
    return total


#: GPU types, slowest first.
_CLUSTER = ("t4-16gb", "p100-16gb", "v100-16gb", "v100-32gb", "a10-24gb", "a100-80gb", "h100-80gb")
# A kind cannot use a GPU type with this chance; one type at least it can.
_BARRED = 0.25


@family(
    23,
    m=real(2, above=0, most=10**6),
    kinds=integer(70, 1, 10**6),
    types=integer(7, 1, len(_CLUSTER)),
    blocks=integer(147, "types", 10_000),
    serving=choice("pods", "rates"),
    limits=LIMITS,
)
def cluster_fleet(
    rng: Rng, n: int, *, kinds: int, types: int, blocks: int, serving: str, limits: str, m: Fraction
) -> Problem:
    """Jobs of few kinds, hundreds of each, on several GPU types cut into equal shares."""
    parts = blocks // types
    speeds = 0.5 * 12 ** np.linspace(0, 1, types) * rng.uniform(0.85, 1.15, types)
    costs = draw_costs(rng, speeds, Fraction(1, 10))
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
    weights = np.cumsum(rng.lognormal(0.0, 1.0, kinds))
    # the first jobs are one of each kind, so that few jobs are not of fewer kinds
    later = np.searchsorted(weights / weights[-1], rng.random(max(n - kinds, 0)))
    kind = np.concatenate([np.arange(min(n, kinds)), later])
    most_machines: Sequence[int | None] = [None] * types
    if limits != "none":
        prices = np.repeat(speeds * rng.uniform(0.8, 1.25, types) / parts, parts)
        prices *= np.tile(np.arange(1, parts + 1), types)
        # each job takes equal blocks, those that cost it least
        copies = -(-demands[:, None] // np.maximum(supply, 1))
        best = np.where(supply > 0, copies * prices, np.inf).argmin(axis=1)
        bought = np.zeros(len(prices), dtype=np.int64)
        taken = copies[np.arange(kinds), best] * np.bincount(kind, minlength=kinds)
        np.add.at(bought, best, taken)
        times = 1 if limits == "tight" else 2
        most_machines = [times * _next_fit(own) for own in bought.reshape(types, parts)]
    machine_types = map(MachineType, _CLUSTER, costs, most_machines)
    machines = [
        cut({f"{gpu.name}:{size}/{parts}": size for size in range(1, parts + 1)}, parts, gpu)
        for gpu in machine_types
    ]
    return joined(machines).problem(demands[kind], supply[kind])


def _next_fit(counts: Integers) -> int:
    """Count the machines that next fit takes for numbers of blocks of 1, 2, ... parts, large first.

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
