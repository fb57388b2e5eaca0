"""Families of GPUs shared under MPS: configurations bounded by size, never listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType
from cms.values.numbers import Number, exact

from .family import Tabular
from .machines import A100, Machines, joined, mig, mps
from .rows import Integers

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SizeBounded(Tabular):
    """GPUs shared under MPS in steps of 5 %, say: k = 20, capacity 100.

    A share s of a GPU gives a job T (1 + c) s / (s + c): increasing, concave, T for the whole GPU,
    with a T from 10^4 to 10^5 and a c from 0.1 to 10, both log-uniform and the job's own. Half of
    the jobs are too slow on small shares: below a share of their own these give nothing.

    Parameters
    ----------
    step : int, default 5
        Per cent, at most 50: the shares are its multiples, 100 // ``step`` of them.
    floor : int, default 50
        The largest share in per cent that a job may need; ``step``: no job needs more than the
        smallest.
    """

    name = "size-bounded"
    number = 9
    title = "MPS shares of 5 % to 100 %: every multiset of at most 100 %"
    stresses = "20 prices instead of 5, knapsacks for the configurations, bins to fill exactly"
    source = "gpulet, USENIX ATC '22 (shares, and the least one that meets a limit); theory 6.8"

    step: int = 5
    floor: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("step", least=1, most=50)
        self._whole("floor", least=self.step, most=100)

    def _machines(self, rng: np.random.Generator) -> Machines:
        return mps("gpu", self.step)

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        return self._shared(rng, count, *_curves(rng, count))

    def _shared(
        self,
        rng: np.random.Generator,
        count: int,
        most: NDArray[np.float64],
        bend: NDArray[np.float64],
    ) -> Integers:
        """Draw what the shares give: shape (count, 100 // step)."""
        shares = np.arange(self.step, 101, self.step)
        supply = _curve(most, bend, shares / 100)
        least = self.step * rng.integers(1, self.floor // self.step, count, endpoint=True)
        least[rng.random(count) < 0.5] = self.step
        supply[least[:, None] > shares] = 0
        return supply


@dataclass(frozen=True)
class SizeBoundedMixed(SizeBounded):
    """GPUs shared under MPS beside GPUs cut up by MIG: k = 25, say.

    What a MIG instance gives is the share's curve at its sevenths of a GPU times a factor of the
    job's own for each profile, uniform from 0.9 to 1.3: isolation against interference.

    Parameters
    ----------
    step, floor : int, default 5 and 50
        As for ``size-bounded``.
    mig_cost : number, default 1
        What a GPU under MIG costs; one under MPS costs 1.
    """

    name = "size-bounded-mixed"
    number = 10
    title = "MPS shares beside MIG instances"
    stresses = "listed and size-bounded configurations in one problem, costs that differ"
    source = "asked for in nebuly-ai/nos#28 (MIG and MPS mixed); theory 6.8 and 6.9"

    mig_cost: Number = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("mig_cost", above=0, most=1000)

    def _machines(self, rng: np.random.Generator) -> Machines:
        cost = exact(self.mig_cost, "mig_cost")
        listed = mig()._replace(machine_types=(MachineType(A100, cost=cost),))
        return joined([mps(f"{A100}-mps", self.step), listed])

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        most, bend = _curves(rng, count)
        slices = mig().slices
        isolated = _curve(most, bend, slices / 7) * rng.uniform(0.9, 1.3, (count, len(slices)))
        shared = self._shared(rng, count, most, bend)
        return np.hstack([shared, np.rint(isolated).astype(np.int64)])


def _curves(
    rng: np.random.Generator, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw each job's throughput on a whole GPU and its curve's constant."""
    return 10 ** rng.uniform(4, 5, count), 10 ** rng.uniform(-1, 1, count)


def _curve(
    most: NDArray[np.float64], bend: NDArray[np.float64], shares: NDArray[np.float64]
) -> Integers:
    """Return what shares of a GPU give, shape (count, number of shares)."""
    top, c = most[:, None], bend[:, None]
    return np.rint(top * (1 + c) * shares / (shares + c)).astype(np.int64)
