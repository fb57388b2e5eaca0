"""One run of ``conic``: prices, a rounding, and the integer program that ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from cms.certificate.certificate import BlockPrices
from cms.errors import UnsupportedProblem
from cms.knapsack.pricing import common_denominator
from cms.plugin.algorithm import Named, SolverBound
from cms.problem.parts import Configuration, MachineType
from cms.schedule.schedule import Schedule

from ..prices.theorem_b import rounded
from ..prices.vertex import solve_dantzig_wolfe
from ..solvers.integer import Outcome, Settings
from .cells import cover
from .demands import Priced, priced, windows
from .integer_program import ContentProgram, ContentsFound, ContentTask, columns_of
from .polytope import HalfSpace, Point
from .prepared import MOST_MAXIMAL, too_many_contents
from .valuable import valuable

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget

    from .prepared import Prepared

#: Nodes of SCIP's search for a schedule, before CP-SAT has the word.
_NODES = 1_000


class Run:
    """A run on a prepared problem.

    Parameters
    ----------
    given : Prepared
    plain : bool
        Whether to yield nothing but the integer program's schedules.
    budget : Budget
    """

    def __init__(self, given: Prepared, plain: bool, budget: Budget) -> None:
        self._given, self._plain, self._budget = given, plain, budget
        self._small = given.reduction.problem
        machine = self._small.machine_type(given.shape.machine)
        self._name, self._cost, self._limit = machine.name, machine.cost, machine.limit

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
        known = priced(self._given.demands, prices)
        yield from self._certificates(known, solution.leaf)
        machines, blocks = rounded(solution)
        if self._limit is None or sum(machines.values()) <= self._limit:
            schedule = Schedule.from_counts(self._small, machines, blocks)
            yield Named(self._given.reduction.restore(schedule), "rounding (Theorem B)")
        yield from self._decide(known)

    def _certificates(self, known: Priced, leaf: BlockPrices) -> Iterator[Named]:
        """Prove a bound on the cost and, if that is above the limit, that there is no schedule."""
        reduction, blocks = self._given.reduction, self._small.blocks
        table = dict(zip(blocks, known.prices, strict=True))
        scaled = {block: price * self._cost for block, price in table.items()}
        worth = known.bound * self._cost
        prices = BlockPrices(scaled, proper=leaf.proper)
        yield Named(reduction.restore_prices(prices, worth), "block prices")
        if self._limit is not None and known.bound > self._limit:
            # With machines of cost 0 the price of the limit alone pays for the blocks.
            ray = BlockPrices(table, {self._name: 1}, proper=leaf.proper)
            yield Named(reduction.restore_prices(ray, known.bound), "ray")

    def _decide(self, known: Priced | None) -> Iterator[Named]:
        """Find a schedule of as few machines as possible, or prove that there is none better."""
        if self._settled(known):
            return
        contents = self._contents(known)
        if contents is None:
            return
        columns = f"{len(contents)} columns"
        task = self._task(contents, known)
        if not self._plain and _is_open(task):
            model = ContentProgram(task)
            values = model.program.search(self._budget, nodes=_NODES).values
            if values is not None:
                yield self._schedule(model.read(values), f"integer program by SCIP, {columns}")
                if self._settled(known):
                    return
                task = self._task(contents, known)
        if not self._budget.stopped:
            yield from self._settle(task, f"integer program, {columns}")

    def _upper(self) -> int | None:
        """How many machines the best schedule has."""
        best = None if self._plain else self._budget.best
        return None if best is None else best.machine_count

    def _target(self) -> int:
        """The largest number of machines of interest."""
        upper = self._upper()
        known = self._given.simple if upper is None else min(self._given.simple, upper - 1)
        return known if self._limit is None else min(known, self._limit)

    def _least(self, known: Priced | None) -> int:
        """A lower bound on the number of machines: there is something to serve."""
        return 1 if known is None else max(1, ceil(known.bound))

    def _settled(self, known: Priced | None) -> bool:
        """Whether the prices prove the best schedule optimal."""
        upper = self._upper()
        return upper is not None and upper <= self._least(known)

    def _contents(self, known: Priced | None) -> tuple[Point, ...] | None:
        """The contents that are columns; None if the run was stopped."""
        given, budget = self._given, self._budget
        if given.points is not None:
            return given.points
        near = _near(known, self._target())
        if given.later:
            # Machines filled up are worth no less, so that those which prices leave are enough.
            space = near[0] if near else HalfSpace((0,) * given.polytope.dimension, 0)
            found = valuable(given.polytope, space, MOST_MAXIMAL, lambda: budget.stopped)
            if found is None and not budget.stopped:
                raise UnsupportedProblem(
                    f"{too_many_contents()} that a better schedule may have, of more than two "
                    "block types; take the method price_and_branch"
                )
            return found
        corners = {
            vertex
            for body in cover(given.polytope, near, lambda: budget.stopped)
            for vertex in body.vertices()
        }
        # Supply may be more than is taken, so that full machines serve in place of others.
        return None if budget.stopped else tuple(sorted({*map(given.polytope.filled, corners)}))

    def _task(self, contents: tuple[Point, ...], known: Priced | None) -> ContentTask:
        """State what is left to decide."""
        given, target = self._given, self._target()
        k = given.polytope.dimension
        return ContentTask(
            given.polytope,
            given.demands,
            windows(given.demands, given.polytope.highest, target, known),
            columns_of(contents, target, known),
            2**k if given.points is None and not given.later else 0,
            self._least(known),
            target,
            _near(known, target),
        )

    def _settle(self, task: ContentTask, part: str) -> Iterator[Named]:
        """Let CP-SAT decide a task."""
        if not _is_open(task):
            yield from self._word(None, part)
            return
        model = ContentProgram(task)
        with closing(model.program.improvements(self._budget, Settings())) as items:
            for item in items:
                values = item.values if isinstance(item, Outcome) else item
                found = None if values is None else model.read(values)
                if found is not None:
                    yield self._schedule(found, part)
                if isinstance(item, Outcome) and item.status in ("optimal", "infeasible"):
                    yield from self._word(found, part)

    def _word(self, found: ContentsFound | None, part: str) -> Iterator[Named]:
        """Say what follows where the program is decided; ``found`` is its best."""
        if self._plain:
            return
        count = self._upper() if found is None else found.machine_count
        cost = None if count is None else count * self._cost
        yield Named(SolverBound(cost, "CP-SAT"), part)

    def _schedule(self, found: ContentsFound, part: str) -> Named:
        blocks = self._small.blocks
        machines = {
            Configuration(dict(zip(blocks, content, strict=True)), self._name): number
            for content, number in found.machines.items()
        }
        given = {
            (block, demand.name): number
            for demand, numbers in zip(self._given.demands, found.given, strict=True)
            for block, number in zip(blocks, numbers, strict=True)
            if number
        }
        schedule = Schedule.from_counts(self._small, machines, given)
        return Named(self._given.reduction.restore(schedule), part)


def _is_open(task: ContentTask) -> bool:
    """Whether so few machines have the worth of all options and the blocks for each single job."""
    return task.target >= task.least and all(
        low <= high for window in task.windows for low, high in zip(*window, strict=True)
    )


def _near(known: Priced | None, target: int) -> tuple[HalfSpace, ...]:
    """Return the half space of all contents that a schedule of ``target`` machines may have.

    Their reduced costs ``1 - prices . content`` add up to at most ``target - bound`` (theory 6.7).
    That the cover leaves the other contents out is safe: the exchanges of theory 5.1 keep the sum
    of all contents and their number, hence that sum, and no content has a negative one.
    """
    if known is None:
        return ()
    whole, denominator = common_denominator(known.prices)
    least = ceil(denominator * (1 - (target - known.bound)))
    return (HalfSpace(tuple(-price for price in whole), -least),) if least > 0 else ()
