"""How optimum and bounds answer to changes of a problem (theory 9.3 to 9.6).

**Statement.** For OPT, LP_agg, LP*, MILP_c and LP_DW:
*monotone*: they do not fall when a demand rises, a supply falls, a configuration or one of its
blocks goes, or a job comes;
*invariant*: nothing changes when a job's row is scaled, jobs, types or configurations are permuted,
a configuration is repeated or a dominated one added, a useless type is added, supply is truncated
at the demand, or a type is split in two with the same supply.
For OPT, *subadditive*: OPT(d + d') <= OPT(d) + OPT(d'); OPT(d) <= OPT(q d) <= q OPT(d); with LP_0,
LP_agg without truncation, q LP_0 <= OPT(q d) <= q LP_0 + n + min(c, k).
*Merging*: two jobs of equal supply as one cost at most one machine less; the componentwise maximum
of two configurations in their place never hurts, nor does a better block in a worse one's place.

**Machine-checked.** Each of these on every generated instance, exactly, with unit costs.

**On paper.** The argument for each, a line or two: mostly that one problem's schedules serve the
other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from cms import Reference

from .bounds import compact, reference
from .brute_force import optimum
from .families import UNIT, stream
from .finding import Breach, Tally, require, theorem
from .tiny import Blocks, Tiny

T = TypeVar("T")
#: From a problem to a changed one.
Change = Callable[[Tiny, random.Random], Tiny]
_MULTIPLES = (2, 3)
#: Problems of more machines are not multiplied: enumeration would take too long.
_FEW_MACHINES = 4


def raise_a_demand(tiny: Tiny, rng: random.Random) -> Tiny:
    """Raise one demand by half a unit or more."""
    j = rng.randrange(tiny.n)
    more = tiny.demands[j] + Fraction(rng.randint(1, 4), 2)
    return replace(tiny, demands=_with(tiny.demands, j, more))


def lower_a_supply(tiny: Tiny, rng: random.Random) -> Tiny:
    """Halve what one block gives a job."""
    j, i = rng.randrange(tiny.n), rng.randrange(tiny.k)
    row = _with(tiny.supply[j], i, tiny.supply[j][i] / 2)
    return replace(tiny, supply=_with(tiny.supply, j, row))


def delete_a_configuration(tiny: Tiny, rng: random.Random) -> Tiny:
    """Leave one configuration out, unless some job needs it or it is the only one."""
    C = rng.randrange(tiny.c)
    return _if_servable(tiny, tiny.configurations[:C] + tiny.configurations[C + 1 :])


def delete_a_block(tiny: Tiny, rng: random.Random) -> Tiny:
    """Take one block out of a configuration, unless some job needs it or it is the only one."""
    C, i = rng.choice(
        [(C, i) for C in range(tiny.c) for i in range(tiny.k) if tiny.configurations[C][i]]
    )
    row = _with(tiny.configurations[C], i, tiny.configurations[C][i] - 1)
    return _if_servable(tiny, _with(tiny.configurations, C, row))


def add_a_job(tiny: Tiny, rng: random.Random) -> Tiny:
    """Add a job with the supply of another one."""
    row = rng.choice(tiny.supply)
    return replace(
        tiny, demands=(*tiny.demands, Fraction(rng.randint(1, 2))), supply=(*tiny.supply, row)
    )


def scale_a_row(tiny: Tiny, rng: random.Random) -> Tiny:
    """Measure one job in another unit."""
    j, unit = rng.randrange(tiny.n), Fraction(rng.randint(1, 9), rng.randint(1, 9))
    row = tuple(f * unit for f in tiny.supply[j])
    demands = _with(tiny.demands, j, tiny.demands[j] * unit)
    return replace(tiny, demands=demands, supply=_with(tiny.supply, j, row))


def permute(tiny: Tiny, rng: random.Random) -> Tiny:
    """Take jobs, types and configurations in another order."""
    jobs, types, shapes = (rng.sample(range(m), m) for m in (tiny.n, tiny.k, tiny.c))
    return Tiny.of(
        [tiny.demands[j] for j in jobs],
        [[tiny.supply[j][i] for i in types] for j in jobs],
        [[tiny.configurations[C][i] for i in types] for C in shapes],
    )


def add_a_dominated_configuration(tiny: Tiny, rng: random.Random) -> Tiny:
    """Repeat a configuration, or add a part of it."""
    row = rng.choice(tiny.configurations)
    part = tuple(rng.randint(0, count) for count in row)
    return _with_configurations(tiny, (*tiny.configurations, part if any(part) else row))


def add_a_useless_type(tiny: Tiny, rng: random.Random) -> Tiny:
    """Add a type that serves nobody to some configurations."""
    return Tiny.of(
        tiny.demands,
        [[*row, 0] for row in tiny.supply],
        [[*row, rng.randint(0, 2)] for row in tiny.configurations],
    )


def truncate(tiny: Tiny, rng: random.Random) -> Tiny:
    """Cut supply at the demand."""
    return replace(tiny, supply=tiny.cut)


def split_a_type(tiny: Tiny, rng: random.Random) -> Tiny:
    """Divide the blocks of a type, in every configuration, between it and a twin."""
    i = rng.randrange(tiny.k)
    shapes = []
    for row in tiny.configurations:
        twin = rng.randint(0, row[i])
        shapes.append([*_with(row, i, row[i] - twin), twin])
    return Tiny.of(tiny.demands, [[*row, row[i]] for row in tiny.supply], shapes)


NOT_LOWER: tuple[Change, ...] = (
    raise_a_demand, lower_a_supply, delete_a_configuration, delete_a_block, add_a_job,
)  # fmt: skip
SAME: tuple[Change, ...] = (
    scale_a_row, permute, add_a_dominated_configuration, add_a_useless_type, truncate, split_a_type,
)  # fmt: skip


@theorem(
    "Monotone, invariant",
    "5 changes that may not lower, 6 that change nothing; sums, multiples, merging",
    ratio="(OPT(q d) - q LP_0) / (n + min(c, k))",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 120) -> None:
    """Check the changes; see the top of this file."""
    for one in stream(seed, cases, UNIT):
        tiny = one.tiny
        for change in (*NOT_LOWER, *SAME):
            with tally.case(f"{one}, {change.__name__}"):
                _require_change(tiny, change, random.Random(f"{change.__name__} {one}"))
        for q in _MULTIPLES if optimum(tiny).cost <= _FEW_MACHINES else ():
            tally.check(f"{one}, {q} times", _multiple, tiny, q)
        for combined in (_require_sum, _require_merged_jobs, _require_better_configurations):
            with tally.case(f"{one}, {combined.__name__.removeprefix('_require_')}"):
                combined(tiny, random.Random(f"{combined.__name__} {one}"))


def _require_change(tiny: Tiny, change: Change, rng: random.Random) -> None:
    other = change(tiny, rng)
    for against in Reference:
        before, after = reference(tiny, against), reference(other, against)
        require(before <= after, f"{against} falls from {before} to {after}")
        if change in SAME:
            require(before == after, f"{against} rises from {before} to {after}")


def _multiple(tiny: Tiny, q: int) -> Fraction:
    one, many = optimum(tiny).cost, optimum(tiny.times(q)).cost
    require(one <= many <= q * one, f"OPT is {one}, and {many} of {q} times the demands")
    program = compact(tiny, tiny.supply)
    if program is None:
        raise Breach("LP_0 is infeasible")
    over, most = many - q * program.value, tiny.n + min(tiny.c, tiny.k)
    require(0 <= over <= most, f"OPT exceeds {q} LP_0 by {over}; proved: {most}")
    return over / most


def _require_sum(tiny: Tiny, rng: random.Random) -> None:
    more = tuple(Fraction(rng.randint(1, 3)) for _ in range(tiny.n))
    other = replace(tiny, demands=more)
    both = replace(tiny, demands=tuple(a + b for a, b in zip(tiny.demands, more, strict=True)))
    parts, whole = (optimum(tiny).cost, optimum(other).cost), optimum(both).cost
    require(whole <= sum(parts), f"the demands {tiny.demands} and {more}: {whole} > {parts}")


def _require_merged_jobs(tiny: Tiny, rng: random.Random) -> None:
    j = rng.randrange(tiny.n)
    more = Fraction(rng.randint(1, 3))
    apart = replace(tiny, demands=(*tiny.demands, more), supply=(*tiny.supply, tiny.supply[j]))
    merged = replace(tiny, demands=_with(tiny.demands, j, tiny.demands[j] + more))
    one, two = optimum(merged).cost, optimum(apart).cost
    require(one <= two <= one + 1, f"job {j} and its twin of demand {more}: {one} and {two}")


def _require_better_configurations(tiny: Tiny, rng: random.Random) -> None:
    before, shapes = optimum(tiny).cost, list(tiny.configurations)
    if tiny.c > 1:
        one, two = rng.sample(range(tiny.c), 2)
        larger = tuple(map(max, shapes[one], shapes[two]))
        kept = [shape for C, shape in enumerate(shapes) if C not in (one, two)]
        after = optimum(_with_configurations(tiny, (*kept, larger))).cost
        require(after <= before, f"{larger} for {one} and {two}: {before} becomes {after}")
    for better in range(tiny.k):
        for worse in range(tiny.k):
            if better == worse or any(row[better] < row[worse] for row in tiny.supply):
                continue
            C = next((C for C, shape in enumerate(shapes) if shape[worse]), None)
            if C is None:
                continue
            row = _with(shapes[C], worse, shapes[C][worse] - 1)
            row = _with(row, better, row[better] + 1)
            after = optimum(_with_configurations(tiny, _with(tuple(shapes), C, row))).cost
            require(after <= before, f"type {better} for {worse} in {C}: {before}, then {after}")


def _with(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _with_configurations(tiny: Tiny, shapes: tuple[Blocks, ...]) -> Tiny:
    return replace(tiny, configurations=shapes, costs=(Fraction(1),) * len(shapes))


def _if_servable(tiny: Tiny, shapes: Sequence[Blocks]) -> Tiny:
    """The problem with these configurations, or as it is if some job then has no block."""
    full = tuple(shape for shape in shapes if any(shape))
    for row in tiny.supply:
        if not any(f and any(shape[i] for shape in full) for i, f in enumerate(row)):
            return tiny
    return _with_configurations(tiny, full)
