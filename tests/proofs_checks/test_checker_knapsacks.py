"""The checker's two optimisation problems against plain enumeration."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from typing import TypeVar
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.knapsack.pricing import cheapest_option as first_checkers
from proofs_checks.checker import cheapest_option, dearest_filling
from proofs_checks.checker.knapsacks import cheapest_price

T = TypeVar("T")

F = Fraction
small = st.integers(min_value=0, max_value=12)
sixths = st.fractions(min_value=0, max_value=4, max_denominator=6)


def table_of_residual_demands(prices: list[F], supply: list[int], demand: int) -> F | None:
    """least[r]: the cheapest way to cover r, by the block that is bought last."""
    least: list[F | None] = [F(0)]
    for r in range(1, demand + 1):
        ways = [
            before + price
            for price, f in zip(prices, supply, strict=True)
            if f > 0 and (before := least[max(0, r - f)]) is not None
        ]
        least.append(min(ways, default=None))
    return least[demand]


def best_within(prices: list[F], sizes: list[F], capacity: F, most: int | None) -> F:
    """Try every block as the next one, in every way."""
    if most == 0:
        return F(0)
    fewer = None if most is None else most - 1
    ways = [
        price + best_within(prices[i:], sizes[i:], capacity - size, fewer)
        for i, (price, size) in enumerate(zip(prices, sizes, strict=True))
        if size <= capacity and price > 0
    ]
    return max(ways, default=F(0))


near_ties = st.lists(
    st.tuples(st.integers(1, 12), st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=5
)


def with_limits(work: Callable[[], T], **limits: int) -> T:
    """Do it with other limits of the two searches, so that small problems meet them."""
    with ExitStack() as stack:
        for name, value in limits.items():
            module, constant = name.split("_", 1)
            stack.enter_context(patch(f"proofs_checks.checker.{module}._{constant.upper()}", value))
        return work()


@given(
    st.lists(st.tuples(sixths, small), max_size=4),
    st.integers(min_value=0, max_value=60),
    st.fractions(min_value=F(1, 9), max_value=9, max_denominator=9),
)
@example([(F(2), 2), (F(3), 3), (F(6), 6)], 59, F(1))  # equal ratios
@example([(F(0), 1), (F(1), 7)], 60, F(1))  # a block for nothing
@example([(F(7), 6), (F(10), 9), (F(22), 20)], 43, F(1))  # not every demand is a sum
def test_the_cheapest_option_is_that_of_the_table_in_any_unit(
    blocks: list[tuple[F, int]], demand: int, unit: F
) -> None:
    prices, supply = [p for p, _ in blocks], [f for _, f in blocks]
    exact = cheapest_option(prices, [f * unit for f in supply], demand * unit)
    assert exact == table_of_residual_demands(prices, supply, demand)


@given(near_ties, st.integers(1, 4_000), st.booleans(), st.sampled_from([0, 1, 3]), st.booleans())
@example([(7, 0, 1), (7, 1, 1), (5, 1, 0), (3, 0, 0)], 2_345, True, 0, True)
def test_lists_pairs_and_a_table_over_remainders_find_what_the_table_has(
    sizes: list[tuple[int, int, int]], demand: int, even: bool, steps: int, few: bool
) -> None:
    # Prices and supply near the sizes: little is cut off early, and after a step others take over.
    # Even supplies have remainders in common with the demand, or with none of the others.
    prices = [F(7 * size + up, 7) for size, up, _ in sizes]
    supply = [max(0, 3 * size + up) * (1 + even) for size, _, up in sizes]
    exact = table_of_residual_demands(prices, supply, demand)
    limits = {"knapsacks_steps": steps, "knapsacks_few": 3 * few if steps else 0}
    found = with_limits(lambda: cheapest_option(prices, [*map(F, supply)], F(demand)), **limits)
    assert found == exact


@given(near_ties, st.integers(1, 150), st.integers(0, 12))
def test_lists_that_grow_too_long_end_on_the_right_side(
    sizes: list[tuple[int, int, int]], amount: int, longest: int
) -> None:
    prices = [F(7 * size + up, 7) for size, up, _ in sizes]
    supply = [F(3 * size + up) for size, _, up in sizes]
    demand = F(amount)
    h = cheapest_option(prices, supply, demand)
    w = dearest_filling(prices, supply, demand)
    limits = {"knapsacks_steps": 1, "knapsacks_few": 0, "knapsacks_longest": longest}
    lower = with_limits(lambda: cheapest_option(prices, supply, demand), **limits)
    upper = with_limits(lambda: dearest_filling(prices, supply, demand), filling_longest=longest)
    assert h is not None
    assert lower is not None
    assert demand * min(map(F.__truediv__, prices, (min(f, demand) for f in supply))) <= lower
    assert lower <= h
    assert w <= upper <= demand * max(map(F.__truediv__, prices, supply))


@pytest.mark.parametrize(
    ("prices", "supply", "demand", "best"),
    [  # of drawn problems with prime supplies or huge demands, at the prices of their certificates
        (
            [700261, 728840, 1048576, 776873], [38371, 39937, 57457, 42569],
            445_453_830, 8_129_414_704,
        ),
        ([945365, 137048, 1048576], [77527, 11239, 85991], 66_826_230, 814_877_127),
        (
            [160262, 46063, 1048576, 67005, 154752], [106369, 30573, 695960, 44473, 102712],
            4_000_000_001, 6_026_577_960,
        ),
    ],
)  # fmt: skip
def test_types_within_a_hair_of_one_another_are_settled_without_lists(
    prices: list[int], supply: list[int], demand: int, best: int
) -> None:
    assert with_limits(lambda: cheapest_price(prices, supply, demand), knapsacks_longest=0) == best
    theirs = first_checkers(prices, supply, demand)
    assert theirs is not None
    assert theirs.value <= best


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=5
    ),
    st.sampled_from([10**2, 10**5, 10**15, 10**30]),
    st.integers(1, 2_000),
)
def test_it_proves_no_less_than_the_first_checker(
    sizes: list[tuple[int, int, int]], digits: int, units: int
) -> None:
    prices = [size * digits + up for size, up, _ in sizes]
    supply = [size * digits + up for size, _, up in sizes]
    demand = units * digits
    theirs = first_checkers(prices, supply, demand)
    ours = cheapest_option([F(p) for p in prices], [F(f) for f in supply], F(demand))
    assert theirs is not None
    assert ours is not None
    assert ours == theirs.value if theirs.exact else ours >= theirs.value


@given(
    st.lists(st.tuples(st.integers(-2, 12), st.integers(1, 12)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.none() | st.integers(1, 6),
    st.integers(-3, 3),
)
def test_a_filling_that_is_worth_enough_need_not_be_the_dearest(
    blocks: list[tuple[int, int]], capacity: int, most: int | None, off: int
) -> None:
    prices, sizes = [F(p) for p, _ in blocks], [F(s) for _, s in blocks]
    exact = best_within(prices, sizes, F(capacity), most)
    enough = exact + off
    found = dearest_filling(prices, sizes, F(capacity), most, enough)
    assert found == exact if exact > enough else exact <= found <= enough


def test_a_machine_of_a_million_million_is_no_table() -> None:
    # 3 · 333333333332 + 5 = 10^12 + 1: ten thousand a unit, and one for each block.
    sizes, prices = [F(3), F(4), F(5)], [F(30_001), F(40_001), F(50_001)]
    capacity = F(10**12 + 1)
    assert dearest_filling(prices, sizes, capacity) == 10_000 * capacity + 333_333_333_333
    # With fewer blocks than fit, the lists end early, on the right side.
    few = 3 * 10**11
    found = with_limits(
        lambda: dearest_filling(prices, sizes, capacity, few), filling_longest=1_000
    )
    assert 10_000 * (capacity - 2) + few <= found <= capacity * prices[0] / 3
