"""The LP version of greedy (theory 2.3): a factor in the logarithm of min(n, s), in expectation.

**Statement.** Let N = min(n, s), kappa = kappa(N) and alpha = kappa/(1 - 1/e). From a vertex
(x, y) of LP* open floor(alpha x_C) machines and one more with the fractional probability, give each
block of type i to job j with probability y_ijC/(a_iC x_C), and serve every job that falls short
alone by machines of its best configuration. Then E[ALG] <= (alpha + 2) LP*.

**Machine-checked.** With sympy: that P <= exp(t - (1 - exp(-t)) kappa) is e kappa exp(-kappa) at
t = ln kappa, and that this is at most 1/N for N = 1, ..., 2000. Two facts about independent
variables in [0, 1] on grids of variables with few values: E min(1, sum Z) >= (1 - 1/e) min(1, M)
for the total mean M, and P[sum < 1] <= e M exp(-M) for M >= 1. On every generated instance, with
the exact distribution of what each job gets: the mean of a machine truncated, P[job j is short]
<= 1/N (none of them comes near: all are below 1/(2N)), sum_j d_j/V_j <= min(n, s) LP*, and the
expectation itself. Then `greedy` with `variant="lp"`, plain.

**On paper.** The two facts for all distributions (by convexity and Markov's inequality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import ceil, e, exp, floor

from cms import Reference, solve

from .bounds import Star, best_machine, lp_star
from .families import UNIT, named, stream
from .finding import Finding, Tally, require
from .g_real import kappa
from .promises import Promise, Solver, cost_of, in_floats, promised
from .tiny import Tiny

THEOREM = "LP version"
#: Probabilities of what a job gets.
Distribution = Mapping[Fraction, float]
# How far a float may be off.
_SLACK = 1e-9


def alpha(N: int) -> Fraction:
    """Return kappa(N)/(1 - 1/e), rounded up to a thousandth.

    Examples
    --------
    >>> alpha(4)
    Fraction(2921, 500)
    """
    return Fraction(ceil(1000 * kappa(N) * e / (e - 1)), 1000)


def together(
    one: Distribution, two: Distribution, cap: Fraction | None = None
) -> dict[Fraction, float]:
    """Return the distribution of the sum of two independent amounts, capped.

    Examples
    --------
    >>> coin = {Fraction(0): 0.5, Fraction(1): 0.5}
    >>> together(coin, coin, Fraction(1))
    {Fraction(0, 1): 0.25, Fraction(1, 1): 0.75}
    """
    found: dict[Fraction, float] = {}
    for a, p in one.items():
        for b, q in two.items():
            value = a + b if cap is None else min(a + b, cap)
            found[value] = found.get(value, 0.0) + p * q
    return found


def machine(tiny: Tiny, star: Star, C: int, j: int) -> dict[Fraction, float]:
    """Return the distribution of what one machine of a configuration brings to a job."""
    amount: dict[Fraction, float] = {Fraction(0): 1.0}
    for i, blocks in enumerate(tiny.configurations[C]):
        if not blocks or not star.y[j][i][C]:
            continue
        chance = float(star.y[j][i][C] / (blocks * star.x[C]))
        block = {Fraction(0): 1.0 - chance, tiny.cut[j][i]: chance}
        for _ in range(blocks):
            amount = together(amount, block)
    return amount


def short(tiny: Tiny, star: Star, j: int, opened: Sequence[Fraction]) -> float:
    """Return the probability that a job falls short after so many machines of each configuration.

    The fractional part of a count is the probability of one more machine.
    """
    demand = tiny.demands[j]
    total: dict[Fraction, float] = {Fraction(0): 1.0}
    for C, number in enumerate(opened):
        if not number:
            continue
        here = machine(tiny, star, C, j)
        for _ in range(floor(number)):
            total = together(total, here, demand)
        chance = float(number - floor(number))
        perhaps = {value: chance * p for value, p in here.items()}
        perhaps[Fraction(0)] = perhaps.get(Fraction(0), 0.0) + 1.0 - chance
        total = together(total, perhaps, demand)
    return sum(p for value, p in total.items() if value < demand)


def check(*, seed: int = 0, cases: int = 200, solver: Solver | None = solve) -> Finding:
    """Check the LP version; see the top of this file."""
    tally = Tally(
        THEOREM,
        "tail bound by sympy and on grids; the exact expectation; sum d_j/V_j; greedy lp",
        ratio="E[cost] / ((alpha + 2) LP*)",
        proved="1",
    )
    with tally.case("the tail bound"):
        _require_tail()
    with tally.case("variables with two values"):
        _require_two_values()
    for one in (*named(), *stream(seed, cases, UNIT)):
        with tally.case(one):
            tally.seen(_plain(one.tiny))
        if solver is not None:
            with tally.case(f"{one}, by greedy"):
                _ours(solver, one.tiny)
    return tally.finding()


def _require_tail() -> None:
    import sympy

    k, t = sympy.symbols("kappa t", positive=True)
    exponent = t - (1 - sympy.exp(-t)) * k
    slope = sympy.simplify(sympy.diff(exponent, t).subs(t, sympy.log(k)))
    require(slope == 0, f"t = ln kappa is not stationary: {slope}")
    rest = sympy.simplify(exponent.subs(t, sympy.log(k)) - (1 + sympy.log(k) - k))
    require(rest == 0, f"the exponent at t = ln kappa is off by {rest}")
    for N in range(1, 2001):
        value = kappa(N)
        tail = e * value * exp(-value)
        require(tail <= 1 / N + _SLACK, f"e kappa exp(-kappa) is {tail} > 1/{N}")


@cache
def _require_two_values() -> None:
    """Check both facts for sums of up to 4 variables that are 0 or v, with probabilities p."""
    kinds = [
        {Fraction(0): 1 - p, v: p}
        for v in (Fraction(1, 3), Fraction(1, 2), Fraction(1))
        for p in (0.25, 0.5, 0.75, 1.0)
    ]
    for number in range(1, 5):
        for variables in combinations_with_replacement(kinds, number):
            total: Mapping[Fraction, float] = {Fraction(0): 1.0}
            for variable in variables:
                total = together(total, variable)
            mean = sum(float(value) * p for value, p in total.items())
            capped = sum(min(1.0, float(value)) * p for value, p in total.items())
            least = (1 - 1 / e) * min(1.0, mean)
            require(capped >= least - _SLACK, f"{variables}: {capped} < {least}")
            missed = sum(p for value, p in total.items() if value < 1)
            most = e * mean * exp(-mean) if mean >= 1 else 1.0
            require(missed <= most + _SLACK, f"{variables}: P[sum < 1] is {missed} > {most}")


def _plain(tiny: Tiny) -> float:
    star, N = lp_star(tiny), min(tiny.n, tiny.s)
    alone = [demand / best_machine(tiny, j) for j, demand in enumerate(tiny.demands)]
    require(sum(alone) <= N * star.value, f"sum d_j/V_j is {sum(alone)} > {N} LP* = {star.value}")
    for j, demand in enumerate(tiny.demands):
        for C, number in enumerate(star.x):
            if number:
                _require_truncated_mean(machine(tiny, star, C, j), demand)
    opened = [alpha(N) * x for x in star.x]
    expected = float(sum(opened))
    for j in range(tiny.n):
        chance = short(tiny, star, j, opened)
        require(chance <= 1 / N + _SLACK, f"job {j} is short with probability {chance} > 1/{N}")
        expected += chance * ceil(alone[j])
    bound = float((alpha(N) + 2) * star.value)
    require(expected <= bound + _SLACK, f"expected {expected} machines, bound {bound}")
    return expected / bound


def _require_truncated_mean(amount: Distribution, demand: Fraction) -> None:
    mean = sum(float(value / demand) * p for value, p in amount.items())
    capped = sum(float(min(value / demand, Fraction(1))) * p for value, p in amount.items())
    require(mean <= 1 + _SLACK, f"a machine brings {mean} of a demand on average")
    require(capped >= (1 - 1 / e) * mean - _SLACK, f"truncated mean {capped} of {mean}")


def _ours(solver: Solver, tiny: Tiny) -> None:
    factor = alpha(min(tiny.n, tiny.s)) + 2
    promise = Promise(Reference.LP_STAR, in_floats(factor))
    cost = cost_of(promised(solver, tiny, "greedy", promise, variant="lp", plain=True))
    bound = factor * lp_star(tiny).value
    require(cost <= bound, f"greedy lp: cost {cost}, bound {bound}")
