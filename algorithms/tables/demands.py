"""The jobs of a reduced problem in small integers, for programs that must not overflow."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cms.problem.problem import Problem


class Demand(NamedTuple):
    """A job in integers; dividing supply by its common divisor keeps demands small."""

    name: str
    demand: int
    supply: tuple[int, ...]

    @property
    def enough(self) -> list[int]:
        """How many blocks of each type serve the job alone; 0 where none do."""
        return [-(-self.demand // f) if f else 0 for f in self.supply]


def demands_of(problem: Problem) -> tuple[Demand, ...]:
    """Return the jobs of a reduced problem.

    Blocks give multiples of the supply's common divisor, so that a demand may be rounded up to one.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> job = Job("x", 10**30, {"a": 3 * 10**29})
    >>> (demand,) = demands_of(Problem(configurations=Configuration({"a": 1}), jobs=[job]))
    >>> demand
    Demand(name='x', demand=4, supply=(1,))
    >>> demand.enough
    [4]
    """
    found = []
    for j, name in enumerate(problem.job_names):
        row = problem.rows.row(j)
        divisor = gcd(*row.supply) or 1
        supply = tuple(f // divisor for f in row.supply)
        found.append(Demand(name, -(-row.demand // divisor), supply))
    return tuple(found)
