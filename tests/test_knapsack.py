"""The covering knapsack: plain, compiled and a table of residual demands agree to the unit.

The table ``cheapest`` is the definition read as a recurrence. Where demands are huge it is used up
to a point from which on it repeats itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cms.knapsack
from cms.knapsack import (
    NODE_LIMIT,
    WORK_ROWS,
    Cheapest,
    cheapest_option,
    common_denominator,
    price_jobs,
    search,
)
from cms.rows import Rows
from proofs_checks.checker import cheapest_option as second_opinion

COMPILED_AT = 3  # rows from which on a test takes the compiled path


def cheapest(prices: Sequence[int], supply: Sequence[int], demand: int) -> int | None:
    """The price of the cheapest option, by a table over what is left of the demand."""
    useful = [(p, f) for p, f in zip(prices, supply, strict=True) if f > 0]
    if demand <= 0:
        return 0
    if not useful:
        return None
    # Far beyond f^2 the block of the best ratio is bought at every step (theory 6.5).
    price, step = min(useful, key=lambda block: Fraction(*block))
    largest = max(f for _, f in useful)
    skipped = max(0, (demand - 2 * step * largest) // step)
    table = [0]
    for left in range(1, demand - skipped * step + 1):
        table.append(min(p + table[max(0, left - f)] for p, f in useful))
    return skipped * price + table[-1]


def worth(prices: Sequence[int], option: Sequence[int]) -> int:
    return sum(p * n for p, n in zip(prices, option, strict=True))


def serves(supply: Sequence[int], option: Sequence[int], demand: int) -> bool:
    return min(option, default=0) >= 0 and worth(supply, option) >= demand


blocks = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), min_size=1, max_size=5)


@given(blocks, st.integers(0, 300))
@example([(0, 3), (0, 5), (7, 0)], 11)
@example([(2, 2), (3, 3), (5, 5)], 299)
def test_the_cheapest_option_is_that_of_the_table(rows: list[tuple[int, int]], demand: int) -> None:
    prices, supply = [p for p, _ in rows], [f for _, f in rows]
    expected = cheapest(prices, supply, demand)
    found = cheapest_option(prices, supply, demand)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.value, found.exact) == (expected, True)
    assert serves(supply, found.option, demand)
    assert worth(prices, found.option) == expected


@given(blocks, st.integers(0, 10**3), st.sampled_from([10**6, 10**12, 10**18, 10**40]))
def test_a_huge_demand_is_served_at_the_exact_price(
    rows: list[tuple[int, int]], more: int, huge: int
) -> None:
    prices, supply = [p for p, _ in rows], [f for _, f in rows]
    found = cheapest_option(prices, supply, huge + more)
    expected = cheapest(prices, supply, huge + more)
    opinion = second_opinion(
        list(map(Fraction, prices)), list(map(Fraction, supply)), Fraction(huge + more)
    )
    if found is None:
        assert expected is None
        assert opinion is None
        return
    assert found.value == expected == opinion
    assert found.exact
    assert serves(supply, found.option, huge + more)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(-1, 1)), min_size=2, max_size=6), st.data()
)
def test_ratios_that_are_equal_or_nearly_so_are_told_apart(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    unit = data.draw(st.sampled_from([1, 7, 10**6, 2**40]))
    prices = [f * unit + off for f, off in rows]
    supply = [f for f, _ in rows]
    demand = data.draw(st.integers(1, 400))
    found = cheapest_option(prices, supply, demand)
    assert found is not None
    assert (found.value, found.exact) == (cheapest(prices, supply, demand), True)


@given(blocks, st.integers(1, 2000), st.integers(0, 12))
def test_beyond_the_node_limit_the_value_is_a_lower_bound_and_the_option_serves(
    rows: list[tuple[int, int]], demand: int, limit: int
) -> None:
    prices, supply = [p for p, _ in rows], [f for _, f in rows]
    expected = cheapest(prices, supply, demand)
    option = [0] * len(rows)
    work = [[0] * (len(rows) + 1) for _ in range(WORK_ROWS)]
    value, nodes = search(prices, supply, demand, option, work, limit)
    if expected is None:
        assert value == -1
        return
    assert 0 <= value <= expected <= worth(prices, option)
    assert serves(supply, option, demand)
    if nodes <= limit:
        assert value == expected == worth(prices, option)


def test_some_searches_do_end_at_the_node_limit() -> None:
    rng, cut = random.Random(1), 0
    for _ in range(200):
        supply = [rng.randint(500, 999) for _ in range(6)]
        prices = [f * 100 + rng.randint(-9, 9) for f in supply]
        option, work = [0] * 6, [[0] * 7 for _ in range(WORK_ROWS)]
        value, nodes = search(prices, supply, 10**5 + rng.randint(0, 99), option, work, 30)
        exact = cheapest_option(prices, supply, 10**5)
        assert exact is not None
        cut += nodes > 30
        assert value <= worth(prices, option)
    assert cut > 100


# --- all jobs of a problem ------------------------------------------------------------------------


def random_rows(rng: random.Random, n: int, k: int, largest: int) -> list[tuple[int, list[int]]]:
    """Rows with zeros, equal rows, jobs without a demand and jobs nobody can serve."""
    rows = []
    for _ in range(n):
        supply = [rng.choice([0, rng.randint(1, largest)]) for _ in range(k)]
        rows.append((rng.choice([0, rng.randint(1, 4 * largest), 10**6 * largest]), supply))
    return rows + rows[:2]


def as_rows(rows: list[tuple[int, list[int]]], k: int) -> Rows:
    return Rows.from_fractions([(Fraction(d), [Fraction(f) for f in fs]) for d, fs in rows], k)


def both_ways(
    monkeypatch: pytest.MonkeyPatch, rows: Rows, prices: Sequence[int], **options: object
) -> tuple[cms.knapsack.Pricing, cms.knapsack.Pricing]:
    found = []
    for threshold in (10**9, COMPILED_AT):
        monkeypatch.setattr(cms.knapsack, "COMPILED_FROM", threshold)
        pricing = price_jobs(rows, prices, want_options=True, **options)  # type: ignore[arg-type]
        assert pricing is not None
        found.append(pricing)
    return found[0], found[1]


@pytest.mark.parametrize("seed", range(12))
def test_compiled_and_plain_pricing_agree_on_rows_that_fit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    k = rng.randint(1, 6)
    raw = random_rows(rng, 40, k, rng.choice([5, 20, 60]))
    rows = as_rows(raw, k)
    prices = [rng.choice([0, rng.randint(1, 50), rng.randint(1, 2**20)]) for _ in range(k)]
    plain, compiled = both_ways(monkeypatch, rows, prices)
    assert (plain.total, plain.load, plain.unservable) == compiled[:3]
    assert plain.options is not None
    assert compiled.options is not None
    assert np.array_equal(plain.options.astype(object), compiled.options.astype(object))
    expected = [cheapest(prices, supply, demand) for demand, supply in raw]
    assert plain.unservable == tuple(j for j, value in enumerate(expected) if value is None)
    assert plain.total == sum(value or 0 for value in expected)
    # The load is what everybody buys: a supergradient, whose own price is the total.
    assert worth(prices, plain.load) == plain.total
    assert plain.load == tuple(int(column) for column in plain.options.astype(object).sum(axis=0))


@pytest.mark.parametrize("seed", range(12))
def test_compiled_pricing_is_never_above_the_truth_on_rows_that_do_not_fit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    k = rng.randint(1, 4)
    unit = rng.choice([2**33, 2**62, 10**25])
    raw = [
        (
            rng.randint(0, 40) * unit + rng.randint(0, 9),
            [rng.choice([0, 1, 3, 8]) * unit + rng.choice([0, 1, 2]) for _ in range(k)],
        )
        for _ in range(20)
    ]
    raw.append((10**70, [1] * k))  # far beyond its best block
    rows = as_rows(raw, k)
    prices = [rng.randint(0, 1000) for _ in range(k)]
    plain, compiled = both_ways(monkeypatch, rows, prices)
    _, inner = both_ways(monkeypatch, rows, prices, inner=True)
    assert compiled.total <= plain.total <= inner.total
    # The images are rounded in the 30th bit: of options of a few blocks no more than some are lost.
    assert compiled.unservable == plain.unservable
    assert inner.options is not None
    for j, (demand, supply) in enumerate(raw):
        if j not in inner.unservable:
            option = [int(n) for n in inner.options[j]]
            assert serves(supply, option, demand), j


def test_jobs_with_prices_of_their_own_pay_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    raw = random_rows(rng, 12, 3, 20)
    rows, prices, own = as_rows(raw, 3), [5, 7, 9], {0: [0, 7, 9], 4: [50, 7, 9], 13: [1, 1, 1]}
    plain, compiled = both_ways(monkeypatch, rows, prices, special=own)
    expected = [
        cheapest(own.get(j, prices), supply, demand) for j, (demand, supply) in enumerate(raw)
    ]
    assert plain.total == compiled.total == sum(value or 0 for value in expected)


def test_prices_too_large_for_compiled_code_are_worked_out_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = [(10**9 + j, [7, 10**9 - j]) for j in range(10)]
    rows, prices = as_rows(raw, 2), [2**62 + 1, 10**30]
    plain, compiled = both_ways(monkeypatch, rows, prices)
    assert plain.total == compiled.total
    assert plain.load == compiled.load


@pytest.mark.parametrize("seed", range(10))
def test_compiled_code_does_not_overflow_at_the_edge_of_62_bits(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    raw = []
    for _ in range(60):
        bits = rng.randint(20, 38)  # supply x demand stays below 2^60, prices x demand below 2^62
        supply = [rng.randint(2 ** (bits // 2), 2 ** (bits // 2 + 1)) for _ in range(4)]
        raw.append((rng.randint(2**bits, 2 ** (bits + 1)), supply))
    prices = [rng.randint(2**20, 2**22) for _ in range(4)]
    plain, compiled = both_ways(monkeypatch, as_rows(raw, 4), prices)
    assert plain[:3] == compiled[:3]


def test_pricing_stops_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cms.knapsack, "COMPILED_FROM", COMPILED_AT)
    rows = as_rows([(5, [2])] * 9, 1)
    assert price_jobs(rows, [1], stopped=lambda: True) is None
    assert price_jobs(rows, [1], stopped=lambda: False) is not None


def test_the_node_limit_is_out_of_reach_of_ordinary_jobs() -> None:
    rng = random.Random(5)
    for _ in range(300):
        supply = [rng.randint(50, 2000) for _ in range(8)]
        prices = [int(f * rng.uniform(0.7, 1.3) * 2**30) for f in supply]
        found = cheapest_option(prices, supply, rng.randint(1, 10**7))
        assert isinstance(found, Cheapest)
        assert found.exact, (prices, supply)
    assert NODE_LIMIT >= 10_000


def test_a_common_denominator_keeps_every_number() -> None:
    values = [Fraction(1, 6), Fraction(3, 4), Fraction(0), Fraction(5)]
    integers, denominator = common_denominator(values)
    assert [Fraction(i, denominator) for i in integers] == values
    assert denominator == 12
    assert common_denominator([]) == ([], 1)
