"""Small linear programs in exact rationals, by the dual simplex method.

The linear programs here have a row a block type and one for each job that is split, so a dozen or
two; what is found is a basic solution, with the prices that go with it, right to the last digit
however large the numbers are.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack.pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: After so many pivots a row, Bland's rule, which cannot cycle, takes over from the steepest row.
_STEEPEST_A_ROW = 8


class Basic(NamedTuple):
    """A basic optimal solution.

    Attributes
    ----------
    values : list of n Fractions
        At most as many are positive as there are rows.
    prices : list of m Fractions
        What one more on the right of each row costs; >= 0.
    cost : Fraction
    """

    values: list[Fraction]
    prices: list[Fraction]
    cost: Fraction


def cheapest(
    costs: Sequence[Fraction],
    rows: Sequence[Sequence[int]],
    least: Sequence[int | Fraction],
    stopped: Callable[[], bool] = lambda: False,
) -> Basic | None:
    """Minimise ``costs . x`` subject to ``rows x >= least`` and ``x >= 0``.

    Parameters
    ----------
    costs : sequence of n Fractions
        >= 0, so that the method needs no first phase.
    rows : m sequences of n ints
    least : sequence of m ints or Fractions
    stopped : callable, optional
        Asked at every pivot.

    Returns
    -------
    Basic, or None if it was stopped

    Raises
    ------
    ValueError
        If no x satisfies the rows.

    Examples
    --------
    >>> found = cheapest([Fraction(1), Fraction(1)], [[2, 1], [0, 3]], [7, 4])
    >>> found.values, found.prices, found.cost
    ([Fraction(17, 6), Fraction(4, 3)], [Fraction(1, 2), Fraction(1, 6)], Fraction(25, 6))
    """
    table = _Dictionary(costs, rows, least)
    pivots = 0
    while True:
        bland = pivots > _STEEPEST_A_ROW * len(rows)
        row = table.leaving(bland)
        if row is None:
            return table.solution()
        if stopped():
            return None
        table.pivot(row, table.entering(row))
        pivots += 1


class _Dictionary:
    """Basic variables as sums over the nonbasic ones; the last entry of a row is its constant.

    A row is whole numbers over a denominator of its own, without a common divisor: fractions by
    themselves would spend most of the time on divisors that a row can cancel at once.

    Variables are numbered: first the n of the program, then the surplus of each row.
    """

    def __init__(
        self,
        costs: Sequence[Fraction],
        rows: Sequence[Sequence[int]],
        least: Sequence[int | Fraction],
    ) -> None:
        self._n = len(costs)
        self._rows = [
            _Row([*(number * b.denominator for number in row), -b.numerator], b.denominator)
            for row, b in zip(rows, least, strict=True)
        ]
        self._aim = _Row(*common_denominator([*costs, Fraction(0)]))
        self._nonbasic = list(range(self._n))
        self._basic = list(range(self._n, self._n + len(rows)))

    def leaving(self, bland: bool) -> int | None:
        """Return a row whose basic variable is negative; None if there is none."""
        negative = [r for r, row in enumerate(self._rows) if row.numbers[-1] < 0]
        if not negative:
            return None
        if bland:
            return min(negative, key=self._basic.__getitem__)
        return min(negative, key=lambda r: (self._rows[r][-1], self._basic[r]))

    def entering(self, r: int) -> int:
        """Return the column that keeps all reduced costs >= 0; of equals the first variable."""
        row, aim = self._rows[r].numbers, self._aim.numbers
        columns = [e for e in range(self._n) if row[e] > 0]
        if not columns:
            raise ValueError("the rows of the linear program contradict each other")
        return min(columns, key=lambda e: (Fraction(aim[e], row[e]), self._nonbasic[e]))

    def pivot(self, r: int, e: int) -> None:
        """Exchange the basic variable of a row for the nonbasic one of a column."""
        solved = self._rows[r].solved(e)
        for other in (*self._rows, self._aim):
            if other is not self._rows[r] and other.numbers[e]:
                other.replace(e, solved)
        self._rows[r] = solved
        self._basic[r], self._nonbasic[e] = self._nonbasic[e], self._basic[r]

    def solution(self) -> Basic:
        values, prices = [Fraction(0)] * self._n, [Fraction(0)] * len(self._rows)
        for variable, row in zip(self._basic, self._rows, strict=True):
            if variable < self._n:
                values[variable] = row[-1]
        for e, variable in enumerate(self._nonbasic):
            if variable >= self._n:
                prices[variable - self._n] = self._aim[e]
        return Basic(values, prices, self._aim[-1])


class _Row:
    """Rationals over a common denominator, which is > 0."""

    __slots__ = ("denominator", "numbers")

    def __init__(self, numbers: list[int], denominator: int) -> None:
        self.numbers, self.denominator = numbers, denominator

    def __getitem__(self, at: int) -> Fraction:
        return Fraction(self.numbers[at], self.denominator)

    def solved(self, e: int) -> _Row:
        """Solve for the variable of a column, whose coefficient is > 0."""
        numbers = [-number for number in self.numbers]
        numbers[e] = self.denominator
        return _Row(numbers, self.numbers[e])

    def replace(self, e: int, solved: _Row) -> None:
        """Put a solved row in the place of the variable of its column."""
        common = gcd(self.numbers[e], solved.denominator)
        factor, scale = self.numbers[e] // common, solved.denominator // common
        self.numbers[e] = 0
        numbers = [
            scale * mine + factor * other if other else scale * mine
            for mine, other in zip(self.numbers, solved.numbers, strict=True)
        ]
        denominator = self.denominator * scale
        divisor = gcd(denominator, *numbers)
        self.numbers = [number // divisor for number in numbers] if divisor > 1 else numbers
        self.denominator = denominator // divisor
