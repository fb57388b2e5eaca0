"""The chains of lower bounds (theory 1.4).

**Statement.** LP_agg <= LP* <= MILP_c <= OPT and LP_agg <= LP_DW <= OPT. A job alone and counting
blocks bound OPT too: max_j ceil(d_j/V_j) <= OPT and ceil(n/s) <= OPT. LP_DW is incomparable with
LP* and MILP_c.

**Machine-checked.** Every inequality, between exact rationals, on every generated instance and on
the theory's examples, with OPT by enumeration. The known values of the examples, which show both
that LP_DW may be below LP* (the aggregated-LP gap) and above MILP_c (the ceil gap). For one job and
one configuration of equal blocks, what a job alone needs, without any program. That the certificate
and the cost of `branch_and_price` lie on their sides of OPT.

**On paper.** Why each program relaxes the next: scaling down what a job receives beyond its demand,
machine by machine; averaging a schedule's options.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil

from cms import Reference, solve

from .bounds import reference, single_job
from .brute_force import optimum
from .families import ALL, NAMED, named, stream
from .finding import Tally, require, theorem
from .promises import Solver, cost_of, promised
from .tiny import Tiny

_CHAINS = (
    (Reference.LP_AGG, Reference.LP_STAR, Reference.MILP_C, Reference.OPT),
    (Reference.LP_AGG, Reference.LP_DW, Reference.OPT),
)
#: What is known of the theory's examples: of each reference its value.
_COLUMNS = (Reference.LP_AGG, Reference.LP_DW, Reference.LP_STAR, Reference.MILP_C, Reference.OPT)
KNOWN: dict[str, tuple[str, ...]] = {
    "aggregated-lp-gap": ("2/5", "2/5", "4", "4", "4"),
    "ceil-gap": ("50/9", "10", "50/9", "6", "10"),
    "partition-yes": ("1", "1", "1", "1", "1"),
    "partition-no": ("1", "8/7", "1", "1", "2"),
    "needless-doubling": ("1", "1", "1", "1", "1"),
    "no-truncation-gap": ("1", "1", "1", "1", "1"),
    "decoys": ("1/2", "1/2", "1", "1", "1"),
    "half-trap": ("10/9", "2", "10/9", "2", "2"),
}


@theorem(
    "Bound chain",
    "LP_agg <= LP* <= MILP_c <= OPT, LP_agg <= LP_DW <= OPT, known values; branch_and_price",
    ratio="largest bound / OPT",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 300, solver: Solver | None = solve) -> None:
    """Check the chains; see the top of this file."""
    for name, values in KNOWN.items():
        with tally.case(name):
            for against, value in zip(_COLUMNS, values, strict=True):
                found = reference(NAMED[name], against)
                require(found == Fraction(value), f"{against} is {found}, not {value}")
    for blocks in range(1, 4):
        for demand in range(1, 31):
            with tally.case(f"one job of {demand}, machines of {blocks} blocks of 3"):
                _require_single_job(demand, blocks)
    for one in (*named(), *stream(seed, cases, ALL)):
        tally.check(one, _chains, one.tiny)
        if solver is not None:
            with tally.case(f"{one}, by branch_and_price"):
                cost = cost_of(promised(solver, one.tiny, "branch_and_price", None))
                best = optimum(one.tiny).cost
                require(cost == best, f"cost {cost}, optimum {best}")


def _require_single_job(demand: int, blocks: int) -> None:
    """Compare the bound with the optimum: ceil(ceil(d/f)/a) machines for one type of block."""
    tiny = Tiny.of([demand], [[3]], [[blocks]])
    known = ceil(Fraction(demand, 3 * blocks))
    require(optimum(tiny).cost == known, f"OPT is {optimum(tiny).cost}, not {known}")
    # A machine that does everything alone counts as one, whatever it could do besides.
    require(single_job(tiny) == known, f"a single job needs {single_job(tiny)}, not {known}")


def _chains(tiny: Tiny) -> Fraction:
    for chain in _CHAINS:
        for low, high in pairwise(chain):
            below, above = reference(tiny, low), reference(tiny, high)
            require(below <= above, f"{low} = {below} > {high} = {above}")
    best = optimum(tiny).cost
    bounds = [reference(tiny, against) for against in Reference if against is not Reference.OPT]
    if tiny.has_unit_costs:
        counts = {"a single job": single_job(tiny), "counting": ceil(Fraction(tiny.n, tiny.s))}
        for name, count in counts.items():
            require(count <= best, f"{name} needs {count} machines, OPT = {best}")
        bounds += map(Fraction, counts.values())
    return max(bounds) / best
