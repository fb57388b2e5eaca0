"""Blocks that jobs share in time: cycles, price functions, the image in CMS, the dearest mix.

**Statement.** Job s has a demand d_s, a limit T_s, and points (a, L) on each type of block. A mix
takes a point of each of some jobs; its cycle D is the sum of their lengths, a job's rate a / D. It
is admitted if D + L <= T_s for each of its jobs (`round_robin`), or 2 D <= T_s
(`collect_then_run`).

1. For rates q_s let F(D) be the sum of the shortest lengths with a >= q_s D. D <- F(D), from 0,
   ends at the least cycle D* with F(D*) <= D*, or where no point is large enough; the rates can be
   hosted if and only if the rule holds at D*.
2. For weights w >= 0 the most that w . rates can be is attained by a mix of one job. So the linear
   bound without truncation, LP_0, is the same with and without sharing.
3. At unit costs, ceil(LP_0) <= OPT with sharing <= OPT without <= ceil(LP_0) + n - 1.
4. Let phi_s be subadditive, never fall, and be 0 at 0. If no mix on a block i is worth more than
   pi_i, the sum over its jobs of phi_s at their rates, and no configuration more than it costs at
   these prices, then every schedule costs at least the sum of phi_s(d_s).
5. The problem is a plain one: a block type (s, r) "serves s at the rate r", and for each
   configuration all that arise where each of its blocks takes a mix or nothing. No price functions
   prove more than LP_DW of this image, and some prove as much: phi_s(x), the least price of blocks
   (s, r) whose rates sum to x.
6. For cycles in [lo, hi], numbers u >= D (what a point pays in D) and any k in [0, p]: if the sum
   over jobs of max(0, u - k L) is at most (p - k) lo, no mix of such a cycle is worth more than p.

**Machine-checked.** All of it on random instances of up to three jobs, against definitions written
out here: every mix, every hosting, optima by search machine by machine. In 5 both optima, and all
that is asked of the functions that LP_DW's duals give. Of 4 also that ``MixPrices`` says the same,
and refuses a price that is 1 % lower where a mix is then worth more; of 6 that the search of the
package and the one of the second checker find the dearest mix, and none above it.

**On paper.** 1: if a mix in the cycle D hosts q, F(D) <= D, so that no iterate exceeds D; the rules
hold at D* if they do at D. 2: sum w a / sum L is a mean of the w a / L, and a point is admitted
alone if it is in a mix. 3: a vertex of the program over contents of machines has n positive
columns. 4 and 5: ``docs/reference/files.md``, ``checker/functions.py``. 6: ``checker/dearest.py``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TypeAlias

from cms import InvalidCertificate, MixPrices, PriceFunction, TimeSharedProblem
from cms.time_sharing.dearest import dearest_mix, offers_of

from .bounds import compact, lp_dw
from .brute_force import optimum, options
from .finding import Tally, require, theorem
from .offered import by_the_checker
from .shared import (
    ZERO,
    BatchPoint,
    Mixed,
    Rates,
    Share,
    Shared,
    alone,
    best_cost,
    contents,
    drawn,
    image,
    lp_0,
    mixes,
)
from .tiny import Tiny, dot

Phi: TypeAlias = Callable[[Fraction], Fraction]


# -- 1: the least cycle ------------------------------------------------------------------------


def shortest(points: Sequence[BatchPoint], amount: Fraction) -> Fraction | None:
    """Return the shortest length of a point with at least this amount."""
    return min((length for a, length in points if a >= amount), default=None)


def least_cycle(points: Sequence[Sequence[BatchPoint]], rates: Rates) -> Fraction | None:
    """Return D*; None where no point is large enough."""
    cycle = ZERO
    while True:
        lengths = [shortest(own, q * cycle) for own, q in zip(points, rates, strict=True)]
        if None in lengths:
            return None
        longer = sum((length for length in lengths if length is not None), ZERO)
        if longer <= cycle:
            return cycle
        cycle = longer


def _least_cycles(shared: Shared, rng: random.Random) -> None:
    i = rng.randrange(len(shared.configurations[0]))
    rates = tuple(Fraction(rng.randint(1, 8), 16) for _ in shared.jobs)
    hosted = any(
        all(m >= q for m, q in zip(mix.rates, rates, strict=True)) for mix in mixes(shared, i)
    )
    points = [job.points[i] for job in shared.jobs]
    cycle = least_cycle(points, rates)
    fits = cycle is not None and all(
        shared.admits(cycle, shortest(job.points[i], q * cycle) or ZERO, job.limit)
        for job, q in zip(shared.jobs, rates, strict=True)
    )
    require(fits == hosted, f"rates {rates} on {i}: D* = {cycle}, hosted by some mix: {hosted}")


# -- 2 and 3: the linear bound without truncation -----------------------------------------------


def linear_bounds(shared: Shared, rng: random.Random) -> Fraction:
    """Check what is claimed of the linear bounds of a problem; return OPT over the last one."""
    weights = [rng.randint(0, 5) for _ in shared.jobs]
    for i in range(len(shared.configurations[0])):
        every = [(dot(m.rates, weights), sum(map(bool, m.rates))) for m in mixes(shared, i)]
        most = max((value for value, _ in every), default=ZERO)
        single = max((value for value, jobs in every if jobs == 1), default=ZERO)
        require(single == most, f"weights {weights} on {i}: {single} alone, {most} at most")
    plain, bound = alone(shared), lp_0(shared)
    unshared = compact(plain, plain.supply)
    require(unshared is not None and unshared.value == bound, f"LP_0 {bound}, alone {unshared}")
    best, without, n = best_cost(shared), optimum(plain).cost, len(shared.jobs)
    chain = ceil(bound) <= best <= without <= ceil(bound) + n - 1
    require(chain, f"LP_0 {bound}, OPT {best}, {without} without sharing, {n} jobs")
    return Fraction(best, ceil(bound) + n - 1)


# -- 4: price functions -------------------------------------------------------------------------


def function_of(job: Share, rng: random.Random) -> PriceFunction:
    """Draw a price function."""
    steps = [
        (Fraction(rng.randint(1, 6)) / job.demand, Fraction(rng.randint(0, 4), 6))
        for _ in range(rng.randint(0, 2))
    ]
    return PriceFunction(Fraction(rng.randint(0, 6), 3), steps)


def phi(function: PriceFunction, demand: Fraction) -> Phi:
    """Return the function of rates, written out."""

    def value(rate: Fraction) -> Fraction:
        x = min(rate, demand)
        return function.slope * x / demand + sum(b * ceil(t * x) for t, b in function.steps)

    return value


def dearest(shared: Shared, i: int, functions: Sequence[Phi]) -> Fraction:
    """Return the most that a mix on a type of block is worth; 0 if nothing is."""
    worths = [_worth(mix, functions) for mix in mixes(shared, i)]
    return max(worths, default=ZERO)


def _worth(mix: Mixed, functions: Sequence[Phi]) -> Fraction:
    return sum((f(r) for f, r in zip(functions, mix.rates, strict=True) if r), ZERO)


def _priced(shared: Shared, functions: Sequence[Phi]) -> tuple[list[Fraction], Fraction]:
    """Return the least prices of blocks, and the dearest configuration at these."""
    prices = [dearest(shared, i, functions) for i in range(len(shared.configurations[0]))]
    return prices, max(dot(row, prices) for row in shared.configurations)


def _functions(shared: Shared, rng: random.Random) -> None:
    given = [function_of(job, rng) for job in shared.jobs]
    plain = [phi(f, job.demand) for f, job in zip(given, shared.jobs, strict=True)]
    prices, over = _priced(shared, plain)
    scale = 1 / over if over else Fraction(1)
    total = sum((f(job.demand) for f, job in zip(plain, shared.jobs, strict=True)), ZERO)
    bound = scale * total
    require(ceil(bound) <= best_cost(shared), f"{given} prove {bound}, OPT {best_cost(shared)}")
    value = lp_dw(image(shared)).value
    require(bound <= value, f"{given} prove {bound}, LP_DW of the image is {value}")
    functions = {f"j{s}": f.scaled(scale) for s, f in enumerate(given)}
    named = {f"b{i}": scale * price for i, price in enumerate(prices)}
    problem = shared.problem()
    said = MixPrices(named, functions=functions).bound(problem)
    require(said == bound, f"MixPrices {named} {functions} prove {said}, not {bound}")
    for block, price in named.items():
        if price:
            _require_refused(problem, {**named, block: price * Fraction(99, 100)}, functions)


def _require_refused(
    problem: TimeSharedProblem,
    prices: Mapping[str, Fraction],
    functions: Mapping[str, PriceFunction],
) -> None:
    try:
        MixPrices(prices, functions=functions).bound(problem)
    except InvalidCertificate:
        return
    require(False, f"MixPrices {prices} {functions} hold, though a mix is worth more")


# -- 5: the image in CMS ------------------------------------------------------------------------


def from_prices(tiny: Tiny, j: int, prices: Sequence[Fraction]) -> Phi:
    """Return phi of job j: the least price of blocks whose rates sum to so much at least."""

    def value(x: Fraction) -> Fraction:
        if not x:
            return ZERO
        asked = replace(tiny, demands=(x,) * tiny.n)
        return min(dot(prices, option) for option in options(asked, j))

    return value


def _image(shared: Shared, rng: random.Random) -> None:
    tiny = image(shared)
    cost = optimum(tiny).cost
    require(cost == best_cost(shared), f"the image costs {cost}, OPT is {best_cost(shared)}")
    found = lp_dw(tiny)
    functions = [from_prices(tiny, j, found.prices) for j in range(tiny.n)]
    for j, f in enumerate(functions):
        require(f(ZERO) == 0, f"phi of job {j} is {f(ZERO)} at 0")
        for i, rate in enumerate(tiny.supply[j]):
            if rate:
                require(f(rate) <= found.prices[i], f"phi of job {j} is above the price at {rate}")
        one, two = (Fraction(rng.randint(0, 24), 8) for _ in range(2))
        require(f(one) <= f(one + two) <= f(one) + f(two), f"phi of job {j} at {one} and {two}")
    over = max(
        sum((_worth(Mixed(ZERO, rates), functions) for rates in blocks), ZERO)
        for blocks in contents(shared)
    )
    require(over <= 1, f"a machine is worth {over} at the functions of LP_DW's duals")
    total = sum((f(d) for f, d in zip(functions, tiny.demands, strict=True)), ZERO)
    require(total == found.value, f"the functions prove {total}, LP_DW is {found.value}")


# -- 6: the dearest mix -------------------------------------------------------------------------


def most_paid(
    function: PriceFunction, demand: Fraction, amount: Fraction, lo: Fraction, hi: Fraction
) -> Fraction:
    """Return u: at least D times what a point of this amount pays, for all D in [lo, hi]."""
    u = function.slope * min(amount / demand, hi)
    for t, height in function.steps:
        u += height * min(hi * ceil(t * min(amount / lo, demand)), t * amount + hi)
    return u


def _intervals(shared: Shared, rng: random.Random) -> None:
    i = rng.randrange(len(shared.configurations[0]))
    given = [function_of(job, rng) for job in shared.jobs]
    plain = [phi(f, job.demand) for f, job in zip(given, shared.jobs, strict=True)]
    every = [(mix.cycle, _worth(mix, plain)) for mix in mixes(shared, i)]
    best = max((worth for _, worth in every), default=ZERO)
    for _ in range(20):
        lo = Fraction(rng.randint(1, 40), 4)
        hi = lo * Fraction(rng.randint(10, 14), 10)
        price = best * Fraction(rng.randint(2, 12), 10)
        k = price * Fraction(rng.randint(0, 10), 10)
        left = ZERO
        for f, job in zip(given, shared.jobs, strict=True):
            terms = [
                most_paid(f, job.demand, a, lo, hi) - k * length
                for a, length in job.points[i]
                if length <= hi and shared.admits(lo, length, job.limit)
            ]
            left += max([ZERO, *terms])
        if left <= (price - k) * lo:
            wrong = [one for one in every if lo <= one[0] <= hi and one[1] > price]
            require(not wrong, f"{given} on {i}, [{lo}, {hi}], k = {k}: {wrong} above {price}")
    _searches(shared, i, given, best)


def _searches(shared: Shared, i: int, given: Sequence[PriceFunction], best: Fraction) -> None:
    """The search of the package and that of the second checker find the dearest mix."""
    problem = shared.problem()
    offers = offers_of(problem, f"b{i}", {f"j{s}": f for s, f in enumerate(given)}, {})
    found = dearest_mix(offers, above=ZERO).dearest
    worth = ZERO if found is None else found.worth
    require(worth == best, f"the dearest mix on {i} is worth {worth}, by enumeration {best}")
    require(by_the_checker(offers, best) is None, f"the checker finds one above {best} on {i}")
    if best:
        below = best * Fraction(99, 100)
        require(by_the_checker(offers, below) is not None, "it finds none")


@theorem(
    "Time sharing",
    "cycles, LP_0, price functions, the image in CMS, the dearest mix",
    ratio="OPT / (LP_0 rounded up + n - 1)",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 60) -> None:
    """Run the machine check."""
    for number in range(cases):
        rng = random.Random(f"time sharing {seed} {number}")
        shared = drawn(rng)
        with tally.case(f"problem {number}: {shared}"):
            tally.seen(linear_bounds(shared, rng))
            for part in (_least_cycles, _functions, _intervals):
                for _ in range(4):
                    part(shared, rng)
            _image(shared, rng)
