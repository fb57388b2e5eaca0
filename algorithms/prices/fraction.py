"""The fractional schedule behind the best prices, in exact rationals (theory 6.4).

Floating-point weights of passes are right to nine digits or so, which at a demand of 10**12 are a
thousand blocks; solving the few equations that define them exactly makes it right to the block.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..solvers.simplex import solved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .region import Region, Row, Share

#: Relative difference up to which an inequality counts as an equation.
_TIGHT = Fraction(1, 10**6)


class Fractional(NamedTuple):
    """A fractional schedule: (pass, weight) for each group, adding up to 1, and machines."""

    shares: list[list[tuple[int, Fraction]]]
    machines: list[tuple[Row, Fraction]]


def exactly(
    region: Region,
    shares: Sequence[Share],
    weights: Sequence[Fraction],
    machines: Sequence[tuple[Row, Fraction]],
) -> tuple[list[Fraction], list[tuple[Row, Fraction]]] | None:
    """Solve the equations behind shares and machines once more, in rationals."""
    n = len(shares)
    guess = [*weights, *(amount for _, amount in machines)]
    groups: dict[int, dict[int, int]] = {}
    for at, share in enumerate(shares):
        groups.setdefault(share.group, {})[at] = 1
    # What a group takes of its only pass is no unknown.
    alone = {at for mine in groups.values() if len(mine) == 1 for at in mine}
    equations = [mine for mine in groups.values() if len(mine) > 1]
    values = [Fraction(1)] * len(equations)
    for terms, right in _constraints(region, shares, machines):
        more = sum((guess[at] * n for at, n in terms.items() if n > 0), Fraction(0))
        less = sum((guess[at] * -n for at, n in terms.items() if n < 0), Fraction(right))
        # What an inequality leaves room for carries no equation.
        if abs(more - less) <= _TIGHT * max(Fraction(1), more):
            fixed = sum(factor for at, factor in terms.items() if at in alone)
            equations.append({at: factor for at, factor in terms.items() if at not in alone})
            values.append(Fraction(right - fixed))
    solution = solved(equations, values, guess)
    if solution is None or any(value < 0 for value in solution):
        return None
    rows = [(row, x) for (row, _), x in zip(machines, solution[n:], strict=True)]
    return solution[:n], rows


def _constraints(
    region: Region, shares: Sequence[Share], machines: Sequence[tuple[Row, Fraction]]
) -> Iterator[tuple[dict[int, int], int]]:
    """Yield the inequalities of blocks and limits, whose terms count shares, then machines."""
    n = len(shares)
    for i in range(len(region.blocks)):
        terms = {at: -share.load[i] for at, share in enumerate(shares) if share.load[i]}
        terms |= {n + at: row.counts[i] for at, (row, _) in enumerate(machines) if row.counts[i]}
        yield terms, 0
    for limit in region.limits:
        counted = ((n + at, limit.weights.get(row.machine)) for at, (row, _) in enumerate(machines))
        yield {at: weight for at, weight in counted if weight}, limit.at_most
