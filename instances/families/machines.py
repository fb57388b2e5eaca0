"""The machines that families use, and how the rows of their jobs are drawn a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cms.fleet.hardware import get_gpu, mps_shares
from cms.problem.parts import (
    AnyConfiguration,
    Block,
    Configuration,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.values.numbers import Number, exact

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rng: TypeAlias = np.random.Generator
Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
#: Draws the demands (count,) and the supply (count, k) of `count` jobs.
Draw: TypeAlias = "Callable[[int], tuple[Integers, Integers]]"

A100 = "a100-80gb"
#: Pieces fit into a cache; their size is part of what a seed means.
_PIECE = 2**15


class Machines(NamedTuple):
    """Machines, and the shapes that say what one of them can give.

    `counts` (c, k) are the blocks of listed configurations; of a size-bounded set, as many as fit
    of one block. `slices` (k,) are the blocks' sizes, in a unit of their machine type.
    """

    blocks: tuple[Block, ...]
    configurations: tuple[AnyConfiguration, ...]
    machine_types: tuple[MachineType, ...]
    counts: Integers
    slices: Integers

    def problem(self, demands: Integers, supply: Integers) -> Problem:
        """Make the problem of these demands (n,) and this supply (n, k)."""
        return Problem.from_arrays(
            demands=demands,
            supply=supply,
            blocks=self.blocks,
            configurations=self.configurations,
            machine_types=self.machine_types,
        )

    def drawn(self, n: int, draw: Draw) -> Problem:
        """Draw the problem of n jobs."""
        return self.problem(*draw_rows(n, len(self.blocks), draw))


def pieces(n: int) -> Iterator[slice]:
    """Cut n jobs into pieces, so that what is computed on the way stays small."""
    for start in range(0, n, _PIECE):
        yield slice(start, min(start + _PIECE, n))


def draw_rows(n: int, k: int, draw: Draw) -> tuple[Integers, Integers]:
    """Draw the demands (n,) and the supply (n, k) of n jobs."""
    demands, supply = np.empty(n, dtype=np.int64), np.empty((n, k), dtype=np.int64)
    for piece in pieces(n):
        demands[piece], supply[piece] = draw(piece.stop - piece.start)
    return demands, supply


def made(
    blocks: Sequence[Block],
    configurations: Sequence[AnyConfiguration],
    machine_types: Sequence[MachineType],
    slices: Sequence[int],
) -> Machines:
    """Put machines together."""
    held: list[Mapping[Block, int]] = []
    for shape in configurations:
        if isinstance(shape, Configuration):
            held.append(shape.blocks)
        else:
            held += [{mine: shape.largest_count(mine)} for mine in blocks if mine in shape.sizes]
    rows = [[one.get(block, 0) for block in blocks] for one in held]
    counts = np.array(rows, dtype=np.int64).reshape(-1, len(blocks))
    sizes = np.array(slices, dtype=np.int64)
    for array in (counts, sizes):
        array.setflags(write=False)  # the catalogue's machines are made once and shared
    return Machines(tuple(blocks), tuple(configurations), tuple(machine_types), counts, sizes)


def cut(sizes: Mapping[Block, int], capacity: int, machine: MachineType) -> Machines:
    """Return machines of one type that hold any blocks of these sizes within a capacity."""
    shape = SizeBoundedConfigurations(sizes, capacity, machine.name)
    return made([*sizes], [shape], [machine], [*sizes.values()])


def joined(parts: Sequence[Machines]) -> Machines:
    """Put machine types side by side, each with blocks of its own."""
    return made(
        [block for part in parts for block in part.blocks],
        [shape for part in parts for shape in part.configurations],
        [machine for part in parts for machine in part.machine_types],
        [size for part in parts for size in part.slices.tolist()],
    )


@cache
def mig(key: str = A100, prefix: str = "") -> Machines:
    """Return a GPU of the catalogue: its plain MIG profiles and maximal configurations."""
    one = get_gpu(key)
    profiles = one.base_profiles
    return made(
        [prefix + profile for profile in profiles],
        one.configurations_of(profiles, prefix=prefix),
        [MachineType(key)],
        [one.profile(profile).compute for profile in profiles],
    )


@cache
def mps(machine: str, step: Number) -> Machines:
    """Return whole GPUs shared under MPS in steps of `step` per cent."""
    unit = exact(step, "step")
    numbers = range(1, int(100 / unit) + 1)
    shape = mps_shares([unit * number for number in numbers], machine=machine)
    blocks = sorted(shape.sizes, key=lambda block: shape.sizes[block])
    return made(blocks, [shape], [MachineType(machine)], numbers)
