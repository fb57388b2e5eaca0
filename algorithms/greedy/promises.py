"""What greedy's parts guarantee, as rationals never below what the theory says (2.1, 2.2)."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import ceil, log
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from cms.plugin.guarantee import Guarantee

from ..integer_problem import least_pay

if TYPE_CHECKING:
    from ..integer_problem import Tables

#: What each inner method guarantees, as a rational not above it (1 - 1/e is 0.6321...).
FACTORS = {
    "greedy": Fraction(1, 2),
    "independent": Fraction(632_120, 1_000_000),
    "dependent": Fraction(3, 4),
    "exact": Fraction(1),
}
#: Relative loss against the best machine by rounding errors, or the solver's tolerances.
_MISSED = {"independent": Fraction(1, 10**5), "dependent": Fraction(1, 10**5)}
_MISSED_BY_FLOATS = Fraction(1, 10**9)
#: The Euler-Mascheroni constant, rounded up.
_EULER = Fraction(57_721_566_490_153_287, 10**17)
#: The inflations to choose from: the best one for n jobs is about 1 / ln n.
_INFLATIONS = sorted(
    {Fraction(p, q) for q in range(1, 13) for p in range(1, 2 * q + 1)}
    | {Fraction(1, q) for q in range(13, 51)}
)
#: Bits of the largest weighted gain up to which that of one unit is a float above 1e-300.
_FLOAT_BITS = 900
#: From this many jobs on a machine's blocks are the bound, not the demands.
_MANY = 10_000
#: Sums below this are counted in int64.
_FITS = 2**62


def rounded_up(value: Fraction) -> Fraction:
    """Round up to six digits after the point."""
    return Fraction(ceil(value * 10**6), 10**6)


def log_above(value: Fraction) -> Fraction:
    """Return a rational just above the natural logarithm of a number >= 1."""
    up = Context(prec=50, rounding=ROUND_CEILING)
    quotient = up.divide(Decimal(value.numerator), Decimal(value.denominator))
    # Decimal's logarithm is within half a unit of its last digit.
    return Fraction(up.ln(quotient)) + Fraction(1, 10**38)


def harmonic_above(number: int) -> Fraction:
    """Return a rational just above 1 + 1/2 + ... + 1/number."""
    if number <= 1_000:
        unit = 10**30
        return Fraction(sum(-(-unit // i) for i in range(1, number + 1)), unit)
    return log_above(Fraction(number)) + _EULER + Fraction(1, 2 * number)


def best_inflation(n: int) -> Fraction:
    """Return the delta, of a fixed list of fractions, for which G-real's factor is least."""
    return min(_INFLATIONS, key=lambda delta: (1 + delta) * log((1 + delta) * max(1, n) / delta))


def inflated_factor(n: int, delta: Fraction) -> Fraction:
    """Return ``(1 + delta) ln((1 + delta) n / delta)``, rounded up (theory 2.2, G-real)."""
    return rounded_up((1 + delta) * log_above((1 + delta) * max(1, n) / delta))


def best_alone_inflation(few: int) -> Fraction:
    """Return the delta, of a fixed list of fractions up to 1, for which G-alone's is least."""
    simple = [delta for delta in _INFLATIONS if delta <= 1]
    return min(simple, key=lambda delta: (1 + delta) * (1 + log(few / delta)))


def of(tables: Tables, variant: str, inner: str, delta: Fraction) -> Guarantee | None:
    """State G-int, G-real or G-alone; None where floats do not tell gains of one unit apart."""
    paid = [cost for cost in tables.costs if cost] or [Fraction(1)]
    largest = int(tables.demands.max(initial=0)) * (delta.numerator + delta.denominator)
    if (largest * ceil(max(paid) / min(paid))).bit_length() > _FLOAT_BITS:
        return None
    term: Fraction | int = 0
    if variant == "units":
        # The most that one machine can gain in units of demand.
        best = [int(column.max(initial=0)) for column in tables.supply.T]
        factor = harmonic_above(
            max((_most_units(tables, row, best) for row in tables.counts), default=0)
        )
        theorem = "G-int, theory 2.2"
    elif variant == "inflated":
        # The last machine comes on top.
        factor, term = inflated_factor(tables.n, delta), tables.dearest(1)
        theorem = "G-real, theory 2.2"
    else:
        few = served_at_once(tables)
        factor = rounded_up((1 + delta) * (1 + log_above(few / min(Fraction(1), delta))))
        theorem = "G-alone, methods/algorithms"
    factor = rounded_up(factor / FACTORS[inner] * (1 + _MISSED.get(inner, _MISSED_BY_FLOATS)))
    return Guarantee(max(Fraction(1), factor), term, "OPT", theorem)


def served_at_once(tables: Tables) -> int:
    """Return min(n, s), at least 1: jobs, and blocks of a machine that jobs can use."""
    return max(1, min(tables.n, max(map(sum, usable(tables)), default=1)))


def usable(tables: Tables) -> list[list[int]]:
    """Return the blocks of each configuration, of no type more than all jobs together can use."""
    most = tables.problem.useful_blocks()
    return [list(map(min, row, most)) for row in tables.counts]


def _most_units(tables: Tables, row: list[int], best: list[int]) -> int:
    """Bound what a machine gains: no more than its blocks do each by itself, nor all demands."""
    supply = tables.supply
    by_block = sum(count * most for count, most in zip(row, best, strict=True))
    if tables.n > _MANY:
        return by_block
    if by_block >= _FITS:
        supply = supply.astype(object)
    by_job = np.minimum(tables.demands, supply @ np.array(row, dtype=supply.dtype))
    return min(by_block, int(by_job.sum()))


def rough_prices(tables: Tables) -> list[Fraction]:
    """Price blocks by the machine each fills most cheaply, less until none is worth too much."""
    pairs = [*zip(tables.costs, tables.counts, strict=True)]
    cheapest = ((cost / row[i] for cost, row in pairs if row[i]) for i in range(tables.k))
    prices = [min(each, default=Fraction(0)) for each in cheapest]
    worth = (sum(map(mul, prices, row), Fraction(0)) / cost for cost, row in pairs if cost)
    most = max(worth, default=Fraction(1))
    return [price / max(most, Fraction(1)) for price in prices]


def rough_value(tables: Tables) -> Fraction:
    """Return about what the optimum is at least, by rough prices, to compare statements at."""
    prices = rough_prices(tables)
    highest = max(prices, default=Fraction(0))
    if not highest:
        return Fraction(0)
    worth = least_pay(tables.alone, [float(price / highest) for price in prices])
    # What no block serves is worth nothing, as is what is worth more than floats can say.
    worth = worth[worth < 1e300 / max(len(worth), 1)]
    return Fraction(float(worth.sum())).limit_denominator(10**6) * highest
