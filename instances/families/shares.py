"""Families of GPUs shared under MPS: configurations bounded by size, never listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.problem.parts import MachineType, SizeBoundedConfigurations
from cms.values.numbers import Number, exact

from .family import Family, Tabular
from .machines import A100, Machines, joined, made, mig, mps
from .rows import Integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.problem import Problem


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


@dataclass(frozen=True)
class FewJobsManyShares(Family):
    """Machine types cut into many shares, for few jobs: hundreds of block types to choose from.

    A share s of a machine gives a job s times its rate there: the machine type's speed, uniform
    from 1 to 12, times the job's own rate, lognormal around e, times noise. A cost is the speed to
    the power of 0.85, up to a quarter more or a fifth less. A job needs 1 to 8 times its own rate
    times ``scale``. Numbers are in units of 1/1000.

    Parameters
    ----------
    types : int, default 3
        Machine types, at most 10.
    step : int, default 2
        Per cent, at most 50: the shares are its multiples.
    scale : int, default 1
        1: jobs of parts of machines; 10: of several machines.
    floor : int, default 0
        The largest share in per cent below which a job may get nothing, drawn for each job; 0: all
        shares give in proportion.
    """

    name = "few-jobs-many-shares"
    number = 24
    title = "several machine types in shares of 1 %, 2 % or 5 %, of any speed and cost"
    stresses = "as many as 400 block types for a dozen jobs, costs to the cent, few machines"
    source = "of the kind of Melange, arXiv:2404.14527 (few services, GPU types of many speeds)"

    types: int = 3
    step: int = 2
    scale: int = 1
    floor: int = 0

    def __post_init__(self) -> None:
        self._whole("types", least=1, most=10)
        self._whole("step", least=1, most=50)
        self._whole("scale", least=1, most=10**6)
        self._whole("floor", least=0, most=100)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        speeds = np.sort(rng.uniform(1, 12, self.types)).tolist()
        costs = [f"{speed**0.85 * rng.uniform(0.8, 1.25):.2f}" for speed in speeds]
        shares = np.arange(self.step, 101, self.step)
        names = [[f"g{m}:{share}" for share in shares] for m in range(self.types)]
        machines = made(
            [block for mine in names for block in mine],
            [
                SizeBoundedConfigurations(
                    dict(zip(mine, shares.tolist(), strict=True)), 100, f"g{m}"
                )
                for m, mine in enumerate(names)
            ],
            [MachineType(f"g{m}", cost) for m, cost in enumerate(costs)],
            np.tile(shares, self.types).tolist(),
        )
        own = rng.lognormal(1.0, 0.8, n)
        rates = own[:, None] * speeds * rng.lognormal(0.0, 0.35, (n, self.types))
        tenths = np.maximum(1, np.rint(10 * rates)).astype(np.int64)
        least = np.minimum(rng.integers(0, self.floor, n, endpoint=True), shares[-1])
        given = np.where(shares >= least[:, None], shares, 0)
        demands = np.maximum(1, np.rint(self.scale * own * rng.uniform(1, 8, n))).astype(np.int64)
        supply = (tenths[:, :, None] * given[:, None, :]).reshape(n, len(machines.blocks))
        return machines.problem(1000 * demands, supply)


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
