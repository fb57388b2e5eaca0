"""Cutting planes in the space of block prices: the bound LP_DW and its certificate (theory 6.4).

At given prices every job buys its cheapest option; the blocks all jobs buy together are a
supergradient of the bound, hence a cut. A small linear program over the cuts found so far proposes
the next prices, rationals near the best ones are tried in the end, and every bound is computed
exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.certificate import round_up
from cms.knapsack import COMPILED_FROM, price_jobs

from .mixture import exact_mixture
from .price_space import PriceSpace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from cms.algorithm import Budget
    from cms.certificate import BlockPrices
    from cms.problem import Problem

#: Prices are tried as multiples of 2**-40; on compiled rows of 2**-b, with b as large as fits.
_GRID_BITS = 40
_MOST_PASSES = 400
#: Smaller coefficients of a cut (relative to its largest) would only be bad pivots; the master's
#: value is a hint, never a bound.
_NOISE = 1e-8
#: The relative difference at which the master and the best bound count as equal.
_CLOSE = Fraction(1, 10**7)
#: With this many jobs the first pass already counts as an answer.
EARLY_FROM = 1_000
#: Options of every pass are kept for problems up to this size, to mix them into a schedule.
_KEEP_OPTIONS = 20_000


class PricePoint(NamedTuple):
    """Valid prices, their exact bound, and the fractional solution behind them.

    ``mix`` holds the share of each pass in the fractional solution, with that pass's options;
    ``machines`` the fractional number of machines of each row of the price space.
    """

    certificate: BlockPrices
    prices: tuple[Fraction, ...]
    limit_prices: tuple[Fraction, ...]
    bound: Fraction
    mix: tuple[tuple[Fraction, NDArray[Any]], ...] = ()
    machines: tuple[tuple[Fraction, tuple[int, ...], int], ...] = ()


class _Master:
    """The linear program over the cuts, warm-started from pass to pass."""

    def __init__(self, space: PriceSpace, scale: int, largest_rent: float) -> None:
        from ortools.linear_solver import pywraplp

        self._space, self._scale = space, scale
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        infinity = self._solver.infinity()
        fixed = space.fixed_at_zero
        self._value = self._solver.NumVar(-infinity, infinity, "v")
        self._prices = [
            self._solver.NumVar(0, 0 if i in fixed else infinity, "")
            for i in range(len(space.blocks))
        ]
        self._limit_prices = [
            self._solver.NumVar(0, 0 if limit is None else largest_rent, "")
            for limit in space.limits
        ]
        objective = self._solver.Objective()
        objective.SetMaximization()
        objective.SetCoefficient(self._value, 1)
        for variable, limit in zip(self._limit_prices, space.limits, strict=True):
            objective.SetCoefficient(variable, -(limit or 0) / scale)
        self._cuts: list[Any] = []
        self._rows: list[Any] = []
        # Of the last solve: the cuts' shares, and how many machines the rows stand for.
        self.weights: list[float] = []
        self.machines: list[Fraction] = []

    def add_cut(self, load: Sequence[int]) -> None:
        cut = self._solver.RowConstraint(-self._solver.infinity(), 0, "")
        cut.SetCoefficient(self._value, 1)
        # Divisions of integers: exact to the last bit however large the demands are.
        shares = [blocks / self._scale for blocks in load]
        for variable, share in zip(self._prices, shares, strict=True):
            if share > _NOISE * max(shares):
                cut.SetCoefficient(variable, -share)
        self._cuts.append(cut)

    def solve(self) -> tuple[list[float], Fraction] | None:
        """Return the next prices and the master's value; None if the program failed."""
        space = self._space
        for counts, machine in space.rows[len(self._rows) :]:
            row = self._solver.RowConstraint(
                -self._solver.infinity(), float(space.costs[machine]), ""
            )
            for variable, count in zip(self._prices, counts, strict=True):
                if count:
                    row.SetCoefficient(variable, count)
            row.SetCoefficient(self._limit_prices[machine], -1)
            self._rows.append(row)
        if self._solver.Solve() != self._solver.OPTIMAL:
            return None
        prices = self._polished()
        self.weights = [max(0.0, cut.dual_value()) for cut in self._cuts]
        self.machines = [Fraction(max(0.0, row.dual_value())) * self._scale for row in self._rows]
        return prices, Fraction(self._solver.Objective().Value()) * self._scale

    def _polished(self) -> list[float]:
        """Return the prices with the constraints that hold them solved once more.

        The simplex method stops at a tolerance of about 1e-7, which is a machine in ten million;
        the equations themselves are small and well-conditioned.
        """
        k = len(self._prices)
        variables = [*self._prices, *self._limit_prices, self._value]
        x = np.array([variable.solution_value() for variable in variables])
        holding = [c for c in [*self._rows, *self._cuts] if abs(c.dual_value()) > 1e-9]
        fixed = [at for at, variable in enumerate(variables) if x[at] == 0 and at < len(x) - 1]
        a = np.zeros((len(holding) + len(fixed), len(x)))
        b = np.zeros(len(a))
        for at, constraint in enumerate(holding):
            a[at] = [constraint.GetCoefficient(variable) for variable in variables]
            b[at] = constraint.ub()
        for at, column in enumerate(fixed, start=len(holding)):
            a[at, column] = 1
        correction = np.linalg.lstsq(a, b - a @ x, rcond=None)[0] if len(a) else np.zeros(len(x))
        if np.abs(correction).max(initial=0) < 1e-4 * max(1.0, np.abs(x).max(initial=0)):
            x = x + correction
        prices: list[float] = np.maximum(x[:k], 0.0).tolist()
        return prices


class PriceSearch:
    """The search for the best prices of a problem.

    Parameters
    ----------
    problem : Problem
        Reduced (every block serves some job and lies in some configuration).
    budget : Budget
    free_machines : bool, default False
        Search for a proof of infeasibility instead; see :class:`PriceSpace`.

    Attributes
    ----------
    best : PricePoint or None
    """

    def __init__(self, problem: Problem, budget: Budget, *, free_machines: bool = False) -> None:
        self.problem, self._budget = problem, budget
        self.space = PriceSpace(problem, free_machines=free_machines)
        self._free_machines = free_machines
        self.best: PricePoint | None = None
        # By load, in the order of the cuts.
        self._options: dict[tuple[int, ...], NDArray[Any]] = {}
        self._grid: int = 2 ** _grid_bits(problem)

    def run(self) -> Iterator[PricePoint]:
        """Yield better and better points: now and then in a long search, the simplest one last."""
        k = len(self.space.blocks)
        if not k or not self.problem.n_jobs:
            return
        used = {row.machine for row in self.space.rows}
        largest = max((self.space.costs[machine] for machine in used), default=0)
        largest_rent = 1.0 if self._free_machines else 1e3 * float(largest or 1)
        start = self._start()
        evaluation = self._evaluate(start)
        if evaluation is None:
            return
        self._improve(self._nothing())
        self._improve(evaluation[0])
        if self.problem.n_jobs >= EARLY_FROM and self.best is not None:
            yield self.best
        master = _Master(self.space, max(1, sum(evaluation[1])), largest_rent)
        master.add_cut(evaluation[1])
        seen = {evaluation[1]}
        centre = start
        for number in range(_MOST_PASSES):
            if self._budget.stopped:
                return
            answer = master.solve()
            if answer is None:
                break
            target, upper = answer
            if self._closed(upper):
                break
            # Halfway to the maximiser tames the oscillation; every third step goes all the way,
            # so that the cuts end the search (theory 6.4).
            pull = 1.0 if number % 3 == 0 else 0.5
            point = [c + pull * (t - c) for c, t in zip(centre, target, strict=True)]
            evaluation = self._evaluate(point)
            if evaluation is None:
                return
            if self._improve(evaluation[0]):
                centre = point
            if evaluation[1] in seen:
                if pull == 1.0:
                    break  # the maximiser itself: its cut was there, so the master's value stands
            else:
                seen.add(evaluation[1])
                master.add_cut(evaluation[1])
            # Counting passes instead of seconds keeps runs reproducible.
            often = self.problem.n_jobs >= EARLY_FROM or number >= 31
            if often and (number + 1) & number == 0 and self.best is not None:
                yield self.best
        if self.best is not None and not self._budget.stopped:
            self._attach(master)
            self._simplify()
            yield self.best

    def _start(self) -> list[float]:
        """Prices at which each machine is worth its cost through its most frequent block alone."""
        fixed = self.space.fixed_at_zero
        most = [
            max((row.counts[i] for row in self.space.rows), default=0)
            for i in range(len(self.space.blocks))
        ]
        return [0.0 if i in fixed else 1 / max(1, count) for i, count in enumerate(most)]

    def _evaluate(self, prices: Sequence[float]) -> tuple[PricePoint, tuple[int, ...]] | None:
        integers = [int(Fraction(price) * self._grid) for price in prices]
        return self._evaluate_integers(integers, self._grid, keep=True)

    def _evaluate_integers(
        self, integers: Sequence[int], denominator: int, *, keep: bool
    ) -> tuple[PricePoint, tuple[int, ...]] | None:
        keep = keep and self.problem.n_jobs <= _KEEP_OPTIONS
        pricing = price_jobs(
            self.problem.rows,
            integers,
            want_options=keep,
            threads=self._budget.threads,
            stopped=lambda: self._budget.stopped,
        )
        if pricing is None:
            return None
        if keep and pricing.options is not None:
            self._options.setdefault(pricing.load, pricing.options)
        prices = [Fraction(price, denominator) for price in integers]
        scale, limit_prices = self.space.valid(prices)
        # the cheapest options are homogeneous in the prices, so the scaled bound needs no new pass
        bound = scale * Fraction(pricing.total, denominator) - self.space.rent(limit_prices)
        valid = tuple(scale * price for price in prices)
        certificate = self.space.certificate(valid, limit_prices)
        point = PricePoint(certificate, valid, tuple(limit_prices), bound)
        return point, pricing.load

    def _nothing(self) -> PricePoint:
        """Prices of 0, which always hold and prove a bound of 0."""
        prices = tuple(Fraction(0) for _ in self.space.blocks)
        rents = tuple(Fraction(0) for _ in self.space.limits)
        return PricePoint(self.space.certificate(prices, rents), prices, rents, Fraction(0))

    def _improve(self, point: PricePoint) -> bool:
        better = self.best is None or point.bound > self.best.bound
        if better:
            self.best = point
        return better

    def _closed(self, upper: Fraction) -> bool:
        """Whether the bound can no longer rise by a whole step (or, without steps, noticeably)."""
        if self.best is None:
            return False
        tolerance = _CLOSE * max(Fraction(1), abs(upper))
        if upper - self.best.bound <= tolerance:
            return True
        step = self.problem.cost_step
        if self._free_machines or not step:
            return False
        reachable = max(Fraction(0), upper - tolerance)
        return round_up(self.best.bound, step) >= round_up(reachable, step)

    def _attach(self, master: _Master) -> None:
        """Remember the fractional solution at the end of the search."""
        if self.best is None or not self._options:
            return
        passes = [
            (load, weight)
            for load, weight in zip(self._options, master.weights, strict=False)
            if weight > 1e-9
        ]
        rows = [
            (row, amount)
            for row, amount in zip(self.space.rows, master.machines, strict=False)
            if amount > 1e-9
        ]
        exact = exact_mixture(
            [load for load, _ in passes],
            [weight for _, weight in passes],
            [row.counts for row, _ in rows],
            [amount for _, amount in rows],
        )
        weights, machines = exact or (
            [Fraction(weight) for _, weight in passes],
            [amount for _, amount in rows],
        )
        self.best = self.best._replace(
            mix=tuple(
                (weight, self._options[load])
                for weight, (load, _) in zip(weights, passes, strict=True)
            ),
            machines=tuple(
                (amount, row.counts, row.machine)
                for amount, (row, _) in zip(machines, rows, strict=True)
            ),
        )

    def _simplify(self) -> None:
        """Look for prices with a small denominator that are as good, for people to read."""
        best = self.best
        if best is None:
            return
        floats = [float(price) for price in best.prices]
        step = self.problem.cost_step
        tried = 0
        for q in range(1, 1000):
            integers = [round(price * q) for price in floats]
            error = max(abs(price * q - p) for price, p in zip(floats, integers, strict=True))
            if error > 0.02 or tried >= 6:
                continue
            tried += 1
            evaluation = self._evaluate_integers(integers, q, keep=False)
            if evaluation is None:
                return
            point = evaluation[0]
            as_good = point.bound >= best.bound or (
                not self._free_machines
                and step
                and round_up(point.bound, step) >= round_up(best.bound, step)
                and point.bound >= best.bound * Fraction(999, 1000)
            )
            if as_good:
                self.best = point._replace(mix=best.mix, machines=best.machines)
                return


def _grid_bits(problem: Problem) -> int:
    """Return how fine prices may be so that compiled pricing does not overflow."""
    if problem.n_jobs < COMPILED_FROM:
        return _GRID_BITS
    image = problem.rows.outer
    reach = int((image.demand + image.supply.max(axis=1, initial=0)).max())
    return max(10, min(_GRID_BITS, 60 - reach.bit_length()))
