"""What a family is: a name, parameters with defaults, and problems drawn from a seed."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cms.errors import InvalidOption
from cms.values.fields import CheckedFields
from cms.values.numbers import Number, exact, whole

from .machines import Machines
from .rows import Draw, Integers, drawn, whole_machine

if TYPE_CHECKING:
    from cms.problem.problem import Problem

# Products of supply, m and the spread stay far below 2^63 within these.
_LARGEST_M, _LARGEST_SIGMA = 10**6, 2


@dataclasses.dataclass(frozen=True)
class Family(CheckedFields, ABC):
    """A family of random problems; an object of it has a value for every parameter.

    A family is a frozen dataclass whose fields are its parameters. The jobs of a problem are drawn
    from numpy's PCG64, seeded with the seed and the family's number alone.

    Attributes
    ----------
    name : str
        What :func:`instances.families.generate` knows it by.
    number : int
        Part of every seed, so that families differ; it never changes.
    title, stresses, source : str
        What the problems are, what goes wrong on them first, and where the figures come from.
    least_jobs : int
        The smallest n that makes sense.
    """

    refusal = InvalidOption
    name: ClassVar[str]
    number: ClassVar[int]
    title: ClassVar[str]
    stresses: ClassVar[str]
    source: ClassVar[str]
    least_jobs: ClassVar[int] = 0

    @classmethod
    def parameters(cls) -> dict[str, object]:
        """Return the parameters with their defaults.

        Examples
        --------
        >>> from instances.families import family
        >>> family("real-rows").parameters()
        {'m': 5, 'sigma': '0.5'}
        """
        return {field.name: field.default for field in dataclasses.fields(cls)}

    def generate(self, *, n: int, seed: int) -> Problem:
        """Draw the problem of this seed with n jobs.

        Parameters
        ----------
        n : int
            Number of jobs, >= 0.
        seed : int
            >= 0.

        Returns
        -------
        Problem
            Same parameters, n, seed, numpy and platform: the same problem.

        Raises
        ------
        InvalidOption
            If n or seed is no such number.
        """
        jobs = whole(n, f"n of family {self.name!r}", least=self.least_jobs, error=InvalidOption)
        seed = whole(seed, f"seed of family {self.name!r}", least=0, error=InvalidOption)
        return self._problem(np.random.default_rng([seed, self.number]), jobs)

    @abstractmethod
    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        """Draw a problem of n jobs."""

    def _what(self, field: str) -> str:
        return f"parameter {field!r} of family {self.name!r}"


@dataclasses.dataclass(frozen=True)
class Demanding(Family):
    """A family whose demands are lognormal around so many sevenths of a machine.

    Parameters
    ----------
    m : number, default 5
        The median of the demands, in sevenths of what a whole machine gives the job: the whole
        GPU's supply where there is such a block, else the most that one machine can be cut up for.
    sigma : number, default 0.5
        The standard deviation of the demands' logarithm. 0.56 is what the demands of ParvaGPU's
        scenarios S3 and S4 have, relative to a whole GPU's throughput.
    """

    m: Number = 5
    sigma: Number = "0.5"

    def __post_init__(self) -> None:
        self._number("m", above=0, most=_LARGEST_M)
        self._number("sigma", least=0, most=_LARGEST_SIGMA)

    def _demands(self, rng: np.random.Generator, machine: Integers) -> Integers:
        """Draw demands for jobs to which a whole machine gives so much."""
        middle = machine * float(exact(self.m, "m") / 7)
        # numpy's lognormal takes one exponential after the other, the same on every processor
        spread = rng.lognormal(0.0, float(self.sigma), len(machine))
        demands: Integers = np.rint(middle * spread).astype(np.int64)
        return np.maximum(demands, 1)


@dataclasses.dataclass(frozen=True)
class Tabular(Demanding):
    """A family of jobs drawn one like the other, for machines that do not depend on them."""

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        machines = self._machines(rng)
        return machines.problem(*drawn(n, len(machines.blocks), self._jobs(rng, machines)))

    def _jobs(self, rng: np.random.Generator, machines: Machines) -> Draw:
        """Return what draws so many jobs."""

        def draw(count: int) -> tuple[Integers, Integers]:
            supply = self._supply(rng, count, machines)
            return self._demands(rng, self._whole_machine(supply, machines)), supply

        return draw

    @abstractmethod
    def _machines(self, rng: np.random.Generator) -> Machines:
        """Choose the machines."""

    @abstractmethod
    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        """Draw what the blocks give to so many jobs, shape (count, k)."""

    def _whole_machine(self, supply: Integers, machines: Machines) -> Integers:
        """Say what a whole machine gives to each job, shape (count,)."""
        return whole_machine(supply, machines.counts)
