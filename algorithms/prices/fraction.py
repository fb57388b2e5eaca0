"""The fractional schedule behind the best prices, in exact rationals (theory 6.4).

The cutting planes' own weights mix the passes' options into a fractional schedule. Floating-point
weights are right to nine digits or so, which at a demand of 10**12 are a thousand blocks; solving
the few equations that define them once more, exactly, makes the mixture right to the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..solvers.equations import solve_exactly

if TYPE_CHECKING:
    from .region import Row
    from .search import PriceSearch

#: Blocks of a type in which machines and jobs differ by more (relatively) idle.
_TOLERANCE = Fraction(1, 10**6)


class Fractional(NamedTuple):
    """A fractional schedule.

    Attributes
    ----------
    shares : list of lists of (pass, weight)
        For each group of kinds; the weights of a group add up to 1.
    machines : list of (Row, number)
    """

    shares: list[list[tuple[int, Fraction]]]
    machines: list[tuple[Row, Fraction]]


def fractional(search: PriceSearch) -> Fractional:
    """Read the fractional schedule off a search at its end.

    Parameters
    ----------
    search : PriceSearch
        Without branches on jobs.
    """
    shares: list[list[tuple[int, Fraction]]] = [[] for _ in range(search.n_groups)]
    loads: list[list[tuple[int, ...]]] = [[] for _ in range(search.n_groups)]
    for share in search.shares:
        shares[share.group].append((share.number, Fraction(share.weight)))
        loads[share.group].append(share.load)
    for mine in shares:
        total = sum((weight for _, weight in mine), Fraction(0))
        if total:
            mine[:] = [(number, weight / total) for number, weight in mine]
        else:  # the program failed, or there was none: take the last pass as it is
            mine[:] = [(search.passes - 1, Fraction(1))]
    machines = search.machines
    if search.exact:
        return Fractional(shares, machines)
    mixed = [group for group, mine in enumerate(shares) if len(mine) > 1]
    fixed = [0] * len(search.region.blocks)
    for group, mine in enumerate(shares):
        if len(mine) == 1 and loads[group]:
            fixed = [a + b for a, b in zip(fixed, loads[group][0], strict=True)]
    exact = exact_mixture(
        [loads[group] for group in mixed],
        [[weight for _, weight in shares[group]] for group in mixed],
        fixed,
        [row.counts for row, _ in machines],
        [amount for _, amount in machines],
    )
    if exact is not None:
        for group, weights in zip(mixed, exact[0], strict=True):
            numbers = [number for number, _ in shares[group]]
            shares[group] = list(zip(numbers, weights, strict=True))
        machines = [(row, x) for (row, _), x in zip(machines, exact[1], strict=True)]
    return Fractional(shares, machines)


def exact_mixture(
    loads: Sequence[Sequence[Sequence[int]]],
    weights: Sequence[Sequence[Fraction]],
    fixed: Sequence[int],
    rows: Sequence[Sequence[int]],
    machines: Sequence[Fraction],
) -> tuple[list[list[Fraction]], list[Fraction]] | None:
    """Refine the weights of passes and the numbers of machines.

    Parameters
    ----------
    loads : for each group a sequence of loads (k ints)
        Blocks the group's jobs buy in each pass of positive weight.
    weights : for each group a sequence of numbers
        The passes' weights, about 1 together.
    fixed : k ints
        Blocks that all other jobs take.
    rows : sequences of k ints
        Blocks of each machine of positive number.
    machines : sequence of numbers
        Their numbers.

    Returns
    -------
    weights, machines : lists of Fraction, or None
        Non-negative, the weights of each group of sum 1, the machines having exactly the blocks
        that the mixture takes (of types that are short); None if the equations have no such
        solution.

    Examples
    --------
    >>> near = [[Fraction(0.5714286), Fraction(0.4285714)]]
    >>> exact_mixture([[(300, 0), (0, 200)]], near, (0, 0), [(2, 1)], [Fraction(85.714286)])
    ([[Fraction(4, 7), Fraction(3, 7)]], [Fraction(600, 7)])
    """
    sizes = [len(group) for group in weights]
    T = sum(sizes)
    flat = [tuple(load) for group in loads for load in group]
    guess = [Fraction(w) for group in weights for w in group] + [Fraction(x) for x in machines]
    table: list[list[Fraction]] = []
    start = 0
    for size in sizes:
        mine = range(start, start + size)
        table.append([Fraction(int(at in mine)) for at in range(len(guess))] + [Fraction(1)])
        start += size
    for i, others in enumerate(fixed):
        bought = others + sum(
            (w * load[i] for w, load in zip(guess[:T], flat, strict=True)), Fraction(0)
        )
        held = sum((x * row[i] for x, row in zip(guess[T:], rows, strict=True)), Fraction(0))
        # Types of which some blocks idle carry no equation.
        if abs(held - bought) <= _TOLERANCE * max(Fraction(1), held):
            left = [Fraction(load[i]) for load in flat]
            table.append([*left, *(Fraction(-row[i]) for row in rows), Fraction(-others)])
    solution = solve_exactly(table, guess)
    if solution is None or any(value < 0 for value in solution):
        return None
    found: list[list[Fraction]] = []
    start = 0
    for size in sizes:
        found.append(solution[start : start + size])
        start += size
    return found, solution[T:]
