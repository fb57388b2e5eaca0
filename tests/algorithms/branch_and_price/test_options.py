"""The minimal options of a job against their definition."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from algorithms.branch_and_price.options import minimal_options


def _minimal_by_definition(
    prices: list[int], supply: list[int], demand: int, budget: int
) -> set[tuple[int, ...]]:
    ranges = [range((-(-demand // f) if f else 0) + 1) for f in supply]
    found = set()
    for option in itertools.product(*ranges):
        total = sum(f * n for f, n in zip(supply, option, strict=True))
        needed = all(total - f < demand for f, n in zip(supply, option, strict=True) if n)
        cost = sum(p * n for p, n in zip(prices, option, strict=True))
        if total >= demand and needed and cost <= budget:
            found.add(option)
    return found


@given(st.data())
def test_the_minimal_options_are_those_of_the_definition(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    prices = data.draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    supply = data.draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    demand, budget = data.draw(st.integers(1, 20)), data.draw(st.integers(0, 40))
    found = minimal_options(prices, supply, demand, budget, most=10**6)
    assert found is not None
    assert sorted(found) == sorted(_minimal_by_definition(prices, supply, demand, budget))


def test_options_that_are_too_many_are_given_up_at_once() -> None:
    # equal ratios: about 10**8 ways to mix the two types
    assert minimal_options([2, 3], [2, 3], 10**9, 10**9 + 10, most=100) is None
