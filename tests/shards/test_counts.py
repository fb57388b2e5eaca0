"""Small integers in place of counts, and the jobs of pools, dealt in pieces."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cms.shards.counts import Coded


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64)), max_size=9), st.booleans())
def test_options_by_their_numbers_are_the_table(rows: list[tuple[int, int]], short: bool) -> None:
    rows = [(a, b % 4) for a, b in rows] if short else rows
    large = max((b for _, b in rows), default=0) >= 2**63
    table = np.array(rows, dtype=object if large else np.int64).reshape(len(rows), 2)
    coded = Coded.of_table(table)
    assert coded.table().tolist() == table.tolist()
    assert len(coded.options) == len(set(rows))
    joined = Coded.joined([coded, coded], 2)
    assert joined.table().tolist() == table.tolist() * 2
    assert len(joined.options) == len(set(rows))


def test_rows_of_one_sum_are_told_apart() -> None:
    one, other = (np.random.default_rng(0).integers(1, 2**62, 2) * 2 + 1).tolist()
    table = np.array([[other, 0], [0, one], [other, 0]])
    assert Coded.of_table(table).table().tolist() == table.tolist()


def test_a_table_may_have_more_columns_than_arrays_have_dimensions() -> None:
    table = np.eye(100, dtype=np.int64)
    assert Coded.of_table(table).table().tolist() == table.tolist()
