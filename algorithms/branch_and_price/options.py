"""Options of a job: all minimal ones within a budget, and those nearly cheapest at given prices."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from cms.knapsack.pricing import cheapest_bundle, common_denominator

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cms.problem.row import Row

    from ..prices.jobs import Jobs
    from ..prices.region import PricePoint

#: Steps of an enumeration for each option allowed, before it gives up.
_STEPS_AN_OPTION = 15


def minimal_options(
    prices: Sequence[int],
    supply: Sequence[int],
    demand: int,
    budget: int,
    most: int,
    *,
    partly: bool = False,
    replicas: int = 0,
    able: Collection[int] = (),
) -> list[tuple[int, ...]] | None:
    """List the minimal options of one job that cost at most a budget.

    An option is minimal if it serves the job, by as many ``replicas`` of ``able`` types, those of
    the largest supply, and no block of it can be left out.

    Examples
    --------
    >>> minimal_options([1, 3], [4, 10], 12, 9, most=10)
    [(3, 0), (1, 1), (0, 2)]
    """
    k = len(prices)
    if demand <= 0:
        return [(0,) * k]
    gains = [min(f, demand) for f in supply]
    types = sorted((i for i in range(k) if gains[i]), key=lambda i: (-gains[i], prices[i]))
    # The cheapest price per supply among the types from each position on, as a fraction p / f.
    ratio: list[tuple[int, int]] = [(0, 1)] * len(types)
    for at in range(len(types) - 1, -1, -1):
        here = (prices[types[at]], gains[types[at]])
        later = ratio[at + 1] if at + 1 < len(types) else here
        ratio[at] = here if here[0] * later[1] <= later[0] * here[1] else later
    least = min((prices[i] for i in able), default=0)
    found: list[tuple[int, ...]] = []
    counts = [0] * k
    steps = 0

    def descend(at: int, left: int, missing: int, spent: int) -> bool:
        """Extend the counts by types from ``at`` on; False if there are too many options."""
        # Types left out are a loop: the depth is the types in an option, not the types there are.
        nonlocal steps
        for here in range(at, len(types)):
            steps += 1
            if steps > _STEPS_AN_OPTION * most:
                return False
            i = types[here]
            if missing > 0 and (i not in able or spent + missing * least > budget):
                return True
            enough = max(-(-left // gains[i]), missing)
            if spent + enough * prices[i] <= budget:
                # Types come by falling supply: the option is minimal iff its last block is needed.
                counts[i] = enough
                found.append(tuple(counts))
                counts[i] = 0
                if len(found) > most:
                    return False
            if here + 1 == len(types):
                return True
            p, f = ratio[here + 1]
            # The rest costs at least p / f a unit: room - number * dearer >= 0 is needed.
            room, dearer = (budget - spent) * f - left * p, prices[i] * f - gains[i] * p
            start = enough - 1 if dearer <= 0 else min(enough - 1, room // dearer)
            for number in range(start, 0, -1):
                if room - number * dearer < 0:
                    break  # a type that is cheaper than the rest: fewer of it only cost more
                counts[i] = number
                rest = left - number * gains[i], missing - number, spent + number * prices[i]
                if not descend(here + 1, *rest):
                    return False
            counts[i] = 0
            if room < 0:
                return True  # too dear without this type
        return True

    if types and not descend(0, demand, replicas, 0) and not partly:
        return None
    return sorted(found, key=lambda o: (sum(p * n for p, n in zip(prices, o, strict=True)), o))


def options_of(
    prices: Sequence[int], row: Row, budget: int, most: int, *, partly: bool = False
) -> list[tuple[int, ...]] | None:
    """List the minimal options of one job, by its rule, as :func:`minimal_options` does."""
    ways = row.alternatives
    if not row.is_equal or not ways:
        given = prices, row.supply, row.demand, budget, most
        replicas, able = ways[0] if ways else (0, [])
        return minimal_options(*given, partly=partly, replicas=replicas, able={*able})
    found: list[tuple[int, ...]] = []
    for at, (number, able) in enumerate(ways):
        counted = [int(i in able) for i in range(len(prices))]
        more = minimal_options(prices, counted, number, budget, most, partly=partly)
        if more is None:
            return None
        # A few of the largest blocks may serve the job without the others.
        found += (o for o in more if not any(sum(o[i] for i in ones) >= n for n, ones in ways[:at]))
    return sorted(found, key=lambda o: (sum(p * n for p, n in zip(prices, o, strict=True)), o))


class NearOptions:
    """The nearly cheapest options of kinds of jobs, made when asked for."""

    def __init__(self, jobs: Jobs, point: PricePoint) -> None:
        self._jobs = jobs
        self.prices, self.denominator = common_denominator(point.vector.prices)

    def all_within(self, kind: int, slack: Fraction, most: int) -> list[tuple[int, ...]] | None:
        """List all minimal options of reduced cost up to the slack; None if there are too many."""
        row = self._jobs.row(kind)
        best = cheapest_bundle(self.prices, row)
        if best is None or not best.exact:
            return None
        reach = best.value + floor(slack * self.denominator)
        return options_of(self.prices, row, reach, most)

    def some(self, kind: int, slack: Fraction, most: int) -> list[tuple[int, ...]]:
        """List options of reduced cost within the slack; if many, up to less, or part of a tie."""
        row = self._jobs.row(kind)
        best = cheapest_bundle(self.prices, row)
        if best is None:
            return []
        reach, found = floor(slack * self.denominator), None
        while found is None:
            given = self.prices, row, best.value + reach, most
            # Where prices grow as sizes do, hundreds of options may cost the same.
            found = options_of(*given, partly=reach == 0)
            reach //= 4
        return found or [best.option]

    def price(self, option: Sequence[int]) -> int:
        """Return what an option costs, in parts of one over ``denominator``."""
        return sum(price * n for price, n in zip(self.prices, option, strict=True) if n)
