"""Limits on machines (theory 6.9 and 7): prices for them, and no guarantees.

**Statement.** If each limit g lets machines of types m with weights w_gm add up to u_g at most (one
of a single type has weight 1), then for block prices pi >= 0 and limit prices sigma >= 0 with a_C .
pi <= cost_m + sum_g w_gm sigma_g for every configuration C of type m, L(pi) - sum_g u_g sigma_g
bounds every schedule's cost from below; the best such bound is LP_DW with a row for each limit. The
guarantees of greedy, the roundings and the PTAS must not be claimed.

**Machine-checked.** On every generated instance, each configuration a machine type with a cost and
a limit, half of them with a limit of a group besides: that the duals satisfy the conditions and
give the program's value; random prices stay below the optimum, found by trying all fleets within
the limits; :class:`cms.BlockPrices` proves the same bound for all of these. That a program without
a solution means that no fleet serves all jobs. Then `branch_and_price`: the optimum, or
`INFEASIBLE`; and that `greedy`, `lp_rounding` and `ptas` refuse such problems.

**On paper.** Weak duality, a line: every machine costs at least its blocks' worth less what its
limits' prices add up to.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from cms import BlockPrices, GroupLimit, Problem, Status, solve

from .bounds import Row, lp_dw_with
from .families import Instance, anything, costs, mig, stream
from .finding import Tally, require, theorem
from .prices import Prices, bound, worth
from .promises import Solver, answered, proved, require_refusal
from .ptas_switch import assigned
from .tiny import Tiny, dot

#: Those whose guarantees do not hold with limits.
REFUSE = ("greedy", "lp_rounding", "ptas")


class Limited(NamedTuple):
    """A problem in which at most limits[C] machines take configuration C, and a group is limited.

    A machine of configuration C counts weights[C] in the group, and all machines ``most``.
    """

    tiny: Tiny
    limits: tuple[int, ...]
    weights: tuple[int, ...] = ()
    most: int = 0

    @property
    def rows(self) -> list[tuple[tuple[int, ...], int]]:
        """What each configuration counts in each limit, and the most: that of the group last."""
        own = [tuple(int(C == at) for at in range(self.tiny.c)) for C in range(self.tiny.c)]
        group = [(self.weights, self.most)] if any(self.weights) else []
        return [*zip(own, self.limits, strict=True), *group]

    def problem(self) -> Problem:
        """The problem as the package has it: every configuration has a machine type of its own."""
        counted = {f"m{C}": weight for C, weight in enumerate(self.weights) if weight}
        groups = [GroupLimit("group", counted, self.most)] if counted else []
        return self.tiny.problem(self.limits).replace(group_limits=groups)


def best_fleet(limited: Limited) -> Fraction | None:
    """Return the least cost of a schedule within the limits, by trying all fleets."""
    tiny = limited.tiny
    fleets = product(*(range(limit + 1) for limit in limited.limits))
    for fleet in sorted(fleets, key=tiny.cost):
        if any(dot(fleet, row) > most for row, most in limited.rows):
            continue
        if assigned(tiny, tuple(int(b) for b in tiny.held_by(fleet))) is not None:
            return tiny.cost(fleet)
    return None


def limited_bound(limited: Limited, prices: Prices, sigma: Prices) -> Fraction:
    """Return L(pi) - sum u_g sigma_g."""
    return bound(limited.tiny, prices) - worth(sigma, [most for _, most in limited.rows])


def holds(limited: Limited, prices: Prices, sigma: Prices) -> bool:
    """Whether no configuration is worth more than its machine's cost and its limits' prices."""
    tiny, rows = limited.tiny, limited.rows
    return min(*prices, *sigma) >= 0 and all(
        worth(prices, row) <= tiny.costs[C] + worth(sigma, [weights[C] for weights, _ in rows])
        for C, row in enumerate(tiny.configurations)
    )


@theorem(
    "Limits",
    "duals and random prices against all fleets; branch_and_price; who refuses limits",
    ratio="L / OPT",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 150, solver: Solver | None = solve) -> None:
    """Check limits; see the top of this file."""
    feasible = set[bool]()
    for one, limited in _instances(seed, cases):
        with tally.case(f"{one}, limits {limited[1:]}"):
            ratio = _plain(limited, random.Random(f"limit prices of {one}"))
            feasible.add(ratio is not None)
            tally.seen(ratio or 0)
        if solver is not None:
            with tally.case(f"{one}, limits {limited[1:]}, by branch_and_price"):
                _ours(solver, limited)
            for method in REFUSE:
                with tally.case(f"{one}, limits {limited[1:]}, {method} refuses"):
                    require_refusal(solver, limited.problem(), method, "a problem with limits")
    with tally.case("with and without a schedule"):
        require(feasible == {False, True}, f"there is a schedule: only {feasible}")


def _instances(seed: int, cases: int) -> Iterator[tuple[Instance, Limited]]:
    for one in stream(seed, cases, (costs, anything, mig)):
        rng = random.Random(f"limits of {one}")
        limits = tuple(rng.randint(0, 3) for _ in range(one.tiny.c))
        # Nothing to round down: whole weights without a common divisor.
        weights = (1, *(rng.randint(0, 3) for _ in limits[1:])) if rng.random() < 0.5 else ()
        yield one, Limited(one.tiny, limits, weights, rng.randint(0, 3 + sum(weights)))
    # One that has a schedule and one that has none, whatever the seed.
    pair = Tiny.of([3], [[1]], [[1], [2]], [1, 3])
    yield Instance("a pair", 0, pair), Limited(pair, (1, 5))
    yield Instance("a pair", 0, pair), Limited(pair, (1, 0))


def _plain(limited: Limited, rng: random.Random) -> Fraction | None:
    tiny, best = limited.tiny, best_fleet(limited)
    rows: list[Row] = [
        ({C: -weight for C, weight in enumerate(weights)}, -most) for weights, most in limited.rows
    ]
    program = lp_dw_with(tiny, rows)
    if program is None:
        require(best is None, f"no fractional schedule, but one of cost {best}")
        return None
    solution, sigma = program
    require(holds(limited, solution.prices, sigma), "the duals break the conditions")
    value = limited_bound(limited, solution.prices, sigma)
    require(value == solution.value, f"the duals prove {value}, the program {solution.value}")
    _require_certificate(limited, solution.prices, sigma)
    for _ in range(3):
        prices = tuple(Fraction(rng.randint(0, 4), 4) for _ in range(tiny.k))
        group = [Fraction(rng.randint(0, 2), 4) for _ in limited.rows[tiny.c :]]
        paid = [sum(group) * weight for weight in limited.weights] or [Fraction(0)] * tiny.c
        over = (
            worth(prices, row) - cost - part
            for row, cost, part in zip(tiny.configurations, tiny.costs, paid, strict=True)
        )
        some = (*(max(Fraction(0), each) for each in over), *group)
        low = limited_bound(limited, prices, some)
        require(low <= value, f"prices prove {low}, the program's value is {value}")
        _require_certificate(limited, prices, some)
    if best is None:
        return None
    require(value <= best, f"LP_DW with limits is {value}, the best fleet costs {best}")
    return value / best


def _require_certificate(limited: Limited, prices: Prices, sigma: Prices) -> None:
    leaf = BlockPrices(
        {f"b{i}": prices[i] for i in limited.tiny.held},
        dict(zip([*(f"m{C}" for C in range(limited.tiny.c)), "group"], sigma, strict=False)),
    )
    said, low = leaf.bound(limited.problem()), limited_bound(limited, prices, sigma)
    require(said == low, f"BlockPrices proves {said}, the definition {low}")


def _ours(solver: Solver, limited: Limited) -> None:
    best, problem = best_fleet(limited), limited.problem()
    solution = answered(solver, problem, "branch_and_price")
    said = proved(solution, problem)
    require(best is None or said <= best, f"the certificate proves {said}, the best costs {best}")
    require(solution.cost == best, f"cost {solution.cost}, the best fleet costs {best}")
    infeasible = solution.status is Status.INFEASIBLE
    require(infeasible == (best is None), f"the answer is {solution.status}, the best costs {best}")
