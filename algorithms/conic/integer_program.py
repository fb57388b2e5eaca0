"""The integer program on given contents of machines and a few free ones (theory 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ..solvers.integer import LARGEST, Program
from ..tables.demands import Demand
from .demands import Priced, Window
from .polytope import HalfSpace, Point, Polytope, dot


class Column(NamedTuple):
    """A content that any number of machines up to ``most`` may have."""

    content: Point
    most: int


class ContentsFound(NamedTuple):
    """Machines by content, and the blocks that every job gets, one vector a job."""

    machines: dict[Point, int]
    given: tuple[Point, ...]

    @property
    def machine_count(self) -> int:
        """Number of machines."""
        return sum(self.machines.values())


@dataclass(frozen=True)
class ContentTask:
    """What the program is to decide: which schedule of ``least`` to ``target`` machines is best.

    Parameters
    ----------
    polytope : Polytope
        What a free machine, a *slot*, may hold.
    demands : tuple of Demands
    windows : tuple of Windows
        One a job.
    columns : tuple of Columns
    slots : int
        Free machines, each with a content of its own.
    least : int
        A lower bound on the number of machines.
    target : int
        The largest number of machines of interest.
    near : tuple of HalfSpaces, optional
        All contents of the schedules of interest are in these.
    """

    polytope: Polytope
    demands: tuple[Demand, ...]
    windows: tuple[Window, ...]
    columns: tuple[Column, ...]
    slots: int
    least: int
    target: int
    near: tuple[HalfSpace, ...] = ()


def columns_of(contents: Sequence[Point], target: int, known: Priced | None) -> tuple[Column, ...]:
    """Return the columns that a schedule of at most ``target`` machines may use, and how often.

    With prices the reduced costs ``1 - prices . content`` of its machines add up to at most
    ``target - bound`` (theory 6.7).

    Examples
    --------
    >>> known = Priced((Fraction(1, 2), Fraction(1, 3)), (), Fraction(9, 2))
    >>> for column in columns_of([(2, 0), (1, 1), (1, 0)], 5, known):
    ...     print(column)
    Column(content=(2, 0), most=5)
    Column(content=(1, 1), most=3)
    Column(content=(1, 0), most=1)
    """
    columns = []
    for content in contents:
        most = target
        if known is not None:
            worth = sum(
                (price * n for price, n in zip(known.prices, content, strict=True)), Fraction(0)
            )
            if worth < 1:
                most = min(most, int((target - known.bound) // (1 - worth)))
        if most > 0 and any(content):
            columns.append(Column(content, most))
    return tuple(columns)


class ContentProgram:
    """The program of a task, for CP-SAT.

    Variables: the machines of each column, the contents of the slots, the blocks of each job.
    Slots come by falling size; else their order would multiply the schedules.

    Parameters
    ----------
    task : ContentTask
        With windows that are not empty.

    Raises
    ------
    TooLarge
        If a number leaves the solver's range.

    Examples
    --------
    >>> demands = (Demand("x", 14, (1, 0)), Demand("y", 21, (0, 1)))
    >>> windows = (Window((14, 0), (14, 0)), Window((0, 21), (0, 21)))
    >>> machine = Polytope(((10, 7),), (291,))
    >>> task = ContentTask(
    ...     machine, demands, windows, (Column((28, 1), 2),), slots=1, least=0, target=2
    ... )
    >>> model = ContentProgram(task)
    >>> len(model.program)
    8
    >>> found = model.read((0, 1, 14, 21, 0, 0, 0, 0))
    >>> found.machines, found.given, found.machine_count
    ({(14, 21): 1}, ((14, 0), (0, 21)), 1)
    """

    def __init__(self, task: ContentTask) -> None:
        self.task, self.program = task, Program()
        program, k = self.program, task.polytope.dimension
        self._machines = [program.variable(column.most) for column in task.columns]
        highest = task.polytope.highest
        self._used: list[int] = []
        self._held: list[list[int]] = []
        for _ in range(task.slots):
            self._used.append(program.variable(1))
            self._held.append([program.variable(most) for most in highest])
        self._taken = [
            [program.variable(high - low) for low, high in zip(*window, strict=True)]
            for window in task.windows
        ]
        for i in range(k):
            self._supply(i)
        for demand, window, taken in zip(task.demands, task.windows, self._taken, strict=True):
            terms = {v: f for v, f in zip(taken, demand.supply, strict=True) if f}
            least = demand.demand - dot(demand.supply, window.low)
            if least > 0:
                program.at_least(terms, least)
        self._slots()
        total = dict.fromkeys([*self._machines, *self._used], 1)
        if task.least > 0:
            program.at_least(total, task.least)
        program.at_most(total, task.target)
        if task.target > task.least:
            program.minimise(total)

    def _supply(self, i: int) -> None:
        """Of each type the machines have at least as many blocks as the jobs take."""
        task = self.task
        terms = {
            variable: column.content[i]
            for variable, column in zip(self._machines, task.columns, strict=True)
            if column.content[i]
        }
        terms |= {held[i]: 1 for held in self._held}
        terms |= {taken[i]: -1 for taken in self._taken}
        self.program.at_least(terms, sum(window.low[i] for window in task.windows))

    def _slots(self) -> None:
        """A slot in use fits on a machine, one that is not is empty; the largest come first."""
        program, polytope = self.program, self.task.polytope
        for held, used in zip(self._held, self._used, strict=True):
            for row, most in zip(polytope.rows, polytope.right, strict=True):
                program.at_most({**_terms(held, row), used: -most}, 0)
            for normal, most in self.task.near:
                # It only spares the solver work, and its numbers may be large.
                if -most - dot(normal, polytope.highest) < LARGEST:
                    program.at_most({**_terms(held, normal), used: -most}, 0)
        size = polytope.rows[0]
        for at in range(1, self.task.slots):
            smaller = tuple(-entry for entry in size)
            program.at_least(
                {**_terms(self._held[at - 1], size), **_terms(self._held[at], smaller)}, 0
            )
            program.at_least({self._used[at - 1]: 1, self._used[at]: -1}, 0)

    def read(self, values: Sequence[int]) -> ContentsFound:
        """Turn the variables' values into machines and blocks given."""
        machines: dict[Point, int] = {}
        for variable, column in zip(self._machines, self.task.columns, strict=True):
            if values[variable]:
                content = column.content
                machines[content] = machines.get(content, 0) + values[variable]
        for used, held in zip(self._used, self._held, strict=True):
            content = tuple(values[variable] for variable in held)
            # On the way to its best solution the solver may open a slot for nothing.
            if values[used] and any(content):
                machines[content] = machines.get(content, 0) + 1
        given = tuple(
            tuple(low + values[variable] for low, variable in zip(window.low, taken, strict=True))
            for window, taken in zip(self.task.windows, self._taken, strict=True)
        )
        return ContentsFound(machines, given)


def _terms(variables: Sequence[int], factors: Point) -> dict[int, int]:
    return {v: factor for v, factor in zip(variables, factors, strict=True) if factor}
