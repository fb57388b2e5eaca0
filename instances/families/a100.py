"""Families of tables that no measurement shows, on the configurations of an A100."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.values.numbers import Number

from .family import Family, Tabular
from .machines import Machines, mig
from .rows import Draw, Integers, drawn, power_law, table

if TYPE_CHECKING:
    from cms.problem.problem import Problem

# Of the measured models bert gains least from size (7g gives 3.7 x 1g: an exponent of 0.68) and
# densenet169 most (13.7 x 1g: 1.34).
EXPONENTS = (0.65, 1.35)
NOISE = 0.05


@dataclass(frozen=True)
class _OnA100(Tabular):
    def _machines(self, rng: np.random.Generator) -> Machines:
        return mig()


@dataclass(frozen=True)
class _UpTo(_OnA100):
    largest: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("largest", least=1, most=10**6)


@dataclass(frozen=True)
class Arbitrary(_UpTo):
    """Tables of integers without any pattern.

    Parameters
    ----------
    largest : int, default 100
        Entries are uniform from 0 to this; every job has a positive one.
    """

    name = "arbitrary"
    number = 2
    title = "arbitrary integer tables on an A100"
    stresses = "no order among the blocks: the best block is another one for every job"
    source = "theory 6.10, where such problems measured the tightness of LP_DW"

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        return table(rng, count, len(machines.blocks), self.largest)


@dataclass(frozen=True)
class Sparse(_UpTo):
    """Each job is served by one or two block types, half of the jobs by each number.

    Parameters
    ----------
    largest : int, default 100
        The positive entries are uniform from 1 to this.
    """

    name = "sparse"
    number = 3
    title = "most entries are zero: one or two block types serve a job"
    stresses = "blocks that nothing can replace; many jobs with a single option, idle blocks"
    source = "theory 6.10"

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        k, jobs = len(machines.blocks), np.arange(count)
        supply = np.zeros((count, k), dtype=np.int64)
        first = rng.integers(0, k, count)
        second = (first + rng.integers(1, k, count)) % k
        amounts = rng.integers(1, self.largest, (count, 2), endpoint=True)
        supply[jobs, second] = amounts[:, 1] * rng.integers(0, 2, count)
        supply[jobs, first] = amounts[:, 0]
        return supply


@dataclass(frozen=True)
class NearTies(_OnA100):
    """Supply in proportion to the block's size but for one part in 10^3 to 10^6.

    A slice gives a job 50,000 to 150,000 units; the deviation's order of magnitude is the job's
    own, so that at 10^6 small blocks tie exactly and large ones are off by one unit.
    """

    name = "near-ties"
    number = 4
    title = "supply nearly proportional to size: almost all options cost almost the same"
    stresses = "pruning by price ratios (theory 6.5), floats, and the choice among tied options"
    source = "theory 6.5 and 6.6"

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        unit = rng.integers(50_000, 150_000, count, endpoint=True)
        even = unit[:, None] * machines.slices
        parts = np.array([10**3, 10**4, 10**5, 10**6])[rng.integers(0, 4, count)]
        most = even // parts[:, None]
        deviation: Integers = rng.integers(-most, most, endpoint=True)
        return even + deviation


@dataclass(frozen=True)
class _PowerLaw(_OnA100):
    exponent: Number = 1
    noise: Number = "0.05"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("noise", least=0, most=1)

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        low, high = sorted((1.0, float(self.exponent)))
        return power_law(rng, count, machines.slices, (low, high), float(self.noise))


@dataclass(frozen=True)
class Superlinear(_PowerLaw):
    """Supply grows faster than the block's size: size^e, e uniform from 1 to `exponent`.

    Parameters
    ----------
    exponent : number, default 1.35
        The measured extreme on an A100 is densenet169's: 7g gives 13.7 times as much as 1g.
    noise : number, default 0.05
        The standard deviation of each entry's logarithm around the power law.
    """

    name = "superlinear"
    number = 5
    title = "supply grows faster than size"
    stresses = "large blocks are worth it, small ones only fill up: few options, much waste"
    source = "ParvaGPU, SC '24: densenet169 and mobilenetv2"

    exponent: Number = "1.35"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("exponent", above=1, most=3)


@dataclass(frozen=True)
class Sublinear(_PowerLaw):
    """Supply grows slower than the block's size: size^e, e uniform from `exponent` to 1.

    Parameters
    ----------
    exponent : number, default 0.6
        The measured extreme on an A100 is bert's 0.68: 7g gives 3.7 times as much as 1g.
    noise : number, default 0.05
        The standard deviation of each entry's logarithm around the power law.
    """

    name = "sublinear"
    number = 6
    title = "supply grows slower than size"
    stresses = "small blocks are worth it: options of many blocks, many of them for one demand"
    source = "ParvaGPU, SC '24: bert and densenet201"

    exponent: Number = "0.6"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("exponent", above=0, most=1)


@dataclass(frozen=True)
class HugeDemands(Family):
    """Demands over many orders of magnitude, up to millions of machines a job.

    The decade of a demand is uniform, and so is the demand within its decade.

    Parameters
    ----------
    low, high : int, default 6 and 12
        Demands are from 10^low to 10^high units; a slice gives about 100 to 1,000.
    """

    name = "huge-demands"
    number = 12
    title = "demands of 10^6 to 10^12 on an A100"
    stresses = "anything that counts machines or blocks one by one, and 64-bit products"
    source = "theory 6.5 (huge demands) and 8"

    low: int = 6
    high: int = 12

    def __post_init__(self) -> None:
        self._whole("low", least=0, most=17)
        self._whole("high", least=int(self.low) + 1, most=18)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        machines = mig()

        def draw(count: int) -> tuple[Integers, Integers]:
            supply = power_law(rng, count, machines.slices, EXPONENTS, NOISE)
            least = np.array([10**e for e in range(self.low, self.high)])[
                rng.integers(0, self.high - self.low, count)
            ]
            return rng.integers(least, 10 * least, endpoint=True), supply

        return machines.problem(*drawn(n, len(machines.blocks), draw))


@dataclass(frozen=True)
class EqualJobs(_OnA100):
    """Few different jobs, each many times.

    Parameters
    ----------
    kinds : int, default 5
        How many different rows, demand included, there are at most.
    """

    name = "equal-jobs"
    number = 13
    title = "few distinct jobs, many of each"
    stresses = "identical rows are to be priced once; equal jobs make a search go round in circles"
    source = "theory 6.5; replicas of one service"

    kinds: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("kinds", least=1, most=10**6)

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        return power_law(rng, count, machines.slices, EXPONENTS, NOISE)

    def _jobs(self, rng: np.random.Generator, machines: Machines) -> Draw:
        demands, supply = super()._jobs(rng, machines)(self.kinds)

        def draw(count: int) -> tuple[Integers, Integers]:
            kind = rng.integers(0, self.kinds, count)
            return demands[kind], supply[kind]

        return draw
