"""A run of ``conic``: prices, a rounding, and the integer program."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from fractions import Fraction
from math import ceil
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.certificate.certificate import BlockPrices
from cms.errors import UnsupportedProblem
from cms.knapsack.pricing import cheapest_option, common_denominator
from cms.plugin.algorithm import Named, SolverBound
from cms.problem.parts import Configuration, MachineType
from cms.schedule.schedule import Schedule

from ..integer_problem import schedule_of
from ..prices.vertex import rounded, solve_dantzig_wolfe
from ..solvers.integer import Outcome, Program, TooLarge, terms_of
from .small_problems import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget

    from ..integer_problem import Demand
    from .small_problems import Prepared

#: The least and the most blocks of each type that a job may take.
Window: TypeAlias = tuple[Content, Content]
#: Nodes of SCIP's search: with thousands of columns it finds schedules sooner than CP-SAT.
_NODES = 1_000
#: Free machines, each with a content of its own, beside the corners of a polygon.
SLOTS = 2


class Priced(NamedTuple):
    """Block prices, what each job pays at least, and the sum: no machine is worth more than 1."""

    prices: tuple[Fraction, ...]
    cheapest: tuple[Fraction, ...]
    bound: Fraction


def price_jobs(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Priced:
    """Price every job; each is served by some block."""
    whole, denominator = common_denominator(prices)
    found = (cheapest_option(whole, demand.supply, demand.demand) for demand in demands)
    cheapest = tuple(Fraction(option.value, denominator) for option in found if option is not None)
    assert len(cheapest) == len(demands)
    return Priced(tuple(prices), cheapest, sum(cheapest, Fraction(0)))


def find_windows(
    demands: Sequence[Demand], highest: Content, most: int, known: Priced | None
) -> list[Window] | None:
    """Return windows that hold the blocks of all jobs in some schedule of ``most`` machines.

    None if there is none. Without superfluous blocks a job takes no more of a type than serve it
    alone, nor than all machines have. With prices (theory 6.7) an option o costs at most ``cheapest
    + most - bound``. Let r be the least price for a unit of the job's demand; as ``prices . o >= r
    demand + sum_i (price_i - r f_i) o_i``, this limits o_i of every type dearer than r a unit. What
    all other types cannot serve is the least number of a type: of a huge demand the large part.
    """
    windows = []
    for j, demand in enumerate(demands):
        high = [
            min(enough, most * each) for enough, each in zip(demand.enough, highest, strict=True)
        ]
        if known is not None:
            useful = [i for i, f in enumerate(demand.supply) if f]
            rate = min(known.prices[i] / demand.supply[i] for i in useful)
            spare = known.cheapest[j] + most - known.bound - rate * demand.demand
            for i in useful:
                more = known.prices[i] - rate * demand.supply[i]
                if more > 0:
                    high[i] = min(high[i], max(0, spare // more))
        missing = demand.demand - sum(map(mul, demand.supply, high))
        low = [
            max(0, -(-(missing + f * number) // f)) if f else 0
            for f, number in zip(demand.supply, high, strict=True)
        ]
        if missing > 0:
            return None
        windows.append((tuple(low), tuple(high)))
    return windows


def limit_columns(
    contents: Sequence[Content], machines: int, known: Priced | None
) -> dict[Content, int]:
    """Return the contents that a schedule of `machines` machines may have, and how often at most.

    The reduced costs ``1 - prices . content`` of its machines add up to at most ``machines -
    bound`` (theory 6.7). Machines exchanged for others with the same blocks in all keep this sum.
    """
    limits = dict.fromkeys(contents, machines)
    if known is None:
        return limits
    for content in contents:
        lost = 1 - sum(map(mul, known.prices, content), Fraction(0))
        if lost > 0:
            limits[content] = min(machines, int((machines - known.bound) // lost))
    return {content: limit for content, limit in limits.items() if limit}


class ContentProgram:
    """The program for schedules of ``least`` to ``most`` machines, for CP-SAT.

    Variables: the machines of each content, as prices known limit them; the contents of slots,
    within the polygon if there is one; the blocks of each job in its window. Raises TooLarge.
    """

    def __init__(
        self,
        given: Prepared,
        windows: Sequence[Window],
        least: int,
        most: int,
        known: Priced | None,
    ) -> None:
        self._given, self._windows = given, windows
        self._columns = columns = limit_columns(given.contents, most, known)
        self.program = program = Program()
        self._machines = [program.variable(limit) for limit in columns.values()]
        slots = () if given.polygon is None else range(SLOTS)
        self._slots = [
            (program.variable(1), [program.variable(number) for number in given.highest])
            for _ in slots
        ]
        for used, held in self._slots:  # one in use fits on a machine; one that is not is empty
            for normal, side in given.polygon.sides if given.polygon else ():
                terms = [*zip(held, normal, strict=True), (used, -side)]
                program.at_most(terms_of(terms), 0)
        self._taken = [
            [program.variable(high - low) for low, high in zip(*window, strict=True)]
            for window in windows
        ]
        # Of each type the machines have at least as many blocks as the jobs take.
        for i in range(len(given.highest)):
            terms = [(x, content[i]) for x, content in zip(self._machines, columns, strict=True)]
            terms += [(held[i], 1) for _, held in self._slots]
            terms += [(taken[i], -1) for taken in self._taken]
            program.at_least(terms_of(terms), sum(low[i] for low, _ in windows))
        for demand, (low, _), taken in zip(given.demands, windows, self._taken, strict=True):
            missing = demand.demand - sum(map(mul, demand.supply, low))
            if missing > 0:
                program.at_least(terms_of(zip(taken, demand.supply, strict=True)), missing)
        total = dict.fromkeys([*self._machines, *(used for used, _ in self._slots)], 1)
        program.at_least(total, least)
        program.at_most(total, most)
        if most > least:
            program.minimise(total)

    def schedule(self, values: Sequence[int]) -> Schedule:
        """Build the schedule of the reduced problem that the variables' values say."""
        given = self._given
        small, name = given.reduction.problem, given.machine.name
        pairs = zip(self._columns, self._machines, strict=True)
        machines = Counter({content: values[x] for content, x in pairs})
        for used, held in self._slots:
            content = tuple(values[variable] for variable in held)
            # On the way to its best solution the solver may open a slot for nothing.
            if values[used] and any(content):
                machines[content] += 1
        shapes = {
            Configuration(dict(zip(small.blocks, content, strict=True)), name): number
            for content, number in machines.items()
        }
        blocks = [
            [least + values[x] for least, x in zip(low, taken, strict=True)]
            for (low, _), taken in zip(self._windows, self._taken, strict=True)
        ]
        return schedule_of(small, shapes, blocks)


class Run:
    """A run on a prepared problem; ``plain``, it yields only the integer program's schedules."""

    def __init__(self, given: Prepared, plain: bool, budget: Budget) -> None:
        self._given, self._plain, self._budget = given, plain, budget
        self._small, self._restore = given.reduction.problem, given.reduction.restore

    def claims(self) -> Iterator[Named]:
        """Yield claims about the problem the user gave."""
        if self._plain:
            yield from self._decide(None)
            return
        machine = self._given.machine
        name, cost, limit = machine.name, machine.cost, machine.limit
        # Machines of cost 1 without a limit; what follows for the others is a matter of scale.
        unit = self._small.replace(machine_types=[MachineType(name)])
        solution = solve_dantzig_wolfe(unit, self._budget)
        if solution is None:
            return
        table = {block: solution.leaf.prices.get(block, Fraction(0)) for block in unit.blocks}
        known = price_jobs(self._given.demands, [*table.values()])
        proper, restored = solution.leaf.proper, self._given.reduction.restore_prices
        scaled = {block: price * cost for block, price in table.items()}
        yield Named(
            restored(BlockPrices(scaled, proper=proper), known.bound * cost), "block prices"
        )
        if limit is not None and known.bound > limit:
            # With machines of cost 0 the price of the limit alone pays for the blocks.
            ray = BlockPrices(table, {name: 1}, proper=proper)
            yield Named(restored(ray, known.bound), "ray")
        machines, blocks = rounded(solution)
        if limit is None or sum(machines.values()) <= limit:
            schedule = Schedule.from_counts(self._small, machines, blocks)
            yield Named(self._restore(schedule), "rounding (Theorem B)")
        yield from self._decide(known)

    def _decide(self, known: Priced | None) -> Iterator[Named]:
        """Let SCIP look for a schedule of few machines; then CP-SAT decides."""
        given, decided = self._given, True
        part = f"integer program, {len(given.contents)} columns"
        least = 1 if known is None else max(1, ceil(known.bound))
        for nodes in (0,) if self._plain else (_NODES, 0):
            best = None if self._plain else self._budget.best
            upper = None if best is None else best.machine_count
            if self._budget.stopped or (upper is not None and upper <= least):
                return  # the prices prove the best schedule optimal
            limits = given.simple, None if upper is None else upper - 1, given.machine.limit
            most = min(number for number in limits if number is not None)
            model = self._program(least, most, known)
            if model is None:
                break
            if nodes:
                hint = model.program.search(self._budget, nodes=nodes).values
                if hint is not None:
                    yield Named(self._restore(model.schedule(hint)), f"{part}, by SCIP")
                continue
            with closing(model.program.improvements(self._budget)) as items:
                for item in items:
                    if isinstance(item, Outcome):
                        decided = item.status in ("optimal", "infeasible")
                    else:
                        yield Named(self._restore(model.schedule(item)), part)
        if decided and not self._plain:
            best = self._budget.best
            cost = None if best is None else best.machine_count * given.machine.cost
            yield Named(SolverBound(cost, "CP-SAT"), part)

    def _program(self, least: int, most: int, known: Priced | None) -> ContentProgram | None:
        """Build the program; None if so few machines lack the worth or the blocks of some job."""
        given = self._given
        windows = find_windows(given.demands, given.highest, most, known)
        if most < least or windows is None:
            return None
        try:
            return ContentProgram(given, windows, least, most, known)
        except TooLarge:
            raise UnsupportedProblem(
                "numbers of the integer program are too large for CP-SAT's 63 bits; "
                "take the method branch_and_price"
            ) from None
