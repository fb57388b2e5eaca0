"""Families of bin packing and cutting stock, and one made to punish rounding.

Of the former every job has one block type, that of its size, and each such block is one piece.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cms.problem.parts import Configuration, MachineType
from cms.problem.problem import Problem

from .family import choice, family, integer, real
from .machines import Integers, Machines, Rng, cut, made, mig

_STOCK = 10_000
#: Different lengths cut from stock, at most; beyond that jobs share them.
_MOST_LENGTHS = 200
# Its prime factors in any order make a chain of sizes that each divide the one before.
_DIVISIBLE, _FACTORS = 10_080, (2, 2, 2, 2, 2, 3, 3, 5, 7)
# The smallest size of a chain is at least this, so that a size that misses it is one still.
_LEAST_DIVISOR = 100
_HIGH = real("0.5", least="low", most=1)


def _stock(sizes: Integers, pieces: Integers, capacity: int, machine: str) -> Problem:
    """Make the problem of jobs that want numbers of pieces of these sizes."""
    different, kind = np.unique(sizes, return_inverse=True)
    # without a job there is a block all the same, for a set without one is none
    known = {f"size-{size}": size for size in different.tolist()} or {"size-1": 1}
    machines = cut(known, capacity, MachineType(machine))
    supply = np.zeros((len(sizes), len(known)), dtype=np.int64)
    supply[np.arange(len(sizes)), kind] = 1
    return machines.problem(pieces, supply)


@family(16)
def stock_triplets(rng: Rng, n: int) -> Problem:
    """Bin packing with bins of 1000 that three items fill exactly: n/3 bins, rounded up."""
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


def _lengths(rng: Rng, n: int, low: Fraction, high: Fraction) -> tuple[Integers, int, int]:
    """Draw a length for each job; those beyond the number of lengths repeat them in turn.

    The least and the greatest length follow.
    """
    shortest = max(int(low * _STOCK), 1)
    longest = max(int(high * _STOCK), shortest)
    different = rng.integers(shortest, longest, min(n, _MOST_LENGTHS), endpoint=True)
    return np.resize(different, n) if n else different, shortest, longest


@family(18, low=real("0.01", above=0, most=1), high=_HIGH, demand=integer(10, 1, 10**6))
def stock_cutgen(rng: Rng, n: int, *, low: Fraction, high: Fraction, demand: int) -> Problem:
    """Cutting stock as CUTGEN1 draws it: n lengths and n times ``demand`` pieces in all."""
    lengths, *_ = _lengths(rng, n, low, high)
    shares = rng.random(n)
    shares *= n * demand / max(shares.sum(), np.finfo(float).tiny)
    return _stock(lengths, np.maximum(np.rint(shares).astype(np.int64), 1), _STOCK, "stock")


@family(19, low=real("0.1", above=0, most=1), high=_HIGH)
def stock_residual(rng: Rng, n: int, *, low: Fraction, high: Fraction) -> Problem:
    """Cutting stock of few pieces a length that fill their machines but for a few units."""
    lengths, shortest, longest = _lengths(rng, n, low, high)
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
    """Cutting stock of 10,080 whose sizes divide each other, or miss that by a few units."""
    chain = _DIVISIBLE // np.cumprod(rng.permutation(_FACTORS))
    sizes = rng.choice(chain[chain >= _LEAST_DIVISOR], n)
    sizes += rng.integers(-miss, miss, n, endpoint=True)
    pieces = rng.integers(1, 10, n, endpoint=True)
    return _stock(sizes, pieces, _DIVISIBLE, "stock")


_MACHINE = MachineType("machine")
# Slices that a job of "hair" and "full" takes on average, of the 7 of a machine.
_SLICES = 5
# A third, a quarter and an eleventh of the capacity; 2, 3 and 6 of them fit into no two machines.
_GADGET, _GADGET_CAPACITY, _GADGET_DEMANDS = (44, 33, 12), 132, (2, 3, 6)
_TRIPLET_CAPACITY, _TRIPLETS = 1000, 8


def _hair(rng: Rng, n: int) -> Problem:
    machines = mig()
    k = len(machines.blocks)

    def draw(count: int) -> tuple[Integers, Integers]:
        unit = rng.integers(10_000, 100_000, count, endpoint=True)[:, None]
        most = unit * machines.slices // 30
        supply = unit * machines.slices + rng.integers(-most, most, endpoint=True)
        option = rng.poisson(_SLICES / k / machines.slices, (count, k))
        none = np.flatnonzero(~option.any(axis=1))
        option[none, rng.integers(0, k, len(none))] = 1
        # twice of three times the option misses by one unit
        return (option * supply).sum(axis=1) + (rng.random(count) < 2 / 3), supply

    return machines.drawn(n, draw)


def _one_block(rng: Rng, n: int) -> Problem:
    machines = mig()
    k = len(machines.blocks)

    def draw(count: int) -> tuple[Integers, Integers]:
        amount = rng.integers(100, 1000, count, endpoint=True)
        supply = np.zeros((count, k), dtype=np.int64)
        supply[np.arange(count), rng.integers(0, k, count)] = amount
        needed = rng.integers(1, 3, count, endpoint=True)
        return needed * amount - rng.integers(0, amount), supply

    return machines.drawn(n, draw)


def _full(rng: Rng, n: int) -> Problem:
    machines = mig()
    slices, k = machines.slices, len(machines.blocks)
    full = machines.counts[machines.counts @ slices == 7]
    fewest = -(-n * _SLICES // 7)
    chosen = full[rng.integers(0, len(full), fewest)].sum(axis=0)
    while chosen.sum() < n:
        chosen += full[rng.integers(0, len(full))]
    # one block a job, then the rest to any
    blocks = rng.permutation(np.repeat(np.arange(k), chosen))
    owner = np.concatenate([np.arange(n), rng.integers(0, max(n, 1), len(blocks) - n)])
    own = np.zeros((n, k), dtype=np.int64)
    np.add.at(own, (owner, blocks), 1)
    unit = rng.integers(100, 1000, n, endpoint=True)
    usable = (own > 0) | (rng.random((n, k)) < 0.5)
    return machines.problem(own @ slices * unit, unit[:, None] * slices * usable)


def _triplets(rng: Rng, n: int) -> Problem:
    # two sizes from just above a quarter to three eighths leave a third one below a half
    low, high = _TRIPLET_CAPACITY // 4 + 1, _TRIPLET_CAPACITY * 3 // 8 - 1
    two = rng.integers(low, high, (_TRIPLETS, 2), endpoint=True)
    triplets = np.column_stack([two, _TRIPLET_CAPACITY - two.sum(axis=1)])
    sizes, items = np.unique(triplets, return_inverse=True)
    wanted = items.reshape(triplets.shape)[rng.integers(0, _TRIPLETS, -(-n // 3))].reshape(-1)
    wanted = rng.permutation(wanted[:n])
    machines = cut({f"size-{size}": size for size in sizes.tolist()}, _TRIPLET_CAPACITY, _MACHINE)
    supply = (np.arange(len(sizes)) >= wanted[:, None]).astype(np.int64)
    return machines.problem(np.ones(n, dtype=np.int64), supply)


def _non_irup(rng: Rng, n: int) -> Problem:
    scale = int(rng.integers(1, 20, endpoint=True))
    sizes = {f"size-{scale * size}": scale * size for size in _GADGET}
    return _gadget(rng, n, cut(sizes, scale * _GADGET_CAPACITY, _MACHINE))


def _non_irup_listed(rng: Rng, n: int) -> Problem:
    a, b, c = _GADGET
    names, shapes = ("third", "quarter", "eleventh"), []
    for x in range(_GADGET_CAPACITY // a + 1):
        for y in range((_GADGET_CAPACITY - a * x) // b + 1):
            # c is the smallest size, so what is left has no room for any block
            z = (_GADGET_CAPACITY - a * x - b * y) // c
            shapes.append(Configuration(dict(zip(names, (x, y, z), strict=True))))
    return _gadget(rng, n, made(names, shapes, [_MACHINE], _GADGET))


def _gadget(rng: Rng, n: int, machines: Machines) -> Problem:
    """Deal the gadget's blocks, and those of whole machines, to n jobs of one block type each."""
    kind = np.concatenate([np.arange(min(n, 3)), rng.integers(0, 3, max(n - 3, 0))])
    needed = rng.integers(1, 4, n, endpoint=True)
    for i, (size, demand) in enumerate(zip(_GADGET, _GADGET_DEMANDS, strict=True)):
        if mine := np.flatnonzero(kind == i).tolist():
            # blocks that fill a machine; the sum is to be the gadget's demand and some machines
            needed[mine[0]] += (demand - needed[mine].sum()) % (_GADGET_CAPACITY // size)
    order = rng.permutation(n)
    kind, needed = kind[order], needed[order]
    amount = rng.integers(1, 1000, n, endpoint=True)
    supply = np.zeros((n, len(_GADGET)), dtype=np.int64)
    supply[np.arange(n), kind] = amount
    return machines.problem(needed * amount - rng.integers(0, amount), supply)


_DRAWN = (_hair, _one_block, _full, _triplets, _non_irup, _non_irup_listed)
_KINDS = {draw.__name__[1:].replace("_", "-"): draw for draw in _DRAWN}


@family(14, kind=choice(*_KINDS))
def rounding(rng: Rng, n: int, *, kind: str) -> Problem:
    """Problems made to punish rounding, of one of six kinds."""
    return _KINDS[kind](rng, n)
