"""Linear programs of covering type, solved exactly: a vertex, its value and its duals.

``min costs . x  subject to  rows x >= rights, x >= 0`` with costs >= 0. So x = 0 is dual feasible
and the dual simplex method needs no first phase. The dictionary holds integers over one common
denominator, and every division below is without remainder (integral pivoting, as in Bareiss's
elimination). Plain and small: for tiny programs only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number: TypeAlias = int | Fraction
#: Pivots after which the rule that cannot cycle takes over.
_PATIENCE = 400


class Vertex(NamedTuple):
    """An optimal basic solution, and its duals: one >= 0 a row, with ``duals . rows <= costs``.

    The columns of the point's positive entries are linearly independent of each other and of those
    of the positive slacks. ``duals . rights == value``.
    """

    value: Fraction
    point: tuple[Fraction, ...]
    duals: tuple[Fraction, ...]


def minimise(
    costs: Sequence[Number], rows: Sequence[Sequence[Number]], rights: Sequence[Number]
) -> Vertex | None:
    """Solve a covering program; None if it is infeasible."""
    if any(cost < 0 for cost in costs):
        raise ValueError(f"the costs are {list(costs)}; expected numbers >= 0")
    scales, table = [], []
    for row, right in zip(rows, rights, strict=True):
        scale = _denominator([*row, right])
        scales.append(scale)
        table.append([int(-right * scale), *(int(entry * scale) for entry in row)])
    cost_scale = _denominator(costs)
    table.append([0, *(int(cost * cost_scale) for cost in costs)])
    dictionary = _Dictionary(np.array(table, dtype=object), len(costs))
    if not dictionary.solve():
        return None
    point, reduced = dictionary.values()
    N = len(costs)
    return Vertex(
        dictionary.objective() / cost_scale,
        tuple(point.get(variable, Fraction(0)) for variable in range(N)),
        tuple(
            reduced.get(N + row, Fraction(0)) * scale / cost_scale
            for row, scale in enumerate(scales)
        ),
    )


def _denominator(numbers: Sequence[Number]) -> int:
    return lcm(*(number.denominator for number in numbers))


class _Dictionary:
    """Basic variables and the objective (the last row) as sums of the nonbasic ones.

    Column 0 holds the constants. Variables 0, ..., N - 1 are the program's, the others its slacks.
    """

    def __init__(self, entries: NDArray[Any], N: int) -> None:
        self._entries, self._denominator = entries, 1
        self._nonbasic = list(range(N))
        self._basic = [N + row for row in range(len(entries) - 1)]

    def solve(self) -> bool:
        """Pivot to the optimum; False if the program is infeasible."""
        pivots = 0
        while True:
            constants = self._entries[:-1, 0]
            low = [row for row in range(len(self._basic)) if constants[row] < 0]
            if not low:
                return True
            if pivots < _PATIENCE:
                leaving = min(low, key=lambda row: (constants[row], self._basic[row]))
            else:
                leaving = min(low, key=self._basic.__getitem__)
            ratios = [
                (Fraction(self._entries[-1, column], self._entries[leaving, column]), variable)
                for column, variable in enumerate(self._nonbasic, 1)
                if self._entries[leaving, column] > 0
            ]
            if not ratios:
                return False
            self._pivot(leaving, 1 + self._nonbasic.index(min(ratios)[1]))
            pivots += 1

    def _pivot(self, row: int, column: int) -> None:
        entries = self._entries
        pivot, out, into = entries[row, column], entries[row].copy(), entries[:, column].copy()
        entries = (entries * pivot - np.outer(into, out)) // self._denominator
        entries[row] = -out
        entries[:, column] = into
        entries[row, column] = self._denominator
        self._entries, self._denominator = entries, pivot
        leaving, entering = self._basic[row], self._nonbasic[column - 1]
        self._basic[row], self._nonbasic[column - 1] = entering, leaving

    def objective(self) -> Fraction:
        return Fraction(self._entries[-1, 0], self._denominator)

    def values(self) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
        """The basic variables' values and the nonbasic ones' reduced costs."""
        point = {
            variable: Fraction(self._entries[row, 0], self._denominator)
            for row, variable in enumerate(self._basic)
        }
        reduced = {
            variable: Fraction(self._entries[-1, column], self._denominator)
            for column, variable in enumerate(self._nonbasic, 1)
        }
        return point, reduced
