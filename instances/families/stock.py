"""Families of bin packing and cutting stock: a job is an item or a length, a block type a size.

Every job has one block type, that of its size, and each such block is one piece for it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations

from .family import family, integer, real
from .machines import Integers, Rng, made

if TYPE_CHECKING:
    from cms.problem.problem import Problem

_STOCK = 10_000
#: Different lengths cut from stock, at most; beyond that jobs share them.
_MOST_LENGTHS = 200
# Its prime factors in any order make a chain of sizes that each divide the one before.
_DIVISIBLE, _FACTORS = 10_080, (2, 2, 2, 2, 2, 3, 3, 5, 7)
# The smallest size of a chain is at least this, so that a size that misses it is one still.
_LEAST_DIVISOR = 100
_HIGH = real("0.5", least="low", most=1)


def _stock(sizes: Integers, pieces: Integers, capacity: int, machine: str) -> Problem:
    """Make the problem of jobs that want so many pieces of these sizes."""
    different, kind = np.unique(sizes, return_inverse=True)
    # without a job there is a block all the same, for a set without one is none
    known = {f"size-{size}": size for size in different.tolist()} or {"size-1": 1}
    shape = SizeBoundedConfigurations(known, capacity)
    machines = made([*known], [shape], [MachineType(machine)], [*known.values()])
    supply = np.zeros((len(sizes), len(known)), dtype=np.int64)
    supply[np.arange(len(sizes)), kind] = 1
    return machines.problem(pieces, supply)


@family(16)
def stock_triplets(rng: Rng, n: int) -> Problem:
    """Bin packing with bins of 1000 that three items fill exactly: n/3 bins, rounded up.

    No item is below a quarter of a bin or above a half, so that every bin of a schedule without
    waste holds three. Where 3 does not divide n, the last triplet lacks items.
    """
    count = -(-n // 3)
    first = rng.integers(380, 490, count, endpoint=True)
    second = rng.integers(250, (1000 - first) // 2, endpoint=True)
    triplets = np.column_stack([first, second, 1000 - first - second])
    sizes = rng.permutation(triplets.reshape(-1)[:n])
    return _stock(sizes, np.ones(n, dtype=np.int64), 1000, "bin")


@family(17)
def stock_uniform(rng: Rng, n: int) -> Problem:
    """Bin packing with bins of 150 and items uniform from 20 to 100."""
    sizes = rng.integers(20, 100, n, endpoint=True)
    return _stock(sizes, np.ones(n, dtype=np.int64), 150, "bin")


def _lengths(rng: Rng, n: int, low: int, high: int) -> Integers:
    """Draw a length for each job; those beyond the number of lengths repeat them in turn."""
    different = rng.integers(low, high, min(n, _MOST_LENGTHS), endpoint=True)
    return np.resize(different, n) if n else different


def _range(low: Fraction, high: Fraction) -> tuple[int, int]:
    shortest = max(int(low * _STOCK), 1)
    return shortest, max(int(high * _STOCK), shortest)


@family(18, low=real("0.01", above=0, most=1), high=_HIGH, demand=integer(10, 1, 10**6))
def stock_cutgen(rng: Rng, n: int, *, low: Fraction, high: Fraction, demand: int) -> Problem:
    """Cutting stock as CUTGEN1 draws it: n lengths and n times ``demand`` pieces in all.

    The pieces are shared out in proportion to uniform numbers, each length having one at least.
    """
    lengths = _lengths(rng, n, *_range(low, high))
    shares = rng.random(n)
    shares *= n * demand / max(shares.sum(), np.finfo(float).tiny)
    return _stock(lengths, np.maximum(np.rint(shares).astype(np.int64), 1), _STOCK, "stock")


@family(19, low=real("0.1", above=0, most=1), high=_HIGH)
def stock_residual(rng: Rng, n: int, *, low: Fraction, high: Fraction) -> Problem:
    """Cutting stock of few pieces a length that fill their machines but for a few units.

    Each length is wanted 1 to 3 times; the last job's pieces are as long as it takes for
    the sum of all to be a whole number of machines, but for less than a unit a piece of that job.
    """
    shortest, longest = _range(low, high)
    lengths = _lengths(rng, n, shortest, longest)
    wanted = rng.integers(1, 3, n, endpoint=True)
    if n:
        left = int(-(lengths[:-1] @ wanted[:-1]) % _STOCK)
        if left < shortest:
            left += _STOCK
        wanted[-1] = -(-left // longest)
        lengths[-1] = left // wanted[-1]
    return _stock(lengths, wanted, _STOCK, "stock")


@family(20, miss=integer(3, 0, _LEAST_DIVISOR // 5))
def stock_divisible(rng: Rng, n: int, *, miss: int) -> Problem:
    """Cutting stock of 10,080 whose sizes divide each other, or miss that by a few units.

    First fit in the order of decreasing sizes is optimal for such sizes; with `miss` a size is up
    to so many units larger or smaller, and a machine that was full is not, or has no room.
    """
    chain = _DIVISIBLE // np.cumprod(rng.permutation(_FACTORS))
    sizes = rng.choice(chain[chain >= _LEAST_DIVISOR], n)
    sizes += rng.integers(-miss, miss, n, endpoint=True)
    pieces = rng.integers(1, 10, n, endpoint=True)
    return _stock(sizes, pieces, _DIVISIBLE, "stock")
