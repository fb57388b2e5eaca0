"""The master program and the search for prices against LP_DW from its definition."""

from __future__ import annotations

import random
from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.prices.jobs import group_totals, ranges
from algorithms.prices.search import PriceSearch, fractional
from algorithms.solvers.floats import recognised
from algorithms.solvers.simplex import solved
from cms import MachineType, Problem
from cms.certificate.certificate import round_up
from cms.certificate.conditions import Condition
from instances.families import generate
from tests.algorithms.branch_and_price import parts
from tests.families import FAMILIES, instance
from tests.property.certificates import random_quantity
from tests.property.problems import share
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
    assert recognised([Fraction(1, 3), Fraction(1, 10**400)]) is None  # no float holds it


SMALL = st.fractions(-9, 9, max_denominator=9)


@share(2)
@given(st.data())
def test_equations_with_a_solution_are_solved(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 6))
    solution = data.draw(st.lists(SMALL, min_size=n, max_size=n))
    rows = data.draw(
        st.lists(st.lists(SMALL, min_size=n, max_size=n), min_size=m, max_size=m).map(
            lambda rows: [*rows, *(rows[:1] * 2)]
        )
    )
    right = [sum((a * x for a, x in zip(row, solution, strict=True)), Fraction(0)) for row in rows]
    equations = [dict(enumerate(row)) for row in rows]
    guess = data.draw(st.lists(SMALL, min_size=n, max_size=n))
    found = solved(equations, right, guess)
    assert found is not None
    for row, value in zip(rows, right, strict=True):
        assert sum((a * x for a, x in zip(row, found, strict=True)), Fraction(0)) == value
    # From a solution nothing moves.
    assert solved(equations, right, solution) == solution


def test_equations_that_contradict_each_other_have_no_solution() -> None:
    one = Fraction(1)
    assert solved([{0: 1, 1: 1}, {0: 1, 1: 1}], [1, 2], [one, one]) is None
    assert solved([{0: 0}], [1], [one]) is None
    assert solved([{}], [1], [one]) is None
    # What nothing decides keeps its guess.
    assert solved([{0: 0, 1: 1}], [3], [Fraction(7), one]) == [7, 3]


@pytest.mark.parametrize("largest", [9, 2**15 - 1, 2**31 - 1, 2**63 - 1, 2**70])
def test_totals_of_groups_are_sums_of_whole_numbers(largest: int) -> None:
    rng = random.Random(largest)
    rows = [[rng.randint(0, largest), largest] for _ in range(20)]
    options = np.array(rows, dtype=np.min_scalar_type(-largest))
    counts = np.array([rng.randint(0, 2**30) for _ in rows])
    expected = [[0] * 2 for _ in range(4)]
    for at, row in enumerate(rows):
        for i, blocks in enumerate(row):
            expected[at // 5][i] += int(counts[at]) * blocks
    assert group_totals(options, counts, ranges(20, 5, 4)) == expected
    assert group_totals(options[:0], counts[:0], [0]) == [[0, 0]]


def random_path(rng: random.Random, problem: Problem) -> tuple[Condition, ...]:
    quantities = [random_quantity(rng, problem) for _ in range(rng.randint(0, 3))]
    return tuple(
        Condition(quantity, rng.choice([-1, 1]), rng.choice([0, 0, 1, 1, 2, 3]))
        for quantity in quantities
        if quantity is not None
    )
