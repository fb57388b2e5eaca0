"""G-int (theory 2.2): greedy is within a harmonic number of the optimum, on integer data.

**Statement.** For integer demands and supply, opening again and again a machine whose gain is at
least beta times the largest costs ALG <= H(g_max) OPT / beta, where g_max is the largest gain of
any machine at the start and H(m) = 1 + 1/2 + ... + 1/m. With costs: the largest gain for its cost.

**Machine-checked.** H's recurrence, for a symbol, and its values up to 60 with sympy; that the
payments 1, 1/2, ..., 1/m of a machine's units sum to H(m). The bound and, step by step, the
inequality behind it (each step gains at least beta times what is left for its cost, over OPT), on
all set covers of three elements and on every generated instance, for beta = 1 and 1/2. Then
`greedy` with `variant="units"`, both inner methods, plain.

**On paper.** The credit argument: just before the l-th last unit of a machine of an optimal
schedule is covered, that machine would gain at least l.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from cms import Reference, solve

from .brute_force import optimum
from .families import (
    WHOLE,
    Instance,
    costs,
    covers_of_three,
    harmonic_trap,
    named,
    set_cover,
    stream,
)
from .finding import Tally, require, theorem
from .greedy import Inner, best_pair_first, brought, by_trying_all, gain, run, schedule
from .promises import Promise, Solver, cost_of, in_floats, promised
from .tiny import Tiny, check_cost, dot

#: What the two ways to fill one machine are worth, by the name `greedy` has for them.
INNER: dict[str, tuple[Inner, Fraction]] = {
    "exact": (by_trying_all, Fraction(1)),
    "greedy": (best_pair_first, Fraction(1, 2)),
}


def harmonic(m: int) -> Fraction:
    """Return H(m) = 1 + 1/2 + ... + 1/m."""
    return sum((Fraction(1, unit) for unit in range(1, m + 1)), Fraction(0))


@cache
def largest_gain(tiny: Tiny) -> int:
    """Return g_max: the most units of demand that one machine meets."""
    weights = [Fraction(1)] * tiny.n
    gains = (
        gain(weights, tiny.demands, brought(tiny, by_trying_all(tiny, C, weights, tiny.demands)))
        for C in range(tiny.c)
    )
    return int(max(gains))


def promise_for(tiny: Tiny, beta: Fraction) -> Promise:
    """Return what G-int lets greedy promise without solving an inner problem for its largest gain.

    For g_max greedy takes a bound: no machine meets more than its blocks do, each by itself, nor
    more than all jobs would take if each had the machine alone.
    """
    most = [max(row[i] for row in tiny.cut) for i in range(tiny.k)]
    gains = (
        min(
            dot(shape, most),
            sum(min(d, dot(shape, row)) for d, row in zip(tiny.demands, tiny.cut, strict=True)),
        )
        for shape in tiny.configurations
    )
    factor = harmonic(int(max(gains))) / beta
    return Promise(Reference.OPT, in_floats(max(factor, Fraction(1))))


@theorem(
    "G-int",
    "H by sympy; every step and the bound, also on all set covers of 3 elements; greedy",
    ratio="cost / (H(g_max) OPT / beta)",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 200, solver: Solver | None = solve) -> None:
    """Check G-int; see the top of this file."""
    tally.check("harmonic numbers", _require_harmonic)
    trap = Instance("harmonic-trap", 2, set_cover(8, harmonic_trap(2)))
    covers = (Instance("cover", at, set_cover(3, sets)) for at, sets in covers_of_three())
    for one in (*named(), trap, *covers, *stream(seed, cases, (*WHOLE, costs))):
        for name, (inner, beta) in INNER.items() if one.tiny.is_whole else ():
            tally.check(f"{one}, {name}", _plain, one.tiny, inner, beta)
            if solver is not None and one.family != "cover":
                tally.check(f"{one}, {name}, by greedy", _ours, solver, one.tiny, name, beta)


def _require_harmonic() -> None:
    import sympy

    m = sympy.Symbol("m", integer=True, positive=True)
    step = sympy.expand_func(sympy.harmonic(m + 1)) - sympy.harmonic(m) - 1 / (m + 1)
    require(sympy.simplify(step) == 0, f"H(m + 1) - H(m) - 1/(m + 1) is {step}")
    for number in range(61):
        known = sympy.harmonic(number)
        same = harmonic(number) == Fraction(int(known.p), int(known.q))
        require(same, f"H({number}) is {known}, not {harmonic(number)}")


def _plain(tiny: Tiny, inner: Inner, beta: Fraction) -> Fraction:
    best = optimum(tiny).cost
    weights = [Fraction(1)] * tiny.n
    steps = run(tiny, weights, tiny.demands, inner)
    for potential, machine in steps:
        # The machines of an optimal schedule cover what is left, so one is as good as the average.
        least = beta * potential * tiny.costs[machine.configuration] / best
        require(machine.gain >= least, f"a step gains {machine.gain}, less than {least}")
    bound = harmonic(largest_gain(tiny)) * best / beta
    cost = check_cost(tiny, *schedule(tiny, steps))
    require(cost <= bound, f"cost {cost}, bound {bound}, optimum {best}")
    return cost / bound


def _ours(solver: Solver, tiny: Tiny, name: str, beta: Fraction) -> Fraction:
    bound = harmonic(largest_gain(tiny)) * optimum(tiny).cost / beta
    promise = promise_for(tiny, beta)
    answer = promised(solver, tiny, "greedy", promise, variant="units", inner=name, plain=True)
    cost = cost_of(answer)
    require(cost <= bound, f"greedy units, inner {name}: cost {cost}, bound {bound}")
    return cost / bound
