"""Theorems A' and A'' (theory 3): 2 + epsilon and 3, without an integer program.

**Statement.** A': if LP_agg >= c/epsilon, T-2 costs at most (2 + epsilon) OPT; otherwise OPT is at
most U = (2/epsilon + 1) c, and of all whole x of sum at most U, by increasing sum, the first whose
program for y is feasible gives a schedule of 2x machines of cost at most 2 OPT. A'': of all
supports, require x_C >= 1 on it and x_C = 0 off it; the cheapest feasible program rounds to
ceil(2 x_C) <= 3 x_C machines: ALG <= 3 OPT. So the published factor 3 + epsilon is kept as well.

**Machine-checked.** Both algorithms on every generated instance (A' for epsilon = 1/2, 1 and 4,
which takes both branches; A'' with costs): the schedule by the definition, the bound, U >= OPT; A'
enumerates where LP_agg < c/epsilon, and then costs exactly 2 MILP_c; A'' at most 3 times its
program. Then `lp_rounding` with `variant="enumeration"`, `"supports"` and `"published"`, held to
the same: in both branches of A', and to 2 MILP_c where LP_agg < 1/epsilon, whatever c is.

**On paper.** That there are at most (O(1/epsilon))^c vectors and 2^c supports.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import floor

from cms import Reference, solve

from .bounds import Compact, Row, compact, lp_agg, milp_c
from .brute_force import optimum
from .families import ALL, named, stream
from .finding import Breach, Tally, require, theorem
from .promises import Promise, Solver, cost_of, promised, way_of
from .rounding_lemma import rounded
from .t2_tadd import machines_for, scaled
from .theorem_a import doubled
from .tiny import Counts, Tiny, check_cost

_EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(4))
#: What `lp_rounding` is asked for.
_EPSILON = Fraction(1, 2)
#: How it calls what it found by enumeration.
_ENUMERATED = "the cheapest machines, twice"
#: The options of `lp_rounding`, and the factor they are proved for with this epsilon.
VARIANTS = {"enumeration": Fraction(5, 2), "supports": Fraction(3), "published": Fraction(7, 2)}


def by_increasing_sum(c: int, most: int) -> Iterator[list[int]]:
    """Return the vectors of c whole numbers of sum at most so much, by increasing sum."""

    def of_sum(total: int, length: int) -> Iterator[list[int]]:
        if length == 1:
            yield [total]
            return
        for first in range(total, -1, -1):
            for rest in of_sum(total - first, length - 1):
                yield [first, *rest]

    for total in range(most + 1):
        yield from of_sum(total, c)


def enumerated(tiny: Tiny, epsilon: Fraction) -> tuple[Counts, bool]:
    """Run A'; the second value tells whether it enumerated."""
    if lp_agg(tiny).value >= tiny.c / epsilon:
        return scaled(tiny, Fraction(2)), False
    for machines in by_increasing_sum(tiny.c, floor(most_machines(tiny, epsilon))):
        answer = doubled(tiny, machines)
        if answer is not None:
            return answer, True
    raise Breach("no vector of machines within U suffices, even in parts")


def most_machines(tiny: Tiny, epsilon: Fraction) -> Fraction:
    """Return U, which OPT does not exceed if LP_agg < c/epsilon."""
    return (2 / epsilon + 1) * tiny.c


def by_supports(tiny: Tiny) -> tuple[Counts, Compact]:
    """Run A''; also the cheapest program's solution."""
    best: Compact | None = None
    for number in range(1, tiny.c + 1):
        for support in combinations(range(tiny.c), number):
            more: list[Row] = [({C: 1}, 1) for C in support]
            more += [({C: -1}, 0) for C in range(tiny.c) if C not in support]
            found = compact(tiny, tiny.cut, more)
            if found is not None and (best is None or found.value < best.value):
                best = found
    if best is None:
        raise Breach("no support is feasible")
    given = rounded([[2 * y for y in row] for row in best.y]).given
    return Counts(machines_for(best.x, Fraction(2)), given), best


@theorem(
    "Theorems A' and A''",
    "2 + epsilon by enumeration, 3 by supports; lp_rounding's three variants",
    ratio="ALG / (factor OPT)",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 100, solver: Solver | None = solve) -> None:
    """Check A' and A''; see the top of this file."""
    branches, ours = set[bool](), set[bool]()
    for one in (*named(), *stream(seed, cases, ALL)):
        tally.check(f"{one}, A''", _supports, one.tiny)
        for epsilon in _EPSILONS if one.tiny.has_unit_costs else ():
            with tally.case(f"{one}, A', epsilon = {epsilon}"):
                ratio, enumerates = _enumeration(one.tiny, epsilon)
                tally.seen(ratio)
                branches.add(enumerates)
        if solver is not None:
            for variant in VARIANTS:
                with tally.case(f"{one}, by lp_rounding {variant}"):
                    tally.seen(_ours(solver, one.tiny, variant, ours))
    with tally.case("every branch of A' is taken"):
        require(branches == {False, True}, f"only one branch was taken, of {branches}")
    if solver is not None:
        with tally.case("every branch of A' is taken by lp_rounding"):
            require(ours == {False, True}, f"only one branch was taken, of {ours}")


def _supports(tiny: Tiny) -> Fraction:
    best = optimum(tiny).cost
    answer, program = by_supports(tiny)
    cost = check_cost(tiny, *answer)
    require(program.value <= best, f"the best support costs {program.value}, OPT = {best}")
    require(cost <= 3 * program.value, f"A'': cost {cost}, the program's is {program.value}")
    return cost / (3 * best)


def _enumeration(tiny: Tiny, epsilon: Fraction) -> tuple[Fraction, bool]:
    best = optimum(tiny).cost
    answer, enumerates = enumerated(tiny, epsilon)
    cost, bound = check_cost(tiny, *answer), (2 + epsilon) * best
    few = epsilon * lp_agg(tiny).value < tiny.c
    require(enumerates == few, f"LP_agg = {lp_agg(tiny).value}, but enumerated: {enumerates}")
    if enumerates:
        most = most_machines(tiny, epsilon)
        require(best <= most, f"OPT = {best} exceeds U = {most}")
        require(cost == 2 * milp_c(tiny).value, f"cost {cost}, MILP_c = {milp_c(tiny).value}")
    require(cost <= bound, f"A', epsilon {epsilon}: cost {cost}, OPT = {best}")
    return cost / bound, enumerates


def _ours(solver: Solver, tiny: Tiny, variant: str, branches: set[bool]) -> Fraction:
    promise = Promise(Reference.OPT, VARIANTS[variant])
    options = {"variant": variant, "epsilon": _EPSILON, "plain": True}
    answer = promised(solver, tiny, "lp_rounding", promise, **options)
    cost, bound = cost_of(answer), promise.allows(tiny)
    if variant == "enumeration":
        enumerates = way_of(answer).endswith(_ENUMERATED)
        branches.add(enumerates)
        twice = 2 * milp_c(tiny).value
        require(not enumerates or cost == twice, f"enumerated: cost {cost}, 2 MILP_c = {twice}")
        # Whatever is left of the problem, LP_agg decides the branch at 1/epsilon or above.
        few = _EPSILON * lp_agg(tiny).value < min(tiny.costs)
        require(not few or cost <= twice, f"not enumerated: cost {cost}, 2 MILP_c = {twice}")
    else:
        program = by_supports(tiny)[1].value
        most = VARIANTS[variant] * program
        require(cost <= most, f"{variant}: cost {cost}, its program's is {program}")
    return cost / bound
