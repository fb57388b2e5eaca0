"""The integer program on given contents of machines and a few free ones (theory 5.2)."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING

from ..solvers.integer import Program, terms_of
from ..tables.integers import Demand
from .demands import Content, Priced, Window
from .polygon import Polygon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Free machines, each with a content of its own, beside the corners of a polygon.
SLOTS = 2


def limit_columns(
    contents: Sequence[Content], machines: int, known: Priced | None
) -> dict[Content, int]:
    """Return the columns that a schedule of at most ``machines`` machines may use, and how often.

    With prices the reduced costs ``1 - prices . content`` of its machines add up to at most
    ``machines - bound`` (theory 6.7). Machines exchanged for others with the same blocks in
    all keep this sum.

    Examples
    --------
    >>> known = Priced((Fraction(1, 2), Fraction(1, 3)), (), Fraction(9, 2))
    >>> limit_columns([(2, 0), (1, 1), (1, 0)], 5, known)
    {(2, 0): 5, (1, 1): 3, (1, 0): 1}
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

    Examples
    --------
    >>> from algorithms.conic.polygon import HalfPlane
    >>> demands = [Demand("x", 14, (1, 0)), Demand("y", 21, (0, 1))]
    >>> windows = [Window((14, 0), (14, 0)), Window((0, 21), (0, 21))]
    >>> machine = Polygon((HalfPlane((10, 7), 291),), (29, 41))
    >>> len(ContentProgram(demands, windows, {(28, 1): 2}, 0, 2, machine).program)
    11
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
