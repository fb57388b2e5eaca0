"""Small linear programs in exact rationals, by the simplex method.

The linear programs here have a row a block type and one for each job that is split, so a dozen or
two; what is found is a basic solution, with the prices that go with it, right to the last digit
however large the numbers are. Costs >= 0 let the dual method start; where columns join later what
was found still satisfies the rows, and the primal method goes on from there.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: After so many pivots a row, Bland's rule, which cannot cycle, takes over from the steepest row.
_STEEPEST_A_ROW = 8


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

    # Basic variables are sums over the nonbasic ones; the last entry of a row is its constant. A
    # row is whole numbers over a denominator of its own, without a common divisor: fractions by
    # themselves would spend most of the time on divisors that a row can cancel at once.
    #
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
        row = self.leaving(bland)
        if row is not None:
            return row, self.entering(row)
        column = self.bargain(bland)
        return None if column is None else (self.blocking(column), column)

    def leaving(self, bland: bool) -> int | None:
        """Return a row whose basic variable is negative; None if there is none."""
        negative = [r for r, row in enumerate(self._rows) if row.numbers[-1] < 0]
        if bland:
            return min(negative, key=self._basic.__getitem__, default=None)
        return min(negative, key=lambda r: (self._rows[r][-1], self._basic[r]), default=None)

    def entering(self, r: int) -> int:
        """Return the column that keeps all reduced costs >= 0; of equals the first variable."""
        row, aim = self._rows[r].numbers, self._aim.numbers
        columns = [e for e in range(self._n) if row[e] > 0]
        if not columns:
            raise ValueError("the rows of the linear program contradict each other")
        return min(columns, key=lambda e: (Fraction(aim[e], row[e]), self._nonbasic[e]))

    def bargain(self, bland: bool) -> int | None:
        """Return a column whose reduced cost is negative; None if there is none."""
        aim = self._aim.numbers
        negative = [e for e in range(self._n) if aim[e] < 0]
        if bland:
            return min(negative, key=self._nonbasic.__getitem__, default=None)
        return min(negative, key=lambda e: (aim[e], self._nonbasic[e]), default=None)

    def blocking(self, e: int) -> int:
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


class _Row:
    """Rationals over a common denominator, which is > 0."""

    __slots__ = ("denominator", "numbers")

    def __init__(self, numbers: list[int], denominator: int) -> None:
        self.numbers, self.denominator = numbers, denominator

    def __getitem__(self, at: int) -> Fraction:
        return Fraction(self.numbers[at], self.denominator)

    def insert(self, own: int | Fraction, less: Sequence[tuple[int, int]]) -> None:
        """Add a column before the constant: ``own`` less so many times what others have."""
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
) -> list[Fraction] | None:
    """Solve linear equations, the shortest one first; None if they contradict each other."""
    rows = [{at: Fraction(a) for at, a in row.items() if a} for row in equations]
    right = [Fraction(value) for value in values]
    having: dict[int, set[int]] = {}
    for r, row in enumerate(rows):
        for at in row:
            having.setdefault(at, set()).add(r)
    waiting = set(range(len(rows)))
    order: list[tuple[int, int]] = []
    while waiting:
        r = min(waiting, key=lambda r: (len(rows[r]), r))
        row = rows[r]
        waiting.discard(r)
        if not row:
            if right[r]:
                return None
            continue
        at = min(row, key=lambda at: (len(having[at]), at))
        order.append((r, at))
        for other in row:
            having[other].discard(r)
        for s in sorted(having[at]):
            target = rows[s]
            factor = target.pop(at) / row[at]
            for other, a in row.items():
                if other == at:
                    continue
                value = target.get(other, Fraction(0)) - factor * a
                if value:
                    target[other] = value
                    having[other].add(s)
                elif other in target:
                    del target[other]
                    having[other].discard(s)
            right[s] -= factor * right[r]
        having[at] = set()
    found = list(guess)
    for r, at in reversed(order):
        row = rows[r]
        rest = sum((a * found[other] for other, a in row.items() if other != at), Fraction(0))
        found[at] = (right[r] - rest) / row[at]
    return found
