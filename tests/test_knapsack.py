"""The covering knapsack of one job, against a table of residual demands and a second opinion.

The table ``cheapest`` is the definition read as a recurrence. Where demands are huge it is used up
to a point from which on it repeats itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cms.knapsack.covering
from cms.knapsack.pricing import cheapest_option
from proofs_checks.checker import cheapest_option as second_opinion
from tests.samples import so_many


def cheapest(prices: Sequence[int], supply: Sequence[int], demand: int) -> int | None:
    """The price of the cheapest option, by a table over what is left of the demand."""
    return _cheapest(tuple(prices), tuple(supply), demand)


@cache
def _cheapest(prices: tuple[int, ...], supply: tuple[int, ...], demand: int) -> int | None:
    useful = [(p, f) for p, f in zip(prices, supply, strict=True) if f > 0]
    if demand <= 0:
        return 0
    if not useful:
        return None
    # Far beyond f^2 the block of the best ratio is bought at every step (theory 6.5).
    price, step = min(useful, key=lambda block: Fraction(*block))
    largest = max(f for _, f in useful)
    skipped = max(0, (demand - 2 * step * largest) // step)
    table = [0] * largest  # what is left may be less than nothing
    for _ in range(demand - skipped * step):
        table.append(min([p + table[-f] for p, f in useful]))
    return skipped * price + table[-1]


def worth(prices: Sequence[int], option: Sequence[int]) -> int:
    return sum(p * n for p, n in zip(prices, option, strict=True))


def serves(supply: Sequence[int], option: Sequence[int], demand: int) -> bool:
    return min(option, default=0) >= 0 and worth(supply, option) >= demand


def assert_cheapest(prices: Sequence[int], supply: Sequence[int], demand: int) -> None:
    expected = cheapest(prices, supply, demand)
    found = cheapest_option(prices, supply, demand)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.value, found.exact) == (expected, True)
    assert serves(supply, found.option, demand)
    assert worth(prices, found.option) == expected


blocks = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), min_size=1, max_size=6)


@given(blocks, st.integers(0, 300))
@example([(0, 3), (0, 5), (7, 0)], 11)
@example([(2, 2), (3, 3), (5, 5)], 299)
@example([(1, 1), (1, 1)], 1)
def test_the_cheapest_option_is_that_of_the_table(rows: list[tuple[int, int]], demand: int) -> None:
    assert_cheapest([p for p, _ in rows], [f for _, f in rows], demand)


@given(blocks, st.integers(0, 10**3), st.sampled_from([10**6, 10**12, 10**15, 10**18, 10**40]))
def test_a_huge_demand_is_served_at_the_exact_price(
    rows: list[tuple[int, int]], more: int, huge: int
) -> None:
    prices, supply = [p for p, _ in rows], [f for _, f in rows]
    assert_cheapest(prices, supply, huge + more)
    found = cheapest_option(prices, supply, huge + more)
    opinion = second_opinion(
        list(map(Fraction, prices)), list(map(Fraction, supply)), Fraction(huge + more)
    )
    assert (found.value if found else None) == opinion


@pytest.mark.parametrize("many", [0, 2**10])
def test_thousands_of_random_jobs_get_their_cheapest_options(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With 0, every demand is first reduced by what some cheapest option is known to contain.
    monkeypatch.setattr(cms.knapsack.covering, "MANY_BLOCKS", many)
    rng = random.Random(many)
    for _ in range(so_many(500, 2_000)):
        k, unit, off = rng.randint(2, 5), rng.choice([1, 3, 100]), rng.choice([0, 1, 20])
        supply = [rng.randint(1, 12) for _ in range(k)]
        prices = [f * unit + rng.randint(0, off) for f in supply]
        assert_cheapest(prices, supply, rng.randint(1, 150))


def test_where_memory_for_lists_ends_the_value_is_a_bound_and_the_option_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, loose, number = random.Random(1), 0, so_many(20, 80)
    for entries in (1, 2, 5, 40):
        monkeypatch.setattr(cms.knapsack.covering, "LONGEST_LIST", entries)
        for _ in range(number):
            supply = [rng.randint(50, 99) for _ in range(6)]
            prices = [f * 100 + rng.randint(-9, 9) for f in supply]
            demand = rng.randint(200, 4_000)
            expected = cheapest(prices, supply, demand)
            found = cheapest_option(prices, supply, demand)
            assert found is not None
            assert expected is not None
            assert 0 <= found.value <= expected <= worth(prices, found.option)
            assert serves(supply, found.option, demand)
            # never less than what the whole demand costs at the best ratio
            assert found.value >= demand * min(map(Fraction, prices, supply))
            if found.exact:
                assert found.value == expected == worth(prices, found.option)
            loose += not found.exact
    assert number * 5 / 4 < loose < 4 * number
