"""Prices, mixtures and vertices against LP_DW from its definition, whatever a solver spoils."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from algorithms.prices.search import PriceSearch, fractional
from algorithms.prices.vertex import BasicSolution, additive_cost, rounded, solve_dantzig_wolfe
from cms import MachineType, PresolvedProblem, Problem, Schedule, check, presolve
from cms.certificate.certificate import round_up
from instances.families import generate
from proofs_checks.theorem_b import additive_loss
from tests.algorithms.branch_and_price import parts
from tests.algorithms.branch_and_price.parts import Case, Counting, Unlimited, cases
from tests.families import FAMILIES, instance
from tests.references.programs import lp_dw
from tests.samples import few, so_many, spread

#: Their numbers are more than a linear program in floats can take.
LISTED = [family for family in FAMILIES if family != "long_numbers"]


def examine(search: PriceSearch) -> None:
    """Weights of 1; machines that have what jobs take, and just that of types that cost."""
    mixture = fractional(search)
    assert search.best is not None
    assert abs(parts.cost(search, mixture) - search.best.bound) <= Fraction(1, 10**9)
    assert len(mixture.shares) == search.n_groups
    for shares in mixture.shares:
        assert sum(weight for _, weight in shares) == 1
        assert all(weight > 0 and 0 <= at < len(search.options) for at, weight in shares)
    assert all(number >= 0 for _, number in mixture.machines)
    for limit in search.region.limits:
        counted = sum(x * limit.weights.get(row.machine, 0) for row, x in mixture.machines)
        assert counted <= limit.at_most
    need, have = parts.bought(search, mixture), parts.held(mixture, len(search.region.blocks))
    free = search.region.free()
    for i, price in enumerate(search.best.vector.prices):
        if price > 0:
            assert have[i] == need[i]
        elif i not in free:
            assert have[i] >= need[i]


@pytest.mark.parametrize("family", ["limits", *spread(5, sorted({*LISTED} - {"limits"})), "groups"])
def test_the_bound_is_lp_dw_and_the_mixture_is_exact(family: str) -> None:
    compared = 0
    for number in range(so_many(4, 8)):
        problem = instance(family, number)
        if (
            not problem.blocks
            or not problem.configurations
            or not parts.reduced(problem).problem.n_jobs
        ):
            continue
        value = lp_dw(problem, proper=True)
        if value is None:
            continue
        search = parts.searched(problem, refined=False)
        assert search.best is not None
        bound, step = search.best.bound, problem.cost_step
        assert parts.certified(search, problem) == bound, (family, number)
        assert search.upper is not None
        assert bound <= search.upper + Fraction(1, 10**9)
        assert float(bound) <= value + 1e-9
        if step:  # as good as LP_DW once it is rounded up
            nearest = Fraction(value).limit_denominator(10**6)
            assert round_up(bound, step) == round_up(nearest, step), (family, number)
        fine = parts.searched(parts.without_a_step(problem))
        assert fine.best is not None
        assert fine.upper is not None
        assert abs(float(fine.best.bound) - value) <= 1e-9, (family, number)
        assert abs(float(fine.upper) - value) <= 1e-8, (family, number)
        examine(fine)
        compared += 1
    assert compared or family.startswith("infeasible")


@pytest.mark.parametrize("family", ["limits", "groups", "infeasible_by_limit"])
def test_a_ray_is_found_just_where_lp_dw_has_no_solution(family: str) -> None:
    found = []
    for number in range(so_many(8, 40)):
        problem = instance(family, number)
        jobs = parts.reduced(problem)
        lost = any(not any(jobs.rows.row(kind).supply) for kind in range(len(jobs)))
        if lost or not len(jobs):
            continue
        search = parts.searched(problem, refined=False, free_machines=True)
        assert search.best is not None
        ray = search.best.bound > 0
        if ray:
            assert search.region.leaf(search.best.vector).proves_infeasible(problem)
        assert ray == (lp_dw(problem, proper=True) is None), (family, number)
        found.append(ray)
    assert set(found) == {True, False}


@pytest.mark.parametrize("exponent", few(3, [-30, 6, 290, -9, -6, 3, 9, 12, 30]))
def test_the_unit_of_costs_does_not_matter(exponent: int) -> None:
    for name, more in (
        ("mixed-fleet", {"limits": "tight"}),
        ("arbitrary", {}),
        ("size-bounded", {}),
    ):
        problem, factor = generate(name, n=20, seed=5, **more), Fraction(10) ** exponent
        types = [MachineType(m.name, m.cost * factor, m.limit) for m in problem.machine_types]
        one, other = parts.searched(problem), parts.searched(problem.replace(machine_types=types))
        assert one.best is not None
        assert other.best is not None
        step = problem.cost_step
        rounded = round_up(other.best.bound, step * factor)
        assert rounded == round_up(one.best.bound, step) * factor, name


def test_a_stopped_search_ends_with_what_it_has() -> None:
    problem = generate("size-bounded", n=60, seed=1)
    full = PriceSearch(parts.reduced(problem), parts.Unlimited())
    assert list(full.run())
    assert full.passes > 300 // 60
    for questions in (0, 10, 70, 200, 300):
        search = PriceSearch(parts.reduced(problem), parts.Counting(questions))
        list(search.run())
        assert search.passes < full.passes
        assert search.passes <= questions // 60
        assert search.best is not None
        assert parts.certified(search, problem) == search.best.bound


def vertex_of(problem: Problem) -> BasicSolution:
    """LP_DW of a reduced problem."""
    solution = solve_dantzig_wolfe(problem, Unlimited())
    assert solution is not None
    return solution


def value(solution: BasicSolution) -> Fraction:
    """What the fractional machines cost."""
    problem = solution.problem
    return sum(
        (problem.machine_type(shape.machine).cost * x for shape, x in solution.machines.items()),
        Fraction(0),
    )


def split(solution: BasicSolution) -> int:
    """How many jobs have several options."""
    return sum(len(options) > 1 for options in solution.options)


def refuse_faults(solution: BasicSolution) -> None:
    """The numbers must satisfy every row of the linear program, exactly."""
    problem = solution.problem
    load = [Fraction(0)] * len(problem.blocks)
    assert len(solution.options) == problem.n_jobs
    for j, options in enumerate(solution.options):
        row = problem.rows.row(j)
        assert sum((weight for _, weight in options), Fraction(0)) == 1
        assert len({option for option, _ in options}) == len(options)
        for option, weight in options:
            assert weight > 0
            assert sum(f * n for f, n in zip(row.supply, option, strict=True)) >= row.demand
            load = [a + weight * n for a, n in zip(load, option, strict=True)]
    assert all(x > 0 for x in solution.machines.values())
    for i, block in enumerate(problem.blocks):
        held = sum(
            (x * shape.blocks.get(block, 0) for shape, x in solution.machines.items()), Fraction(0)
        )
        assert held >= load[i]


def restored(reduction: PresolvedProblem, solution: BasicSolution) -> Fraction:
    """What the prices prove of the original problem, by the package's own check."""
    assert solution.leaf.bound(reduction.problem) == solution.bound
    return reduction.restore_prices(solution.leaf, solution.bound).bound(reduction.original)


def built(solution: BasicSolution, reduction: PresolvedProblem) -> Schedule:
    """The schedule that a solution rounds to, for the original problem."""
    return reduction.restore(Schedule.from_counts(solution.problem, *rounded(solution)))


FEW = 8


def refuse_breaches(case: Case, solution: BasicSolution, reduction: PresolvedProblem) -> Fraction:
    """Theorem B, with costs: valid, below LP_DW + K, and what that means in whole steps."""
    schedule, bound = built(solution, reduction), solution.bound
    assert not check(case.problem, schedule), case.name
    cost, reduced = schedule.cost(case.problem), reduction.problem
    loss, step = additive_cost(reduced), reduced.cost_step
    assert cost < bound + loss or cost == bound, case.name
    assert round_up(bound, case.problem.cost_step) <= cost, case.name
    assert cost <= round_up(bound, step) + max(Fraction(0), loss - step), case.name
    if {machine.cost for machine in case.problem.machine_types} == {1}:
        k = len(reduced.blocks)
        assert loss == (additive_loss(k) if k else 0)
        assert k not in (1, 2) or cost <= case.best + k - 1, case.name
    return cost


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_the_value_is_the_bound_and_what_the_definition_says(family: str) -> None:
    for case in cases(family, so_many(3, FEW)):
        reduction = presolve(case.problem)
        solution = vertex_of(reduction.problem)
        refuse_faults(solution)
        small = reduction.problem
        by_definition = lp_dw(small, proper=True) if small.n_jobs else 0.0
        assert by_definition is not None, case.name
        assert float(solution.bound) == pytest.approx(by_definition, rel=1e-6, abs=1e-9), case.name
        assert value(solution) == solution.bound == restored(reduction, solution), case.name
        assert solution.bound <= case.best, case.name
        k, p = len(solution.problem.blocks), len(solution.machines)
        assert p + split(solution) <= k, case.name
        refuse_breaches(case, solution, reduction)


def test_it_ends_whenever_it_is_stopped() -> None:
    problem = presolve(generate("arbitrary", n=6, seed=2)).problem
    whole = Counting(10**9)
    assert solve_dantzig_wolfe(problem, whole) is not None
    for questions in range(0, whole.asked, max(1, whole.asked // 40)):
        assert solve_dantzig_wolfe(problem, Counting(questions)) is None
    assert solve_dantzig_wolfe(problem, Counting(whole.asked)) is not None


def test_more_block_types_than_the_exact_program_takes() -> None:
    q = 6
    vectors = range(1, 2**q)
    member = np.array([[(e & v).bit_count() % 2 for v in vectors] for e in vectors])
    problem = Problem.from_arrays(
        demands=np.ones(len(member), dtype=np.int64),
        supply=np.diag(np.ones(len(member), dtype=np.int64)),
        configurations=member,
    )
    reduction = presolve(problem)
    solution = vertex_of(reduction.problem)
    assert solution.bound == Fraction(2**q - 1, 2 ** (q - 1))
    assert not check(problem, built(solution, reduction))
