"""Theorem B (theory 4): LP_DW rounds with an additive loss that depends on k alone.

**Statement.** In a basic optimal solution of LP_DW with p positive machine counts, at most k - p
jobs are split between options. An unsplit job takes its option, a split job its mean option with
every entry rounded up, ceil(x_C) machines are opened, and one more machine for each missing block:
ALG < LP_DW + K with K = max(k, (k - 1)^2). So k = 1 is solved exactly and k = 2 within one machine.
With costs: the rounded-up machines and the missing blocks' machines count with their cost.

**Machine-checked.** On every generated instance, exactly: the number of split jobs r <= k - p; at
most r - 1 missing blocks of each type, none if r = 0; the schedule by the definition; the bound, in
the finer form with p and in the form with K; k = 1 and k = 2. That K is the maximum over p of
p + k max(0, k - p - 1), for k up to 60. Then `ptas`, whose every answer keeps the bound.

**On paper.** That a basic solution has at most k + n positive variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from cms import solve

from .bounds import lp_dw
from .brute_force import optimum
from .families import ALL, named, stream
from .finding import Finding, Tally, require
from .promises import Solver, promised
from .tiny import Blocks, Counts, Tiny, require_schedule

THEOREM = "Theorem B"


def additive_loss(k: int) -> int:
    """Return K.

    Examples
    --------
    >>> [additive_loss(k) for k in range(1, 6)]
    [1, 2, 4, 9, 16]
    """
    return max(k, (k - 1) ** 2)


def mean(options: Sequence[tuple[Blocks, Fraction]]) -> list[Fraction]:
    """Return the weighted mean of options.

    Examples
    --------
    >>> mean([((2, 0), Fraction(1, 4)), ((0, 1), Fraction(3, 4))])
    [Fraction(1, 2), Fraction(3, 4)]
    """
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
    """Round the basic solution, before the missing blocks are bought.

    Examples
    --------
    >>> rounded_options(Tiny.of([1, 1], [[1], [1]], [[3]]))
    Counts(machines=[1], given=[[1], [1]])
    """
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


def check(*, seed: int = 0, cases: int = 350, solver: Solver | None = solve) -> Finding:
    """Check Theorem B; see the top of this file.

    Examples
    --------
    >>> check(cases=2).ok
    True
    """
    tally = Tally(
        THEOREM,
        "split jobs, missing blocks, the bound; k = 1 and 2; K for k up to 60; ptas",
        ratio="(ALG - LP_DW) / K",
        proved="< 1",
    )
    with tally.case("K is the maximum"):
        for k in range(1, 61):
            most = max(p + k * max(0, k - p - 1) for p in range(1, k + 1))
            require(additive_loss(k) == most, f"K({k}) is {additive_loss(k)}, not {most}")
    for one in (*named(), *stream(seed, cases, ALL)):
        with tally.case(one):
            tally.seen(_plain(one.tiny))
        if solver is not None:
            with tally.case(f"{one}, by ptas"):
                tally.seen(_ours(solver, one.tiny))
    return tally.finding()


def _plain(tiny: Tiny) -> Fraction:
    solution, k = lp_dw(tiny), tiny.k
    p = sum(x > 0 for x in solution.x)
    split = sum(len(options) > 1 for options in solution.z)
    require(p >= 1, "no machine count is positive")
    require(split <= k - p, f"{split} jobs are split, k = {k}, p = {p}")
    lacking = missing(tiny, rounded_options(tiny))
    most = max(0, split - 1)
    require(max(lacking) <= most, f"{lacking} blocks are missing, {split} jobs are split")
    counts = theorem_b(tiny)
    require_schedule(tiny, *counts)
    cost = tiny.cost(counts.machines)
    up = sum((price for price, x in zip(tiny.costs, solution.x, strict=True) if x), Fraction(0))
    bought = sum(n * tiny.costs[tiny.cheapest_with(i)] for i, n in enumerate(lacking) if n)
    finer = solution.value + up + bought
    require(cost < finer, f"cost {cost}, finer bound {finer}")
    if tiny.has_unit_costs:
        best = optimum(tiny).cost
        require(k != 1 or cost == best, f"k = 1: cost {cost}, OPT = {best}")
        require(k != 2 or cost <= best + 1, f"k = 2: cost {cost}, OPT = {best}")
    return _within(tiny, cost)


def _ours(solver: Solver, tiny: Tiny) -> Fraction:
    return _within(tiny, promised(solver, tiny, "ptas", epsilon=1, plain=True))


def _within(tiny: Tiny, cost: Fraction) -> Fraction:
    """Check the bound with K, and return how much of it is used."""
    loss, value = additive_loss(tiny.k) * max(tiny.costs), lp_dw(tiny).value
    require(cost < value + loss, f"cost {cost}, LP_DW = {value}, K = {loss}")
    return (cost - value) / loss
