"""Block prices (theory 6.1 to 6.3 and 6.7): the dual of LP_DW, its certificate, its identity.

**Statement.** For prices pi >= 0 with a_C . pi <= cost_C for every configuration, let h_j be the
cheapest option of job j and L(pi) the sum of the h_j. Every schedule costs at least L(pi), and the
largest L is LP_DW. L is concave and L(t pi) = t L(pi); the blocks g(pi) that the jobs would buy are
a supergradient: L(pi') <= g(pi) . pi'. For every schedule of machines x and options o_j

    cost - L(pi) = sum_C (cost_C - a_C . pi) x_C + pi . (sum_C a_C x_C - sum_j o_j)
                   + sum_j (pi . o_j - h_j),

and no term is negative; so a schedule below a known cost holds no option, no number of machines and
no number of idle blocks whose reduced cost exceeds what is left.

**Machine-checked.** On every generated instance, exactly in rationals: the duals of LP_DW lie in
the region and L there is LP_DW; the duals of LP_agg give prices at least as good as its value;
random prices, scaled into the region, stay below LP_DW and OPT, and :class:`cms.BlockPrices` proves
the same bound for all these prices; concavity, homogeneity, the supergradient; the identity with
its signs for an optimal schedule and for random ones; that an optimal schedule passes the
reduced-cost tests for its own cost. Then the certificate of `branch_and_price`.

**On paper.** The duality itself; that minimal options are enough.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple, TypeAlias

from cms import BlockPrices, solve

from .bounds import lp_agg_duals, lp_dw
from .brute_force import optimum, options
from .families import ALL, named, stream
from .finding import Breach, Tally, require, theorem
from .promises import Solver, answered, proved
from .tiny import Blocks, Tiny, dot

Prices: TypeAlias = tuple[Fraction, ...]


class Terms(NamedTuple):
    """The three terms of the identity."""

    machines: Fraction
    idle: Fraction
    options: Fraction


def worth(prices: Prices, blocks: Sequence[int | Fraction]) -> Fraction:
    """Return what blocks are worth at these prices."""
    return dot(prices, blocks)


def cheapest(tiny: Tiny, j: int, prices: Prices) -> Blocks:
    """Return a cheapest option of a job."""
    return min(options(tiny, j), key=lambda option: worth(prices, option))


def bound(tiny: Tiny, prices: Prices) -> Fraction:
    """Return L at these prices."""
    return sum((worth(prices, cheapest(tiny, j, prices)) for j in range(tiny.n)), Fraction(0))


def load(tiny: Tiny, prices: Prices) -> Blocks:
    """Return g, the blocks all jobs would buy."""
    bought = [cheapest(tiny, j, prices) for j in range(tiny.n)]
    return tuple(sum(option[i] for option in bought) for i in range(tiny.k))


def in_region(tiny: Tiny, prices: Prices) -> bool:
    """Whether no price is negative and no configuration is worth more than it costs."""
    values = [worth(prices, row) for row in tiny.configurations]
    return min(prices) >= 0 and all(v <= c for v, c in zip(values, tiny.costs, strict=True))


def scaled_in(tiny: Tiny, prices: Prices) -> Prices:
    """Scale prices down, if need be, until they lie in the region."""
    pairs = zip(tiny.configurations, tiny.costs, strict=True)
    over = max(worth(prices, row) / cost for row, cost in pairs)
    return tuple(p / over for p in prices) if over > 1 else prices


def dual_prices(tiny: Tiny) -> Prices:
    """Return the duals of LP_DW's rows of blocks."""
    return lp_dw(tiny).prices


def identity(tiny: Tiny, prices: Prices, machines: Sequence[int], taken: Sequence[Blocks]) -> Terms:
    """Return the terms that a schedule's cost exceeds L(prices) by."""
    spare = [
        held - sum(option[i] for option in taken) for i, held in enumerate(tiny.held_by(machines))
    ]
    reduced = (
        (cost - worth(prices, row)) * x
        for cost, row, x in zip(tiny.costs, tiny.configurations, machines, strict=True)
    )
    extra = (
        worth(prices, option) - worth(prices, cheapest(tiny, j, prices))
        for j, option in enumerate(taken)
    )
    return Terms(sum(reduced, Fraction(0)), worth(prices, spare), sum(extra, Fraction(0)))


@theorem(
    "Block prices",
    "duals of LP_DW and LP_agg; L's shape; the identity; certificates",
    ratio="L / OPT",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 200, solver: Solver | None = solve) -> None:
    """Check the theory of prices; see the top of this file."""
    for one in (*named(), *stream(seed, cases, ALL)):
        with tally.case(one):
            tally.seen(_optimal_prices(one.tiny))
            rng = random.Random(f"prices of {one}")
            for _ in range(3):
                _any_prices(one.tiny, rng)
        if solver is not None:
            tally.check(f"{one}, by branch_and_price", _ours, solver, one.tiny)


def _optimal_prices(tiny: Tiny) -> Fraction:
    prices, value = dual_prices(tiny), lp_dw(tiny).value
    require(in_region(tiny, prices), f"the duals {shown(prices)} are not in the region")
    best = bound(tiny, prices)
    require(best == value, f"L is {best} at the duals {shown(prices)}, LP_DW = {value}")
    _require_certificate(tiny, prices)
    _require_reduced_costs(tiny, prices)
    aggregated, weights = lp_agg_duals(tiny)
    coarse = tuple(
        max(w * row[i] for w, row in zip(weights, tiny.cut, strict=True)) for i in range(tiny.k)
    )
    held = tuple(p if i in tiny.held else Fraction(0) for i, p in enumerate(coarse))
    require(in_region(tiny, held), f"LP_agg's prices {shown(held)} are not in the region")
    weaker = bound(tiny, held)
    require(aggregated <= weaker <= value, f"LP_agg {aggregated}, L {weaker}, LP_DW {value}")
    return best / optimum(tiny).cost


def _any_prices(tiny: Tiny, rng: random.Random) -> None:
    best, value = optimum(tiny), lp_dw(tiny).value
    some, other = (
        scaled_in(tiny, tuple(Fraction(rng.randint(0, 6), 4) for _ in range(tiny.k)))
        for _ in range(2)
    )
    low = bound(tiny, some)
    require(low <= value, f"L({shown(some)}) = {low}, LP_DW = {value}")
    if tiny.has_unit_costs:
        require(ceil(low) <= best.cost, f"L({shown(some)}) = {low}, OPT = {best.cost}")
    _require_certificate(tiny, some)
    middle = tuple((a + b) / 2 for a, b in zip(some, other, strict=True))
    between = (low + bound(tiny, other)) / 2
    require(bound(tiny, middle) >= between, f"L is not concave at {shown(middle)}")
    for factor in (Fraction(1, 3), Fraction(5)):
        scaled = tuple(factor * p for p in some)
        require(bound(tiny, scaled) == factor * low, f"L({factor} {shown(some)}) is another")
    cut = load(tiny, some)
    require(worth(some, cut) == low, f"the load {cut} is not worth L({shown(some)})")
    above = worth(other, cut) >= bound(tiny, other)
    require(above, f"the load {cut} is no supergradient at {shown(other)}")
    _require_identity(tiny, some, best.machines, best.given)
    taken = [rng.choice(options(tiny, j)) for j in range(tiny.n)]
    _require_identity(tiny, some, _enough_for(tiny, taken), taken)


def _enough_for(tiny: Tiny, taken: Sequence[Blocks]) -> list[int]:
    """Machines that hold these options, a machine a block."""
    machines = [0] * tiny.c
    for i in tiny.held:
        machines[tiny.cheapest_with(i)] += sum(option[i] for option in taken)
    return machines


def _require_identity(
    tiny: Tiny, prices: Prices, machines: Sequence[int], taken: Sequence[Blocks]
) -> None:
    terms, low = identity(tiny, prices, machines, taken), bound(tiny, prices)
    over = tiny.cost(machines) - low
    require(sum(terms) == over, f"{terms} do not add up to {over} at {shown(prices)}")
    require(min(terms) >= 0, f"{terms} at {shown(prices)}")


def _require_reduced_costs(tiny: Tiny, prices: Prices) -> None:
    """An optimal schedule passes every test that a schedule of cost OPT has to pass."""
    best = optimum(tiny)
    left = best.cost - bound(tiny, prices)
    for j, option in enumerate(best.given):
        extra = worth(prices, option) - worth(prices, cheapest(tiny, j, prices))
        require(extra <= left, f"job {j} takes {option}, {extra} too dear; {left} is left")
    for C, number in enumerate(best.machines):
        reduced = tiny.costs[C] - worth(prices, tiny.configurations[C])
        if reduced:
            most = floor(left / reduced)
            require(number <= most, f"{number} machines of {C}, at most {most} are possible")
    for i, held in enumerate(tiny.held_by(best.machines)):
        if prices[i]:
            spare, most = held - sum(o[i] for o in best.given), floor(left / prices[i])
            require(spare <= most, f"{spare} blocks of type {i} idle, at most {most} can")


def _require_certificate(tiny: Tiny, prices: Prices) -> None:
    """The package's certificate says the same of these prices."""
    leaf = BlockPrices({f"b{i}": prices[i] for i in tiny.held})
    said, low = leaf.bound(tiny.problem()), bound(tiny, prices)
    require(said == low, f"BlockPrices {shown(prices)} proves {said}, L is {low}")


def _ours(solver: Solver, tiny: Tiny) -> None:
    problem = tiny.problem()
    solution = answered(solver, problem, "branch_and_price")
    certificate = solution.certificate
    said, best = proved(solution, problem), optimum(tiny).cost
    require(said <= best, f"the certificate proves {said}, OPT = {best}")
    if isinstance(certificate, BlockPrices):
        prices = tuple(certificate.prices.get(f"b{i}", Fraction(0)) for i in range(tiny.k))
        if not in_region(tiny, prices):
            raise Breach(f"the certificate's prices {shown(prices)} are not in the region")
        require(said <= lp_dw(tiny).value, f"prices prove {said}, LP_DW = {lp_dw(tiny).value}")
        low = bound(tiny, prices)
        require(said == low, f"the certificate proves {said}, L is {low}")


def shown(prices: Prices) -> str:
    """Return prices as text."""
    return f"({', '.join(map(str, prices))})"
