"""From rough prices to a certificate: the dearest mixes decide, exactly, what blocks are worth."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cms.mixes.dearest import dearest_mix
from cms.mixes.functions import PriceFunction
from cms.mixes.prices import MixPrices
from cms.mixes.problem_offers import charges_of, offers_of

from ..solvers.recognise import recognised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cms.certificate.quantity import Quantity
    from cms.mixes.dearest import Search

    from ..prices.region import Region, Vector
    from .columns import Columns
    from .master import Point

#: Prices are rounded to parts of the cheapest machine's cost.
_PARTS = 10**9
#: Intervals and partial mixes of one search for a dearest mix.
_NODES = 400_000
#: Dearer mixes of a block that join the columns at a time.
_MOST_JOINING = 20


class Priced(NamedTuple):
    """Exact prices with what they prove.

    Attributes
    ----------
    functions : dict of str to PriceFunction
    vector : Vector
        Block prices and prices of limits.
    bound : Fraction
        What a schedule costs at least.
    leaf : MixPrices
        All of it as a certificate.
    """

    functions: dict[str, PriceFunction]
    vector: Vector
    bound: Fraction
    leaf: MixPrices


class Pricing:
    """Finds the dearest mixes, exactly, and makes certificates of them.

    Parameters
    ----------
    columns : Columns
        Better mixes that are met join them.
    region : Region
    stopped : callable
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
        found: dict[int, tuple[Fraction, list[tuple[Fraction, Fraction]]]] = {
            job: (whole[job] * unit, []) for job in self._columns.jobs if job not in self._free
        }
        for (step, _), height in zip(heights, whole[len(slopes) :], strict=True):
            if step.job in found:
                demand = problem.jobs[step.job].demand
                found[step.job][1].append((step.times / demand, height * unit))
        functions = {
            problem.job_names[job]: PriceFunction(slope, listed)
            for job, (slope, listed) in found.items()
        }
        return {name: function for name, function in functions.items() if function}

    def at(
        self, functions: dict[str, PriceFunction], point: Point, slack: Fraction
    ) -> Priced | None:
        """Return what price functions prove, scaled as far as they can be; None if undecided.

        Parameters
        ----------
        functions : dict of str to PriceFunction
        point : Point
            Of its block prices, what the dearest mix of each block is worth as far as is known.
        slack : Fraction
            By how much blocks are priced above that, relatively, where no mix is worth more: it
            takes less to show so.

        Raises
        ------
        Stopped
        """
        problem, region = self._problem, self._region
        part = region.unit / (_PARTS * max(1, ceil(point.value)))
        multipliers = self._multipliers(point)
        counted = self._counted(multipliers)
        values: list[Fraction] = []
        for i, price in enumerate(point.blocks):
            above = _rounded_up(Fraction(price) * region.unit * (1 + slack), part)
            search = self._dearer(i, functions, above, counted)
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
        worth = sum(
            (f.worth(d, d) for name, f in functions.items() for d in [problem.job(name).demand]),
            Fraction(0),
        )
        plain = region.leaf(vector)
        leaf = MixPrices(
            plain.prices, plain.limit_prices, plain.multipliers, plain.proper, functions
        )
        return Priced(functions, vector, worth + region.constant(vector), leaf)

    def _multipliers(self, point: Point) -> list[Fraction]:
        return [short * self._region.unit for short in _short(point.branches)]

    def _counted(self, multipliers: Sequence[Fraction]) -> list[tuple[Quantity, Fraction]]:
        return [
            (condition.quantity, condition.sign * multiplier)
            for condition, multiplier in zip(self._region.path, multipliers, strict=True)
        ]

    def _dearer(
        self,
        i: int,
        functions: Mapping[str, PriceFunction],
        above: Fraction,
        counted: Sequence[tuple[Quantity, Fraction]],
    ) -> Search:
        problem, block = self._problem, self._problem.blocks[i]
        return dearest_mix(
            offers_of(problem, block, functions, charges_of(problem, block, counted)),
            above=above,
            most_jobs=problem.max_jobs,
            node_limit=_NODES,
            stopped=self._stopped,
            listed=problem.listed_mixes(block),
        )


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
