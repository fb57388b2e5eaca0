"""From rough prices to a certificate: the dearest mixes decide, exactly, what blocks are worth."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cms.mixes.functions import PriceFunction
from cms.mixes.prices import MixPrices
from cms.mixes.pricing import charges_of, offers_of, price_mix

from ..solvers.recognise import recognised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cms.mixes.listed import ListedMixes

    from ..prices.region import Region
    from .columns import Columns
    from .master import Point

#: Prices are rounded to parts of the cheapest machine's cost.
_PARTS = 10**9
#: Intervals and partial mixes of one search for a dearest mix.
_NODES = 400_000
#: Dearer mixes of a block that join the columns at a time.
_MOST_JOINING = 20
#: Of the dearest mixes that are listed, so many are looked at for some of different jobs.
_LOOKED_AT = 40


class Priced(NamedTuple):
    """A cost that a schedule has at least, and its certificate."""

    bound: Fraction
    leaf: MixPrices


class Pricing:
    """Finds the dearest mixes, exactly, and makes certificates of them.

    Better mixes that are met join the columns.
    """

    def __init__(self, columns: Columns, region: Region, stopped: Callable[[], bool]) -> None:
        self._columns, self._region, self._stopped = columns, region, stopped
        self._problem = columns.problem
        free, _ = region.free()
        #: Jobs that a machine serves for nothing: they pay nothing.
        self._free = {job for block in free for job, _ in columns.lengths(block)}

    def functions(self, point: Point, *, steps: bool = True) -> dict[str, PriceFunction]:
        """Return the price functions near a point's, in short rationals."""
        problem, unit = self._problem, self._region.unit
        slopes = point.prices.slopes.tolist()
        heights = list(point.steps.items()) if steps else []
        whole = _short([*slopes, *(height for _, height in heights)])
        found: dict[int, list[tuple[Fraction, Fraction]]] = {
            job: [] for job in self._columns.jobs if job not in self._free
        }
        for (step, _), height in zip(heights, whole[len(slopes) :], strict=True):
            if step.job in found:
                demand = problem.jobs[step.job].demand
                found[step.job].append((step.times / demand, height * unit))
        functions = {
            problem.job_names[job]: PriceFunction(whole[job] * unit, listed)
            for job, listed in found.items()
        }
        return {name: function for name, function in functions.items() if function}

    def multipliers(self, point: Point) -> list[Fraction]:
        """Return the multipliers of the branches near a point's, in short rationals."""
        return [short * self._region.unit for short in _short(point.branches)]

    def join_likely(
        self,
        i: int,
        listed: ListedMixes,
        functions: dict[str, PriceFunction],
        multipliers: Sequence[Fraction],
        above: Fraction,
        most: int,
    ) -> None:
        """Let the dearest mixes of different jobs join that are worth more than ``above``.

        They are hints: their worths are bounded from above.
        """
        charges = self._charges(i, multipliers)
        offers = offers_of(self._problem, self._problem.blocks[i], functions, charges)
        places = [self._problem.job_index(offer.job) for offer in offers]
        jobs = set[tuple[int, ...]]()
        for picks in islice(listed.likely(offers, lambda: above) or (), _LOOKED_AT):
            own = tuple(places[at] for at, _ in picks)
            if own not in jobs:
                jobs.add(own)
                chosen = (offers[at].choices[choice].amount for at, choice in picks)
                self._columns.add(i, dict(zip(own, chosen, strict=True)))
            if len(jobs) == most:
                return

    def at(
        self, functions: dict[str, PriceFunction], point: Point, slack: Fraction
    ) -> Priced | None:
        """Return what price functions prove, scaled as far as they can be; None if undecided.

        Blocks are priced by the slack, relatively, above what the dearest mix of each is worth as
        far as the point knows, where no mix is worth more: it takes less to show so.
        """
        problem, region = self._problem, self._region
        part = region.unit / (_PARTS * max(1, ceil(point.value)))
        multipliers = self.multipliers(point)
        values: list[Fraction] = []
        for i, price in enumerate(point.blocks):
            above = _rounded_up(Fraction(price) * region.unit * (1 + slack), part)
            search = price_mix(
                problem,
                problem.blocks[i],
                functions,
                self._charges(i, multipliers),
                above=above,
                node_limit=_NODES,
                stopped=self._stopped,
            )
            for priced in search.mixes[:_MOST_JOINING]:
                self._columns.add_mix(i, priced.mix)
            if not search.decided:
                return None
            dearest = search.dearest
            values.append(above if dearest is None else _rounded_up(dearest.worth, part))
        scale, vector = region.fitted(values, multipliers)
        if not scale:
            return None
        functions = {name: function.scaled(scale) for name, function in functions.items()}
        bound = region.constant(vector)
        for name, function in functions.items():
            demand = problem.job(name).demand
            bound += function.worth(demand, demand)
        plain = region.leaf(vector)
        leaf = MixPrices(
            plain.prices, plain.limit_prices, plain.multipliers, plain.proper, functions
        )
        return Priced(bound, leaf)

    def _charges(self, i: int, multipliers: Sequence[Fraction]) -> dict[str, Fraction]:
        pairs = zip(self._region.path, multipliers, strict=True)
        counted = [(c.quantity, c.sign * multiplier) for c, multiplier in pairs]
        return charges_of(self._problem.blocks[i], counted)


def _short(values: Sequence[float]) -> list[Fraction]:
    """Return short rationals near floats >= 0."""
    known = recognised(values)
    if known is not None:
        numbers, denominator = known
        return [Fraction(number, denominator) for number in numbers]
    return [Fraction(round(value * _PARTS), _PARTS) for value in values]


def _rounded_up(value: Fraction, part: Fraction) -> Fraction:
    """Return a value as it is, or the next multiple of a part if it is longer."""
    return value if value.denominator <= part.denominator else -(-value // part) * part
