"""What the jobs may take: how many blocks of each type can matter, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack.pricing import cheapest_option, common_denominator

from ..tables.demands import Demand

if TYPE_CHECKING:
    from .polytope import Point


class Window(NamedTuple):
    """The numbers of blocks of each type that a job may take: from ``low`` to ``high``."""

    low: Point
    high: Point


class Priced(NamedTuple):
    """Block prices, what the cheapest option of each job costs, and the sum of that.

    The prices are worth at most 1 on every machine, so that no schedule has fewer machines than
    ``bound``. What an option costs is a lower bound on it, if finding the option had to end early.
    """

    prices: tuple[Fraction, ...]
    cheapest: tuple[Fraction, ...]
    bound: Fraction


def simple_count(demands: Sequence[Demand], highest: Point) -> int:
    """Return the machines of a simple schedule: each job alone, on blocks of its best type.

    Parameters
    ----------
    demands : sequence of Demands
        Each of which some block serves.
    highest : Point
        How many blocks of each type a machine has if it has no others.

    Examples
    --------
    >>> simple_count([Demand("x", 10, (3, 0)), Demand("y", 7, (1, 4))], (2, 1))
    4
    """
    return sum(
        min(
            -(-blocks // most)
            for blocks, most in zip(demand.enough, highest, strict=True)
            if blocks
        )
        for demand in demands
    )


def priced(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Priced:
    """Price every job.

    Examples
    --------
    >>> priced([Demand("x", 10, (3, 5))], [Fraction(1, 4), Fraction(1, 2)]).bound
    Fraction(1, 1)
    """
    whole, denominator = common_denominator(prices)
    cheapest = []
    for demand in demands:
        found = cheapest_option(whole, demand.supply, demand.demand)
        if found is None:
            raise ValueError(f"no block serves the job {demand.name!r}")
        cheapest.append(Fraction(found.value, denominator))
    return Priced(tuple(prices), tuple(cheapest), sum(cheapest, Fraction(0)))


def windows(
    demands: Sequence[Demand], highest: Point, target: int, known: Priced | None
) -> tuple[Window, ...]:
    """Return windows that hold the blocks of all jobs in some schedule, if any is good enough.

    Of a schedule of at most ``target`` machines one keeps, for every job, an option without
    superfluous blocks; that is a schedule too. Then a job takes no more blocks of a type than serve
    it alone, nor than all machines have. With prices (theory 6.7) an option o costs at most
    ``cheapest + slack``, with the slack ``target - bound``. Let r be the least price for a unit of
    the job's demand; as ``prices . o >= r demand + sum_i (price_i - r f_i) o_i``, this limits o_i
    of every type that is dearer than r a unit. What all other types cannot serve is the least
    number of a type; it fixes the large part of a huge demand.

    Parameters
    ----------
    demands : sequence of Demands
    highest : Point
        How many blocks of each type a machine has if it has no others.
    target : int
        The largest number of machines of interest.
    known : Priced or None

    Examples
    --------
    >>> jobs = [Demand("x", 1000, (10, 11))]
    >>> prices = priced(jobs, [Fraction(1, 10), Fraction(1, 5)])
    >>> windows(jobs, (10, 5), 11, prices)
    (Window(low=(88, 0), high=(100, 11)),)
    """
    found = []
    for j, demand in enumerate(demands):
        high = [
            min(enough, target * most) for enough, most in zip(demand.enough, highest, strict=True)
        ]
        if known is not None:
            useful = [i for i, f in enumerate(demand.supply) if f]
            rate = min(known.prices[i] / demand.supply[i] for i in useful)
            spare = known.cheapest[j] + target - known.bound - rate * demand.demand
            for i in useful:
                more = known.prices[i] - rate * demand.supply[i]
                if more > 0:
                    high[i] = min(high[i], max(0, spare // more))
        most = sum(f * number for f, number in zip(demand.supply, high, strict=True))
        low = [
            max(0, -(-(demand.demand - most + f * number) // f)) if f else 0
            for f, number in zip(demand.supply, high, strict=True)
        ]
        found.append(Window(tuple(low), tuple(high)))
    return tuple(found)
