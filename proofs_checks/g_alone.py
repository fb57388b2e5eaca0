"""G-alone: greedy in terms of what jobs cost by themselves; a factor in log min(n, s).

**Statement.** Let V_jC = min(d_j, what a machine of C brings job j alone) and weigh job j by
rho_j = min_C cost_C/V_jC. Run greedy against the targets (1 + delta) d_j and stop when the original
demands hold. With N = min(n, s), n jobs and at most s blocks on a machine:
ALG <= (1 + delta)/beta (1 + ln(N/min(1, delta))) OPT, also with costs. With the factor beta*, at
most beta, that a filling has of the assignment program (3/4 for the best one, 1/2 for item greedy)
the same holds against LP* instead of OPT.

**Machine-checked.** On every generated instance, for delta = 3/10, 1, 3 and the best one, beta = 1
and 1/2: that sum_j rho_j d_j <= N LP* (the potential starts at 1 + delta times that); that every
step gains, for its cost, at least beta times the larger one of potential/((1 + delta) OPT) and
min(1, delta), and beta* times that of LP*, exactly; both bounds. With sympy: what these rates add
up to. Then `greedy` with `variant="alone"`, plain.

**On paper.** From the rates to the sum: a step costs at most its gain over the least rate while it
lasts, and the rates only fall. While a job is short, more than delta d_j of its target is left, so
that a machine for it alone gains min(1, delta) for its cost. The gap 3/4, and 1/2 for item greedy.
"""

from __future__ import annotations

from fractions import Fraction
from math import log

from cms import Reference, solve

from .bounds import lp_star
from .brute_force import optimum
from .families import ALL, named, stream
from .finding import Tally, require, theorem
from .g_int import INNER
from .g_real import targets
from .greedy import Inner, run, schedule
from .promises import Promise, Solver, cost_of, in_floats, promised
from .tiny import Tiny, check_cost

#: The factor that a filling has of the assignment program, by the names of `g_int.INNER`.
OF_THE_PROGRAM = {"exact": Fraction(3, 4), "greedy": Fraction(1, 2)}
# How far a float may be off where an inequality between rationals and logarithms is decided.
_SLACK = 1e-9
# How much larger the factor is at any rational that counts as near the best delta.
_NEAR = 1.01


def alone(tiny: Tiny, j: int) -> Fraction:
    """Return rho_j: what a unit of a job's demand costs on the best machine that it has alone."""
    amounts = [
        min(tiny.demands[j], sum(a * f for a, f in zip(row, tiny.cut[j], strict=True)))
        for row in tiny.configurations
    ]
    return min(cost / v for cost, v in zip(tiny.costs, amounts, strict=True) if v)


def factor(few: int, delta: Fraction) -> float:
    """Return (1 + delta) (1 + ln(N/min(1, delta))), what G-alone proves for beta = 1."""
    return float(1 + delta) * (1 + log(few / min(Fraction(1), delta)))


def best_delta(few: int) -> Fraction:
    """Return a rational at which the factor is nearly the least: ln(N/delta) = 1/delta."""
    return min((Fraction(i, 50) for i in range(1, 51)), key=lambda delta: factor(few, delta))


@theorem(
    "G-alone",
    "sum rho_j d_j; the rate of every step; bounds against OPT and LP*; greedy alone",
    ratio="cost / bound",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 80, solver: Solver | None = solve) -> None:
    """Check G-alone; see the top of this file."""
    tally.check("the sum of the rates", _require_sum)
    for one in (*named(), *stream(seed, cases, ALL)):
        few = min(one.tiny.n, one.tiny.s)
        for name, (inner, beta) in INNER.items():
            for delta in (Fraction(3, 10), Fraction(1), Fraction(3), best_delta(few)):
                with tally.case(f"{one}, {name}, delta = {delta}"):
                    tally.seen(_plain(one.tiny, inner, beta, OF_THE_PROGRAM[name], delta))
            if solver is not None:
                tally.check(f"{one}, {name}, by greedy", _ours, solver, one.tiny, name, beta)


def _require_sum() -> None:
    import sympy

    delta, gain, few, x = sympy.symbols("delta gain N x", positive=True)
    # The potential, in units of the optimum, falls from (1 + delta) N to 0.
    switch = gain * (1 + delta)
    total = sympy.integrate((1 + delta) / x, (x, switch, (1 + delta) * few)) + switch / gain
    rest = sympy.simplify(
        sympy.expand_log(total - (1 + delta) * (1 + sympy.log(few / gain)), force=True)
    )
    require(rest == 0, f"the rates add up to {rest} more")


def _plain(
    tiny: Tiny, inner: Inner, beta: Fraction, of_program: Fraction, delta: Fraction
) -> float:
    best, star = optimum(tiny).cost, lp_star(tiny).value
    few = min(tiny.n, tiny.s)
    weights = [alone(tiny, j) for j in range(tiny.n)]
    whole = sum(rho * demand for rho, demand in zip(weights, tiny.demands, strict=True))
    require(whole <= few * star, f"sum rho_j d_j is {whole} > {few} LP* = {few * star}")
    steps = run(tiny, weights, targets(tiny, delta), inner)
    require(bool(steps), "stops before the first step")
    require(steps[0].potential == (1 + delta) * whole, f"starts at {steps[0].potential}")
    for potential, machine in steps:
        rate = machine.gain / tiny.costs[machine.configuration]
        for share, value in ((beta, best), (of_program, star)):
            least = share * max(potential / ((1 + delta) * value), min(Fraction(1), delta))
            require(rate >= least, f"a step gains {rate} a unit of cost, less than {least}")
    cost, proved = check_cost(tiny, *schedule(tiny, steps)), factor(few, delta)
    bound = proved / float(beta) * float(best)
    require(cost <= bound + _SLACK, f"cost {cost}, bound {bound}")
    against = proved / float(of_program) * float(star)
    require(cost <= against + _SLACK, f"cost {cost}, bound {against} by LP*")
    return float(cost) / bound


def _ours(solver: Solver, tiny: Tiny, name: str, beta: Fraction) -> float:
    # Its delta is another rational near the best one.
    few = min(tiny.n, tiny.s)
    proved = _NEAR * factor(few, best_delta(few)) / float(beta)
    promise = Promise(Reference.OPT, in_floats(Fraction(proved)))
    answer = promised(solver, tiny, "greedy", promise, variant="alone", inner=name, plain=True)
    cost, bound = cost_of(answer), proved * float(optimum(tiny).cost)
    require(cost <= bound + _SLACK, f"cost {cost}, bound {bound}")
    return float(cost) / bound
