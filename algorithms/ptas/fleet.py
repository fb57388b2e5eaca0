"""The machines that the exact part chooses among, one by one, and what it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cms.errors import UnsupportedProblem
from cms.schedule.schedule import Schedule
from cms.values.numbers import common_step

from ..tables.integers import demands_of
from ..tables.machines import listed

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

#: Maximal multisets of a size-bounded set that are listed one by one.
MAX_SHAPES = 20_000


class FleetFound(NamedTuple):
    """Machines by configuration, and the blocks given to jobs by (block, job)."""

    machines: dict[Configuration, int]
    given: dict[tuple[str, str], int]


class Fleet:
    """A reduced problem without limits, with all its configurations listed.

    Attributes
    ----------
    demands : tuple of Demands
    shapes : tuple of Configuration
    counts : list of tuples of k ints
        Blocks of each type.
    step : Fraction
        All costs are multiples of it; 0 if all machines are free.
    steps : list of int
        Costs of the shapes in multiples of ``step``.
    useful : list of k ints
        More blocks of a type than this never help.

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
        listing = listed(problem, MAX_SHAPES)
        if listing.left_out:
            raise UnsupportedProblem(
                f"a size-bounded set has more than {MAX_SHAPES} maximal configurations, which are "
                "listed one by one here"
            )
        self.shapes = listing.shapes
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
        steps = dict(zip(self.shapes, self.steps, strict=True))
        return self.step * sum(number * steps[shape] for shape, number in found.machines.items())

    def schedule(self, found: FleetFound) -> Schedule:
        """Build a schedule of the reduced problem."""
        schedule = Schedule.from_counts(self.problem, found.machines, found.given)
        return schedule.without_idle_machines()
