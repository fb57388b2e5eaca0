"""Prices to start from, and the rationals that floats stand for."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cms.knapsack.pricing import COMPILED_FROM, common_denominator

from ..solvers.recognise import recognised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .region import Region
    from .sharded_jobs import AnyJobs

#: Binary digits that the smallest price keeps when prices are rounded.
_DIGITS = 20


def full_machines(region: Region) -> list[Fraction]:
    """Return prices at which a machine that is full of one type of block is worth what it costs.

    Machines that cost nothing but are limited count as if they cost 1.
    """
    free, _ = region.free()
    most = [dict[int, int]() for _ in region.blocks]  # of machines of each type, when full of it
    for row in region.rows:
        for i, count in enumerate(row.counts):
            if count:
                most[i][row.machine] = max(count, most[i].get(row.machine, 0))
    for bounded in region.bounded:
        # As many as fit, be that more than anybody needs: there is room for others beside these.
        for i, needed in zip(bounded.columns, bounded.most, strict=True):
            fits = bounded.shape.largest_count(region.blocks[i])
            if needed:
                most[i][bounded.machine] = max(fits, most[i].get(bounded.machine, 0))
    prices = []
    for i, counts in enumerate(most):
        each = [(region.costs[m] or Fraction(1)) / count for m, count in counts.items()]
        prices.append(Fraction(0) if i in free else min(each, default=Fraction(0)))
    return prices


def whole(values: Sequence[Fraction], jobs: AnyJobs, *, exactly: bool) -> tuple[list[int], int]:
    """Write prices over a common denominator."""
    many = len(jobs) >= COMPILED_FROM
    if exactly:
        numbers, denominator = common_denominator(values)
        if not many or max(numbers).bit_length() <= jobs.grid_bits:
            return numbers, denominator
    else:
        found = recognised(values)
        if found is not None:
            return found
    bits = jobs.grid_bits
    if not many:
        # No price may round to nothing, were it for a trillionth of a machine.
        least = min((value for value in values if value > 0), default=Fraction(1))
        bits = max(bits, _DIGITS + (least.denominator // least.numerator).bit_length())
    return [int(value * 2**bits) for value in values], 2**bits
