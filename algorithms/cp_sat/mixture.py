"""The fractional solution behind the best prices, in exact rationals (theory 6.4).

The cutting planes' own weights mix the passes' options into a fractional schedule. Floating-point
weights are right to nine digits or so, which at a demand of 10**12 are a thousand blocks; solving
the few equations that define them once more, exactly, makes the mixture right to the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def exact_mixture(
    loads: Sequence[Sequence[int]],
    weights: Sequence[float],
    rows: Sequence[Sequence[int]],
    machines: Sequence[float | Fraction],
    tolerance: float = 1e-6,
) -> tuple[list[Fraction], list[Fraction]] | None:
    """Refine the weights of passes and the numbers of machines.

    Parameters
    ----------
    loads : T sequences of k ints
        Blocks the jobs buy in each pass of positive weight.
    weights : T floats
        Their weights, of sum 1.
    rows : R sequences of k ints
        Blocks of each machine of positive number.
    machines : R numbers
        Their numbers.
    tolerance : float
        Relative; blocks of a type in which machines and jobs differ by more idle.

    Returns
    -------
    weights, machines : lists of Fraction, or None
        Non-negative, of sum 1, the machines having exactly the blocks that the mixture buys (of
        types that are short); None if the equations have no such solution.

    Examples
    --------
    >>> exact_mixture([(3, 0), (0, 2)], [0.571, 0.429], [(2, 1)], [0.857], 0.01)
    ([Fraction(4, 7), Fraction(3, 7)], [Fraction(6, 7)])
    """
    T = len(loads)
    guess = [Fraction(value) for value in (*weights, *machines)]
    table = [[Fraction(1)] * T + [Fraction(0)] * len(rows) + [Fraction(1)]]
    for i in range(len(loads[0]) if loads else 0):
        bought = sum((w * load[i] for w, load in zip(guess[:T], loads, strict=True)), Fraction(0))
        held = sum((x * row[i] for x, row in zip(guess[T:], rows, strict=True)), Fraction(0))
        # Types of which some blocks idle carry no equation.
        if abs(held - bought) <= Fraction(tolerance) * max(Fraction(1), held):
            left = [Fraction(load[i]) for load in loads]
            table.append([*left, *(Fraction(-row[i]) for row in rows), Fraction(0)])
    solution = _solve(table, guess)
    if solution is None or any(value < 0 for value in solution):
        return None
    return solution[:T], solution[T:]


def _solve(table: list[list[Fraction]], guess: Sequence[Fraction]) -> list[Fraction] | None:
    """Solve linear equations by elimination; free variables keep their guess."""
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
