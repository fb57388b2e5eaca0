"""Small linear programs in exact rationals, by the simplex method.

Costs >= 0 let the dual method start; where columns join later what was found still satisfies the
rows, and the primal method goes on from there.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: After this many pivots a row, Bland's rule, which cannot cycle, takes over from the steepest row.
_STEEPEST_A_ROW = 8
#: Where equations have what their terms add up to.
_CONSTANT = -1


class Basic(NamedTuple):
    """A basic optimal solution."""

    values: list[Fraction]
    prices: list[Fraction]
    cost: Fraction


def cheapest(
    costs: Sequence[Fraction],
    rows: Sequence[Sequence[int]],
    least: Sequence[int | Fraction],
    stopped: Callable[[], bool] = lambda: False,
) -> Basic | None:
    """Minimise ``costs . x`` subject to ``rows x >= least`` and ``x >= 0``."""
    program = Program(least)
    for at, cost in enumerate(costs):
        program.add(cost, {r: row[at] for r, row in enumerate(rows)})
    return program.solve(stopped)


class Program:
    """The program of :func:`cheapest`, which columns may join once it is solved."""

    # Basic variables are sums over the nonbasic ones; the last entry of a row is its constant. Of
    # single fractions most of the time would go into divisors that a row can cancel at once.
    # A variable is (0, column), or (1, row) for the row's surplus; in this order for Bland's rule.

    def __init__(self, least: Sequence[int | Fraction]) -> None:
        self._rows: list[_Row] = []
        self._aim = _Row([0], 1)
        self._nonbasic: list[tuple[int, int]] = []
        self._basic: list[tuple[int, int]] = []
        self._n = 0
        for b in least:
            self.add_row(b)

    def add_row(self, least: int | Fraction) -> int:
        """Add a row that no column counts in so far, <= 0 once solved; return its number."""
        self._basic.append((1, len(self._rows)))
        self._rows.append(_Row([*[0] * self._n, -least.numerator], least.denominator))
        return len(self._rows) - 1

    def add(self, cost: Fraction, counts: Mapping[int, int]) -> None:
        """Add a column, by what it counts in rows; at first, or once the program was solved."""
        # What was a surplus is, with this column, the surplus less what the column counts there.
        less = [
            (e, counts[at]) for e, (kind, at) in enumerate(self._nonbasic) if kind and at in counts
        ]
        for row, (kind, at) in zip(self._rows, self._basic, strict=True):
            row.insert(counts.get(at, 0) if kind else 0, less)
        self._aim.insert(cost, less)
        self._nonbasic.append((0, self._n))
        self._n += 1

    def solve(self, stopped: Callable[[], bool] = lambda: False) -> Basic | None:
        """Return a basic optimal solution, from the last one on; as :func:`cheapest`."""
        pivots = 0
        while (at := self._next(pivots > _STEEPEST_A_ROW * len(self._rows))) is not None:
            if stopped():
                return None
            self.pivot(*at)
            pivots += 1
        return self.solution()

    def _next(self, bland: bool) -> tuple[int, int] | None:
        """Return row and column of a pivot: the dual method's, or, if it is done, the primal's."""
        values = [row[-1] if row.numbers[-1] < 0 else 0 for row in self._rows]
        row = _lowest(values, self._basic, bland)
        if row is not None:
            return row, self._entering(row)
        column = _lowest(self._aim.numbers[:-1], self._nonbasic, bland)
        return None if column is None else (self._blocking(column), column)

    def _entering(self, r: int) -> int:
        """Return the column that keeps all reduced costs >= 0; of equals the first variable."""
        row, aim = self._rows[r].numbers, self._aim.numbers
        columns = [e for e in range(self._n) if row[e] > 0]
        if not columns:
            raise ValueError("the rows of the linear program contradict each other")
        return min(columns, key=lambda e: (Fraction(aim[e], row[e]), self._nonbasic[e]))

    def _blocking(self, e: int) -> int:
        """Return the row that keeps all values >= 0; there is one, as no cost is negative."""
        rows = [(r, row.numbers) for r, row in enumerate(self._rows) if row.numbers[e] < 0]
        return min(rows, key=lambda at: (Fraction(at[1][-1], -at[1][e]), self._basic[at[0]]))[0]

    def pivot(self, r: int, e: int) -> None:
        """Exchange the basic variable of a row for the nonbasic one of a column."""
        solved = self._rows[r].solved(e)
        for other in (*self._rows, self._aim):
            if other is not self._rows[r] and other.numbers[e]:
                other.replace(e, solved)
        self._rows[r] = solved
        self._basic[r], self._nonbasic[e] = self._nonbasic[e], self._basic[r]

    def solution(self) -> Basic:
        """Return what the basis says."""
        values, prices = [Fraction(0)] * self._n, [Fraction(0)] * len(self._rows)
        for (kind, at), row in zip(self._basic, self._rows, strict=True):
            if not kind:
                values[at] = row[-1]
        for e, (kind, at) in enumerate(self._nonbasic):
            if kind:
                prices[at] = self._aim[e]
        return Basic(values, prices, self._aim[-1])


def _lowest(
    numbers: Sequence[int | Fraction], variables: Sequence[tuple[int, int]], bland: bool
) -> int | None:
    """Return where a negative number is: the lowest, or the first variable's; None if nowhere."""
    negative = (at for at, number in enumerate(numbers) if number < 0)
    return min(negative, key=lambda at: (not bland and numbers[at], variables[at]), default=None)


class _Row:
    """Rationals over a common denominator, which is > 0."""

    __slots__ = ("denominator", "numbers")

    def __init__(self, numbers: list[int], denominator: int) -> None:
        self.numbers, self.denominator = numbers, denominator

    def __getitem__(self, at: int) -> Fraction:
        return Fraction(self.numbers[at], self.denominator)

    def insert(self, own: int | Fraction, less: Sequence[tuple[int, int]]) -> None:
        """Add a column before the constant: ``own`` less a multiple of what others have."""
        common = lcm(self.denominator, own.denominator)
        if common != self.denominator:
            self.numbers = [number * (common // self.denominator) for number in self.numbers]
            self.denominator = common
        others = sum(self.numbers[e] * times for e, times in less)
        self.numbers.insert(-1, own.numerator * (common // own.denominator) - others)

    def solved(self, e: int) -> _Row:
        """Solve for the variable of a column, whose coefficient is not 0."""
        sign = 1 if self.numbers[e] > 0 else -1
        numbers = [-sign * number for number in self.numbers]
        numbers[e] = sign * self.denominator
        return _Row(numbers, sign * self.numbers[e])

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


def solved(
    equations: Sequence[Mapping[int, int | Fraction]],
    values: Sequence[int | Fraction],
    guess: Sequence[Fraction],
    stopped: Callable[[], bool] = lambda: False,
) -> list[Fraction] | None:
    """Solve linear equations, the shortest first; None if they contradict each other or stopped."""
    waiting = [
        {_CONSTANT: Fraction(value), **{at: Fraction(a) for at, a in row.items() if a}}
        for row, value in zip(equations, values, strict=True)
    ]
    order: list[tuple[int, dict[int, Fraction]]] = []
    while waiting:
        if stopped():
            return None
        row = waiting.pop(min(range(len(waiting)), key=lambda r: len(waiting[r])))
        unknowns = row.keys() - {_CONSTANT}
        if not unknowns:
            if row[_CONSTANT]:
                return None
            continue
        at = min(unknowns, key=lambda at: (sum(at in other for other in waiting), at))
        order.append((at, row))
        for other in waiting:
            if at in other:
                factor = other[at] / row[at]
                for i, a in row.items():
                    other[i] = other.get(i, Fraction(0)) - factor * a
                    if not other[i] and i != _CONSTANT:
                        del other[i]
    found = list(guess)
    for at, row in reversed(order):
        pairs = ((a, found[i]) for i, a in row.items() if i not in (at, _CONSTANT))
        found[at] = (row[_CONSTANT] - sum((a * x for a, x in pairs), Fraction(0))) / row[at]
    return found
