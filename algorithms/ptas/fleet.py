"""The machines that an exact method chooses among, one by one, and what it finds."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cms.errors import UnsupportedProblem
from cms.schedule.schedule import Schedule
from cms.values.numbers import common_step

from ..prices.theorem_b import with_missing
from ..tables.demands import demands_of
from ..tables.machines import listed

if TYPE_CHECKING:
    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

#: Maximal multisets of a size-bounded set that are listed one by one.
MOST_SHAPES = 20_000


class FleetFound(NamedTuple):
    """Machines, the blocks given to jobs by (block, job), and what the machines cost."""

    cost: Fraction
    machines: dict[Configuration, int]
    given: dict[tuple[str, str], int]


class Fleet:
    """A reduced problem with all its configurations listed.

    Parameters
    ----------
    problem : Problem
        Reduced, without limits.

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

    Raises
    ------
    UnsupportedProblem
        If a size-bounded set has too many maximal multisets.

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
        listing = listed(problem, MOST_SHAPES)
        if listing.left_out:
            raise UnsupportedProblem(
                f"a size-bounded set has more than {MOST_SHAPES} maximal configurations, which are "
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
        self.useful = [0] * len(problem.blocks)
        for demand in self.demands:
            for i, most in enumerate(demand.enough):
                self.useful[i] += most

    def apart(self) -> FleetFound:
        """Serve every job by blocks of one type: a schedule, if not a good one."""
        problem = self.problem
        # What a block costs on a machine that is full of its type.
        prices = [
            min(
                self.step * steps / counts[i]
                for steps, counts in zip(self.steps, self.counts, strict=True)
                if counts[i]
            )
            for i in range(len(problem.blocks))
        ]
        load = [0] * len(prices)
        given: dict[tuple[str, str], int] = {}
        for demand in self.demands:
            costs = [(n * prices[i], i) for i, n in enumerate(demand.enough) if n]
            _, i = min(costs)
            given[problem.blocks[i], demand.name] = demand.enough[i]
            load[i] += demand.enough[i]
        return self.found(with_missing(problem, {}, load), given)

    def found(
        self, machines: dict[Configuration, int], given: dict[tuple[str, str], int]
    ) -> FleetFound:
        """Add what machines cost."""
        cost = sum(
            (self.problem.machine_type(shape.machine).cost * n for shape, n in machines.items()),
            Fraction(0),
        )
        return FleetFound(cost, machines, given)

    def schedule(self, found: FleetFound) -> Schedule:
        """Build a schedule of the reduced problem."""
        schedule = Schedule.from_counts(self.problem, found.machines, found.given)
        return schedule.without_idle_machines()
