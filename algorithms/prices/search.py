"""The search for the best block prices: the bound LP_DW and its certificate (theory 6.4).

At given prices every job buys its cheapest option; what a group of jobs buys together is a
supergradient of the group's value, hence a cut. A small linear program over the cuts found so far
proposes the next prices. Every bound is computed exactly, at prices that are rationals.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.certificate.certificate import round_up
from cms.knapsack.pricing import COMPILED_FROM, common_denominator
from cms.values.numbers import has_too_many_digits

from ..solvers.floats import near, recognised
from .fraction import Fractional, exactly
from .jobs import GROUPS, MOST_SINGLE, ranges
from .master import MOST_BLOCKS, Cut, ExactMaster, Master, Proposal, block_sizes
from .passes import Passes, certificate
from .region import PricePoint, Region, Row, Share, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget, Named
    from cms.presolver.presolve import PresolvedProblem

    from .jobs import Jobs

_MOST_PASSES = 400
#: The relative difference at which the master and the best bound count as equal.
_CLOSE = Fraction(1, 10**9)
#: ... and the one from which prices are solved for exactly.
_FINE = Fraction(1, 10**5)
#: Vertices after which a last difference of this part of the cheapest machine is let be.
_PATIENCE, _LET_BE = 12, Fraction(1, 10**4)
#: Each zoom of the master finds six more digits.
_ZOOM, _MOST_ZOOMS = 2**20, 3
#: How much of the room that rounding has the fractional schedule may use up.
_ROOM = Fraction(1, 10)
#: A part of a cost step by which the fractional machines may miss the master's value.
_MATTERS = Fraction(1, 20)
#: Shares of cuts, and numbers of machines, below this are the linear program's noise.
_NOTHING = 1e-9
#: No limit's price exceeds it: beside longer numbers GLOP may not return.
_HIGHEST = 1e21
#: Binary digits that the smallest price keeps when prices are rounded.
_DIGITS = 20
#: With this many kinds the first pass already counts as an answer ...
EARLY_FROM = 2_000
#: ... as it does where a linear program over this many machines comes next ...
_MANY_ROWS = 150
#: ... and with this many so do passes in between.
_OFTEN_FROM = 200_000


class PriceSearch(Passes):
    """The search for the best prices of a reduced problem.

    With ``free_machines`` it looks for a proof of infeasibility. With ``vertex`` the fractional
    schedule becomes a basic optimal solution in exact rationals, up to 32 block types, without
    limits; for as long as :attr:`coarse` groups are split they have to be :meth:`divided`.
    ``upper`` is about the most that any prices can prove; a solver's word.
    """

    def __init__(
        self, jobs: Jobs, budget: Budget, *, free_machines: bool = False, vertex: bool = False
    ) -> None:
        region = Region(jobs.problem, free_machines=free_machines)
        super().__init__(jobs, budget, ranges(len(jobs), MOST_SINGLE, GROUPS), region)
        # Costs come in steps, but those of a vertex do not.
        self._step = Fraction(0) if vertex else jobs.problem.cost_step
        self._vertex = vertex and len(jobs.problem.blocks) <= MOST_BLOCKS
        self._vertices = 0
        self.best: PricePoint | None = None
        self.upper: Fraction | None = None
        self._cuts: dict[tuple[int, Cut], int] = {}
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
        self._improve(self._nothing())
        centre = full_machines(region)
        first = self._evaluate(centre)
        if first is None:
            return
        self._improve(first[0])
        early = len(self.jobs) >= EARLY_FROM or len(region.rows) >= _MANY_ROWS
        if early and self.best is not None:
            yield self.best
        dearest = near(region.dearest / region.unit)
        self._largest = 1.0 if region.free_machines else min(_HIGHEST, 1e3 * max(1.0, dearest))
        self._begin([first[1]], centre)
        yield from self._passes_until_closed()

    def divided(self) -> Iterator[PricePoint]:
        """Go on with :attr:`coarse` groups divided further."""
        parts = (self.kinds_of_group(group) for group in self.coarse.tolist())
        more = [part.start + ranges(part.stop - part.start, 1, GROUPS) for part in parts]
        self.starts = np.unique(np.concatenate([self.starts, *more]))
        self._vertices = self._zooms = 0
        if self.best is not None:
            passes = [self.jobs.loads(options, self.starts) for options in self.options]
            self._begin(passes, self.best.vector.prices)
            yield from self._passes_until_closed()

    def _begin(self, passes: Sequence[list[list[int]]], centre: Sequence[Fraction]) -> None:
        units = block_sizes(self.region)
        sizes = [sum(n // unit for n, unit in zip(load, units, strict=True)) for load in passes[0]]
        self._master = Master(self.region, sizes, self._largest, self._nothing().vector)
        self._cuts, self._centre = {}, centre
        for number, loads in enumerate(passes):
            self._add(loads, number)

    def refine(self) -> Iterator[PricePoint]:
        """Go on until the fractional schedule costs hardly more than the bound, for rounding."""
        if self._master is not None and self.best is not None:
            self._to_the_end = True
            yield from self._passes_until_closed()

    def _passes_until_closed(self) -> Iterator[PricePoint]:
        failed = False
        for number in range(_MOST_PASSES):
            if self._budget.stopped or self._master is None or self.best is None:
                return
            proposal = self._master.solve()
            if proposal is None:
                if not failed and not self.exact:
                    # Numbers of very different sizes: try once more from the best prices.
                    self._zoom(self._zooms)
                    failed = True
                elif not self._turns_exact():
                    break
                continue
            failed = False
            self.upper = proposal.value
            if self._closed(self.best, proposal.value):
                done = self._zooms < _MOST_ZOOMS and self._balanced(proposal.value)
                if not (self._vertex and self._turns_exact() if done else self._looks_closer()):
                    break
                continue
            # What is missing may be no more than floating-point numbers can tell.
            fine = proposal.value - self.best.bound <= _FINE * abs(proposal.value)
            pull = self._pull(number)
            rows = len(self.region.rows)
            evaluation = self._tried(proposal, pull, fine)
            if evaluation is None:
                return
            if self._improve(evaluation[0]):
                self._centre = proposal.prices
            self._vertices += self.exact
            # The maximiser itself: where its cuts were there the master's value stands, as far as
            # its digits go.
            stands = not self._add(evaluation[1]) and pull == 1 and rows == len(self.region.rows)
            if stands and not (self._looks_closer() if fine else self._turns_exact()):
                break
            # After 4, 16, 32, 64, ... passes, of few jobs from 32 on; seconds would not repeat.
            passes = number + 1
            often = len(self.jobs) >= _OFTEN_FROM and passes.bit_length() % 2 and passes > 1
            if not passes & number and (passes >= 32 or often):
                yield self.best
        if self.best is not None and not self._budget.stopped:
            yield self.best

    def _pull(self, number: int) -> Fraction:
        """How far towards the maximiser the next prices are.

        Every third step goes halfway, which tames the oscillation; the others go all the way, so
        that the cuts end the search (theory 6.4). Before vertices are tried exactly the prices
        around which floats ended have a turn: where prices tie they may stand for better rationals
        than any vertex.
        """
        if self.exact:
            return Fraction(min(1, self._vertices))
        return Fraction(1) if number % 3 != 2 or self._zooms else Fraction(1, 2)

    def _tried(
        self, proposal: Proposal, pull: Fraction, fine: bool
    ) -> tuple[PricePoint, list[list[int]]] | None:
        """Price at the master's vertex, or on the way to its proposal; None if stopped."""
        if self._master is not None and pull == 1 and (fine or self.exact):
            vertex = self._master.vertex()
            if vertex is not None:
                return self._evaluate(vertex, exactly=True)
        target = proposal.prices
        if pull != 1:
            target = [c + (t - c) * pull for c, t in zip(self._centre, target, strict=True)]
        return self._evaluate(target)

    @property
    def exact(self) -> bool:
        """Whether the fractional solution is in exact rationals."""
        return self._master is not None and not isinstance(self._master, Master)

    def _looks_closer(self) -> bool:
        """Go on with more digits, or in exact rationals; say whether there are any."""
        if self.exact or self._zooms == _MOST_ZOOMS:
            return self._turns_exact()
        self._zoom(self._zooms + 1)
        return True

    def _turns_exact(self) -> bool:
        """Go on in exact rationals, once: for a vertex, or if floats left open what is little."""
        master = self._master
        if not isinstance(master, Master) or self.best is None:
            return False
        if self._vertex:
            if len(self.coarse):
                return False
        elif (
            self.upper is None
            or self.upper - self.best.bound <= self.jobs.problem.cost_step * _MATTERS
            or self.n_groups < len(self.jobs)
            or not ExactMaster.fits(self.region, self.n_groups)
        ):
            return False
        exact = ExactMaster(self.region, self.n_groups, lambda: self._budget.stopped)
        known = chain(master.weights, repeat(0.0))
        for (group, cut), weight in zip(self._cuts, known, strict=False):
            exact.add(group, cut, weight if weight > _NOTHING else 0.0)
        for row, number in enumerate(master.machines):
            if number > _NOTHING:
                exact.use(row)
        self._master = exact
        return True

    @property
    def coarse(self) -> NDArray[np.int64]:
        """Groups of several kinds of jobs that the fractional solution splits between passes."""
        passes = np.bincount([share.group for share in self.shares], minlength=self.n_groups)
        sizes = np.diff(self.starts, append=len(self.jobs))
        return np.flatnonzero((passes[: self.n_groups] > 1) & (sizes > 1))

    @property
    def shares(self) -> list[Share]:
        """The fractional solution: what each group takes from which pass; weights add up to 1."""
        noise = 0.0 if self.exact else _NOTHING
        weights: Sequence[Any] = [] if self._master is None else self._master.weights
        return [
            Share(group, number, weight, cut)
            for ((group, cut), number), weight in zip(self._cuts.items(), weights, strict=False)
            if weight > noise
        ]

    @property
    def machines(self) -> list[tuple[Row, Fraction]]:
        """The fractional solution: how many machines there are of each row of the region."""
        noise = 0.0 if self.exact else _NOTHING
        amounts = [] if self._master is None else self._master.machines
        return [
            (row, amount)
            for row, amount in zip(self.region.rows, amounts, strict=False)
            if amount > noise
        ]

    def _nothing(self) -> PricePoint:
        region = self.region
        zeros = [(Fraction(0),) * len(part) for part in (region.blocks, region.limits)]
        return PricePoint(Vector(*zeros), Fraction(0))

    def _improve(self, point: PricePoint) -> bool:
        better = self.best is None or point.bound > self.best.bound
        if better and any(has_too_many_digits(value) for part in point.vector for value in part):
            return False  # no certificate holds such prices
        if better:
            self.best = point
        return better

    def _closed(self, best: PricePoint, upper: Fraction) -> bool:
        """Whether the bound can no longer rise by a whole step (or, without steps, noticeably)."""
        bound, unit = best.bound, self.region.unit
        if self.exact:
            patient = self._vertex and self._vertices >= _PATIENCE
            return upper - bound <= (_LET_BE * unit if patient else 0)
        tolerance = _CLOSE * max(unit, abs(upper))
        if self._step and self._zooms < _MOST_ZOOMS:
            # Of a billion machines that would be some; a closer look tells.
            tolerance = min(tolerance, self._step * _MATTERS)
        if upper - bound <= tolerance:
            return True
        if self.region.free_machines or not self._step:
            return False
        room = round_up(bound, self._step) - bound
        if self._to_the_end:
            return upper - bound <= min(_ROOM * room, self._step * _MATTERS)
        return bound + room >= round_up(max(Fraction(0), upper - tolerance), self._step)

    def _zoom(self, zooms: int) -> None:
        if isinstance(self._master, Master) and self.best is not None:
            self._zooms = zooms
            self._master = self._master.zoomed(self.best.vector, _ZOOM**zooms, self._largest)

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
        mixture = fractional(self)
        cost = sum((region.costs[row.machine] * x for row, x in mixture.machines), Fraction(0))
        return abs(cost - max(upper, self.best.bound if self.best else upper)) <= step * _MATTERS

    def _add(self, loads: Sequence[Sequence[int]], number: int = -1) -> bool:
        """Add the cuts of a pass (by default the last one); say whether any was new."""
        if self._master is None:
            return False
        before = len(self._cuts)
        for group, cut in enumerate(map(tuple, loads)):
            if (group, cut) not in self._cuts:
                self._cuts[group, cut] = number % self.passes
                self._master.add(group, cut)
        return len(self._cuts) > before

    def _evaluate(
        self, values: Sequence[Fraction], *, exactly: bool = False
    ) -> tuple[PricePoint, list[list[int]]] | None:
        """Price all jobs, by default at the rationals that approximate prices mean."""
        counted = [value / self.region.unit if value else value for value in values]
        return self.evaluate(*whole(counted, self.jobs, exactly=exactly))


def fractional(search: PriceSearch) -> Fractional:
    """Read the fractional schedule off a search at its end."""
    shares, machines = search.shares, search.machines
    totals = [Fraction(0)] * search.n_groups
    for share in shares:
        totals[share.group] += Fraction(share.weight)
    weights = [Fraction(share.weight) / totals[share.group] for share in shares]
    if not search.exact:
        exact = exactly(search.region, shares, weights, machines)
        weights, machines = exact or (weights, machines)
    found: list[list[tuple[int, Fraction]]] = [[] for _ in totals]
    for share, weight in zip(shares, weights, strict=True):
        found[share.group].append((share.number, weight))
    # If the program failed, or there was none: the last pass as it is.
    last = [(search.passes - 1, Fraction(1))]
    return Fractional([mine or last for mine in found], machines)


def ray(reduction: PresolvedProblem, jobs: Jobs, budget: Budget) -> Named | None:
    """Prove that the limits are too low for any schedule, if block prices alone can."""
    search = PriceSearch(jobs, budget, free_machines=True)
    points = search.run() if reduction.problem.limits else ()
    return next((certificate(reduction, search, p) for p in points if p.bound > 0), None)


def full_machines(region: Region) -> list[Fraction]:
    """Return prices at which a machine full of one type is worth its cost, or 1 if that is 0."""
    free = region.free()
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


def whole(values: Sequence[Fraction], jobs: Jobs, *, exactly: bool) -> tuple[list[int], int]:
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
