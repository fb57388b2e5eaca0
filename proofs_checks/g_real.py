"""G-real (theory 2.2): greedy against inflated targets, on arbitrary real data.

**Statement.** Weigh job j by 1/d_j, run greedy against the targets (1 + delta) d_j and stop when
the original demands hold: ALG <= ceil((1 + delta)/beta OPT ln((1 + delta) n/delta)). The best delta
is 1/(kappa - 1) where kappa - 1 - ln kappa = ln n; the factor is then kappa(n)/beta. With costs:
the same without rounding up, plus the cost of the last machine.

**Machine-checked.** That this delta is stationary and the factor there is kappa, with sympy; the
table of kappa(n) of theory 2.2, digit by digit. On every generated instance and for delta = 3/10,
1/2, 1 and the best one, beta = 1 and 1/2: that the potential starts at (1 + delta) n, that every
step takes off at least beta times its share (exactly), and the bound. Then `greedy` with
`variant="inflated"`, plain.

**On paper.** The logarithm: a potential that loses such a share in every step is at most delta in
the end, which leaves no job short of its original demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, e, log

from cms import Reference, solve

from .brute_force import optimum
from .families import ALL, named, stream
from .finding import Tally, require, theorem
from .g_int import INNER
from .greedy import Inner, run, schedule
from .promises import Promise, Solver, cost_of, in_floats, promised
from .tiny import Tiny, check_cost

#: n: kappa(n) and e/(e - 1) kappa(n), in hundredths, rounded up.
TABLE: Mapping[int, tuple[int, int]] = {
    2: (268, 424),
    4: (370, 585),
    8: (461, 729),
    16: (548, 866),
    64: (713, 1127),
    256: (871, 1378),
    1024: (1026, 1624),
    10**4: (1276, 2019),
    10**6: (1769, 2799),
}
# How far a float may be off where an inequality between rationals and logarithms is decided.
_SLACK = 1e-9
# How much larger the factor is at any rational that counts as near the best delta.
_NEAR = 1.01


def kappa(n: int) -> float:
    """Return the solution >= 1 of kappa - 1 - ln kappa = ln n, by bisection, from above."""
    low, high = 1.0, 3.0 + 2.0 * log(n)
    for _ in range(100):
        middle = (low + high) / 2
        if middle - 1 - log(middle) < log(n):
            low = middle
        else:
            high = middle
    return high


def best_delta(n: int) -> Fraction:
    """Return a rational close to 1/(kappa - 1); 1 for a single job, where larger is ever better."""
    return Fraction(1) if n == 1 else Fraction(1 / (kappa(n) - 1)).limit_denominator(50)


def factor(n: int, delta: Fraction) -> float:
    """Return (1 + delta) ln((1 + delta) n/delta), what G-real proves for beta = 1."""
    return float(1 + delta) * log((1 + delta) * n / delta)


def targets(tiny: Tiny, delta: Fraction) -> list[Fraction]:
    """Return the inflated targets."""
    return [(1 + delta) * demand for demand in tiny.demands]


@theorem(
    "G-real",
    "best delta by sympy, table of kappa; every step and the bound; greedy inflated",
    ratio="cost / bound",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 80, solver: Solver | None = solve) -> None:
    """Check G-real; see the top of this file."""
    tally.check("the best delta", _require_stationary)
    for n, known in TABLE.items():
        tally.check(f"kappa({n})", _require_kappa, n, known)
    for one in (*named(), *stream(seed, cases, ALL)):
        for name, (inner, beta) in INNER.items():
            for delta in (Fraction(3, 10), Fraction(1, 2), Fraction(1), best_delta(one.tiny.n)):
                tally.check(f"{one}, {name}, delta = {delta}", _plain, one.tiny, inner, beta, delta)
            if solver is not None:
                tally.check(f"{one}, {name}, by greedy", _ours, solver, one.tiny, name, beta)


def _require_stationary() -> None:
    import sympy

    delta, log_n, t = sympy.symbols("delta log_n t", positive=True)
    value = (1 + delta) * (log_n + sympy.log(1 + 1 / delta))
    slope = sympy.diff(value, delta)
    # t = kappa - 1: the best delta is 1/t, and ln n is t - ln(1 + t).
    best = {delta: 1 / t, log_n: t - sympy.log(1 + t)}
    there = sympy.simplify(slope.subs(best))
    require(there == 0, f"the slope at the best delta is {there}")
    more = sympy.simplify(value.subs(best) - (1 + t))
    require(more == 0, f"the factor at the best delta is not kappa, but {more} more")
    curve = sympy.simplify(sympy.diff(slope, delta) * delta**2 * (1 + delta))
    require(curve == 1, f"the second derivative times delta^2 (1 + delta) is {curve}, not 1")


def _require_kappa(n: int, known: tuple[int, int]) -> None:
    value = kappa(n)
    require(value - 1 - log(value) >= log(n) - _SLACK, f"kappa({n}) = {value} is too small")
    found = (ceil(100 * value), ceil(100 * value * e / (e - 1)))
    require(found == known, f"the table says {known}, not {found}")


def _plain(tiny: Tiny, inner: Inner, beta: Fraction, delta: Fraction) -> float:
    best = optimum(tiny).cost
    weights = [1 / demand for demand in tiny.demands]
    steps = run(tiny, weights, targets(tiny, delta), inner)
    start = (1 + delta) * tiny.n
    require(bool(steps), "stops before the first step")
    require(steps[0].potential == start, f"starts at {steps[0].potential}, not {start}")
    for potential, machine in steps:
        share = tiny.costs[machine.configuration] / ((1 + delta) * best)
        least = beta * potential * share
        require(machine.gain >= least, f"a step gains {machine.gain}, less than {least}")
    cost = check_cost(tiny, *schedule(tiny, steps))
    last = tiny.costs[steps[-1].machine.configuration]
    return _within(tiny, cost, factor(tiny.n, delta) / float(beta), last)


def _ours(solver: Solver, tiny: Tiny, name: str, beta: Fraction) -> float:
    # Its delta is another rational near the best one.
    proved = _NEAR * factor(tiny.n, best_delta(tiny.n)) / float(beta)
    promise = Promise(Reference.OPT, in_floats(Fraction(proved)), max(tiny.costs))
    answer = promised(solver, tiny, "greedy", promise, variant="inflated", inner=name, plain=True)
    cost = cost_of(answer)
    return _within(tiny, cost, proved, max(tiny.costs))


def _within(tiny: Tiny, cost: Fraction, proved: float, last: Fraction) -> float:
    """Check the bound for this factor, and return how much of it the cost is."""
    most = proved * float(optimum(tiny).cost)
    bound = ceil(most + _SLACK) if tiny.has_unit_costs else most + float(last) + _SLACK
    require(cost <= bound, f"cost {cost}, bound {bound}")
    return float(cost) / bound
