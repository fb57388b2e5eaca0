"""The PTAS and its switch (theory 4): round when LP_DW is large, else there is little to try.

**Statement.** With K of Theorem B: if K <= epsilon LP_DW, its rounding costs at most (1 + epsilon)
OPT. Otherwise OPT < U = K (1 + 1/epsilon), a machine serves at most s jobs, so n <= s U, and the
optimum is found by trying the vectors of machines by increasing sum, each by a table over the jobs:
the least number of blocks of the last type for each number of blocks of the others.

**Machine-checked.** The two inequalities behind the switch, with sympy. On every generated
instance, whose demands are multiplied so that both sides of the switch occur, for epsilon = 1, 1/2,
1/4 and 1/10: the schedule, the bound, U > OPT, n <= s OPT; and that the table finds OPT. Then
`ptas` with these epsilons, by both its exact parts, plain and not: also on instances of up to four
types whose rounding costs more than LP_DW rounded up, so that prices alone settle nothing. What an
exact part answers costs OPT, and each of them has to be what finds it at least once.

**On paper.** That both sides take polynomial time for constant c and s.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import cycle
from math import ceil
from typing import NamedTuple

from cms import solve

from .bounds import lp_dw
from .brute_force import optimum, options, within
from .families import NAMED, Instance, chain, instance, mig, one_shape, stream, two_types
from .few_configurations import by_increasing_sum
from .finding import Breach, Tally, require, theorem
from .promises import Solver, cost_of, promised, way_of
from .theorem_b import additive_loss, promise_for, theorem_b
from .tiny import Blocks, Counts, Tiny, check_cost

EPSILONS = (Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(1, 10))
_MULTIPLES = (1, 3, 8)
#: What `ptas` is asked to find few machines by, and how it calls what these found.
_WAYS = ("dynamic", "program", "auto")
EXACT = {"dynamic program", "CP-SAT"}
#: Where LP_DW falls short of its rounding, by name.
_SHORT = ("partition-no", "half-trap", "ceil-gap-of-threes")
#: So many instances are looked through for one that falls short.
_LOOKED_THROUGH = 12


class Answer(NamedTuple):
    """A schedule, and whether it is Theorem B's rounding."""

    counts: Counts
    is_rounded: bool


def rounds(k: int, value: Fraction, epsilon: Fraction) -> bool:
    """Whether the rounding is good enough at this value of LP_DW."""
    return additive_loss(k) <= epsilon * value


def assigned(tiny: Tiny, blocks: Blocks) -> tuple[Blocks, ...] | None:
    """Serve all jobs with these blocks, by the table over the jobs; None if that is impossible."""
    # From blocks of the other types that are used to the least of the last, and who uses them.
    table: dict[Blocks, tuple[int, tuple[Blocks, ...]]] = {(0,) * (tiny.k - 1): (0, ())}
    for j in range(tiny.n):
        after: dict[Blocks, tuple[int, tuple[Blocks, ...]]] = {}
        for used, (last, given) in table.items():
            for option in options(tiny, j):
                more = tuple(a + b for a, b in zip(used, option[:-1], strict=True))
                found = last + option[-1]
                if not within((*more, found), blocks):
                    continue
                if more not in after or found < after[more][0]:
                    after[more] = found, (*given, option)
        table = after
    return min(table.values())[1] if table else None


def by_table(tiny: Tiny, most: int) -> Counts:
    """Return an optimal schedule of at most so many machines."""
    for machines in by_increasing_sum(tiny.c, most):
        blocks = tuple(int(b) for b in tiny.held_by(machines))
        given = assigned(tiny, blocks)
        if given is not None:
            return Counts(machines, [list(row) for row in given])
    raise Breach(f"no schedule of at most {most} machines")


def ptas(tiny: Tiny, epsilon: Fraction) -> Answer:
    """Run the PTAS."""
    value = lp_dw(tiny).value
    if rounds(tiny.k, value, epsilon):
        return Answer(theorem_b(tiny), True)
    return Answer(by_table(tiny, int(most_machines(tiny.k, epsilon))), False)


def most_machines(k: int, epsilon: Fraction) -> Fraction:
    """Return U, which OPT stays below where nothing is rounded."""
    return additive_loss(k) * (1 + 1 / epsilon)


@theorem(
    "PTAS",
    "the switch by sympy; (1 + epsilon) OPT for epsilon = 1, 1/2, 1/4, 1/10; ptas",
    ratio="ALG / ((1 + epsilon) OPT)",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 90, solver: Solver | None = solve) -> None:
    """Check the PTAS; see the top of this file."""
    tally.check("the switch", _require_switch)
    sides, found = set[bool](), set[str]()
    ways, plain = cycle(_WAYS), cycle((True, True, True, False, False, False))
    for one in (*_multiplied(seed, cases), *_short(seed, cases)):
        for epsilon in EPSILONS:
            with tally.case(f"{one}, epsilon = {epsilon}"):
                ratio, side = _plain(one.tiny, epsilon)
                tally.seen(ratio)
                sides.add(side)
            if solver is not None:
                options = {"exact": next(ways), "plain": next(plain)}
                with tally.case(f"{one}, epsilon = {epsilon}, by ptas"):
                    ratio, by = _ours(solver, one.tiny, epsilon, options)
                    tally.seen(ratio)
                    found.add(by)
    with tally.case("both sides of the switch"):
        require(sides == {False, True}, f"only one side was taken, of {sides}")
    if solver is not None:
        with tally.case("every way of ptas to be exact is taken"):
            require(found >= EXACT, f"schedules were found by {found} alone")


def _multiplied(seed: int, cases: int) -> list[Instance]:
    """Instances of at most two types, their demands as they are, tripled, and eightfold.

    The first two take both sides of the switch.
    """
    many = Instance("8 times two-halves", 0, NAMED["two-halves"].times(8))
    sides, found = [many, instance("half-trap", 0)], []
    for one in stream(seed, cases, (two_types,)):
        for multiple in _MULTIPLES:
            name = one.family if multiple == 1 else f"{multiple} times {one.family}"
            found.append(Instance(name, one.number, one.tiny.times(multiple)))
    return [*sides, *found[:cases]]


def _short(seed: int, cases: int) -> list[Instance]:
    """Instances of up to four types whose rounding costs more than LP_DW rounded up."""
    looked = stream(seed, max(_LOOKED_THROUGH, cases) * 4, (one_shape, chain, mig, two_types))
    # OPT = 8 and the rounding costs 9: too much for epsilon = 1/10, though not for 3/10.
    nine = Instance("6 times mig", 69, instance("mig", 69).tiny.times(6))
    known = [*(instance(name, 0) for name in _SHORT), nine]
    found = []
    for one in looked:
        multiple = 1 if one.tiny.k > 2 else 6
        tiny = one.tiny.times(multiple)
        if tiny.cost(theorem_b(tiny).machines) > ceil(lp_dw(tiny).value):
            name = one.family if multiple == 1 else f"{multiple} times {one.family}"
            found.append(Instance(name, one.number, tiny))
    return [*known, *found]


def _require_switch() -> None:
    import sympy

    loss, epsilon, value, more = sympy.symbols("K epsilon L m", positive=True)
    # Where it rounds, value is K/epsilon or more; elsewhere it is less.
    slack = (1 + epsilon) * value - (value + loss)
    rest = sympy.simplify(slack.subs(value, loss / epsilon + more) - epsilon * more)
    require(rest == 0, f"(1 + epsilon) L - (L + K) is not epsilon (L - K/epsilon), but {rest} more")
    room = loss * (1 + 1 / epsilon) - (value + loss)
    rest = sympy.simplify(room.subs(value, loss / epsilon - more) - more)
    require(rest == 0, f"U - (L + K) is not K/epsilon - L, but {rest} more")


def _plain(tiny: Tiny, epsilon: Fraction) -> tuple[Fraction, bool]:
    best = optimum(tiny).cost
    counts, is_rounded = ptas(tiny, epsilon)
    cost, bound = check_cost(tiny, *counts), (1 + epsilon) * best
    require(cost <= bound, f"rounded: {is_rounded}: cost {cost}, OPT = {best}")
    if not is_rounded:
        require(cost == best, f"the table says {cost}, OPT = {best}")
        most = most_machines(tiny.k, epsilon)
        require(best < most, f"OPT = {best}, U = {most}")
        require(tiny.n <= tiny.s * best, f"{tiny.n} jobs on {best} machines of {tiny.s} blocks")
    return cost / bound, is_rounded


def _ours(
    solver: Solver, tiny: Tiny, epsilon: Fraction, how: Mapping[str, object]
) -> tuple[Fraction, str]:
    """Return the ratio, and by what the schedule was found."""
    answer = promised(solver, tiny, "ptas", promise_for(tiny, epsilon), epsilon=epsilon, **how)
    cost, best = cost_of(answer), optimum(tiny).cost
    by = way_of(answer).removeprefix("ptas: ")
    bound = (1 + epsilon) * best
    require(cost <= bound, f"ptas {epsilon}, {how}: cost {cost}, bound {bound}")
    require(by not in EXACT or cost == best, f"ptas {epsilon}, {how}: {by} finds {cost} > {best}")
    return cost / bound, by
