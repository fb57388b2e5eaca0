"""The theory's instances: every number that is known of one is computed again, another way.

The linear programs are solved in floats by scipy and compared within 1e-6; the optima of the huge
instances, which floats cannot hold, are shown by a schedule and a certificate in exact arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from cms import BlockPrices, Status, check, solve
from cms.plugin.registry import NamedProblem
from cms.problem.parts import Configuration, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.schedule.schedule import Schedule
from instances import hard, small

Floats = NDArray[np.float64]


def named(module: Any) -> Iterator[NamedProblem]:
    for thing in vars(module).values():
        if isinstance(thing, NamedProblem):
            yield thing


HUGE = {small.HUGE_DEMAND.name, small.HUGE_FLEET.name}
EVERY = {one.name: one for one in (*named(hard), *named(small))}
ORDINARY = sorted(EVERY.keys() - HUGE)


class Arrays:
    """A problem as arrays: blocks of each configuration, supply and demand of each job."""

    def __init__(self, problem: Problem) -> None:
        shapes: list[tuple[str | None, tuple[int, ...]]] = []
        for shape in problem.configurations:
            if isinstance(shape, Configuration):
                shapes.append(
                    (shape.machine, tuple(shape.blocks.get(b, 0) for b in problem.blocks))
                )
            else:
                shapes += [(shape.machine, counts) for counts in maximal(shape, problem.blocks)]
        self.machines = [machine for machine, _ in shapes]
        self.held = np.array([counts for _, counts in shapes], dtype=float).T  # (k, c)
        self.cost = np.array([float(problem.machine_type(m).cost) for m in self.machines])
        self.limits = {m.name: m.limit for m in problem.machine_types if m.limit is not None}
        scale = problem.rows.denominators[:, None]
        self.supply = problem.rows.supplies / scale  # (n, k)
        self.demand = problem.rows.demands / scale[:, 0]
        self.truncated = np.minimum(self.supply, self.demand[:, None])
        self.k, self.c, self.n = len(problem.blocks), len(shapes), problem.n_jobs


def maximal(shape: SizeBoundedConfigurations, blocks: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    sizes = [shape.sizes[block] for block in blocks]
    for counts in itertools.product(*(range(shape.largest_count(b) + 1) for b in blocks)):
        room = shape.capacity - sum(n * size for n, size in zip(counts, sizes, strict=True))
        if 0 <= room < min(sizes):
            yield counts


def value(result: Any) -> float:
    """The optimum of a program that scipy solved."""
    assert result.success, result.message
    return float(result.fun)


def compact(a: Arrays, supply: Floats, whole: tuple[bool, bool]) -> float | None:
    """The program over x (machines) and y (blocks given), each whole or not; None: infeasible."""
    given = np.kron(np.ones(a.n), np.eye(a.k))
    serves = np.zeros((a.n, a.n * a.k))
    for j in range(a.n):
        serves[j, j * a.k : (j + 1) * a.k] = supply[j]
    constraints = [
        LinearConstraint(np.hstack([a.held, -given]), lb=0),
        LinearConstraint(np.hstack([np.zeros((a.n, a.c)), serves]), lb=a.demand),
    ]
    for machine, limit in a.limits.items():
        used = np.array([float(m == machine) for m in a.machines])
        constraints.append(LinearConstraint(np.r_[used, np.zeros(a.n * a.k)][None, :], ub=limit))
    result = milp(
        c=np.concatenate([a.cost, np.zeros(a.n * a.k)]),
        integrality=np.concatenate([np.full(a.c, whole[0]), np.full(a.n * a.k, whole[1])]),
        bounds=Bounds(0, np.inf),
        constraints=constraints,
        options={"mip_rel_gap": 0},
    )
    return value(result) if result.success else None


def lp_star(a: Arrays) -> float:
    """Truncation machine by machine: variables x (c) and y (n, k, c)."""
    width = a.c + a.n * a.k * a.c
    rows: list[Floats] = []
    right: list[float] = []

    def y(j: int, i: int, shape: int) -> int:
        return a.c + (j * a.k + i) * a.c + shape

    for i, shape in itertools.product(range(a.k), range(a.c)):
        row = np.zeros(width)
        row[shape] = -a.held[i, shape]
        row[[y(j, i, shape) for j in range(a.n)]] = 1
        rows.append(row)
        right.append(0)
    for j, shape in itertools.product(range(a.n), range(a.c)):
        row = np.zeros(width)
        row[shape] = -a.demand[j]
        row[[y(j, i, shape) for i in range(a.k)]] = a.truncated[j]
        rows.append(row)
        right.append(0)
    for j in range(a.n):
        row = np.zeros(width)
        for i, shape in itertools.product(range(a.k), range(a.c)):
            row[y(j, i, shape)] = -a.truncated[j, i]
        rows.append(row)
        right.append(-a.demand[j])
    cost = np.concatenate([a.cost, np.zeros(width - a.c)])
    return value(linprog(cost, A_ub=np.array(rows), b_ub=np.array(right)))


def lp_dw(a: Arrays) -> float:
    """The program over options: x (c) and a weight for every option of every job."""
    options = [(j, option) for j in range(a.n) for option in minimal_options(a, j)]
    width = a.c + len(options)
    blocks = np.zeros((a.k, width))
    blocks[:, : a.c] = -a.held
    once = np.zeros((a.n, width))
    for at, (j, option) in enumerate(options):
        blocks[:, a.c + at] = option
        once[j, a.c + at] = 1
    cost = np.concatenate([a.cost, np.zeros(len(options))])
    return value(linprog(cost, A_ub=blocks, b_ub=np.zeros(a.k), A_eq=once, b_eq=np.ones(a.n)))


def minimal_options(a: Arrays, j: int) -> Iterator[tuple[int, ...]]:
    useful = np.flatnonzero(a.supply[j])
    most = [int(np.ceil(a.demand[j] / a.supply[j, i])) for i in useful]
    for counts in itertools.product(*(range(m + 1) for m in most)):
        served = float(np.dot(counts, a.supply[j, useful]))
        least = min((a.supply[j, i] for i, n in zip(useful, counts, strict=True) if n), default=0)
        if served >= a.demand[j] - 1e-9 and served - least < a.demand[j] - 1e-9:
            option = np.zeros(a.k, dtype=int)
            option[useful] = counts
            yield tuple(option.tolist())


@pytest.mark.parametrize("name", ORDINARY)
def test_the_integer_program_has_the_known_optimum(name: str) -> None:
    arrays = Arrays(EVERY[name].make())
    found = compact(arrays, arrays.supply, (True, True))
    assert EVERY[name].infeasible == (found is None)
    if found is not None:
        assert round(found) == EVERY[name].optimum


@pytest.mark.parametrize("name", sorted(n for n in ORDINARY if EVERY[n].bounds))
def test_the_lower_bounds_have_the_known_values(name: str) -> None:
    arrays, known = Arrays(EVERY[name].make()), EVERY[name].bounds
    found = {"LP_AGG": compact(arrays, arrays.truncated, (False, False))}
    if "MILP_C" in known:
        found["MILP_C"] = compact(arrays, arrays.truncated, (True, False))
    if "LP_STAR" in known and arrays.n * arrays.k * arrays.c < 5000:
        found["LP_STAR"] = lp_star(arrays)
    if "LP_DW" in known:
        found["LP_DW"] = lp_dw(arrays)
    assert found == {b: pytest.approx(float(known[b]), abs=1e-6) for b in found}
    assert max(known.values()) <= (EVERY[name].optimum or 0)


def test_every_instance_has_an_optimum_or_is_infeasible() -> None:
    for one in EVERY.values():
        assert one.infeasible == (one.optimum is None), one.name
        assert one.title
        assert one.source


@pytest.mark.parametrize("name", sorted(EVERY))
def test_solving_an_instance_finds_its_optimum_and_proves_it(name: str) -> None:
    solution = solve(EVERY[name].make())
    assert solution.status is (Status.INFEASIBLE if EVERY[name].infeasible else Status.OPTIMAL)
    assert solution.cost == EVERY[name].optimum


def greedy_cover(problem: Problem) -> int:
    """Steps of greedy set cover; ties go to the set listed first."""
    left, steps = set(problem.job_names), 0
    sets = [set(c.blocks) for c in problem.configurations if isinstance(c, Configuration)]
    while left:
        left -= max(sets, key=lambda elements: len(elements & left))
        steps += 1
    return steps


@pytest.mark.parametrize("h", [3, 4, 5])
def test_greedy_falls_into_the_strict_trap_without_a_tie(h: int) -> None:
    problem = hard.greedy_trap(h)
    assert problem.n_jobs == 2 ** (h + 1) - 2
    assert greedy_cover(problem) == h
    left = set(problem.job_names)
    sets = [set(c.blocks) for c in problem.configurations if isinstance(c, Configuration)]
    for chosen in sets[:h]:
        gains = sorted((len(elements & left) for elements in sets), reverse=True)
        assert len(chosen & left) == gains[0] > gains[1]
        left -= chosen


@pytest.mark.parametrize(("q", "steps"), [(2, 4), (3, 8), (4, 13)])
def test_greedy_takes_the_preferred_sets_of_the_harmonic_trap(q: int, steps: int) -> None:
    problem = hard.harmonic_trap(q)
    assert (problem.n_jobs, len(problem.configurations)) == (q**3, steps + q)
    assert greedy_cover(problem) == steps


def test_the_bound_without_truncation_is_a_tenth() -> None:
    arrays = Arrays(hard.NO_TRUNCATION_GAP.make())
    assert compact(arrays, arrays.supply, (False, False)) == pytest.approx(0.1)


@pytest.mark.parametrize("total", range(9, 55))
def test_a_listed_sum_is_reached_iff_three_machines_suffice(total: int) -> None:
    listed = (3, 7, 11, 18)
    sums = {sum(three) for three in itertools.combinations_with_replacement(listed, 3)}
    arrays = Arrays(hard.two_numbers(20, listed, 3, total))
    found = compact(arrays, arrays.supply, (True, True))
    assert found is not None
    assert (round(found) == 3) == (total in sums)


def test_the_huge_demand_is_met_by_groups_and_proved_by_a_price() -> None:
    one = small.HUGE_DEMAND
    problem = one.make()
    each = -(-(10**13) // 9)
    assert one.optimum == 5 * each
    shape = problem.listed_configurations[0]
    given = {("b", job): each for job in problem.job_names}
    schedule = Schedule.from_counts(problem, {shape: 5 * each}, given)
    assert not check(problem, schedule)
    assert BlockPrices({"b": 1}).bound(problem) == one.optimum


def test_the_huge_fleet_is_met_by_groups_and_proved_by_prices() -> None:
    one = small.HUGE_FLEET
    problem = one.make()
    whole, sevenths = 10**12 // 800, -(-(10**12) // 60)
    shapes = {str(shape): shape for shape in problem.listed_configurations}
    schedule = Schedule.from_counts(
        problem,
        {shapes["7g"]: whole, shapes["7 x 1g"]: sevenths // 7},
        {("7g", "whole"): whole, ("1g", "sevenths"): sevenths},
    )
    assert not check(problem, schedule)
    assert schedule.machine_count == one.optimum
    prices = {f"{size}g": Fraction(size, 7) for size in (1, 3, 4, 7)}
    assert BlockPrices(prices).bound(problem) == one.optimum
