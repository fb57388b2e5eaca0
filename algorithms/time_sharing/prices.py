"""The search for prices: columns join the linear program until no dearer mix is left."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cms.certificate.certificate import round_up
from cms.time_sharing.dearest import charges_of, offers_of, price_mix
from cms.time_sharing.functions import PriceFunction
from cms.time_sharing.prices import MixPrices

from ..solvers.floats import recognised
from .master import Cuts, Master, Point

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget
    from cms.time_sharing.listed import ListedMixes

    from ..prices.region import Region
    from .columns import Columns

#: Mixes of a block that join at a time, and by how much they must be worth more than the block.
_A_BLOCK, _MORE = 6, 1e-6
#: What is missing to a value that rounds up as it does is nothing but digits.
_DIGITS = Fraction(1, 10**7)
#: Blocks are priced at most this much above what their mixes are worth.
_MOST_SLACK = Fraction(1, 3)
#: ... and of what the bound can lose without rounding to less.
_OF_ROOM = Fraction(4, 5)
#: Where the last digits are wanted it is this.
_SETTLED = Fraction(1, 10**4)
#: Programs in all, and with cuts without a gain worth speaking of.
_MOST_ROUNDS, _MOST_IDLE, _GAIN = 400, 4, 1e-4
#: Prices are rounded to parts of the cheapest machine's cost.
_PARTS = 10**9
#: Intervals and partial mixes of one search for a dearest mix.
_NODES = 400_000
#: Dearer mixes of a block that join the columns at a time.
_MOST_JOINING = 20
#: Of the dearest mixes that are listed, this number is looked at for some of different jobs.
_LOOKED_AT = 40


class Priced(NamedTuple):
    """A cost that a schedule has at least, and its certificate."""

    bound: Fraction
    leaf: MixPrices


class PriceSearch:
    """Finds prices of blocks and jobs that prove as much as any do.

    The columns have each job alone; what the search meets joins them. ``known`` is a bound that is
    known below the region's branches, by default that of the whole problem. ``best`` proves most so
    far, ``point`` is the last solution of the linear program, ``rounds`` counts these.
    """

    def __init__(
        self,
        columns: Columns,
        region: Region,
        budget: Budget,
        known: Fraction | None = None,
        master: Master | None = None,
    ) -> None:
        self.columns, self.region, self._budget, self._known = columns, region, budget, known
        self.master = Master(columns, region) if master is None else master
        self._problem, self._step = columns.problem, columns.problem.cost_step
        free = region.free()
        #: Jobs that a machine serves for nothing: they pay nothing.
        self._free = {job for block in free for job, _ in columns.lengths[block]}
        self.best: Priced | None = None
        self.point: Point | None = None
        self.rounds = 0

    @property
    def least(self) -> Fraction:
        """A cost below which there is no schedule, as far as is known."""
        known = self._budget.lower_bound if self._known is None else self._known
        return known if self.best is None else max(known, round_up(self.best.bound, self._step))

    def run(self) -> Iterator[Priced]:
        """Look for prices without cuts, and yield those that prove more than any before.

        This and what follows may raise Stopped.
        """
        yield from self._converge(always=True)

    def refine(self) -> Iterator[Priced]:
        """Go on with cuts of the jobs' rows."""
        cuts, idle, value = Cuts(self.columns), 0, 0.0
        while self.point is not None and idle <= _MOST_IDLE:
            broken = [s for s in cuts.broken(self.point) if s not in self.master.steps]
            if not broken:
                return
            idle = 0 if self.point.value > value * (1 + _GAIN) else idle + 1
            value = max(value, self.point.value)
            self.master.add_steps(broken)
            yield from self._converge(always=False)

    def prove(self, rounds: int) -> Iterator[Priced]:
        """Go on, below branches, with and without cuts, while more than is known may be proved."""
        yield from self._converge(always=False)
        if self.rounds < rounds:
            yield from self.refine()
        if self.point is not None and self._could_prove_more(self.point):
            yield from self.settle()

    def settle(self) -> Iterator[Priced]:
        """Price the last solution exactly, should it prove more to the last digit."""
        if self.point is not None:
            yield from self._priced(self.point, _SETTLED)

    def _converge(self, *, always: bool) -> Iterator[Priced]:
        """Let columns join until none is worth more than its block.

        Unless it is to be done always, exact searches are for values that could round higher.
        """
        while self.rounds < _MOST_ROUNDS:
            self.rounds += 1
            point = self.master.solve(self._budget)
            if point is None:
                return
            self.point = point
            before = self._size
            self._join(point)
            if self._size != before:
                continue
            if not always and not self._could_prove_more(point):
                return
            yield from self._priced(point, self._slack(point))
            always = False
            if self._size == before or not self._could_prove_more(point):
                return

    @property
    def _size(self) -> tuple[int, int]:
        return len(self.columns), len(self.region.rows)

    def _join(self, point: Point) -> None:
        """Let the mixes join that are found at once, and the machines."""
        functions, multipliers = self._functions(point), self._multipliers(point)
        for i, block in enumerate(self._problem.blocks):
            above, listed = point.blocks[i] * (1 + _MORE) + _MORE, self._problem.listed_mixes(block)
            if listed is not None:
                exact = Fraction(above) * self.region.unit
                self._join_likely(i, listed, functions, multipliers, exact)
                continue
            charges: dict[int, float] = {}
            for at, of_block, job in self.region.job_terms:
                if of_block == i:
                    charge = self.region.path[at].sign * point.branches[at]
                    charges[job] = charges.get(job, 0.0) + charge
            prices = point.prices._replace(charges=charges)
            for guess in self.columns.knapsack(i).guesses(prices, above, _A_BLOCK):
                self.columns.add(i, guess)
        if self.region.bounded:
            self.region.worth([Fraction(price) for price in point.blocks])

    def _could_prove_more(self, point: Point) -> bool:
        """Whether the program's value rounds up to more than what is known."""
        if self.region.free_machines:
            unproved = self.best is None or self.best.bound <= 0
            return point.value > float(_DIGITS) and unproved
        value = self._surely(Fraction(point.value) * self.region.unit)
        return round_up(value, self._step) > self.least

    def _priced(self, point: Point, slack: Fraction) -> Iterator[Priced]:
        """Price a solution exactly; where that takes too long, without its cuts."""
        for steps in (True, False):
            priced = self._certified(self._functions(point, steps=steps), point, slack)
            if priced is not None and (self.best is None or priced.bound > self.best.bound):
                self.best = priced
                yield priced
            if priced is not None or not point.steps:
                return

    def _surely(self, value: Fraction) -> Fraction:
        """Return a value less what may be nothing but digits of floats."""
        return value - min(value, self._step * 10**4) * _DIGITS

    def _slack(self, point: Point) -> Fraction:
        """Return how much dearer blocks may be than need be, so that the bound rounds alike."""
        value = Fraction(point.value) * self.region.unit
        if self.region.free_machines or not self._step or value <= 0:
            return _DIGITS
        below = round_up(self._surely(value), self._step) - self._step
        room = value / below - 1 if below > 0 else Fraction(1)
        # What limits and branches take off again is priced by as much too high.
        paid = Fraction(self.master.paid(point)) * self.region.unit
        room *= value / max(value, paid)
        return min(_MOST_SLACK, max(Fraction(0), room) * _OF_ROOM)

    def _functions(self, point: Point, *, steps: bool = True) -> dict[str, PriceFunction]:
        """Return the price functions near a point's, in short rationals."""
        problem, unit = self._problem, self.region.unit
        slopes = point.prices.slopes.tolist()
        heights = list(point.steps.items()) if steps else []
        whole = _short([*slopes, *(height for _, height in heights)])
        found: dict[int, list[tuple[Fraction, Fraction]]] = {
            job: [] for job in self.columns.jobs if job not in self._free
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

    def _multipliers(self, point: Point) -> list[Fraction]:
        """Return the multipliers of the branches near a point's, in short rationals."""
        return [short * self.region.unit for short in _short(point.branches)]

    def _join_likely(
        self,
        i: int,
        listed: ListedMixes,
        functions: dict[str, PriceFunction],
        multipliers: Sequence[Fraction],
        above: Fraction,
    ) -> None:
        """Let the dearest mixes of different jobs join that are worth more than ``above``.

        They are hints: their worths are bounded from above.
        """
        block = self._problem.blocks[i]
        charges = charges_of(block, self.region.path, multipliers)
        offers = offers_of(self._problem, block, functions, charges)
        places = [self._problem.job_index(offer.job) for offer in offers]
        jobs = set[tuple[int, ...]]()
        for picks in islice(listed.likely(offers, lambda: above) or (), _LOOKED_AT):
            own = tuple(places[at] for at, _ in picks)
            if own not in jobs:
                jobs.add(own)
                chosen = (offers[at].choices[choice].amount for at, choice in picks)
                self.columns.add(i, dict(zip(own, chosen, strict=True)))
            if len(jobs) == _A_BLOCK:
                return

    def _certified(
        self, functions: dict[str, PriceFunction], point: Point, slack: Fraction
    ) -> Priced | None:
        """Return what price functions prove, scaled as far as they can be; None if undecided.

        Blocks are priced by the slack, relatively, above what the dearest mix of each is worth as
        far as the point knows, where no mix is worth more: it takes less to show so.
        """
        problem, region = self._problem, self.region
        part = region.unit / (_PARTS * max(1, ceil(point.value)))
        multipliers = self._multipliers(point)
        values: list[Fraction] = []
        for i, (block, price) in enumerate(zip(problem.blocks, point.blocks, strict=True)):
            above = _rounded_up(Fraction(price) * region.unit * (1 + slack), part)
            search = price_mix(
                problem,
                block,
                functions,
                charges_of(block, region.path, multipliers),
                above=above,
                node_limit=_NODES,
                stopped=lambda: self._budget.stopped,
            )
            for priced in search.mixes[:_MOST_JOINING]:
                self.columns.add_mix(i, priced.mix)
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
