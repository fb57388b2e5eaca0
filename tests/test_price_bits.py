"""How many bits prices may have for compiled code: counted, so that parts of the rows add up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms.knapsack.pricing
from cms.knapsack.pricing import price_bits, price_histogram, price_jobs
from cms.problem.rows import Rows


def as_rows(raw: list[tuple[int, list[int]]], k: int) -> Rows:
    return Rows.from_fractions([(Fraction(d), [Fraction(f) for f in fs]) for d, fs in raw], k)


def test_at_the_largest_price_compiled_code_prices_all_but_a_few_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    demand = rng.integers(1, 10**6, 5_000)
    supply = rng.integers(1, 10**5, (5_000, 3))
    demand[:4] = 10**15  # 10^10 blocks and more
    rows = Rows(demand, supply, np.ones(5_000, dtype=np.int64), {})
    bits = price_bits(price_histogram(rows))
    assert bits >= 40
    by_hand: list[int] = []

    def price_plain(_: object, jobs: list[int]) -> None:
        by_hand.extend(jobs)

    monkeypatch.setattr(cms.knapsack.pricing._Tally, "price_plain", price_plain)
    price_jobs(rows, [2 ** (bits - 1)] * 3)
    assert by_hand[:4] == [0, 1, 2, 3]
    assert len(by_hand) <= 5
    by_hand.clear()
    price_jobs(rows, [2**44] * 3)
    # Products beyond 62 bits are Python's, but for what is bought at once.
    large = (demand > 2**18) & (demand <= 2**10 * supply.max(axis=1))
    assert set(np.flatnonzero(large).tolist()) <= set(by_hand)
    assert price_bits(price_histogram(Rows.from_fractions([], 2))) == 62


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), max_size=60), st.data())
def test_the_bits_of_prices_are_those_of_the_quantile_and_add_up(
    raw: list[tuple[int, int]], data: st.DataObject
) -> None:
    rows = as_rows([(d, [f]) for d, f in raw], 1)
    histogram = price_histogram(rows)
    cut = data.draw(st.integers(0, len(raw)))
    parts = [price_histogram(rows.part(*ends)) for ends in ((0, cut), (cut, len(raw)))]
    assert [a + b for a, b in zip(*parts, strict=True)] == histogram
    # sixty rows: none of them may be left to Python integers
    bits = [
        next(b for b, n in enumerate(price_histogram(rows.part(j, j + 1))) if n)
        for j in range(len(raw))
    ]
    assert price_bits(histogram) == min(bits, default=62)
    assert price_bits([n * 999 for n in histogram]) == min(bits, default=62)
