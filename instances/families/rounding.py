"""A family on which a bound is easy and the schedule that meets it is not, or does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import Configuration, MachineType, SizeBoundedConfigurations

from .family import choice, family
from .machines import Integers, Machines, Rng, made, mig

if TYPE_CHECKING:
    from cms.problem.problem import Problem

_MACHINE = (MachineType("machine"),)
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
    drawn_sizes = rng.integers(low, high, (_TRIPLETS, 2), endpoint=True)
    third = _TRIPLET_CAPACITY - drawn_sizes.sum(axis=1)
    triplets = np.column_stack([drawn_sizes, third])
    sizes, items = np.unique(triplets, return_inverse=True)
    wanted = items.reshape(triplets.shape)[rng.integers(0, _TRIPLETS, -(-n // 3))].reshape(-1)
    wanted = rng.permutation(wanted[:n])
    blocks = [f"size-{size}" for size in sizes.tolist()]
    shape = SizeBoundedConfigurations(
        dict(zip(blocks, sizes.tolist(), strict=True)), _TRIPLET_CAPACITY
    )
    machines = made(blocks, [shape], _MACHINE, sizes.tolist())
    supply = (np.arange(len(sizes)) >= wanted[:, None]).astype(np.int64)
    return machines.problem(np.ones(n, dtype=np.int64), supply)


def _non_irup(rng: Rng, n: int) -> Problem:
    scale = int(rng.integers(1, 20, endpoint=True))
    names = [f"size-{scale * size}" for size in _GADGET]
    sizes = {name: scale * size for name, size in zip(names, _GADGET, strict=True)}
    shape = SizeBoundedConfigurations(sizes, scale * _GADGET_CAPACITY)
    return _gadget(rng, n, made(names, [shape], _MACHINE, _GADGET))


def _non_irup_listed(rng: Rng, n: int) -> Problem:
    a, b, c = _GADGET
    shapes = []
    for x in range(_GADGET_CAPACITY // a + 1):
        for y in range((_GADGET_CAPACITY - a * x) // b + 1):
            # c is the smallest size, so what is left has no room for any block
            z = (_GADGET_CAPACITY - a * x - b * y) // c
            shapes.append(Configuration({"third": x, "quarter": y, "eleventh": z}))
    return _gadget(rng, n, made(["third", "quarter", "eleventh"], shapes, _MACHINE, _GADGET))


def _gadget(rng: Rng, n: int, machines: Machines) -> Problem:
    """Deal the gadget's blocks, and those of whole machines, to n jobs of one block type each."""
    kind = np.concatenate([np.arange(min(n, 3)), rng.integers(0, 3, max(n - 3, 0))])
    needed = rng.integers(1, 4, n, endpoint=True)
    for i, (size, demand) in enumerate(zip(_GADGET, _GADGET_DEMANDS, strict=True)):
        if mine := np.flatnonzero(kind == i).tolist():
            # so many blocks fill a machine; the sum is to be the gadget's demand and some machines
            needed[mine[0]] += (demand - needed[mine].sum()) % (_GADGET_CAPACITY // size)
    order = rng.permutation(n)
    kind, needed = kind[order], needed[order]
    amount = rng.integers(1, 1000, n, endpoint=True)
    supply = np.zeros((n, len(_GADGET)), dtype=np.int64)
    supply[np.arange(n), kind] = amount
    return machines.problem(needed * amount - rng.integers(0, amount), supply)


_KINDS = {
    "hair": _hair,
    "one-block": _one_block,
    "full": _full,
    "triplets": _triplets,
    "non-irup": _non_irup,
    "non-irup-listed": _non_irup_listed,
}


@family(14, kind=choice(*_KINDS))
def rounding(rng: Rng, n: int, *, kind: str) -> Problem:
    """Problems made to punish rounding, of one of six kinds."""
    return _KINDS[kind](rng, n)
