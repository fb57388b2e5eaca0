"""How many bits prices may have for compiled code: counted, so that parts of the rows add up."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cms.knapsack.pricing import price_bits, price_histogram
from cms.problem.rows import Rows


def as_rows(raw: list[tuple[int, list[int]]], k: int) -> Rows:
    return Rows.from_fractions([(Fraction(d), [Fraction(f) for f in fs]) for d, fs in raw], k)


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
