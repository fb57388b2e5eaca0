"""What the jobs may take: what their options cost, and how many blocks of each type can matter."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cms.knapsack.pricing import cheapest_option, common_denominator

from ..tables.integers import Demand

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How many blocks of each type.
Content: TypeAlias = tuple[int, ...]


class Window(NamedTuple):
    """The numbers of blocks of each type that a job may take."""

    low: Content
    high: Content

    def is_open(self) -> bool:
        """Whether there are such numbers."""
        return all(low <= high for low, high in zip(self.low, self.high, strict=True))


class Priced(NamedTuple):
    """Block prices, what the cheapest option of each job costs at least, and the sum of that.

    No machine is worth more than 1, so that no schedule has fewer machines than ``bound``.
    """

    prices: tuple[Fraction, ...]
    cheapest: tuple[Fraction, ...]
    bound: Fraction


def price_jobs(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Priced:
    """Price every job; each is served by some block."""
    whole, denominator = common_denominator(prices)
    found = (cheapest_option(whole, demand.supply, demand.demand) for demand in demands)
    cheapest = tuple(Fraction(option.value, denominator) for option in found if option is not None)
    assert len(cheapest) == len(demands)
    return Priced(tuple(prices), cheapest, sum(cheapest, Fraction(0)))


def find_windows(
    demands: Sequence[Demand], highest: Content, most: int, known: Priced | None
) -> list[Window]:
    """Return windows that hold the blocks of all jobs in some schedule of ``most`` machines.

    ``highest`` are the most blocks of each type that a machine has. Of a schedule one keeps, for
    every job, an option without superfluous blocks; that is a schedule too. Then a job takes no
    more blocks of a type than serve it alone, nor than all machines have. With prices (theory 6.7)
    an option o costs at most ``cheapest + slack``, with the slack ``most - bound``. Let r be the
    least price for a unit of the job's demand; as ``prices . o >= r demand + sum_i (price_i - r
    f_i) o_i``, this limits o_i of every type that is dearer than r a unit. What all other types
    cannot serve is the least number of a type; it fixes the large part of a huge demand.

    Examples
    --------
    >>> jobs = [Demand("x", 1000, (10, 11))]
    >>> prices = price_jobs(jobs, [Fraction(1, 10), Fraction(1, 5)])
    >>> find_windows(jobs, (10, 5), 11, prices)
    [Window(low=(88, 0), high=(100, 11))]
    """
    windows = []
    for j, demand in enumerate(demands):
        high = [
            min(enough, most * each) for enough, each in zip(demand.enough, highest, strict=True)
        ]
        if known is not None:
            useful = [i for i, f in enumerate(demand.supply) if f]
            rate = min(known.prices[i] / demand.supply[i] for i in useful)
            spare = known.cheapest[j] + most - known.bound - rate * demand.demand
            for i in useful:
                more = known.prices[i] - rate * demand.supply[i]
                if more > 0:
                    high[i] = min(high[i], max(0, spare // more))
        served = sum(f * number for f, number in zip(demand.supply, high, strict=True))
        low = [
            max(0, -(-(demand.demand - served + f * number) // f)) if f else 0
            for f, number in zip(demand.supply, high, strict=True)
        ]
        windows.append(Window(tuple(low), tuple(high)))
    return windows
