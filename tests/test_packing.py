"""The fullest machine of a size-bounded set: listing every multiset finds no more."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cms.knapsack.packing
from cms.knapsack.packing import fullest_machine
from proofs_checks.checker import dearest_filling

F = Fraction
numbers = st.fractions(min_value=0, max_value=12, max_denominator=6)
prices_and_sizes = st.lists(
    st.tuples(
        st.fractions(min_value=-2, max_value=12, max_denominator=6),
        st.fractions(min_value=F(1, 2), max_value=7, max_denominator=6),
    ),
    max_size=4,
)


def by_listing(
    prices: Sequence[F], sizes: Sequence[F], capacity: F, max_blocks: int | None
) -> Fraction:
    best = F(0)
    for counts in itertools.product(*(range(int(capacity / size) + 1) for size in sizes)):
        if max_blocks is not None and sum(counts) > max_blocks:
            continue
        if sum((s * n for s, n in zip(sizes, counts, strict=True)), F(0)) <= capacity:
            best = max(best, sum((p * n for p, n in zip(prices, counts, strict=True)), F(0)))
    return best


def refuse_false_content(
    found: cms.knapsack.packing.Fullest,
    prices: Sequence[F],
    sizes: Sequence[F],
    capacity: F,
    max_blocks: int | None,
) -> None:
    """The content must fit and, where the search was exact, be worth its value."""
    content = found.content
    assert min(content, default=0) >= 0
    assert sum((s * n for s, n in zip(sizes, content, strict=True)), F(0)) <= capacity
    assert max_blocks is None or sum(content) <= max_blocks
    value = sum((p * n for p, n in zip(prices, content, strict=True)), F(0))
    assert value == found.value if found.exact else value <= found.value


@pytest.fixture(params=["table", "search"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to find it: a table over capacities, and the search for what has no short one."""
    if request.param == "search":
        monkeypatch.setattr(cms.knapsack.packing, "_MOST_CELLS", -1)
    return str(request.param)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blocks=prices_and_sizes,
    capacity=st.fractions(min_value=0, max_value=9, max_denominator=4),
    max_blocks=st.one_of(st.none(), st.integers(1, 6)),
)
@example(
    blocks=[(F(1, 3), F(44)), (F(1, 4), F(33)), (F(1, 11), F(12))], capacity=F(132), max_blocks=None
)
@example(blocks=[(F(2), F(1)), (F(3), F(2))], capacity=F(5), max_blocks=2)
@example(blocks=[(F(0), F(1)), (F(-1), F(2))], capacity=F(5), max_blocks=None)
@example(blocks=[(F(2 * 10**30), F(1)), (F(3 * 10**30), F(2))], capacity=F(5), max_blocks=4)
@example(blocks=[], capacity=F(0), max_blocks=None)
def test_nothing_that_fits_is_worth_more(
    way: str, blocks: list[tuple[F, F]], capacity: F, max_blocks: int | None
) -> None:
    prices, sizes = [p for p, _ in blocks], [s for _, s in blocks]
    found = fullest_machine(prices, sizes, capacity, max_blocks)
    assert found.exact
    assert found.value == by_listing(prices, sizes, capacity, max_blocks)
    refuse_false_content(found, prices, sizes, capacity, max_blocks)


@pytest.mark.parametrize("max_blocks", [None, 3, 48])
def test_shares_of_a_gpu_at_nearly_equal_prices_are_weighed_exactly(
    way: str, max_blocks: int | None
) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        sizes = [F(size) for size in rng.sample(range(5, 101), rng.randint(3, 16))]
        prices = [size * F(rng.randint(990, 1010), 1000) for size in sizes]
        found = fullest_machine(prices, sizes, F(100), max_blocks)
        assert found.exact, seed
        assert found.value == dearest_filling(prices, sizes, F(100), max_blocks), seed
        refuse_false_content(found, prices, sizes, F(100), max_blocks)


@pytest.mark.parametrize("max_blocks", [None, 5])
def test_beyond_the_node_limit_the_value_is_an_upper_bound(
    max_blocks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = 0
    monkeypatch.setattr(cms.knapsack.packing, "_MOST_CELLS", -1)
    for seed in range(60):
        rng = random.Random(seed)
        sizes = [F(rng.randint(7, 40)) for _ in range(5)]
        prices = [size + F(rng.randint(-3, 3), 10) for size in sizes]
        monkeypatch.setattr(cms.knapsack.packing, "NODE_LIMIT", rng.randint(0, 6))
        found = fullest_machine(prices, sizes, F(100), max_blocks)
        exact = dearest_filling(prices, sizes, F(100), max_blocks)
        assert found.value >= exact, seed
        assert not found.exact or found.value == exact, seed
        refuse_false_content(found, prices, sizes, F(100), max_blocks)
        cut += not found.exact
    assert cut > 10


def test_a_huge_machine_is_filled_at_once() -> None:
    sizes = [F(20), F(3), F(7)]
    prices = [F(21), F(31, 10), F(7)]
    capacity = F(10**12 + 1)
    found = fullest_machine(prices, sizes, capacity, None)
    assert (found.value, found.exact) == (dearest_filling(prices, sizes, capacity), True)


def test_a_limit_on_blocks_that_cannot_bind_costs_nothing() -> None:
    sizes, capacity = [F(2), F(3)], F(10**12 + 1)
    found = fullest_machine(sizes, sizes, capacity, 10**12)
    assert (found.value, found.exact) == (capacity, True)
