"""Exact equations and exact mixtures."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.prices.fraction import exactly, fractional
from algorithms.prices.region import Row, Share
from algorithms.prices.search import PriceSearch
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


def test_unknowns_that_nothing_decides_keep_their_guess() -> None:
    assert solved([{0: 0, 1: 1}], [3], [Fraction(7), Fraction(8)]) == [7, 3]
    assert solved([], [], [Fraction(7)]) == [7]


def test_equations_that_contradict_each_other_have_no_solution() -> None:
    one = Fraction(1)
    assert solved([{0: 1, 1: 1}, {0: 1, 1: 1}], [1, 2], [one, one]) is None
    assert solved([{0: 0}], [1], [one]) is None
    assert solved([{}], [1], [one]) is None


def exact_mixture(
    loads: list[list[tuple[int, ...]]],
    weights: list[list[Fraction]],
    fixed: Sequence[int],
    rows: list[tuple[int, ...]],
    machines: list[Fraction],
) -> tuple[list[list[Fraction]], list[Fraction]] | None:
    """The numbers of a search that ended with these: groups, and blocks that others take."""
    shares = [
        Share(group, at, weight, load)
        for group, pairs in enumerate(zip(loads, weights, strict=True))
        for at, (load, weight) in enumerate(zip(*pairs, strict=True))
    ]
    others = Share(len(loads), 0, 1.0, tuple(fixed))
    region = SimpleNamespace(blocks=fixed, limits=[], path=(), own_priced=())
    search: Any = SimpleNamespace(
        shares=[*shares, others],
        machines=[(Row(row, 0, None), x) for row, x in zip(rows, machines, strict=True)],
        extra={},
        region=region,
        n_groups=len(loads) + 1,
    )
    found = exactly(search)
    if found is None:
        return None
    mixed: list[list[Fraction]] = [[] for _ in loads]
    for part, weight in zip(shares, found.weights, strict=False):
        mixed[part.group].append(weight)
    return mixed, [x for _, x in found.machines]


@pytest.mark.parametrize("size", [20, 10**6, 10**12, 10**20])
def test_a_mixture_known_to_nine_digits_is_made_exact(size: int) -> None:
    """As many unknowns as equations, as at a vertex: groups of two passes, and machines."""
    decided = 0
    for number in range(60):
        rng = random.Random(f"{size} {number}")
        k = rng.randint(2, 4)
        groups = rng.randint(1, k - 1)
        parts = [(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(groups)]
        weights = [[Fraction(part, sum(pair)) for part in pair] for pair in parts]
        loads = [
            [tuple(sum(pair) * rng.randint(0, size) for _ in range(k)) for _ in pair]
            for pair in parts
        ]
        rows = [tuple(rng.randint(1, 5) for _ in range(k)) for _ in range(k - groups)]
        machines = [Fraction(rng.randint(100 * size, 200 * size)) for _ in rows]
        have = [sum(x * row[i] for x, row in zip(machines, rows, strict=True)) for i in range(k)]
        fixed = [int(have[i] - takes(loads, weights)[i]) for i in range(k)]

        def noise(rng: random.Random = rng) -> Fraction:
            return 1 + Fraction(rng.randint(-9, 9), 10**10)

        near = [[weight * noise() for weight in mine] for mine in weights]
        found = exact_mixture(loads, near, fixed, rows, [x * noise() for x in machines])
        if found is None:
            continue
        assert [sum(mine) for mine in found[0]] == [1] * groups
        assert min(weight for mine in found[0] for weight in mine) >= 0
        new = takes(loads, found[0])
        for i in range(k):
            holds = sum(x * row[i] for x, row in zip(found[1], rows, strict=True))
            assert holds - new[i] == fixed[i]
        decided += found == (weights, machines)
    assert decided >= 50  # in the others the equations depend on one another


def takes(loads: list[list[tuple[int, ...]]], weights: list[list[Fraction]]) -> list[Fraction]:
    """The blocks of a mixture."""
    result = [Fraction(0)] * len(loads[0][0])
    for group, mine in zip(loads, weights, strict=True):
        for load, weight in zip(group, mine, strict=True):
            result = [a + weight * b for a, b in zip(result, load, strict=True)]
    return result


# --- of searches ----------------------------------------------------------------------------------


def examine(search: PriceSearch) -> None:
    """Weights of 1; machines that have what jobs take, and just that of types that cost."""
    mixture = fractional(search)
    assert len(mixture.shares) == search.n_groups
    for shares in mixture.shares:
        assert sum(weight for _, weight in shares) == 1
        assert all(weight > 0 and 0 <= at < len(search.options) for at, weight in shares)
    assert all(number >= 0 for _, number in mixture.machines)
    need, have = bought(search, mixture), held(mixture, len(search.region.blocks))
    free, _ = search.region.free()
    assert search.best is not None
    for i, price in enumerate(search.best.vector.prices):
        if price > 0:
            assert have[i] == need[i]
        elif i not in free:
            assert have[i] >= need[i]


@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
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
