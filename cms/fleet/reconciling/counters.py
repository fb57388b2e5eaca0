"""Series of a query that counts requests instead of asking for their rate.

Rates go down as well as up; a counter only falls where it is reset. Growing traffic looks alike
for a while, so that more is asked of a series before it is refused: that it grows as no traffic
does, or that it is counted in whole numbers and creeps up without ever falling, where a measured
rate would waver. What is drawn in the tests says how well that tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

#: One fall, or one in so many moments, is a reset: rates waver more often.
_MOMENTS_A_FALL = 20
#: Traffic of these items per second more every second, over so many moments, is a counter's.
_STEEP, _FEWEST_STEEP, _LEAST_RISE = 1, 12, 1000
#: What rises so much less than on average where it begins and where it ends is a ramp.
_LEVEL = 3
#: So many moments in whole numbers, of which most rises are below this share, are a counter's.
_FEWEST_WHOLE, _CREEPING = 24, Fraction(1, 100)


def counted_per_s(
    values: Sequence[tuple[Fraction, Fraction]], is_named: bool = False
) -> Fraction | None:
    """Return how fast a series counts if it is a counter, None if it may be a rate.

    Values are with their times in seconds. If some label calls the series a counter (`is_named`),
    it has only to grow, and not to fall.

    Examples
    --------
    >>> print(counted_per_s([(Fraction(60 * n), Fraction(300 * n)) for n in range(30)]))
    5
    >>> print(counted_per_s([(Fraction(3600 * n), Fraction(50 * n)) for n in range(13)]))
    None
    """
    steps = [after[1] - before[1] for before, after in pairwise(values)]
    rises = [step for step in steps if step > 0]
    falls = sum(step < 0 for step in steps)
    if not rises or falls > max(1, len(values) // _MOMENTS_A_FALL):
        return None
    grown = Fraction(sum(rises)) / (values[-1][0] - values[0][0])
    if is_named and len(values) > 2:
        return grown
    ends = len(steps) // 10 + 1
    if max(sum(steps[:ends]), sum(steps[-ends:])) * _LEVEL * len(steps) < sum(rises) * ends:
        return None  # from a night to a noon: a counter goes on, the more so at noon
    if len(values) >= _FEWEST_STEEP and grown >= _STEEP and sum(rises) >= _LEAST_RISE:
        return grown
    creeping = sum(
        0 < after[1] - before[1] < _CREEPING * before[1] for before, after in pairwise(values)
    )
    is_whole = all(value.denominator == 1 for _, value in values)
    if len(values) >= _FEWEST_WHOLE <= 2 * len(rises) <= 4 * creeping and is_whole:
        return grown
    return None
