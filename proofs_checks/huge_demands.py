"""Huge demands (theory 2.4 and 6.5): what can be bought at once, and how small the gap becomes.

**Statement.** For whole supply and block prices let b be the type with the least price a unit. Some
cheapest option of a job uses at most f_b - 1 blocks of all other types together, so of a demand d
the first ceil((d - (f_b - 1) max f)/f_b) blocks of type b can be bought at once; and OPT exceeds
LP_agg by no more than n + min(c, k) machines, however large the demands are.

**Machine-checked.** The lemma for all supplies up to 5 of two types and up to 3 of three types, all
demands up to 24 and several prices, by enumeration; hence the price of a job of 10^12 and more, by
buying at once, which is what :class:`cms.BlockPrices` says too; what is left to search for does not
grow with the demand. On every generated instance with demands times 10^12: T-add's schedule is
valid and within LP_agg + p + n. Then `greedy`, `lp_rounding` and `ptas` on these.

**On paper.** The pigeonhole argument: among any f_b blocks of other types some have a total that
f_b divides, and may be exchanged for blocks of type b.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import ceil

from cms import BlockPrices, solve
from cms import check as violations

from .bounds import lp_agg
from .brute_force import options
from .families import UNIT, stream
from .finding import Tally, require, theorem
from .prices import Prices, shown, worth
from .promises import Solver, answered, proved
from .t2_tadd import repaired
from .theorem_b import additive_loss
from .tiny import Blocks, Tiny, check_cost

HUGE = 10**12
#: How each method is asked.
METHODS: Mapping[str, Mapping[str, object]] = {
    "greedy": {"variant": "best"},
    "lp_rounding": {"variant": "doubling"},
    "ptas": {"epsilon": "1/2"},
}


def most_machines(tiny: Tiny, method: str) -> Fraction:
    """Return what a method's machines are at most: T-add, T-2, or Theorem B beyond T-add."""
    value, p = lp_agg(tiny).value, min(tiny.c, tiny.k)
    if method == "lp_rounding":
        return 2 * value + p
    return value + p + tiny.n + (additive_loss(tiny.k) if method == "ptas" else 0)


def best_type(supply: Blocks, prices: Prices) -> int:
    """Return the type of the least price a unit, the first of equals."""
    useful = [i for i, f in enumerate(supply) if f]
    return min(useful, key=lambda i: prices[i] / supply[i])


def at_once(supply: Blocks, b: int, demand: int) -> int:
    """Return how many blocks of type b some cheapest option is certain to hold."""
    return max(0, ceil(Fraction(demand - (supply[b] - 1) * max(supply), supply[b])))


def cheapest_price(supply: Blocks, prices: Prices, demand: int) -> Fraction:
    """Return what a cheapest option costs, by enumeration."""
    if demand <= 0:
        return Fraction(0)
    tiny = Tiny.of([demand], [supply], [[1] * len(supply)])
    return min(worth(prices, option) for option in options(tiny, 0))


def price_at_once(supply: Blocks, prices: Prices, demand: int) -> Fraction:
    """Return the same for any demand: most is bought at once, the rest enumerated."""
    b = best_type(supply, prices)
    number = at_once(supply, b, demand)
    return number * prices[b] + cheapest_price(supply, prices, demand - number * supply[b])


@theorem(
    "Huge demands",
    "few blocks of other types, by enumeration; prices and schedules at 10^12",
    ratio="(ALG - LP_agg) / (n + min(c, k))",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 100, solver: Solver | None = solve) -> None:
    """Check huge demands; see the top of this file.

    ``cases`` also limits the supplies for which the lemma is enumerated, taken in a random order.
    """
    rng = random.Random(seed)
    supplies = list(_supplies())
    rng.shuffle(supplies)
    for supply in supplies[: 2 * cases]:
        tally.check(f"supply {supply}", _require_few_others, supply, rng)
    for one in stream(seed, cases, UNIT):
        tiny = one.tiny.times(HUGE)
        tally.check(f"{one}, times {HUGE}", _plain, tiny)
        if solver is not None:
            for method in METHODS:
                tally.check(f"{one}, times {HUGE}, by {method}", _ours, solver, tiny, method)


def _supplies() -> Iterator[Blocks]:
    yield from product(range(1, 6), repeat=2)
    yield from product(range(1, 4), repeat=3)


def _require_few_others(supply: Blocks, rng: random.Random) -> None:
    k = len(supply)
    for _ in range(4):
        prices = tuple(Fraction(rng.randint(1, 6), rng.choice([1, 2])) for _ in range(k))
        b = best_type(supply, prices)
        for demand in range(1, 25):
            tiny = Tiny.of([demand], [supply], [[1] * k])
            least = cheapest_price(supply, prices, demand)
            fewest = min(
                sum(option) - option[b]
                for option in options(tiny, 0)
                if worth(prices, option) == least
            )
            require(
                fewest <= supply[b] - 1,
                f"prices {shown(prices)}, demand {demand}: {fewest} blocks beside type {b}",
            )
            _require_enough_at_once(supply, b, demand)
            bought = price_at_once(supply, prices, demand)
            require(bought == least, f"demand {demand} costs {least}, bought at once {bought}")
        demand = rng.randint(HUGE, 10 * HUGE)
        _require_enough_at_once(supply, b, demand)
        said = _certified(supply, prices, demand)
        bought = price_at_once(supply, prices, demand)
        require(said == bought, f"BlockPrices says {said} of {demand}, bought at once {bought}")


def _require_enough_at_once(supply: Blocks, b: int, demand: int) -> None:
    """What is left to search for does not depend on the demand."""
    left, most = demand - at_once(supply, b, demand) * supply[b], (supply[b] - 1) * max(supply)
    require(left <= most, f"of {demand}, {left} is left to search for, at most {most} need be")


def _certified(supply: Blocks, prices: Prices, demand: int) -> Fraction:
    """What the package says of the cheapest option, by a certificate scaled into the region."""
    tiny = Tiny.of([demand], [supply], [[1] * len(supply)])
    total = sum(prices, Fraction(0))
    leaf = BlockPrices({f"b{i}": price / total for i, price in enumerate(prices)})
    return total * leaf.bound(tiny.problem())


def _plain(tiny: Tiny) -> Fraction:
    value, most = lp_agg(tiny).value, tiny.n + min(tiny.c, tiny.k)
    counts, _ = repaired(tiny)
    over = check_cost(tiny, *counts) - value
    require(over <= most, f"T-add exceeds LP_agg by {over}, at most {most} is proved")
    return over / most


def _ours(solver: Solver, tiny: Tiny, method: str) -> None:
    problem, value = tiny.problem(), lp_agg(tiny).value
    solution = answered(solver, problem, method, **METHODS[method])
    require(not violations(problem, solution.schedule), f"{method}: the schedule is not valid")
    cost, most = solution.schedule.cost(problem), most_machines(tiny, method)
    said = proved(solution, problem)
    require(said <= cost, f"{method}: the certificate proves {said}, the cost is {cost}")
    require(value <= cost <= most, f"{method}: cost {cost}, LP_agg = {value}, at most {most}")
