"""Set cover is a case of CMS (theory 2.5), so that greedy's logarithm cannot be avoided.

**Statement.** For elements U and sets S_1, ..., S_c, take one job and one block type an element,
d_e = 1, f_ee = 1 and 0 otherwise, and a configuration a set with one block of each of its elements.
Then every cover is a schedule of as many machines and every schedule contains a cover of no more
sets; the optima agree, n = k = |U|, and LP_agg is the fractional cover.

**Machine-checked.** Both directions, on all families of subsets that cover three elements (up to
the elements' names), on random ones of up to six elements, and on the sets {e : <e, v> = 1} over
F_2^q for q = 2 and 3: the cover found by trying all unions becomes a schedule, which the definition
accepts; an optimal schedule becomes a cover; the numbers agree. For F_2^q also that LP_agg = LP_DW
= (2^q - 1)/2^(q - 1) and OPT = q. Then `greedy` with `variant="units"`: its schedules are covers of
at most H(s) times the least number of sets.

**On paper.** That ln n is out of reach in polynomial time unless P = NP (Dinur and Steurer, STOC
2014).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple, TypeAlias

from cms import solve

from .bounds import lp_agg, lp_dw
from .brute_force import optimum
from .families import covers_of_three, harmonic_trap, set_cover
from .finding import Breach, Tally, require, theorem
from .g_int import harmonic, promise_for
from .lp import minimise
from .promises import Solver, cost_of, promised
from .tiny import check_cost

Sets: TypeAlias = tuple[frozenset[int], ...]


class System(NamedTuple):
    """Sets over the elements 0, ..., size - 1, which they cover together; with a name."""

    name: str
    size: int
    sets: Sets


def least_cover(system: System) -> tuple[int, ...]:
    """Return the first of the smallest covers, by trying all unions."""
    everything = set(range(system.size))
    for number in range(1, len(system.sets) + 1):
        for chosen in combinations(range(len(system.sets)), number):
            if set().union(*(system.sets[at] for at in chosen)) == everything:
                return chosen
    raise ValueError(f"the sets of {system.name} do not cover its elements")


def schedule_of(system: System, cover: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Return one machine for each set of a cover; every job takes the block of its element."""
    machines = [int(at in cover) for at in range(len(system.sets))]
    return machines, [[int(i == j) for i in range(system.size)] for j in range(system.size)]


def cover_of(system: System, machines: Sequence[int]) -> list[int]:
    """Return the sets whose configurations a schedule uses; a Breach if they are no cover."""
    used = [at for at, number in enumerate(machines) if number]
    found = set().union(*(system.sets[at] for at in used))
    require(found == set(range(system.size)), f"the machines {list(machines)} are no cover")
    return used


def vectors(q: int) -> System:
    """Return the nonzero vectors of F_2^q and the sets {e : <e, v> = 1}."""
    every = range(1, 2**q)
    sets = (frozenset(e - 1 for e in every if (e & v).bit_count() % 2) for v in every)
    return System(f"F_2^{q}", 2**q - 1, tuple(sets))


@theorem(
    "Set cover <= CMS",
    "cover to schedule and back, fractional covers; greedy's covers",
    ratio="OPT / least cover",
    proved="1, an equality",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 150, solver: Solver | None = solve) -> None:
    """Check the reduction; see the top of this file."""
    trap = System("harmonic trap", 8, harmonic_trap(2))
    for system in (*_small(), *_random(seed, cases), vectors(2), vectors(3), trap):
        tally.check(system.name, _both_ways, system)
        if solver is not None and not system.name.startswith("cover"):
            tally.check(f"{system.name}, by greedy", _ours, solver, system)
    for q in (2, 3):
        tally.check(f"the gap over F_2^{q}", _require_gap, q)


def _small() -> Iterator[System]:
    for number, sets in covers_of_three():
        yield System(f"cover {number} of 3 elements", 3, sets)


def _random(seed: int, cases: int) -> Iterator[System]:
    for number in range(100_000 * seed, 100_000 * seed + cases):
        rng = random.Random(f"sets {number}")
        size = rng.randint(1, 6)
        sets = [
            frozenset(rng.sample(range(size), rng.randint(1, size)))
            for _ in range(rng.randint(1, 5))
        ]
        left = set(range(size)).difference(*sets)
        yield System(f"sets {number}", size, (*sets, *([frozenset(left)] if left else [])))


def _both_ways(system: System) -> Fraction:
    tiny, cover = set_cover(system.size, system.sets), least_cover(system)
    require(tiny.n == tiny.k == system.size, "the sizes differ")
    check_cost(tiny, *schedule_of(system, cover))
    best = optimum(tiny)
    back = cover_of(system, best.machines)
    require(len(back) <= best.cost, f"{len(back)} sets from {best.cost} machines")
    require(best.cost == len(cover), f"OPT is {best.cost}, the least cover {len(cover)}")
    fractional = minimise(
        [1] * len(system.sets),
        [[int(element in s) for s in system.sets] for element in range(system.size)],
        [1] * system.size,
    )
    if fractional is None:
        raise Breach("no fractional cover")
    value = lp_agg(tiny).value
    require(value == fractional.value, f"LP_agg {value}, fractional cover {fractional.value}")
    return best.cost / len(cover)


def _ours(solver: Solver, system: System) -> None:
    tiny = set_cover(system.size, system.sets)
    most = harmonic(tiny.s) * len(least_cover(system))
    promise = promise_for(tiny, Fraction(1))
    answer = promised(solver, tiny, "greedy", promise, variant="units", inner="exact", plain=True)
    cost = cost_of(answer)
    require(cost <= most, f"greedy takes {cost} sets, H(s) times the least number is {most}")


def _require_gap(q: int) -> None:
    system, value = vectors(q), Fraction(2**q - 1, 2 ** (q - 1))
    tiny = set_cover(system.size, system.sets)
    for name, found in (("LP_agg", lp_agg(tiny).value), ("LP_DW", lp_dw(tiny).value)):
        require(found == value, f"{name} is {found}, not {value}")
    require(optimum(tiny).cost == q, f"OPT is {optimum(tiny).cost}, not {q}")
