"""Exact equations and exact mixtures."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.prices.search import PriceSearch, fractional
from algorithms.solvers.simplex import solved
from instances.families import generate
from tests.algorithms.branch_and_price.parts import (
    Counting,
    bought,
    cost,
    held,
    reduced,
    searched,
    without_a_step,
)
from tests.families import FAMILIES, instance
from tests.property.problems import share
from tests.references.programs import lp_dw
from tests.samples import so_many, spread

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


# --- of searches ----------------------------------------------------------------------------------


def examine(search: PriceSearch) -> None:
    """Weights of 1; machines that have what jobs take, and just that of types that cost."""
    mixture = fractional(search)
    assert len(mixture.shares) == search.n_groups
    for shares in mixture.shares:
        assert sum(weight for _, weight in shares) == 1
        assert all(weight > 0 and 0 <= at < len(search.options) for at, weight in shares)
    assert all(number >= 0 for _, number in mixture.machines)
    for m, limit in enumerate(search.region.limits):
        bought_of_it = sum(x for row, x in mixture.machines if row.machine == m)
        assert limit is None or bought_of_it <= limit
    need, have = bought(search, mixture), held(mixture, len(search.region.blocks))
    free = search.region.free()
    assert search.best is not None
    for i, price in enumerate(search.best.vector.prices):
        if price > 0:
            assert have[i] == need[i]
        elif i not in free:
            assert have[i] >= need[i]


@pytest.mark.parametrize(
    "family", ["limits", *spread(5, sorted(FAMILIES.keys() - {"limits", "long_numbers"}))]
)
def test_mixtures_are_exact(family: str) -> None:
    for number in range(so_many(3, 8)):
        problem = without_a_step(instance(family, number))
        if not problem.blocks or not len(reduced(problem)) or lp_dw(problem, proper=True) is None:
            continue
        search = searched(problem)
        examine(search)
        assert search.best is not None
        assert abs(cost(search, fractional(search)) - search.best.bound) <= Fraction(1, 10**9)


def test_without_a_program_the_last_pass_stands_alone() -> None:
    problem = generate("arbitrary", n=10, seed=1)
    search = PriceSearch(reduced(problem), Counting(10))
    list(search.run())
    assert search.passes == 1
    assert search.shares == []
    mixture = fractional(search)
    assert mixture.shares == [[(0, 1)]] * 10
    assert mixture.machines == []
