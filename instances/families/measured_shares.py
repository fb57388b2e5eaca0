"""Families of shares of an A100 under measured curves: by compute alone, and by memory as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations
from cms.values.numbers import Number

from .family import Tabular
from .machines import A100, Machines, made, mig, mps
from .measured import measured_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEMORY = 80  # GB of an A100


def _curves(steps: NDArray[np.int64], step: float) -> NDArray[np.int64]:
    """Return what so many steps of a GPU give each of the measured rows: shape (rows, shares).

    Between the measured sizes a curve is a straight line, as it is from nothing to the smallest; a
    larger share never gives less. Below the smallest size that serves within the limit it gives
    nothing.
    """
    shares, sizes = steps * step, np.array([0, *mig().slices]) / 7
    measured = np.maximum.accumulate(measured_rows().supply, axis=1)
    table = np.empty((len(measured), len(steps)), dtype=np.int64)
    for row, given in zip(table, measured, strict=True):
        row[:] = np.interp(shares, sizes, [0, *given])
        least = int(np.flatnonzero(given)[0])  # a whole GPU serves every row
        if least:
            row[shares < sizes[1 + least]] = 0
    return table


def _rows(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw the measured row of each job, as ``real-rows`` does."""
    return np.searchsorted(measured_rows().reach, rng.random(count), side="right")


@dataclass(frozen=True)
class MeasuredShares(Tabular):
    """The jobs of ``real-rows`` on A100s shared under MPS: throughputs measured, not made up.

    A share gives what a straight line between the measured sizes says, a seventh of the GPU to all
    of it: for most jobs throughput grows more slowly than the share, and under a short latency
    limit soon hardly at all. A model that is too slow for a size gets nothing from a smaller share.
    Numbers are in units of 1/1000 item/s.

    Parameters
    ----------
    step : number, default 2.5
        Per cent, at least 1/2 and at most 50: the shares are its multiples.
    """

    name = "measured-shares"
    number = 21
    title = "11 measured models on shares of an A100, in steps of 2.5 %"
    stresses = "40 or 100 block types, of which a job has a use for many, and 48 clients a GPU"
    source = "ParvaGPU, SC '24 (measurements and latency rule)"

    step: Number = "2.5"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("step", least="0.5", most=50)

    def _machines(self, rng: np.random.Generator) -> Machines:
        return mps("gpu", self.step)

    def _supply(
        self, rng: np.random.Generator, count: int, machines: Machines
    ) -> NDArray[np.int64]:
        return _curves(machines.slices, float(self.step) / 100)[_rows(rng, count)]


@dataclass(frozen=True)
class MemoryShares(Tabular):
    """The jobs of ``measured-shares`` with a need of memory, on A100s cut by compute and memory.

    A block is a pair, so many per cent of the compute and so many GB of the 80. A machine of the
    model has one capacity: a block takes of it the larger of its two shares, so that neither runs
    out; of the pairs of one size only the one with most of both is there. A job gets nothing from a
    block with less memory than it needs, which is 1 to 8 steps.

    Parameters
    ----------
    compute, memory : int, default 5 and 5
        The steps, in per cent and in GB.
    """

    name = "memory-shares"
    number = 22
    title = "shares of an A100 by compute and by memory, the larger of the two counted"
    stresses = "sizes of two rulers that seldom add up to a whole machine"
    source = "ParvaGPU, SC '24 (measurements); the memory needs are ours"

    compute: int = 5
    memory: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("compute", least=1, most=50)
        self._whole("memory", least=1, most=_MEMORY // 2)

    def _machines(self, rng: np.random.Generator) -> Machines:
        # a per cent of the compute is 4 units, a GB is 5: both are 400 in all
        percent, gb = 4 * self.compute, 5 * self.memory
        marks = sorted({*range(percent, 401, percent), *range(gb, 401, gb)})
        sizes = {
            f"{size // percent * self.compute}%-{size // gb * self.memory}gb": size
            for size in marks
            if size >= max(percent, gb)
        }
        shape = SizeBoundedConfigurations(sizes, 400, A100)
        return made([*sizes], [shape], [MachineType(A100)], [*sizes.values()])

    def _supply(
        self, rng: np.random.Generator, count: int, machines: Machines
    ) -> NDArray[np.int64]:
        percent, gb = 4 * self.compute, 5 * self.memory
        supply = _curves(machines.slices // percent, self.compute / 100)[_rows(rng, count)]
        most = _MEMORY // 2 // self.memory
        needed = rng.integers(1, min(most, 8), count, endpoint=True)
        supply[machines.slices // gb < needed[:, None]] = 0
        return supply
