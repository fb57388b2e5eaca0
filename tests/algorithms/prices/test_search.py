"""The search for prices against LP_DW from its definition, in which everything is listed."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.prices.search import PriceSearch
from algorithms.solvers.floats import recognised
from cms import MachineType, Problem, load_instance
from cms.certificate.certificate import round_up
from instances.families import generate
from tests.algorithms.branch_and_price.parts import (
    Counting,
    Unlimited,
    certified,
    reduced,
    searched,
    without_a_step,
)
from tests.families import FAMILIES, instance
from tests.references.programs import lp_dw
from tests.samples import few, so_many, spread

#: Their numbers are more than a linear program in floats can take.
LISTED = [family for family in FAMILIES if family != "long_numbers"]
FEW = 4


def served(family: str, number: int) -> tuple[Problem, float] | None:
    """A problem of a family with its LP_DW, unless there is nothing to price or no solution."""
    problem = instance(family, number)
    if not problem.blocks or not problem.configurations or not reduced(problem).problem.n_jobs:
        return None
    value = lp_dw(problem, proper=True)
    return None if value is None else (problem, value)


def compare(family: str, numbers: range) -> int:
    """Hold searches against the definition; returns how many."""
    compared = 0
    for number in numbers:
        known = served(family, number)
        if known is None:
            continue
        problem, value = known
        search = searched(problem, refined=False)
        assert search.best is not None
        bound, step = search.best.bound, problem.cost_step
        assert certified(search, problem) == bound, (family, number)
        assert search.upper is not None
        assert bound <= search.upper + Fraction(1, 10**9)
        assert float(bound) <= value + 1e-9
        if step:  # as good as LP_DW once it is rounded up
            nearest = Fraction(value).limit_denominator(10**6)
            assert round_up(bound, step) == round_up(nearest, step), (family, number)
        fine = searched(without_a_step(problem))
        assert fine.best is not None
        assert fine.upper is not None
        assert abs(float(fine.best.bound) - value) <= 1e-9, (family, number)
        assert abs(float(fine.upper) - value) <= 1e-8, (family, number)
        compared += 1
    return compared


@pytest.mark.parametrize("family", spread(6, LISTED))
def test_the_bound_is_lp_dw(family: str) -> None:
    assert compare(family, range(FEW)) >= (0 if family.startswith("infeasible") else FEW // 4)


@pytest.mark.parametrize("family", ["limits", "infeasible_by_limit"])
def test_a_ray_is_found_just_where_lp_dw_has_no_solution(family: str) -> None:
    found = []
    for number in range(so_many(8, 40)):
        problem = instance(family, number)
        jobs = reduced(problem)
        lost = any(not any(jobs.rows.row(kind).supply) for kind in range(len(jobs)))
        if lost or not len(jobs):
            continue
        search = searched(problem, refined=False, free_machines=True)
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
        one, other = searched(problem), searched(problem.replace(machine_types=types))
        assert one.best is not None
        assert other.best is not None
        step = problem.cost_step
        rounded = round_up(other.best.bound, step * factor)
        assert rounded == round_up(one.best.bound, step) * factor, name


def test_the_theory_s_bound_of_s5() -> None:
    """LP_DW of S5 is 176/15 (theory 6.10), to the last digit."""
    scenario: Any = load_instance("S5")
    problem = scenario.as_problem().problem
    search = searched(without_a_step(problem))
    assert search.best is not None
    assert search.best.bound == Fraction(176, 15)


# --- the compiled path, threads, stopping ---------------------------------------------------------


def test_prices_of_thousands_of_jobs_do_not_depend_on_threads() -> None:
    jobs = reduced(generate("real-rows", n=5000, seed=1, m=30))
    found = []
    for threads in (1, 2):
        budget = Unlimited()
        budget.threads = threads
        search = PriceSearch(jobs, budget)
        points = list(search.run())
        found.append((points, search.shares, search.machines, search.passes))
    assert found[0] == found[1]
    (point, *_), *_ = found[0]
    assert point.bound > 0


def test_a_stopped_search_ends_with_what_it_has() -> None:
    problem = generate("size-bounded", n=60, seed=1)
    full = PriceSearch(reduced(problem), Unlimited())
    assert list(full.run())
    assert full.passes > 300 // 60
    for questions in (0, 10, 70, 200, 300):
        search = PriceSearch(reduced(problem), Counting(questions))
        list(search.run())
        assert search.passes < full.passes
        assert search.passes <= questions // 60
        assert search.best is not None
        assert certified(search, problem) == search.best.bound


# --- rationals that floats stand for --------------------------------------------------------------


@given(
    st.integers(1, 1000).flatmap(
        lambda q: st.lists(st.fractions(0, 100, max_denominator=q), min_size=1, max_size=6)
    )
)
def test_rationals_of_a_small_common_denominator_are_recognised(values: list[Fraction]) -> None:
    common = lcm(*(value.denominator for value in values))
    found = recognised([float(value) for value in values])
    if common > 1000:
        assert found is None or found[1] <= 1000
    else:
        assert found is not None
        assert [Fraction(number, found[1]) for number in found[0]] == values
