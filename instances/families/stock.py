"""Families of bin packing and cutting stock: a job is an item or a length, a block type a size.

Every job has one block type, that of its size, and each such block is one piece for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations
from cms.values.numbers import Number, exact

from .family import Family
from .machines import made

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.problem import Problem

_TRIPLETS_CAPACITY = 1000
_UNIFORM_CAPACITY, _SMALLEST, _LARGEST = 150, 20, 100
_STOCK = 10_000
# Its prime factors in any order make a chain of sizes that each divide the one before.
_DIVISIBLE, _FACTORS = 10_080, (2, 2, 2, 2, 2, 3, 3, 5, 7)
# The smallest size of a chain is at least this, so that a size that misses it is one still.
_LEAST_DIVISOR = 100


def _stock(
    sizes: NDArray[np.int64], pieces: NDArray[np.int64], capacity: int, machine: str
) -> Problem:
    """Make the problem of jobs that want so many pieces of these sizes."""
    different, kind = np.unique(sizes, return_inverse=True)
    blocks = [f"size-{size}" for size in different.tolist()]
    # without a job there is a block all the same, for a set without one is none
    known = dict(zip(blocks, different.tolist(), strict=True)) or {"size-1": 1}
    machines = made(
        [*known],
        [SizeBoundedConfigurations(known, capacity)],
        [MachineType(machine)],
        [*known.values()],
    )
    supply = np.zeros((len(sizes), len(known)), dtype=np.int64)
    supply[np.arange(len(sizes)), kind] = 1
    return machines.problem(pieces, supply)


@dataclass(frozen=True)
class Triplets(Family):
    """Bin packing with bins of 1000 that three items fill exactly: n/3 bins, rounded up.

    Of each triplet one item is uniform from 380 to 490, another from 250 to half of what is left,
    and the third fills the bin. No item is below a quarter of a bin or above a half, so that every
    bin of a schedule without waste holds three. Where 3 does not divide n, the last triplet lacks
    items.
    """

    name = "stock-triplets"
    number = 16
    title = "bin packing in triplets that fill a bin exactly, an item a job"
    stresses = "schedules without any waste, hundreds of block types with an item or two each"
    source = "E. Falkenauer, A hybrid grouping genetic algorithm for bin packing, J. Heuristics 2"

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        count = -(-n // 3)
        first = rng.integers(380, 490, count, endpoint=True)
        second = rng.integers(250, (_TRIPLETS_CAPACITY - first) // 2, endpoint=True)
        triplets = np.column_stack([first, second, _TRIPLETS_CAPACITY - first - second])
        sizes = rng.permutation(triplets.reshape(-1)[:n])
        return _stock(sizes, np.ones(n, dtype=np.int64), _TRIPLETS_CAPACITY, "bin")


@dataclass(frozen=True)
class Uniform(Family):
    """Bin packing with bins of 150 and items uniform from 20 to 100."""

    name = "stock-uniform"
    number = 17
    title = "bin packing, sizes uniform from 20 to 100 in 150, an item a job"
    stresses = "up to 81 block types, many equal items, a bound that is almost always met"
    source = "E. Falkenauer, A hybrid grouping genetic algorithm for bin packing, J. Heuristics 2"

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        sizes = rng.integers(_SMALLEST, _LARGEST, n, endpoint=True)
        return _stock(sizes, np.ones(n, dtype=np.int64), _UNIFORM_CAPACITY, "bin")


@dataclass(frozen=True)
class _Lengths(Family):
    """A family that cuts lengths from stock of 10,000.

    Parameters
    ----------
    low, high : number
        Lengths are whole and uniform from ``low`` to ``high`` times the stock's.
    lengths : int, default 200
        So many different lengths at most; beyond that jobs share them.
    """

    low: Number = "0.01"
    high: Number = "0.5"
    lengths: int = 200

    def __post_init__(self) -> None:
        self._number("low", above=0, most=1)
        self._number("high", least=self.low, most=1)
        self._whole("lengths", least=1, most=_STOCK)

    @property
    def _range(self) -> tuple[int, int]:
        low = max(int(exact(self.low, "low") * _STOCK), 1)
        return low, max(int(exact(self.high, "high") * _STOCK), low)

    def _drawn(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Draw a length for each job; those beyond the number of lengths repeat them in turn."""
        different = rng.integers(*self._range, min(n, self.lengths), endpoint=True)
        return np.resize(different, n) if n else different


@dataclass(frozen=True)
class CutGen(_Lengths):
    """Cutting stock as CUTGEN1 draws it: n lengths and n times ``demand`` pieces in all.

    The pieces are shared out in proportion to uniform numbers, each length having one at least.

    Parameters
    ----------
    low, high, lengths
        Lengths are uniform from ``low`` to ``high`` times the stock's 10,000, at most ``lengths``
        different ones.
    demand : int, default 10
        The mean number of pieces of a length.
    """

    name = "stock-cutgen"
    number = 18
    title = "cutting stock: lengths uniform between two shares of 10,000, a length a job"
    stresses = "up to 200 block types, contents beyond listing, large capacities"
    source = "T. Gau, G. Waescher, CUTGEN1, European J. of Operational Research 84 (1995) 572-579"

    demand: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("demand", least=1, most=10**6)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        lengths = self._drawn(rng, n)
        shares = rng.random(n)
        shares *= n * self.demand / max(shares.sum(), np.finfo(float).tiny)
        return _stock(lengths, np.maximum(np.rint(shares).astype(np.int64), 1), _STOCK, "stock")


@dataclass(frozen=True)
class Residual(_Lengths):
    """Cutting stock of few pieces a length that fill their machines but for a few units.

    What is left of a cutting-stock problem once the whole parts of an LP solution are cut: such
    residual problems are where a round-up of the bound may fail. Each length is wanted 1 to
    ``demand`` times; the last job's pieces are as long as it takes for the sum of all to be a whole
    number of machines, but for less than a unit a piece of that job.

    Parameters
    ----------
    low, high, lengths
        As for ``stock-cutgen``.
    demand : int, default 3
        The largest number of pieces of a length, but for the last.
    """

    name = "stock-residual"
    number = 19
    title = "cutting stock of few pieces a length, in all next to a whole number of machines"
    stresses = "schedules next to no waste, instances without the integer round-up property"
    source = "residual problems: G. Waescher, T. Gau, OR Spektrum 18 (1996), 10.1007/BF01539705"

    low: Number = "0.1"
    demand: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("demand", least=1, most=10**6)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        lengths = self._drawn(rng, n)
        wanted = rng.integers(1, self.demand, n, endpoint=True)
        if n:
            shortest, longest = self._range
            left = int(-(lengths[:-1] @ wanted[:-1]) % _STOCK)
            if left < shortest:
                left += _STOCK
            wanted[-1] = -(-left // longest)
            lengths[-1] = left // wanted[-1]
        return _stock(lengths, wanted, _STOCK, "stock")


@dataclass(frozen=True)
class Divisible(Family):
    """Cutting stock of 10,080 whose sizes divide each other, or miss that by a few units.

    The sizes are a chain of the capacity's divisors, each dividing the one before, at least 100.
    First fit in the order of decreasing sizes is optimal for such sizes; with ``miss`` a size is up
    to so many units larger or smaller, and a machine that was full is not, or has no room.

    Parameters
    ----------
    miss : int, default 3
        0: divisible sizes.
    demand : int, default 10
        Each job wants 1 to so many pieces.
    """

    name = "stock-divisible"
    number = 20
    title = "cutting stock whose sizes divide each other, but for a few units"
    stresses = "many ties among contents, bounds that a few units of waste keep from being met"
    source = "E. Coffman, M. Garey, D. Johnson, Bin packing with divisible item sizes, 1987"

    miss: int = 3
    demand: int = 10

    def __post_init__(self) -> None:
        self._whole("miss", least=0, most=_LEAST_DIVISOR // 5)
        self._whole("demand", least=1, most=10**6)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        chain = _DIVISIBLE // np.cumprod(rng.permutation(_FACTORS))
        sizes = rng.choice(chain[chain >= _LEAST_DIVISOR], n)
        sizes += rng.integers(-self.miss, self.miss, n, endpoint=True)
        pieces = rng.integers(1, self.demand, n, endpoint=True)
        return _stock(sizes, pieces, _DIVISIBLE, "stock")
