"""The machines that families use: an A100 under MIG, fleets of GPU types, shares under MPS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from cms.fleet.hardware import gpu, mps_shares
from cms.problem.parts import AnyConfiguration, Block, Configuration, MachineType
from cms.problem.problem import Problem
from cms.values.numbers import Number, exact

from .rows import Integers

A100 = "a100-80gb"
#: GPU types of 7 compute slices and 5 plain profiles each, oldest first.
FLEET = ("a100-40gb", "a100-80gb", "h100-80gb", "h200-141gb", "b200-180gb")


class Machines(NamedTuple):
    """Machines, and the shapes that say what one of them can give.

    Attributes
    ----------
    blocks : tuple of k names
    configurations : tuple of configurations
    machine_types : tuple of MachineType
    counts : ndarray of int64, shape (c, k)
        Blocks of the listed configurations; of a size-bounded set, as many as fit of one block.
    slices : ndarray of int64, shape (k,)
        The size of each block, in a unit of its machine type.
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


def made(
    blocks: Sequence[Block],
    configurations: Sequence[AnyConfiguration],
    machine_types: Sequence[MachineType],
    slices: Sequence[int],
) -> Machines:
    """Put machines together.

    Examples
    --------
    >>> from cms import SizeBoundedConfigurations
    >>> shapes = [Configuration({"a": 2, "b": 1}), SizeBoundedConfigurations({"b": 4}, 9)]
    >>> made(["a", "b"], shapes, [], [1, 4]).counts
    array([[2, 1],
           [0, 2]])
    """
    rows = []
    for shape in configurations:
        if isinstance(shape, Configuration):
            rows.append([shape.blocks.get(block, 0) for block in blocks])
        else:
            for mine in (block for block in blocks if block in shape.sizes):
                most = shape.largest_count(mine)
                rows.append([most if block == mine else 0 for block in blocks])
    counts = np.array(rows, dtype=np.int64).reshape(-1, len(blocks))
    sizes = np.array(slices, dtype=np.int64)
    for array in (counts, sizes):
        array.setflags(write=False)  # the catalogue's machines are made once and shared
    return Machines(tuple(blocks), tuple(configurations), tuple(machine_types), counts, sizes)


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
    """A GPU of the catalogue: its plain MIG profiles and maximal configurations.

    Examples
    --------
    >>> found = mig()
    >>> found.blocks, found.slices.tolist(), len(found.configurations)
    (('1g.10gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'), [1, 2, 3, 4, 7], 12)
    """
    one = gpu(key)
    profiles = one.base_profiles
    return made(
        [prefix + profile for profile in profiles],
        one.configurations_of(profiles, prefix=prefix),
        [MachineType(key)],
        [one.profile(profile).compute for profile in profiles],
    )


@cache
def mps(machine: str, step: Number = 5) -> Machines:
    """Whole GPUs shared under MPS in steps of so many per cent.

    Examples
    --------
    >>> found = mps("gpu")
    >>> len(found.blocks), found.blocks[:2], found.counts[0, 0]
    (20, ('mps:5', 'mps:10'), np.int64(20))
    >>> mps("gpu", step=30).blocks
    ('mps:30', 'mps:60', 'mps:90')
    >>> mps("gpu", step="2.5").blocks[:2]
    ('mps:2.5', 'mps:5')
    """
    unit = exact(step, "step")
    numbers = range(1, int(100 / unit) + 1)
    shape = mps_shares([unit * number for number in numbers], machine=machine)
    blocks = sorted(shape.sizes, key=lambda block: shape.sizes[block])
    return made(blocks, [shape], [MachineType(machine)], numbers)
