"""Theorem A (theory 3): twice MILP_c, and no factor below 2 is possible.

**Statement.** Solve MILP_c (whole machines x, real y), take a vertex y of the program for this x,
open 2 x_C machines and round 2y by the rounding lemma: ALG = 2 MILP_c <= 2 OPT. Costs change
nothing. Partition becomes CMS with one configuration and two jobs: a block of each weight, both
jobs want half of the whole. OPT = 1 if the weights can be divided evenly, else 2; so no factor
below 2 is possible in polynomial time unless P = NP.

**Machine-checked.** The rounding on every generated instance: the schedule by the definition, its
cost exactly 2 MILP_c. Partition, both directions, for all vectors of 2 to 5 weights from 1 to 4:
OPT by enumeration against all subset sums, MILP_c = 1 unless a weight exceeds the half. That 2 is
reached (the bound against OPT on needless doubling, OPT against MILP_c on Partition). Then
`lp_rounding` with `variant="milp"`, plain (cost exactly 2 MILP_c) and not.

**On paper.** Coverage of more than 2 d_j less one block, and that Partition is NP-hard.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, combinations_with_replacement

from cms import Reference, solve

from .bounds import milp_c
from .brute_force import optimum
from .families import ALL, NAMED, named, stream
from .finding import Breach, Tally, require, theorem
from .lp import minimise
from .promises import Promise, Solver, cost_of, promised, way_of
from .rounding_lemma import Amounts, rounded
from .tiny import Counts, Tiny, check_cost

#: By how much the machines are multiplied, and what they serve.
FACTOR = 2
#: How `lp_rounding` calls this rounding.
_TWICE = "whole machines, twice"


def vertex_for(tiny: Tiny, machines: list[int]) -> Amounts | None:
    """Return a vertex y[j][i] of the program for these machines; None if they do not suffice."""
    k, places = tiny.k, [(j, i) for j in range(tiny.n) for i in range(tiny.k)]
    rows: list[list[Fraction]] = [[-Fraction(place[1] == i) for place in places] for i in range(k)]
    rows += [
        [tiny.cut[j][i] if job == j else Fraction(0) for job, i in places] for j in range(tiny.n)
    ]
    rights = [*(-blocks for blocks in tiny.held_by(machines)), *tiny.demands]
    found = minimise([0] * len(places), rows, rights)
    if found is None:
        return None
    return [list(found.point[j * k : (j + 1) * k]) for j in range(tiny.n)]


def doubled(tiny: Tiny, machines: list[int]) -> Counts | None:
    """Return the schedule of twice these machines; None if they do not suffice even in parts."""
    amounts = vertex_for(tiny, machines)
    if amounts is None:
        return None
    given = rounded([[FACTOR * y for y in row] for row in amounts]).given
    return Counts([FACTOR * x for x in machines], given)


def theorem_a(tiny: Tiny) -> Counts:
    """Run Theorem A's algorithm."""
    answer = doubled(tiny, [int(x) for x in milp_c(tiny).x])
    if answer is None:
        raise Breach("the machines of MILP_c do not suffice")
    return answer


def partition(weights: tuple[int, ...]) -> Tiny:
    """Reduce Partition to CMS."""
    half = Fraction(sum(weights), 2)
    return Tiny.of([half, half], [weights, weights], [[1] * len(weights)])


@theorem(
    "Theorem A",
    "2 MILP_c; Partition for all vectors of 2 to 5 weights up to 4; lp_rounding's milp",
    ratio="ALG / OPT",
    proved="2",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 300, solver: Solver | None = solve) -> None:
    """Check Theorem A; see the top of this file."""
    for number in range(2, 6):
        for weights in combinations_with_replacement(range(1, 5), number):
            tally.check(f"weights {weights}", _require_partition, weights)
    with tally.case("the factor is reached"):
        tiny = NAMED["needless-doubling"]
        cost = tiny.cost(theorem_a(tiny).machines)
        require(cost == 2 * optimum(tiny).cost == 2, f"needless doubling costs {cost}")
    for at, one in enumerate((*named(), *stream(seed, cases, ALL))):
        tally.check(one, _plain, one.tiny)
        if solver is not None:
            tally.check(f"{one}, by lp_rounding", _ours, solver, one.tiny, plain=at % 2 == 0)


def _require_partition(weights: tuple[int, ...]) -> None:
    total = sum(weights)
    even = any(
        2 * sum(part) == total
        for number in range(len(weights))
        for part in combinations(weights, number)
    )
    tiny = partition(weights)
    best, bound = optimum(tiny).cost, milp_c(tiny).value
    require(best == (1 if even else 2), f"divided evenly: {even}, but OPT = {best}")
    # A weight above the half is cut down to it, and then even parts do not suffice.
    known = 2 if 2 * max(weights) > total else 1
    require(bound == known, f"MILP_c is {bound}, not {known}")


def _plain(tiny: Tiny) -> Fraction:
    cost, bound = check_cost(tiny, *theorem_a(tiny)), 2 * milp_c(tiny).value
    require(cost == bound, f"cost {cost}, twice MILP_c is {bound}")
    return cost / optimum(tiny).cost


def _ours(solver: Solver, tiny: Tiny, *, plain: bool) -> Fraction:
    promise = Promise(Reference.MILP_C, Fraction(2))
    answer = promised(solver, tiny, "lp_rounding", promise, variant="milp", plain=plain)
    cost, bound = cost_of(answer), 2 * milp_c(tiny).value
    require(cost <= bound, f"lp_rounding milp, plain={plain}: cost {cost}, bound {bound}")
    # The bare algorithm opens all of them, needed or not.
    twice = plain and way_of(answer).endswith(_TWICE)
    require(not twice or cost == bound, f"lp_rounding milp, plain: cost {cost}, not {bound}")
    return cost / optimum(tiny).cost
