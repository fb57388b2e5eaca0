"""Linear equations in exact rationals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def solve_exactly(table: list[list[Fraction]], guess: Sequence[Fraction]) -> list[Fraction] | None:
    """Solve linear equations by elimination.

    Parameters
    ----------
    table : list of rows of n + 1 numbers
        Coefficients, then the right-hand side; changed in place.
    guess : sequence of n numbers
        Unknowns that the equations leave free keep their guess.

    Returns
    -------
    list of n Fractions, or None if the equations contradict each other

    Examples
    --------
    >>> one, two = Fraction(1), Fraction(2)
    >>> solve_exactly([[two, one, two]], [one, one / 3])
    [Fraction(5, 6), Fraction(1, 3)]
    """
    n = len(guess)
    pivots: list[int] = []
    for column in range(n):
        at = next((r for r in range(len(pivots), len(table)) if table[r][column]), None)
        if at is None:
            continue
        here = len(pivots)
        table[here], table[at] = table[at], table[here]
        factor = table[here][column]
        table[here] = [value / factor for value in table[here]]
        for r, row in enumerate(table):
            if r != here and row[column]:
                times = row[column]
                table[r] = [a - times * b for a, b in zip(row, table[here], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in table[len(pivots) :]):
        return None
    solution = list(guess)
    free = [column for column in range(n) if column not in pivots]
    for row, column in zip(table, pivots, strict=False):
        solution[column] = row[-1] - sum(row[f] * guess[f] for f in free)
    return solution
