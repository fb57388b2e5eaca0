"""What greedy's parts guarantee, as statements about one problem (theory 2.2, 2.3)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cms.plugin.guarantee import Guarantee

from .factors import harmonic_above, inflated_factor, rounded_up
from .inner import FACTORS, MISSED

if TYPE_CHECKING:
    from ..tables.integers import Tables
    from .paid import Paid

#: With so many jobs a machine's blocks are the bound, not the demands.
_MANY = 10_000
#: The theorem of the LP version.
LINEAR = "LP version, theory 2.3"
#: LP* is solved to within this part.
_TOLERANCE = Fraction(1, 10**5)
#: Prices are compared as multiples of this part of the highest.
_GRID = 2**40


def by_units(tables: Tables, inner: str) -> Guarantee:
    """State G-int: ``H(g) / beta`` times the optimum.

    g is the most that one machine can gain in units of demand, each job's row being whole numbers
    without a common divisor.
    """
    largest = max((_most_units(tables, row) for row in tables.counts), default=0)
    factor = harmonic_above(largest) / FACTORS[inner] * (1 + MISSED[inner])
    return Guarantee(max(Fraction(1), rounded_up(factor)), 0, "OPT", "G-int, theory 2.2")


def _most_units(tables: Tables, row: list[int]) -> int:
    """Bound what a machine gains: no more than its blocks do each by itself, nor all demands."""
    best = [max((supply[i] for supply in tables.supply), default=0) for i in range(tables.k)]
    by_block = sum(count * most for count, most in zip(row, best, strict=True))
    if tables.n > _MANY:
        return by_block
    by_job = sum(
        min(d, sum(count * f for count, f in zip(row, supply, strict=True)))
        for d, supply in zip(tables.demands, tables.supply, strict=True)
    )
    return min(by_block, by_job)


def inflated(tables: Tables, inner: str, delta: Fraction) -> Guarantee:
    """State G-real: ``(1 + delta) / beta * ln((1 + delta) n / delta)`` times the optimum.

    That number of machines is rounded up; with costs the last machine comes on top.
    """
    factor = inflated_factor(tables.n, delta) / FACTORS[inner] * (1 + MISSED[inner])
    last = tables.dearest(1)
    return Guarantee(rounded_up(factor), last, "OPT", "G-real, theory 2.2")


def linear(paid: Paid) -> Guarantee:
    """State the LP version: ``(alpha + 2) LP*``.

    Where machines that cost more than all jobs by themselves were left out of the program, its
    value is no more than the optimum, but perhaps more than LP*.
    """
    against = "LP_STAR" if paid.complete else "OPT"
    factor = rounded_up((paid.alpha + 2) * (1 + _TOLERANCE))
    return Guarantee(factor, 0, against, LINEAR)


def strongest(statements: list[Guarantee], value: Fraction) -> Guarantee:
    """Choose the statement that allows least if the reference had this value."""
    return min(statements, key=lambda statement: (statement.allows(value), statement.theorem))


def rough_prices(tables: Tables) -> list[Fraction]:
    """Price every block as if the machine that it fills most cheaply were full of it.

    All prices are then lowered alike until no machine is worth more than it costs.
    """
    prices: list[Fraction] = []
    for i in range(tables.k):
        each = [c / row[i] for c, row in zip(tables.costs, tables.counts, strict=True) if row[i]]
        prices.append(min(each, default=Fraction(0)))
    worth = max(
        (
            sum((p * a for p, a in zip(prices, row, strict=True)), Fraction(0)) / cost
            for row, cost in zip(tables.counts, tables.costs, strict=True)
            if cost
        ),
        default=Fraction(1),
    )
    return [price / max(worth, Fraction(1)) for price in prices]


def rough_value(tables: Tables) -> Fraction:
    """Return about what the optimum is at least, to compare statements at.

    A job is served at least by its cheapest blocks at rough prices, in parts.
    """
    prices = rough_prices(tables)
    unit = max(prices, default=Fraction(0)) / _GRID
    if not unit:
        return Fraction(0)
    # Integers, however large they are.
    counted = [int(price / unit) for price in prices]
    total = 0
    for d, supply in zip(tables.demands, tables.supply, strict=True):
        total += min((p * d // f for p, f in zip(counted, supply, strict=True) if f), default=0)
    return total * unit
