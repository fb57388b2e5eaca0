"""Options of a job: all minimal ones within a budget, and those nearly cheapest at given prices."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from cms.knapsack.pricing import cheapest_bundle, common_denominator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem.row import Row

    from ..prices.jobs import Jobs
    from ..prices.region import PricePoint

#: Steps of an enumeration for each option allowed, before it gives up.
_STEPS_AN_OPTION = 15
#: Further ones where a job has a rule, of which there are few.
_STEPS_BY_RULE = 5_000


def minimal_options(
    prices: Sequence[int],
    supply: Sequence[int],
    demand: int,
    budget: int,
    most: int,
    *,
    partly: bool = False,
) -> list[tuple[int, ...]] | None:
    """List the minimal options of one job that cost at most a budget.

    An option is minimal if it serves the job and no block of it can be left out.

    Examples
    --------
    >>> minimal_options([1, 3], [4, 10], 12, 9, most=10)
    [(3, 0), (1, 1), (0, 2)]
    >>> minimal_options([1, 3], [4, 10], 12, 4, most=10)
    [(3, 0), (1, 1)]
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
    found: list[tuple[int, ...]] = []
    counts = [0] * k
    steps = 0

    def descend(at: int, left: int, spent: int) -> bool:
        """Extend the counts by types from ``at`` on; False if there are too many options."""
        # Types left out are a loop: the depth is the types in an option, not the types there are.
        nonlocal steps
        for here in range(at, len(types)):
            steps += 1
            if steps > _STEPS_AN_OPTION * most:
                return False
            i = types[here]
            enough = -(-left // gains[i])
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
                if not descend(here + 1, left - number * gains[i], spent + number * prices[i]):
                    return False
            counts[i] = 0
            if room < 0:
                return True  # too dear without this type
        return True

    if types and not descend(0, demand, 0) and not partly:
        return None
    return sorted(found, key=lambda o: (sum(p * n for p, n in zip(prices, o, strict=True)), o))


def ruled_options(
    prices: Sequence[int], row: Row, budget: int, most: int, *, partly: bool = False
) -> list[tuple[int, ...]] | None:
    """List the minimal options of one job with a rule that cost at most a budget.

    Examples
    --------
    >>> from cms.problem.row import BundleRule, Row
    >>> equal = Row(12, (4, 10), 1, BundleRule(0, Fraction(0), is_equal=True))
    >>> ruled_options([1, 3], equal, 9, most=10)
    [(3, 0), (2, 1), (0, 2)]
    """
    if row.rule is None or row.demand <= 0:
        return minimal_options(prices, row.supply, row.demand, budget, most, partly=partly)
    is_equal, complete = row.rule.is_equal, True
    left = 0 if is_equal else row.demand
    found: dict[tuple[int, ...], None] = {}
    for number, able in row.alternatives:
        search = _Search(prices, row, {*able}, budget, most - len(found))
        complete = search.descend(0, left, number, 0) and complete
        for option in search.found:
            # In equal shares a few of the largest blocks may serve the job without the others.
            smaller = [a for a in row.alternatives if is_equal and a[0] < number]
            if not any(sum(option[i] for i in ones) >= n for n, ones in smaller):
                found[option] = None
    if not complete and not partly:
        return None
    return sorted(found, key=lambda o: (sum(p * n for p, n in zip(prices, o, strict=True)), o))


class _Search:
    """A search for options with a number of ``able`` blocks, which cover what is left as well."""

    def __init__(
        self, prices: Sequence[int], row: Row, able: set[int], budget: int, most: int
    ) -> None:
        is_equal = row.rule is not None and row.rule.is_equal
        self._prices, self._able, self._budget, self._most = prices, able, budget, most
        self._gains = [min(f, row.demand) for f in row.supply]
        gains = self._gains
        # The able ones first: they are those of the largest supply.
        useful = (i for i, f in enumerate(gains) if (i in able if is_equal else f))
        self._types = sorted(useful, key=lambda i: (i not in able, -gains[i], prices[i]))
        # The cheapest price per supply, and of an able type, among the types from each one on.
        self._ratio = [Fraction(prices[i], gains[i]) for i in self._types]
        self._price: list[int | None] = [prices[i] if i in able else None for i in self._types]
        for at in range(len(self._types) - 2, -1, -1):
            self._ratio[at] = min(self._ratio[at : at + 2])
            if (later := self._price[at + 1]) is not None:
                self._price[at] = min(self._price[at] or 0, later)
        self._counts = [0] * len(prices)
        self._steps = 0
        self.found: list[tuple[int, ...]] = []

    def _fits(self, at: int, left: int, number: int, spent: int) -> bool:
        """Whether what is left can be bought from types from ``at`` on."""
        if at == len(self._types) or (number > 0 and self._price[at] is None):
            return False
        least = max(ceil(max(0, left) * self._ratio[at]), number * (self._price[at] or 0))
        return spent + max(0, least) <= self._budget

    def descend(self, at: int, left: int, number: int, spent: int) -> bool:
        """Take blocks of a type, then of the next ones; False if there are too many options."""
        if left <= 0 and number <= 0:
            if spent <= self._budget and self._is_minimal(left, number):
                self.found.append(tuple(self._counts))
            return len(self.found) <= self._most
        self._steps += 1
        if self._steps > _STEPS_BY_RULE + _STEPS_AN_OPTION * self._most:
            return False
        if not self._fits(at, left, number, spent):
            return True
        i = self._types[at]
        is_able, gain, price = i in self._able, self._gains[i], self._prices[i]
        most = max(-(-left // gain), number if is_able else 0)
        for n in range(most, -1, -1):
            self._counts[i] = n
            if not self.descend(at + 1, left - n * gain, number - n * is_able, spent + n * price):
                return False
        self._counts[i] = 0
        return True

    def _is_minimal(self, left: int, number: int) -> bool:
        return not any(
            n and left + self._gains[i] <= 0 and number + (i in self._able) <= 0
            for i, n in enumerate(self._counts)
        )


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
        return ruled_options(self.prices, row, reach, most)

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
            found = ruled_options(*given, partly=reach == 0)
            reach //= 4
        return found or [best.option]

    def price(self, option: Sequence[int]) -> int:
        """Return what an option costs, in parts of one over ``denominator``."""
        return sum(price * n for price, n in zip(self.prices, option, strict=True) if n)
