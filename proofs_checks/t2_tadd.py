"""T-2 and T-add (theory 1.6): what LP_agg's vertex rounds to, on every instance.

**Statement.** With p positive machine counts in a vertex (x, y) of LP_agg, p <= min(c, k): opening
ceil(2x) machines and rounding 2y serves all jobs, so ALG <= 2 LP_agg + p; with 1 + phi in place of
2, where phi is the largest part of a demand that one block meets, ALG <= (1 + phi) LP_agg + p.
Opening ceil(x), rounding y and adding one machine for each job that lost a block gives
ALG <= LP_agg + p + n. With costs, p becomes the cost of one machine of each positive x, and n that
of a cheapest machine for each job's lost block.

**Machine-checked.** All three, exactly, on every generated instance: p, the schedule by the
definition, the inequality. Then `lp_rounding` with `variant="doubling"`, plain and not.

**On paper.** The coverage: more than 2 d_j less one block, which is at most d_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from cms import Reference, solve

from .bounds import lp_agg, lp_agg_duals
from .families import ALL, NAMED, named, stream
from .finding import Tally, require, theorem
from .promises import Promise, Solver, cost_of, promised
from .rounding_lemma import rounded
from .tiny import Counts, Tiny, check_cost, dot

#: By how much T-2 scales a vertex.
FACTOR = Fraction(2)
#: The largest part of a demand that one block meets, in examples.
PHI = {"partition-yes": "3/5", "partition-no": "3/5", "ceil-gap": "9/10", "decoys": "1"}


def machines_for(amounts: Sequence[Fraction], factor: Fraction) -> list[int]:
    """Return whole numbers of machines that hold at least so many times the fractional ones."""
    return [ceil(factor * x) for x in amounts]


def scaled(tiny: Tiny, factor: Fraction) -> Counts:
    """Round LP_agg's vertex, scaled by this factor: T-2 and its finer version."""
    vertex = lp_agg(tiny)
    amounts = [[factor * y for y in row] for row in vertex.y]
    return Counts(machines_for(vertex.x, factor), rounded(amounts).given)


def repaired(tiny: Tiny) -> tuple[Counts, list[int]]:
    """Round LP_agg's vertex and serve what jobs lost: T-add; also the configurations added."""
    vertex = lp_agg(tiny)
    machines = machines_for(vertex.x, Fraction(1))
    found = rounded(vertex.y)
    given = [list(row) for row in found.given]
    added = []
    for j, lost in enumerate(found.lost):
        for i in lost:
            C = tiny.cheapest_with(i)
            machines[C] += 1
            given[j][i] += 1
            added.append(C)
    return Counts(machines, given), added


def positive_cost(tiny: Tiny, amounts: Sequence[Fraction]) -> Fraction:
    """Return the cost of one machine of each positive count: p where costs are 1."""
    return sum((cost for cost, x in zip(tiny.costs, amounts, strict=True) if x), Fraction(0))


def dearest(tiny: Tiny, number: int) -> Fraction:
    """Return what the dearest so many configurations cost, one machine each."""
    return sum(sorted(tiny.costs, reverse=True)[:number], Fraction(0))


def dearest_in_use(tiny: Tiny) -> Fraction:
    """Return what rounding up costs at most, whichever optimal vertex of LP_agg a solver takes.

    By complementary slackness only configurations worth their cost at the dual prices are used.
    """
    _, worth = lp_agg_duals(tiny)
    prices = [
        max(w * row[i] for w, row in zip(worth, tiny.cut, strict=True)) for i in range(tiny.k)
    ]
    used = [
        cost
        for cost, shape in zip(tiny.costs, tiny.configurations, strict=True)
        if dot(shape, prices) == cost
    ]
    return sum(sorted(used, reverse=True)[: tiny.k], Fraction(0))


@theorem(
    "T-2 and T-add",
    "2 LP_agg + p, (1 + phi) LP_agg + p, LP_agg + p + n; lp_rounding's doubling",
    ratio="cost / bound",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 500, solver: Solver | None = solve) -> None:
    """Check T-2 and T-add; see the top of this file."""
    for name, phi in PHI.items():
        with tally.case(f"phi of {name}"):
            require(NAMED[name].phi == Fraction(phi), f"phi is {NAMED[name].phi}, not {phi}")
    for number, one in enumerate((*named(), *stream(seed, cases, ALL))):
        tally.check(one, _plain, one.tiny)
        if solver is not None:
            tally.check(f"{one}, by lp_rounding", _ours, solver, one.tiny, plain=number % 2 == 0)


def _plain(tiny: Tiny) -> Fraction:
    vertex = lp_agg(tiny)
    p = sum(x > 0 for x in vertex.x)
    require(1 <= p <= min(tiny.c, tiny.k), f"{p} machine counts of a vertex are positive")
    rounding_up = positive_cost(tiny, vertex.x)
    closest = Fraction(0)
    for factor in (FACTOR, 1 + tiny.phi):
        cost, bound = check_cost(tiny, *scaled(tiny, factor)), factor * vertex.value + rounding_up
        require(cost < bound, f"scaled by {factor}: cost {cost}, bound {bound}")
        closest = max(closest, cost / bound)
    answer, added = repaired(tiny)
    cost = check_cost(tiny, *answer)
    require(len(added) <= tiny.n, f"{len(added)} machines are added for {tiny.n} jobs")
    bound = vertex.value + rounding_up + sum(tiny.costs[C] for C in added)
    require(cost < bound, f"T-add: cost {cost}, bound {bound}")
    return max(closest, cost / bound)


def _ours(solver: Solver, tiny: Tiny, *, plain: bool) -> Fraction:
    promise = Promise(Reference.LP_AGG, 1 + tiny.phi, dearest(tiny, min(tiny.c, tiny.k)))
    answer = promised(solver, tiny, "lp_rounding", promise, variant="doubling", plain=plain)
    cost, bound = cost_of(answer), (1 + tiny.phi) * lp_agg(tiny).value + dearest_in_use(tiny)
    require(cost <= bound, f"lp_rounding doubling, plain={plain}: cost {cost}, bound {bound}")
    return cost / bound
