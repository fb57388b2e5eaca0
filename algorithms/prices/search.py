"""The search for the best block prices: the bound LP_DW and its certificate (theory 6.4).

At given prices every job buys its cheapest option; what a group of jobs buys together is a
supergradient of the group's value, hence a cut. A small linear program over the cuts found so far
proposes the next prices. With many groups a pass tells many cuts, and few passes are needed; with
few jobs every job is a group of its own, and the program is column generation over options.

Every bound is computed exactly, at prices that are rationals: those of a recognised vertex, or
multiples of a small power of two.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cms.certificate.certificate import round_up
from cms.knapsack.pricing import cheapest_option, price_jobs
from cms.values.numbers import has_too_many_digits

from ..solvers.floats import near
from .choices import shortened
from .exact_master import ExactMaster
from .fraction import fractional
from .guesses import GROUPS as _GROUPS
from .guesses import MOST_SINGLE as _MOST_SINGLE
from .guesses import full_machines, group_totals, ranges, whole
from .master import Cut, Master, block_sizes
from .points import PricePoint, Share, Warm
from .region import Region, Row, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from cms.certificate.conditions import Condition
    from cms.plugin.algorithm import Budget

    from .jobs import Jobs

_MOST_PASSES = 400
#: The relative difference at which the master and the best bound count as equal.
_CLOSE = Fraction(1, 10**9)
#: ... and the one from which prices are solved for exactly.
_FINE = Fraction(1, 10**5)
#: Each zoom of the master finds six more digits.
_ZOOM, _MOST_ZOOMS = 2**20, 3
#: How much of the room that rounding has the fractional schedule may use up.
_ROOM = Fraction(1, 10)
#: A part of a cost step by which the fractional machines may miss the master's value.
_MATTERS = Fraction(1, 20)
#: Shares of cuts, and numbers of machines, below this are the linear program's noise.
_NOTHING = 1e-9
#: No multiplier and no limit's price exceeds it: beside longer numbers GLOP may not return.
_HIGHEST = 1e21
#: With this many kinds the first pass already counts as an answer ...
EARLY_FROM = 1_000
#: ... as it does where a linear program over so many machines comes next ...
_MANY_ROWS = 150
#: ... and with this many so do passes in between.
_OFTEN_FROM = 200_000


class PriceSearch:
    """The search for the best prices of a problem, possibly below branches.

    Parameters
    ----------
    jobs : Jobs
        Of a reduced problem (every block serves some job and lies in some configuration).
    budget : Budget
    path : sequence of Condition, optional
        The branches above.
    free_machines : bool, default False
        Search for a proof of infeasibility instead; see :class:`Region`.
    cutoff : Fraction, optional
        End as soon as a bound exceeds it.
    warm : Warm, optional
        A node below a branch starts from what was found above.

    Attributes
    ----------
    best : PricePoint or None
    upper : Fraction or None
        About the most that any prices can prove; a solver's word.
    passes : int
        Over the jobs, so far.
    """

    def __init__(
        self,
        jobs: Jobs,
        budget: Budget,
        path: Sequence[Condition] = (),
        *,
        free_machines: bool = False,
        cutoff: Fraction | None = None,
        warm: Warm | None = None,
    ) -> None:
        self.jobs, self._budget, self._cutoff, self._warm = jobs, budget, cutoff, warm
        self.region = Region(jobs.problem, path, free_machines=free_machines)
        self.best: PricePoint | None = None
        self.upper: Fraction | None = None
        self.passes = 0
        # Groups are ranges of kinds.
        self.starts = ranges(len(jobs), _MOST_SINGLE, _GROUPS)
        self.n_groups = len(self.starts)
        self.weights = jobs.weights
        if self.region.own_priced:
            self.weights = jobs.weights.copy()
            for job in self.region.own_priced:
                self.weights[jobs.kind_of[job]] -= 1
        self.options: list[NDArray[Any]] = []
        self.own_options: list[list[tuple[int, ...]]] = []
        self._seen: list[set[Cut]] = [
            set() for _ in range(self.n_groups + len(self.region.own_priced))
        ]
        self._cuts: list[tuple[int, int, Cut]] = []
        self._master: Master | ExactMaster | None = None
        self._centre: Sequence[Fraction] = ()
        self._largest = 0.0
        self._zooms = 0
        self._to_the_end = False

    def run(self) -> Iterator[PricePoint]:
        """Yield better and better points: now and then in a long search, the best one last."""
        region = self.region
        if not len(region.blocks) or not len(self.jobs):
            return
        warm = self._warm
        self._improve(self._nothing())
        if warm is None:
            centre = [*full_machines(region), *(Fraction(0) for _ in region.path)]
            first = self._evaluate(centre)
            if first is None:
                return
            self._improve(first[0])
            known = [first[1]]
        else:
            vector = warm.point.vector
            centre = [*vector.prices, *vector.multipliers]
            self._improve(warm.point)
            known = [self._remember(options) for options in warm.options]
        early = len(self.jobs) >= EARLY_FROM or len(region.rows) >= _MANY_ROWS
        if early and not region.path and self.best is not None:
            yield self.best
        units = block_sizes(region)
        sizes = [
            sum(n // unit for n, unit in zip(cut.load, units, strict=True)) for cut in known[0]
        ]
        largest = (
            1.0
            if region.free_machines
            else min(_HIGHEST, 1e3 * max(1.0, near(region.dearest / region.unit)))
        )
        self._master = Master(region, sizes, largest, self._nothing().vector)
        for number, cuts in enumerate(known):
            self._add(cuts, number)
        self._centre, self._largest = centre, largest
        yield from self._passes_until_closed()

    def refine(self) -> Iterator[PricePoint]:
        """Go on until the fractional schedule costs hardly more than the bound proves.

        A search ends as soon as the bound can rise by no whole step; the fractional schedule then
        may have used up the room that rounding needs.
        """
        if self._master is not None and self.best is not None:
            self._to_the_end = True
            yield from self._passes_until_closed()

    def _passes_until_closed(self) -> Iterator[PricePoint]:
        region, largest, centre = self.region, self._largest, self._centre
        zooms, failed = self._zooms, False
        for number in range(_MOST_PASSES):
            if self._budget.stopped or self._master is None:
                return
            proposal = self._master.solve()
            if proposal is None:
                if failed or self.exact:
                    if self._turns_exact():
                        continue
                    break
                # Numbers of very different sizes: try once more from where the best prices are.
                failed = True
                self._zoom(zooms, largest)
                continue
            failed = False
            self.upper = proposal.value
            if self._closed(proposal.value):
                if zooms == _MOST_ZOOMS or self._balanced(proposal.value):
                    if zooms == _MOST_ZOOMS and self._turns_exact():
                        continue
                    break
                zooms += 1
                self._zoom(zooms, largest)
                continue
            target = [*proposal.prices, *proposal.multipliers]
            # Halfway to the maximiser tames the oscillation; every third step goes all the way,
            # so that the cuts end the search (theory 6.4).
            pull = Fraction(1) if number % 3 != 2 or zooms else Fraction(1, 2)
            rows = len(region.rows)
            fine = self._nearly_closed(proposal.value)
            exact = self.exact
            vertex = self._master.vertex() if exact or (pull == 1 and fine) else None
            if vertex is None:
                between = [c + (t - c) * pull for c, t in zip(centre, target, strict=True)]
                evaluation = self._evaluate(between)
            else:
                evaluation = self._evaluate(vertex, exactly=True)
            if evaluation is None:
                return
            if self._improve(evaluation[0]):
                centre = self._centre = target
            at_maximiser = pull == 1 or exact
            if not self._add(evaluation[1]) and at_maximiser and rows == len(region.rows):
                # The maximiser itself: its cuts were there, so the master's value stands, as far as
                # its digits go.
                if zooms == _MOST_ZOOMS or not fine or exact:
                    if self._turns_exact():
                        continue
                    break
                zooms += 1
                self._zoom(zooms, largest)
            often = len(self.jobs) >= _OFTEN_FROM or number >= 31
            # Counting passes instead of seconds keeps runs reproducible.
            if often and (number + 1) & number == 0 and self.best is not None:
                yield self.best
        if self.best is not None and not self._budget.stopped:
            yield self.best

    @property
    def exact(self) -> bool:
        """Whether the fractional solution is in exact rationals."""
        return isinstance(self._master, ExactMaster)

    def _turns_exact(self) -> bool:
        """Go on in exact rationals, once, if floats have left something open and it is little."""
        if self.exact or self.upper is None or self.best is None:
            return False
        if self.upper - self.best.bound <= self.jobs.problem.cost_step * _MATTERS:
            return False
        if self.n_groups < len(self.jobs) or not ExactMaster.fits(self.region, self.n_groups):
            return False
        self._master = ExactMaster(self.region, self.n_groups, lambda: self._budget.stopped)
        for group, _, cut in self._cuts:
            self._master.add(group, cut)
        return True

    @property
    def shares(self) -> list[Share]:
        """The fractional solution: what each group takes from which pass; weights add up to 1."""
        weights: Sequence[Any] = [] if self._master is None else self._master.weights
        return [
            Share(group, number, weight, cut.load)
            for (group, number, cut), weight in zip(self._cuts, weights, strict=False)
            if weight > self._noise
        ]

    @property
    def machines(self) -> list[tuple[Row, Fraction]]:
        """The fractional solution: how many machines there are of each row of the region."""
        amounts = [] if self._master is None else self._master.machines
        return [
            (row, amount)
            for row, amount in zip(self.region.rows, amounts, strict=False)
            if amount > self._noise
        ]

    @property
    def _noise(self) -> float:
        """What the linear program's solution is wrong by."""
        return 0.0 if self.exact else _NOTHING

    @property
    def extra(self) -> dict[tuple[int, int], float]:
        """The fractional solution: what (block, job) takes beyond its options, for a branch."""
        return {} if self._master is None else self._master.extra

    def kinds_of_group(self, group: int) -> slice:
        """Return the kinds of a group (not one of a single job)."""
        end = self.starts[group + 1] if group + 1 < self.n_groups else len(self.jobs)
        return slice(int(self.starts[group]), int(end))

    def _nothing(self) -> PricePoint:
        """Prices of 0, which always hold and prove a bound of 0."""
        region = self.region
        zeros = [(Fraction(0),) * len(part) for part in (region.blocks, region.limits, region.path)]
        return PricePoint(Vector(*zeros), Fraction(0))

    def _improve(self, point: PricePoint) -> bool:
        better = self.best is None or point.bound > self.best.bound
        if better and any(has_too_many_digits(value) for part in point.vector for value in part):
            return False  # no certificate holds such prices
        if better:
            self.best = point
        return better

    def _closed(self, upper: Fraction) -> bool:
        """Whether the bound can no longer rise by a whole step (or, without steps, noticeably)."""
        if self.best is None:
            return False
        bound = self.best.bound
        if self.exact:
            return upper <= bound
        tolerance = _CLOSE * max(self.region.unit, abs(upper))
        step = self.jobs.problem.cost_step
        if step and self._zooms < _MOST_ZOOMS:
            # Of a billion machines that would be some; a closer look tells.
            tolerance = min(tolerance, step * _MATTERS)
        if upper - bound <= tolerance or (self._cutoff is not None and bound > self._cutoff):
            return True
        if self.region.free_machines or not step:
            return False
        if self._to_the_end:
            return upper - bound <= min(_ROOM * (round_up(bound, step) - bound), step * _MATTERS)
        return round_up(bound, step) >= round_up(max(Fraction(0), upper - tolerance), step)

    def _zoom(self, zooms: int, largest: float) -> None:
        """Look closer at the best prices."""
        if isinstance(self._master, Master) and self.best is not None:
            self._zooms, zoom = zooms, _ZOOM**zooms
            self._master = self._master.zoomed(self.best.vector, zoom, largest)

    def _balanced(self, upper: Fraction) -> bool:
        """Whether the fractional schedule costs what the master says, as far as it matters.

        Numbers of a billion machines are right to a block only after the equations behind them
        were solved exactly; these may tell that the master stopped short of its optimum.
        """
        region = self.region
        step = self.jobs.problem.cost_step or Fraction(1)
        if region.free_machines or abs(upper) * _CLOSE < step * _MATTERS:
            return True
        if abs(upper) * _CLOSE > step * _MATTERS * _ZOOM**self._zooms:
            return False  # digits that this zoom of the master does not have
        if region.path:
            return True
        mixture = fractional(self)
        cost = sum((region.costs[row.machine] * x for row, x in mixture.machines), Fraction(0))
        return abs(cost - max(upper, self.best.bound if self.best else upper)) <= step * _MATTERS

    def _nearly_closed(self, upper: Fraction) -> bool:
        """Whether what is missing is no more than floating-point numbers can tell."""
        return self.best is not None and upper - self.best.bound <= _FINE * abs(upper)

    def _add(self, cuts: Sequence[Cut], number: int = -1) -> bool:
        """Add the cuts of a pass (by default the last one); say whether any was new."""
        if self._master is None:
            return False
        before = len(self._cuts)
        for group, cut in enumerate(cuts):
            if cut not in self._seen[group]:
                self._seen[group].add(cut)
                self._master.add(group, cut)
                self._cuts.append((group, number % len(self.options), cut))
        return len(self._cuts) > before

    def _evaluate(
        self, values: Sequence[Fraction], *, exactly: bool = False
    ) -> tuple[PricePoint, list[Cut]] | None:
        """Price all jobs, by default at the rationals that approximate prices mean."""
        counted = [value / self.region.unit for value in values]
        return self.evaluate(*whole(counted, self.jobs, exactly=exactly))

    def evaluate(
        self, numbers: Sequence[int], denominator: int
    ) -> tuple[PricePoint, list[Cut]] | None:
        """Price all jobs at prices (then multipliers) over a denominator; None if stopped.

        The prices count in the region's unit.
        """
        jobs, region = self.jobs, self.region
        k = len(region.blocks)
        prices, multipliers = list(numbers[:k]), list(numbers[k:])
        self._pay_nobody(prices, multipliers)
        pricing = price_jobs(
            jobs.rows,
            prices,
            want_options=True,
            weights=self.weights,
            threads=self._budget.threads,
            stopped=lambda: self._budget.stopped,
        )
        if pricing is None or pricing.options is None:
            return None
        self.passes += 1
        total = pricing.total
        own_options = []
        for job in region.own_priced:
            row = jobs.problem.rows.row(job)
            own = region.prices_of_job(job, prices, multipliers)
            found = cheapest_option(own, row.supply, row.demand)
            if found is None:
                raise AssertionError("a job that no block serves has a branch of its own")
            total += found.value
            own_options.append(found.option)
        cuts = self._remember(pricing.options, own_options)
        size = region.unit / denominator
        sized = [size * price for price in prices], [size * m for m in multipliers]
        scale, vector = region.fitted(*sized)
        point = PricePoint(vector, scale * size * total + region.constant(vector))
        if point.bound <= 0 < total and any(vector.limit_prices):
            # The limits ate up all the worth: less of it is more.
            scale, vector = region.fitted(*sized, no_limit_prices=True)
            point = PricePoint(vector, scale * size * total + region.constant(vector))
        return point, cuts

    def _remember(
        self, options: NDArray[Any], own_options: list[tuple[int, ...]] | None = None
    ) -> list[Cut]:
        """Keep what a pass chose and return its cuts.

        Unless told otherwise, a job with a branch of its own takes what its kind takes.
        """
        region = self.region
        if own_options is None:
            own_options = [
                tuple(options[self.jobs.kind_of[job]].tolist()) for job in region.own_priced
            ]
        alone = not (self.jobs.repeated or region.own_priced)
        totals = group_totals(options, self.starts, None if alone else self.weights)
        cuts = [Cut(tuple(load)) for load in totals]
        for job, option in zip(region.own_priced, own_options, strict=True):
            mine = ((at, option[i]) for at, i, j in region.job_terms if j == job)
            cuts.append(Cut(option, tuple(mine)))
        self.options.append(shortened(options))
        self.own_options.append(own_options)
        return cuts

    def _pay_nobody(self, prices: Sequence[int], multipliers: list[int]) -> None:
        """Lower multipliers that rounding left so high that a job would be paid for a block."""
        region = self.region
        for at, i, job in region.job_terms:
            if region.path[at].sign > 0:
                own = region.prices_of_job(job, prices, multipliers)[i]
                if own < 0:
                    multipliers[at] = max(0, multipliers[at] + own)
