"""Families of fleets of several GPU types, with costs and with limits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.problem.parts import MachineType
from cms.values.numbers import Number, exact

from .a100 import EXPONENTS, NOISE
from .family import Demanding
from .machines import FLEET, Machines, joined, mig
from .rows import Integers, drawn, pieces, whole_machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.problem import Problem

LIMITS = ("none", "ample", "tight")
_SLOWEST, _FASTEST = 0.7, 3.0
# Speeds of GPU types differ from job to job by so much (standard deviation of the logarithm).
_AFFINITY = 0.25
# How often a job needs blocks of at least 1, 2 and 3 slices.
_MEMORY = (0.6, 0.25, 0.15)
# A shortage in per cent needs so many machines of each type, or it is a matter of rounding.
_MACHINES_A_TYPE = 10
_SMALLEST_SHORTAGE = 0.02


class _Fleet(NamedTuple):
    """GPU types beside each other: all have the same number of blocks, of the same slices."""

    parts: tuple[Machines, ...]
    speeds: NDArray[np.float64]
    worth: NDArray[np.float64]

    @property
    def prices(self) -> NDArray[np.float64]:
        """A price a block, shape (k,): its share of what its machine is worth.

        No machine holds more than 7 slices, so no configuration is priced above its machine.
        """
        return np.concatenate(
            [worth * part.slices / 7 for worth, part in zip(self.worth, self.parts, strict=True)]
        )


@dataclass(frozen=True)
class _OnFleet(Demanding):
    """Jobs for several GPU types.

    The GPU types' speeds are random, 0.7 to 3 times an A100's; a job's supply is a power law of the
    block's slices, times the type's speed, times a factor of the job's own for each type. Two jobs
    in five need blocks of at least 2 or 3 slices. Block names are qualified, ``h100-80gb:3g.40gb``;
    speeds and costs are made up, names and configurations are the catalogue's.
    """

    types: int = 3
    cost_step: Number = "1/2"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("types", least=1, most=len(FLEET))
        self._number("cost_step", above=0, most=1000)

    def _fleet(self, rng: np.random.Generator) -> _Fleet:
        parts = tuple(mig(key, f"{key}:") for key in FLEET[: self.types])
        speeds = np.sort(_SLOWEST * (_FASTEST / _SLOWEST) ** rng.random(self.types))
        return _Fleet(parts, speeds, speeds * rng.uniform(0.8, 1.25, self.types))

    def _costs(self, rng: np.random.Generator, fleet: _Fleet) -> list[Fraction]:
        """Draw costs around the speeds, whole multiples of the step."""
        step = exact(self.cost_step, "cost_step")
        steps = np.rint(fleet.speeds * rng.uniform(0.85, 1.15, self.types) / float(step))
        return [step * max(int(number), 1) for number in steps]

    def _drawn(self, rng: np.random.Generator, fleet: _Fleet, n: int) -> tuple[Integers, Integers]:
        """Draw demands (n,) and supply (n, k)."""
        slices = fleet.parts[0].slices

        def draw(count: int) -> tuple[Integers, Integers]:
            exponent = rng.uniform(*EXPONENTS, count)
            unit = 100 * 10 ** rng.random(count)
            curve = unit[:, None] * slices ** exponent[:, None]
            own = fleet.speeds * rng.lognormal(0.0, _AFFINITY, (count, self.types))
            smooth = own[:, :, None] * curve[:, None, :]
            noisy = smooth * rng.lognormal(0.0, NOISE, smooth.shape)
            supply = np.maximum(np.rint(noisy), 1).astype(np.int64)
            least = rng.choice(len(_MEMORY), count, p=_MEMORY)
            supply *= np.arange(len(slices)) >= least[:, None, None]
            whole = supply[:, :, -1].sum(axis=1) // self.types
            return self._demands(rng, whole), supply.reshape(count, -1)

        return drawn(n, self.types * len(slices), draw)

    def _problem_of(
        self,
        fleet: _Fleet,
        costs: list[Fraction],
        limits: list[int | None],
        demands: Integers,
        supply: Integers,
    ) -> Problem:
        machine_types = [
            MachineType(key, cost=cost, limit=limit)
            for key, cost, limit in zip(FLEET, costs, limits, strict=False)
        ]
        machines = joined(fleet.parts)._replace(machine_types=tuple(machine_types))
        return machines.problem(demands, supply)


@dataclass(frozen=True)
class MixedFleet(_OnFleet):
    """Fleets of 1 to 5 GPU types, each with 5 profiles: k = 5 to 25.

    Parameters
    ----------
    types : int, default 3
        How many GPU types, up to 5.
    cost_step : number, default 1/2
        Costs are whole multiples of it, around the speeds: ``"1/2"``, ``"1"``, ``"0.01"``.
    limits : {"none", "ample", "tight"}
        ``"tight"``: as many machines of each type as a plain schedule takes that shares the jobs
        out by prices of its own, not by the costs; ``"ample"``: twice as many. Both can serve.
    """

    name = "mixed-fleet"
    number = 7
    title = "several GPU types with costs and, if wanted, limits"
    stresses = "15 to 25 prices, costs with a fine step, limit prices"
    source = "theory 6.9 and 6.10 (fleets of 2 to 5 GPU types)"

    limits: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("limits", LIMITS)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        fleet = self._fleet(rng)
        costs = self._costs(rng, fleet)
        demands, supply = self._drawn(rng, fleet, n)
        limits: list[int | None] = [None] * self.types
        if self.limits != "none":
            times = 1 if self.limits == "tight" else 2
            limits = [times * number for number in _plain_schedule(fleet, demands, supply)]
        return self._problem_of(fleet, costs, limits, demands, supply)


@dataclass(frozen=True)
class MixedFleetInfeasible(_OnFleet):
    """Fleets that fall short of the demands by a few per cent, on all GPU types together.

    Prices prove it: with w_t the worth of GPU type t and a block of s slices priced at w_t s / 7,
    the jobs' cheapest fractional options are worth more than all machines; the certificate has a
    limit price for every type. The limits follow what the jobs would buy of each type at these
    prices, so that no prices prove much more. Demands are doubled until the fleet has about 10
    machines a type. Every job by itself could be served (if n >= 2): a demand too large for that is
    cut, and the shortage is then smaller.

    Parameters
    ----------
    m : number, default 30
    types, cost_step
        As for ``mixed-fleet``.
    shortage : number, default 0.3
        The jobs' options are worth more than the machines by a share that is uniform from 0.02 to
        this, or slightly more where limits had to be rounded down.
    """

    name = "mixed-fleet-infeasible"
    number = 8
    title = "limits on all GPU types that fall 2 % to 30 % short of the demands"
    stresses = "infeasibility that only limit prices on all types together prove"
    source = "theory 6.9 (limit prices)"
    least_jobs = 1

    m: Number = 30
    shortage: Number = "0.3"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("shortage", above=str(_SMALLEST_SHORTAGE), most=1)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        fleet = self._fleet(rng)
        costs = self._costs(rng, fleet)
        demands, supply = self._drawn(rng, fleet, n)
        shortage = rng.uniform(_SMALLEST_SHORTAGE, float(self.shortage))
        counts = fleet.parts[0].counts
        while True:
            bought = _worth_bought(fleet, demands, supply)
            if bought.sum() < _MACHINES_A_TYPE * fleet.worth.sum():
                demands *= 2
                continue
            limits = _short_limits(fleet, bought, shortage)
            alone = np.zeros(n, dtype=np.int64)
            for limit, part in zip(limits, np.split(supply, self.types, axis=1), strict=True):
                alone += limit * whole_machine(part, counts)
            if n == 1 or (demands <= alone).all():
                return self._problem_of(fleet, costs, [*limits], demands, supply)
            # One job outweighs the rest; the fleet is to fall short of all, not of one. Two equal
            # jobs that each suit another GPU type are served alone if the shortage is small.
            demands = np.minimum(demands, np.maximum(alone * 9 // 10, 1))
            shortage -= (shortage - _SMALLEST_SHORTAGE) / 10


def _worth_bought(fleet: _Fleet, demands: Integers, supply: Integers) -> NDArray[np.float64]:
    """Return what the jobs' cheapest fractional options are worth, by GPU type: shape (types,).

    Supply is cut at the demand, so that the sum is at most what whole blocks cost (theory 6.1).
    """
    types = len(fleet.parts)
    bought = np.zeros(types)
    for piece in pieces(len(demands)):
        wanted, given = demands[piece, None], supply[piece]
        with np.errstate(divide="ignore"):
            each = fleet.prices * wanted / np.minimum(given, wanted)
        best = each.argmin(axis=1)
        worth = each[np.arange(len(best)), best]
        bought += np.bincount(best * types // supply.shape[1], weights=worth, minlength=types)
    return bought


def _short_limits(fleet: _Fleet, bought: NDArray[np.float64], shortage: float) -> list[int]:
    """Say how many machines of each type there are, so that all together are worth too little."""
    enough = bought.sum() / (1 + shortage)
    limits = np.maximum(np.floor(bought / fleet.worth / (1 + shortage)), 1).astype(np.int64)
    while limits @ fleet.worth > enough:  # types that had less than a machine got one
        limits[np.where(limits > 1, limits, 0).argmax()] -= 1
    # limits rounded down leave room for some more machines
    for at in np.argsort(-fleet.worth):
        room = enough - limits @ fleet.worth
        limits[at] += int(room // fleet.worth[at])
    return [int(limit) for limit in limits]


def _plain_schedule(fleet: _Fleet, demands: Integers, supply: Integers) -> list[int]:
    """Count the machines of a schedule that gives each job blocks of one type and one more block.

    Of all such options within a GPU type each job takes the cheapest one at the fleet's prices.
    """
    k, width = supply.shape[1], supply.shape[1] // len(fleet.parts)
    blocks = np.zeros(k, dtype=np.int64)
    for piece in pieces(len(demands)):
        wanted, given = demands[piece], supply[piece]
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
    """Count machines that hold at least these blocks, packed by a plain rule.

    Parameters
    ----------
    blocks : ndarray of int64, shape (k,)
        Each occurs in a configuration.
    machines : Machines
        With listed configurations.

    Examples
    --------
    >>> machines_for(np.array([3, 0, 1, 2, 5]), mig())
    7
    """
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
