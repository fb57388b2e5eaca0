"""Theorem B (theory 4): LP_DW rounds with an additive loss that depends on k alone.

**Statement.** In a basic optimal solution of LP_DW with p positive machine counts, at most k - p
jobs are split between options. An unsplit job takes its option, a split job its mean option with
every entry rounded up, ceil(x_C) machines are opened, and one more machine for each missing block:
ALG < LP_DW + K with K = max(k, (k - 1)^2). So k = 1 is solved exactly and k = 2 within one machine.
With costs: the rounded-up machines and the missing blocks' machines count with their cost.

**Machine-checked.** On every generated instance, exactly: the number of split jobs r <= k - p; at
most r - 1 missing blocks of each type, none if r = 0; the schedule by the definition; the bound, in
the finer form with p and in the form with K; k = 1 and k = 2. That K is the maximum over p of
p + k max(0, k - p - 1), for k up to 60. Then `ptas`, whose every answer keeps the bound; and where
LP_DW is large enough for its rounding to be the answer, and has one optimal mean option a job, so
that all basic solutions round alike, the rounding itself: no more machines than ceil(x_C), and the
fewest that hold the missing blocks.

**On paper.** That a basic solution has at most k + n positive variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from cms import Reference, solve

from .bounds import lp_dw
from .brute_force import optimum, options
from .families import ALL, Instance, hub, named, stream
from .finding import Breach, Tally, require, theorem
from .lp import minimise
from .promises import Promise, Solver, cost_of, promised, valid, way_of
from .tiny import Blocks, Counts, Tiny, check_cost

#: How `ptas` calls its rounding.
ROUNDED = "rounding of LP_DW"
#: Two blocks of a type are missing, which one machine holds.
MISSING = Instance(
    "two missing blocks",
    0,
    Tiny.of([111, 40, 69], [[4, 0, 0, 2], [6, 2, 0, 0], [5, 0, 3, 0]], [[2, 2, 2, 2]]),
)


def additive_loss(k: int) -> int:
    """Return K."""
    return max(k, (k - 1) ** 2)


def mean(options: Sequence[tuple[Blocks, Fraction]]) -> list[Fraction]:
    """Return the weighted mean of options."""
    k = len(options[0][0])
    return [sum((w * o[i] for o, w in options), Fraction(0)) for i in range(k)]


def whole_blocks(amount: Fraction) -> int:
    """Return how many blocks a split job takes in place of a fractional number."""
    return ceil(amount)


def missing(tiny: Tiny, counts: Counts) -> list[int]:
    """Return how many blocks of each type are given beyond what the machines hold."""
    holds = tiny.held_by(counts.machines)
    return [max(0, sum(row[i] for row in counts.given) - int(holds[i])) for i in range(tiny.k)]


def with_missing(tiny: Tiny, counts: Counts, lacking: Sequence[int]) -> Counts:
    """Open a cheapest machine for every missing block."""
    machines = list(counts.machines)
    for i, number in enumerate(lacking):
        if number:
            machines[tiny.cheapest_with(i)] += number
    return Counts(machines, counts.given)


def rounded_options(tiny: Tiny) -> Counts:
    """Round the basic solution, before the missing blocks are bought."""
    solution = lp_dw(tiny)
    given = [
        list(options[0][0]) if len(options) == 1 else [whole_blocks(y) for y in mean(options)]
        for options in solution.z
    ]
    return Counts([ceil(x) for x in solution.x], given)


def theorem_b(tiny: Tiny) -> Counts:
    """Run Theorem B's algorithm."""
    counts = rounded_options(tiny)
    return with_missing(tiny, counts, missing(tiny, counts))


def rounds_one_way(tiny: Tiny) -> bool:
    """Whether all optimal solutions of LP_DW have the same machines and mean options.

    Every machine count and every number of blocks in a job's mean option is minimised and maximised
    over the optimal solutions.
    """
    solution, c = lp_dw(tiny), tiny.c
    columns = [(j, option) for j in range(tiny.n) for option in options(tiny, j)]
    rows: list[list[Fraction]] = [
        [
            *(Fraction(shape[i]) for shape in tiny.configurations),
            *(-Fraction(o[i]) for _, o in columns),
        ]
        for i in range(tiny.k)
    ]
    rights = [Fraction(0)] * tiny.k
    for sign in (1, -1):
        for job in range(tiny.n):
            rows.append([Fraction(0)] * c + [Fraction(sign * (j == job)) for j, _ in columns])
            rights.append(Fraction(sign))
    rows.append([*(-cost for cost in tiny.costs), *[Fraction(0)] * len(columns)])
    rights.append(-solution.value)

    def least(costs: Sequence[Fraction]) -> Fraction:
        found = minimise(costs, rows, rights)
        if found is None:
            raise Breach("LP_DW has no optimal solution")
        return found.value

    nothing = [Fraction(0)] * len(columns)
    for C, x in enumerate(solution.x):
        mine = [cost if at == C else Fraction(0) for at, cost in enumerate(tiny.costs)]
        others = [cost - own for cost, own in zip(tiny.costs, mine, strict=True)]
        spent = x * tiny.costs[C]
        if least([*mine, *nothing]) < spent or least([*others, *nothing]) < solution.value - spent:
            return False
    for job, weighted in enumerate(solution.z):
        most = Fraction(max(max(option) for option in options(tiny, job)))
        for i, blocks in enumerate(mean(weighted)):
            mine = [Fraction(o[i]) if j == job else Fraction(0) for j, o in columns]
            less = [most - o[i] if j == job else Fraction(0) for j, o in columns]
            free = [Fraction(0)] * c
            if least([*free, *mine]) < blocks or least([*free, *less]) < most - blocks:
                return False
    return True


@theorem(
    "Theorem B",
    "split jobs, missing blocks, the bound; k = 1 and 2; K for k up to 60; ptas",
    ratio="(ALG - LP_DW) / K",
    proved="< 1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 350, solver: Solver | None = solve) -> None:
    """Check Theorem B; see the top of this file."""
    with tally.case("K is the maximum"):
        for k in range(1, 61):
            most = max(p + k * max(0, k - p - 1) for p in range(1, k + 1))
            require(additive_loss(k) == most, f"K({k}) is {additive_loss(k)}, not {most}")
    for one in (*named(), *stream(seed, cases, ALL)):
        tally.check(one, _plain, one.tiny)
        if solver is not None:
            tally.check(f"{one}, by ptas", _ours, solver, one.tiny)
    types = set[int]()
    for one in (MISSING, *stream(seed, max(8, cases // 15), (hub,))):
        tally.check(one, _plain, one.tiny)
        if solver is not None:
            with tally.case(f"{one}, by ptas"):
                if _rounding(solver, one.tiny):
                    types.add(one.tiny.k)
    if solver is not None:
        with tally.case("every way of ptas to round is taken"):
            require(types == {3, 4}, f"its rounding is the answer for k in {types} alone")


def _plain(tiny: Tiny) -> Fraction:
    solution, k = lp_dw(tiny), tiny.k
    p = sum(x > 0 for x in solution.x)
    split = sum(len(options) > 1 for options in solution.z)
    require(p >= 1, "no machine count is positive")
    require(split <= k - p, f"{split} jobs are split, k = {k}, p = {p}")
    lacking = missing(tiny, rounded_options(tiny))
    most = max(0, split - 1)
    require(max(lacking) <= most, f"{lacking} blocks are missing, {split} jobs are split")
    cost = check_cost(tiny, *theorem_b(tiny))
    up = sum((price for price, x in zip(tiny.costs, solution.x, strict=True) if x), Fraction(0))
    bought = sum(n * tiny.costs[tiny.cheapest_with(i)] for i, n in enumerate(lacking) if n)
    finer = solution.value + up + bought
    require(cost < finer, f"cost {cost}, finer bound {finer}")
    if tiny.has_unit_costs and k <= 2:
        best = optimum(tiny).cost
        require(k != 1 or cost == best, f"k = 1: cost {cost}, OPT = {best}")
        require(k != 2 or cost <= best + 1, f"k = 2: cost {cost}, OPT = {best}")
    return _within(tiny, cost)


def _ours(solver: Solver, tiny: Tiny) -> Fraction:
    promise = promise_for(tiny, Fraction(1))
    return _within(tiny, cost_of(promised(solver, tiny, "ptas", promise, epsilon=1, plain=True)))


def promise_for(tiny: Tiny, epsilon: Fraction) -> Promise:
    """Return what `ptas` promises: an optimal schedule for one block type, 1 + epsilon beyond."""
    optimal = tiny.k == 1 and len(set(tiny.costs)) == 1
    return Promise(Reference.OPT, Fraction(1) if optimal else 1 + epsilon)


def _rounding(solver: Solver, tiny: Tiny) -> bool:
    """Hold the package's rounding to the plain one; False if it is not the answer, or not alone."""
    solution = valid(solver, tiny, "ptas", epsilon=1, plain=True)
    cost = cost_of(solution)
    _within(tiny, cost)
    if not (way_of(solution).endswith(ROUNDED) and rounds_one_way(tiny)):
        return False
    counts = rounded_options(tiny)
    most = [max(shape[i] for shape in tiny.configurations) for i in range(tiny.k)]
    bought = sum(-(-n // a) for n, a in zip(missing(tiny, counts), most, strict=True) if n)
    bound = sum(counts.machines) + bought
    require(cost <= bound, f"the rounding costs {cost}, at most {bound}: {bought} bought")
    return True


def _within(tiny: Tiny, cost: Fraction) -> Fraction:
    """Check the bound with K, and return how much of it is used."""
    loss, value = additive_loss(tiny.k) * max(tiny.costs), lp_dw(tiny).value
    require(cost < value + loss, f"cost {cost}, LP_DW = {value}, K = {loss}")
    return (cost - value) / loss
