"""The inner problem of greedy (theory 2.1): the best single machine, in four ways.

**Statement.** To assign the blocks of one configuration against residual demands r_j of weight w_j
is Maximum Budgeted Allocation. Item by item, the best pair first, gains at least 1/2 of the best.
The assignment program over real shares, bids cut at the budget, is at least the best; rounding each
block independently gains at least 1 - 1/e of it on average; and its gap is 3/4.

**Machine-checked.** On one configuration of every generated instance, full demands and random
residuals: 1/2 for item greedy and 3/4 for the gap, against the best of all assignments; that the
program's value is no less than the best; the exact mean of independent rounding, which for jobs
alone is compared with 1 - prod (1 - E Z). The trap in which item greedy gains 1 of 2 - 2 eta, for
eta = 1/2, ..., 1/20. Then `greedy` with each inner method, within H(g_max)/beta of the optimum.

**On paper.** 1/2 by submodularity, 1 - 1/e by convexity; that 3/4 is reached by an algorithm and is
the gap exactly (arXiv 1403.7519).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from math import e

from cms import solve

from .brute_force import optimum
from .families import WHOLE, named, stream
from .finding import Breach, Tally, require, theorem
from .g_int import harmonic, largest_gain, promise_for
from .greedy import Numbers, best_pair_first, brought, by_trying_all, gain
from .lp import minimise
from .promises import Solver, cost_of, promised
from .tiny import Tiny

#: The factor of each inner method, by the name `greedy` has for it.
FACTORS: Mapping[str, float] = {
    "greedy": 1 / 2,
    "independent": 1 - 1 / e,
    "dependent": 3 / 4,
    "exact": 1,
}
# How far a float may be off.
_SLACK = 1e-9


def shares(
    tiny: Tiny, C: int, weights: Numbers, residual: Numbers
) -> tuple[Fraction, list[list[Fraction]]]:
    """Solve the assignment program; return its value and the shares y[j][i].

    It is the dual of a covering program: a price for each type and one for each budget, which
    together cover every bid.
    """
    n, k = tiny.n, tiny.k
    places = [(j, i) for j in range(n) for i in range(k)]
    bids = [min(tiny.supply[j][i], residual[j]) for j, i in places]
    rows = [
        [*(Fraction(type_ == i) for type_ in range(k)), *(bid * (job == j) for job in range(n))]
        for (j, i), bid in zip(places, bids, strict=True)
    ]
    rights = [weights[j] * bid for (j, _), bid in zip(places, bids, strict=True)]
    vertex = minimise([*tiny.configurations[C], *residual], rows, rights)
    if vertex is None:
        raise Breach("the assignment program has no dual")
    return vertex.value, [list(vertex.duals[j * k : (j + 1) * k]) for j in range(n)]


def together(
    one: Mapping[Fraction, float], two: Mapping[Fraction, float], cap: Fraction
) -> dict[Fraction, float]:
    """Return the distribution of the sum of two independent amounts, capped."""
    found: dict[Fraction, float] = {}
    for a, p in one.items():
        for b, q in two.items():
            value = min(a + b, cap)
            found[value] = found.get(value, 0.0) + p * q
    return found


def rounded_mean(
    tiny: Tiny, C: int, residual: Numbers, amounts: list[list[Fraction]], j: int
) -> tuple[float, float]:
    """Return E min(r_j, Z) and r_j (1 - prod (1 - E Z_b/r_j)) for what independent blocks bring."""
    total: dict[Fraction, float] = {Fraction(0): 1.0}
    missed = 1.0
    for i, blocks in enumerate(tiny.configurations[C]):
        if not blocks or not amounts[j][i]:
            continue
        chance, bid = float(amounts[j][i] / blocks), min(tiny.supply[j][i], residual[j])
        for _ in range(blocks):
            total = together(total, {Fraction(0): 1.0 - chance, bid: chance}, residual[j])
            missed *= 1.0 - chance * float(bid / residual[j])
    mean = sum(float(value) * p for value, p in total.items())
    return mean, float(residual[j]) * (1.0 - missed)


@theorem(
    "Inner problem",
    "1/2, 1 - 1/e on average, the gap 3/4, the trap for 1/2; greedy's inner methods",
    ratio="best / item greedy",
    proved="2",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 150, solver: Solver | None = solve) -> None:
    """Check the inner methods; see the top of this file."""
    for part in range(2, 21):
        tally.check(f"the trap, eta = 1/{part}", _trap, Fraction(1, part))
    for one in (*named(), *stream(seed, cases, WHOLE)):
        tiny, rng = one.tiny, random.Random(f"residual of {one}")
        some = [Fraction(rng.randint(1, 4), 4) * d for d in tiny.demands]
        for name, residual in (("full", list(tiny.demands)), ("partial", some)):
            tally.check(f"{one}, {name} residuals", _plain, tiny, rng.randrange(tiny.c), residual)
        if solver is not None and tiny.is_whole:
            for inner in FACTORS:
                tally.check(f"{one}, by greedy, inner {inner}", _ours, solver, tiny, inner)


def _trap(eta: Fraction) -> Fraction:
    less = 1 - eta
    tiny, weights = Tiny.of([1, 1], [[1, less], [less, 0]], [[1, 1]]), [Fraction(1)] * 2
    found = [
        gain(weights, tiny.demands, brought(tiny, inner(tiny, 0, weights, tiny.demands)))
        for inner in (best_pair_first, by_trying_all)
    ]
    require(found == [1, 2 - 2 * eta], f"item greedy gains {found[0]}, the best is {found[1]}")
    return found[1] / found[0]


def _plain(tiny: Tiny, C: int, residual: list[Fraction]) -> Fraction:
    weights = [Fraction(1)] * tiny.n
    item, best = (
        gain(weights, residual, brought(tiny, inner(tiny, C, weights, residual)))
        for inner in (best_pair_first, by_trying_all)
    )
    require(2 * item >= best, f"item greedy gains {item}, the best is {best}")
    value, amounts = shares(tiny, C, weights, residual)
    require(value >= best, f"the program's value is {value}, the best is {best}")
    require(4 * best >= 3 * value, f"the best is {best}, the program's value {value}")
    total = 0.0
    for j in range(tiny.n):
        mean, least = rounded_mean(tiny, C, residual, amounts, j)
        require(mean >= least - _SLACK, f"job {j} gets {mean} on average, at least {least}")
        total += mean
    least = (1 - 1 / e) * float(value)
    require(total >= least - _SLACK, f"rounding gains {total} on average, at least {least}")
    return best / item if item else Fraction(1)


def _ours(solver: Solver, tiny: Tiny, inner: str) -> None:
    bound = float(harmonic(largest_gain(tiny)) * optimum(tiny).cost) / FACTORS[inner]
    promise = promise_for(tiny, Fraction(FACTORS[inner]))
    answer = promised(solver, tiny, "greedy", promise, variant="units", inner=inner, plain=True)
    cost = cost_of(answer)
    require(cost <= bound + _SLACK, f"greedy, inner {inner}: cost {cost}, bound {bound}")
