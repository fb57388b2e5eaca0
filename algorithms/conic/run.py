"""Which problems ``conic`` takes, and a run: prices, a rounding, and the integer program."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cms.certificate.certificate import BlockPrices
from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named, SolverBound, Support
from cms.problem.parts import Configuration, MachineType, SizeBoundedConfigurations
from cms.reduction.reduction import Reduction, reduce
from cms.schedule.schedule import Schedule

from ..prices.vertex import rounded, solve_dantzig_wolfe
from ..solvers.integer import Outcome, Settings, TooLarge
from ..tables.integers import Demand, demands_of
from ..tables.machines import listed
from .integer_program import (
    ContentProgram,
    Priced,
    Window,
    find_windows,
    limit_columns,
    price_jobs,
)
from .polygon import Polygon, read_polygon

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem

    from .integer_program import Content

#: The program has a variable for every job and block type: the theory's O(1) of both.
MAX_JOBS, MAX_BLOCKS = 100, 8
#: Maximal configurations of a list: the theory's O(1), where there is no polygon. A MIG device has
#: 12, or 28 with double memory.
MAX_LISTED = 100
#: Maximal contents of a size-bounded set that are columns one by one; beyond, corners of cells are
#: fewer (theory 5.2).
MAX_MAXIMAL = 5_000
#: Nodes of SCIP's search: with thousands of columns it finds schedules sooner than CP-SAT.
_NODES = 1_000


class Prepared(NamedTuple):
    """A problem, reduced to what must be decided, in integers.

    ``highest`` are the most blocks of each type that a machine has, ``contents`` the columns: the
    maximal ones, or, by cells, the corners of the ``polygon`` of all.
    """

    reduction: Reduction
    machine: MachineType
    demands: tuple[Demand, ...]
    highest: Content
    contents: Sequence[Content]
    polygon: Polygon | None

    @property
    def simple(self) -> int:
        """Machines enough for a simple schedule: each job alone, on blocks of its best type."""
        return sum(
            min(
                -(-blocks // most)
                for blocks, most in zip(demand.enough, self.highest, strict=True)
                if blocks
            )
            for demand in self.demands
        )


def prepare(problem: Problem, route: str) -> Prepared | Support:
    """Prepare a problem for a run by a route, or refuse it.

    ``Support(True)`` is where nothing is left to decide: nothing to serve, or a job that nothing
    serves.
    """
    if problem.n_jobs > MAX_JOBS:
        return Support(False, f"it has {problem.n_jobs} jobs; expected at most {MAX_JOBS}")
    reduction = reduce(problem)
    small, blocks = reduction.problem, reduction.problem.blocks
    if not small.n_jobs or not all(any(small.rows.row(j).supply) for j in range(small.n_jobs)):
        return Support(True)
    if len(blocks) > MAX_BLOCKS:
        number = f"{len(blocks)} block types that serve a job"
        return Support(False, f"it has {number}; expected at most {MAX_BLOCKS}")
    machines = {shape.machine for shape in small.configurations}
    if len(machines) > 1:
        return Support(False, f"it has {len(machines)} machine types; expected one")
    machine = small.machine_type(machines.pop())
    shape, *others = small.configurations
    polygon = None
    if len(blocks) == 2 and isinstance(shape, SizeBoundedConfigurations) and not others:
        polygon = read_polygon(shape, blocks, small.useful_blocks())
    elif len(blocks) > 1 and route == "cells":
        return Support(
            False,
            "the route 'cells' takes one size-bounded set of at most two block types that serve a "
            "job: a list can have holes, and of more types cells have hardly fewer corners than "
            "contents; take 'points'",
        )
    points = "" if polygon and route == "cells" else _list_points(small)
    if not isinstance(points, str):
        highest = tuple(map(max, zip(*points, strict=True)))
        return Prepared(reduction, machine, demands_of(small), highest, points, None)
    if polygon is None or route == "points":
        return Support(False, points)
    corners = polygon.list_corners()
    return Prepared(reduction, machine, demands_of(small), polygon.highest, corners, polygon)


def _list_points(small: Problem) -> tuple[Content, ...] | str:
    """List the maximal contents, or say why not."""
    lists = len(small.listed_configurations)
    if lists > MAX_LISTED:
        return (
            f"it lists {lists} configurations none of which is part of another; expected at most "
            f"{MAX_LISTED}: with long lists the problem is NP-hard even for two jobs and two block "
            "types, unlike with all configurations up to a size"
        )
    listing = listed(small, MAX_MAXIMAL)
    if listing.left_out:
        return (
            f"a machine has more than {MAX_MAXIMAL:,} maximal contents, which are listed one by "
            "one; take the route 'cells' for two block types, price_and_branch for more"
        )
    return tuple(
        tuple(shape.blocks.get(block, 0) for block in small.blocks) for shape in listing.shapes
    )


class Run:
    """A run on a prepared problem; ``plain``, it yields only the integer program's schedules."""

    def __init__(self, given: Prepared, plain: bool, budget: Budget) -> None:
        self._given, self._plain, self._budget = given, plain, budget
        self._small = given.reduction.problem
        self._name, self._cost = given.machine.name, given.machine.cost
        self._limit = given.machine.limit

    def claims(self) -> Iterator[Named]:
        """Yield claims about the problem the user gave."""
        if self._plain:
            yield from self._decide(None)
            return
        # Machines of cost 1 without a limit; what follows for the others is a matter of scale.
        unit = self._small.replace(machine_types=[MachineType(self._name)])
        solution = solve_dantzig_wolfe(unit, self._budget)
        if solution is None:
            return
        prices = [solution.leaf.prices.get(block, Fraction(0)) for block in unit.blocks]
        known = price_jobs(self._given.demands, prices)
        yield from self._certify(known, solution.leaf)
        machines, blocks = rounded(solution)
        if self._limit is None or sum(machines.values()) <= self._limit:
            schedule = Schedule.from_counts(self._small, machines, blocks)
            yield Named(self._given.reduction.restore(schedule), "rounding (Theorem B)")
        yield from self._decide(known)

    def _certify(self, known: Priced, leaf: BlockPrices) -> Iterator[Named]:
        """Prove a bound on the cost and, if that is above the limit, that there is no schedule."""
        reduction = self._given.reduction
        table = dict(zip(self._small.blocks, known.prices, strict=True))
        scaled = {block: price * self._cost for block, price in table.items()}
        prices = BlockPrices(scaled, proper=leaf.proper)
        yield Named(reduction.restore_prices(prices, known.bound * self._cost), "block prices")
        if self._limit is not None and known.bound > self._limit:
            # With machines of cost 0 the price of the limit alone pays for the blocks.
            ray = BlockPrices(table, {self._name: 1}, proper=leaf.proper)
            yield Named(reduction.restore_prices(ray, known.bound), "ray")

    def _decide(self, known: Priced | None, *, searched: bool = False) -> Iterator[Named]:
        """Let SCIP look for a schedule of few machines, if not done; then CP-SAT decides."""
        upper = self._upper()
        least = 1 if known is None else max(1, ceil(known.bound))
        if upper is not None and upper <= least:
            return  # the prices prove the best schedule optimal
        if self._budget.stopped:
            return
        part = f"integer program, {len(self._given.contents)} columns"
        given = self._given
        most = given.simple if upper is None else min(given.simple, upper - 1)
        if self._limit is not None:
            most = min(most, self._limit)
        windows = find_windows(given.demands, given.highest, most, known)
        if most < least or not all(map(Window.is_open, windows)):
            # So few machines have not the worth of all options, or not the blocks of some job.
            yield from self._conclude(None, part)
            return
        columns = limit_columns(given.contents, most, known)
        try:
            model = ContentProgram(given.demands, windows, columns, least, most, given.polygon)
        except TooLarge:
            raise UnsupportedProblem(
                "numbers of the integer program are too large for CP-SAT's 63 bits; "
                "take the method price_and_branch"
            ) from None
        if not self._plain and not searched:
            hint = model.program.search(self._budget, nodes=_NODES).values
            if hint is not None:
                better = given.reduction.restore(self._read(*model.read(hint)))
                yield Named(better, f"{part}, by SCIP")
            yield from self._decide(known, searched=True)
            return
        with closing(model.program.improvements(self._budget, Settings())) as items:
            for item in items:
                values = item.values if isinstance(item, Outcome) else item
                schedule = None if values is None else self._read(*model.read(values))
                if schedule is not None:
                    yield Named(given.reduction.restore(schedule), part)
                if isinstance(item, Outcome) and item.status in ("optimal", "infeasible"):
                    yield from self._conclude(schedule, part)

    def _upper(self) -> int | None:
        """How many machines the best schedule has."""
        best = None if self._plain else self._budget.best
        return None if best is None else best.machine_count

    def _conclude(self, found: Schedule | None, part: str) -> Iterator[Named]:
        """Say what follows where the program is decided; ``found`` is its best."""
        if self._plain:
            return
        count = self._upper() if found is None else found.machine_count
        cost = None if count is None else count * self._cost
        yield Named(SolverBound(cost, "CP-SAT"), part)

    def _read(self, contents: dict[Content, int], blocks: list[Content]) -> Schedule:
        """Build a schedule of the reduced problem."""
        names = self._small.blocks
        machines = {
            Configuration(dict(zip(names, content, strict=True)), self._name): number
            for content, number in contents.items()
        }
        given = {
            (name, demand.name): number
            for demand, numbers in zip(self._given.demands, blocks, strict=True)
            for name, number in zip(names, numbers, strict=True)
            if number
        }
        return Schedule.from_counts(self._small, machines, given)
