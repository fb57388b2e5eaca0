"""The machines that the exact part chooses among, one by one, and what it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem
from cms.schedule.schedule import Schedule
from cms.values.numbers import common_step

from ..tables.integers import demands_of
from ..tables.machines import listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from cms.problem.problem import Problem

#: Maximal multisets of a size-bounded set that are listed one by one.
MAX_SHAPES = 20_000


class FleetFound(NamedTuple):
    """Machines of each configuration, and the blocks of each type given to each job."""

    machines: Sequence[int]
    given: Sequence[Sequence[int]]


class Fleet:
    """A reduced problem without limits, with all its configurations listed.

    ``steps`` are costs in multiples of ``step``, which is 0 if all machines are free. More blocks
    of a type than are ``useful`` never help.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> shapes = [Configuration({"a": 2}), Configuration({"a": 1, "b": 1})]
    >>> fleet = Fleet(Problem(configurations=shapes, jobs=[Job("x", 7, {"a": 2, "b": 3})]))
    >>> fleet.counts, fleet.steps, fleet.useful
    ([(2, 0), (1, 1)], [1, 1], [4, 3])
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.shapes, left_out = listed(problem, MAX_SHAPES)
        if left_out:
            raise UnsupportedProblem(
                f"a size-bounded set has more than {MAX_SHAPES} maximal configurations, which are "
                "listed one by one here"
            )
        self.counts = [
            tuple(shape.blocks.get(block, 0) for block in problem.blocks) for shape in self.shapes
        ]
        costs = [problem.machine_type(shape.machine).cost for shape in self.shapes]
        self.step = common_step(costs)
        self.steps = [int(cost / self.step) if cost else 0 for cost in costs]
        self.demands = demands_of(problem)
        self.useful = [sum(d.enough[i] for d in self.demands) for i in range(len(problem.blocks))]

    def price(self, found: FleetFound) -> Fraction:
        """Return what machines cost."""
        return self.step * sum(x * y for x, y in zip(found.machines, self.steps, strict=True))

    def schedule(self, found: FleetFound) -> Schedule:
        """Build a schedule of the reduced problem."""
        machines = {shape: x for shape, x in zip(self.shapes, found.machines, strict=True) if x}
        given = np.array(found.given, dtype=object)
        jobs, blocks = np.nonzero(given)
        columns = jobs, blocks, given[jobs, blocks]
        return Schedule.from_counts(self.problem, machines, columns).without_idle_machines()
