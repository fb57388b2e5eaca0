"""The integer program on contents of machines and a few free ones, and what limits it.

The limits are what the options of jobs cost at block prices, and so how many blocks can matter.
"""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.knapsack.pricing import cheapest_option, common_denominator

from ..solvers.integer import Program, terms_of
from ..tables.integers import Demand
from .polygon import Polygon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: How many blocks of each type.
Content: TypeAlias = tuple[int, ...]
#: Free machines, each with a content of its own, beside the corners of a polygon.
SLOTS = 2


class Window(NamedTuple):
    """The numbers of blocks of each type that a job may take."""

    low: Content
    high: Content

    def is_open(self) -> bool:
        """Whether there are such numbers."""
        return all(low <= high for low, high in zip(self.low, self.high, strict=True))


class Priced(NamedTuple):
    """Block prices, what the cheapest option of each job costs at least, and the sum of that.

    No machine is worth more than 1, so that no schedule has fewer machines than ``bound``.
    """

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
) -> list[Window]:
    """Return windows that hold the blocks of all jobs in some schedule of ``most`` machines.

    ``highest`` are the most blocks of each type that a machine has. Of a schedule one keeps, for
    every job, an option without superfluous blocks; that is a schedule too. Then a job takes no
    more blocks of a type than serve it alone, nor than all machines have. With prices (theory 6.7)
    an option o costs at most ``cheapest + slack``, with the slack ``most - bound``. Let r be the
    least price for a unit of the job's demand; as ``prices . o >= r demand + sum_i (price_i - r
    f_i) o_i``, this limits o_i of every type that is dearer than r a unit. What all other types
    cannot serve is the least number of a type; it fixes the large part of a huge demand.
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
        served = sum(f * number for f, number in zip(demand.supply, high, strict=True))
        low = [
            max(0, -(-(demand.demand - served + f * number) // f)) if f else 0
            for f, number in zip(demand.supply, high, strict=True)
        ]
        windows.append(Window(tuple(low), tuple(high)))
    return windows


def limit_columns(
    contents: Sequence[Content], machines: int, known: Priced | None
) -> dict[Content, int]:
    """Return the columns that a schedule of at most ``machines`` machines may use, and how often.

    With prices the reduced costs ``1 - prices . content`` of its machines add up to at most
    ``machines - bound`` (theory 6.7). Machines exchanged for others with the same blocks in
    all keep this sum.
    """
    columns = {}
    for content in contents:
        most = machines
        if known is not None:
            pairs = zip(known.prices, content, strict=True)
            worth = sum((price * number for price, number in pairs), Fraction(0))
            if worth < 1:
                most = min(most, int((machines - known.bound) // (1 - worth)))
        if most > 0 and any(content):
            columns[content] = most
    return columns


class ContentProgram:
    """The program for schedules of ``least`` to ``most`` machines, for CP-SAT.

    Variables: the machines of each column, at most so many; the contents of slots, within the
    polygon if there is one; the blocks of each job, whose window is not empty. Slots come by
    falling size; else their order would multiply the schedules. Raises TooLarge.
    """

    def __init__(
        self,
        demands: Sequence[Demand],
        windows: Sequence[Window],
        columns: Mapping[Content, int],
        least: int,
        most: int,
        polygon: Polygon | None = None,
    ) -> None:
        self.program = program = Program()
        self._windows, self._columns = windows, columns
        self._machines = [program.variable(number) for number in columns.values()]
        self._used: list[int] = []
        self._held: list[list[int]] = []
        if polygon is not None:
            for _ in range(SLOTS):
                self._used.append(program.variable(1))
                self._held.append([program.variable(number) for number in polygon.highest])
            self._bound_slots(polygon)
        self._taken = [
            [program.variable(high - low) for low, high in zip(*window, strict=True)]
            for window in windows
        ]
        for i in range(len(demands[0].supply)):
            self._supply(i)
        for demand, window, taken in zip(demands, windows, self._taken, strict=True):
            missing = demand.demand - sum(map(mul, demand.supply, window.low))
            if missing > 0:
                program.at_least(terms_of(zip(taken, demand.supply, strict=True)), missing)
        total = dict.fromkeys([*self._machines, *self._used], 1)
        program.at_least(total, least)
        program.at_most(total, most)
        if most > least:
            program.minimise(total)

    def _supply(self, i: int) -> None:
        """Of each type the machines have at least as many blocks as the jobs take."""
        columns = zip(self._machines, (content[i] for content in self._columns), strict=True)
        held = ((variables[i], 1) for variables in self._held)
        taken = ((variables[i], -1) for variables in self._taken)
        self.program.at_least(
            terms_of([*columns, *held, *taken]), sum(window.low[i] for window in self._windows)
        )

    def _bound_slots(self, polygon: Polygon) -> None:
        """A slot in use fits on a machine, one that is not is empty; the largest come first."""
        program = self.program
        for held, used in zip(self._held, self._used, strict=True):
            for normal, most in polygon.sides:
                terms = [*zip(held, normal, strict=True), (used, -most)]
                program.at_most(terms_of(terms), 0)
        size = polygon.rows[0].normal
        smaller = tuple(-entry for entry in size)
        for at in range(1, len(self._held)):
            pair = [*self._held[at - 1], *self._held[at]]
            program.at_least(terms_of(zip(pair, (*size, *smaller), strict=True)), 0)
            program.at_least({self._used[at - 1]: 1, self._used[at]: -1}, 0)

    def read(self, values: Sequence[int]) -> tuple[dict[Content, int], list[Content]]:
        """Turn the variables' values into machines by content and the blocks that each job gets."""
        pairs = zip(self._columns, self._machines, strict=True)
        machines = {content: values[x] for content, x in pairs if values[x]}
        for used, held in zip(self._used, self._held, strict=True):
            content = tuple(values[variable] for variable in held)
            # On the way to its best solution the solver may open a slot for nothing.
            if values[used] and any(content):
                machines[content] = machines.get(content, 0) + 1
        given = [
            tuple(low + values[variable] for low, variable in zip(window.low, taken, strict=True))
            for window, taken in zip(self._windows, self._taken, strict=True)
        ]
        return machines, given
