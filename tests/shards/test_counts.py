"""Small integers in place of counts, and the jobs of pools, dealt in pieces."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.prices.sharded_jobs import _Dealer
from cms.shards import counts
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


def test_rows_of_one_sum_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_HASHING", np.ones(2, dtype=np.int64))
    monkeypatch.setattr(counts, "_LISTED_KEYS", 0)
    table = np.array([[1, 2], [2, 1], [1, 2]])
    assert Coded.of_table(table).table().tolist() == table.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_pools_are_dealt_alike_however_they_are_cut(seed: int) -> None:
    """After n jobs each pass has its weight times n, rounded down; all taken adds up."""
    rng = random.Random(seed)
    n, passes = rng.randint(1, 80), rng.randint(2, 4)
    choices = [[(1, 0), (0, 1)], [(2, 0), (1, 1), (0, 3)], [(5, 5)]]
    kinds = [rng.randrange(3) for _ in range(n)]
    bought = [[rng.choice(choices[kind]) for kind in kinds] for _ in range(passes)]
    shares = [rng.randint(1, 9) for _ in range(passes)]
    weights = [Fraction(share, sum(shares)) for share in shares]
    dealers = []
    for pieces in (1, rng.randint(2, 9)):
        dealer, took = _Dealer([weights], 2), list[list[int]]()
        cuts = sorted(rng.randint(0, n) for _ in range(pieces - 1))
        for begin, end in zip([0, *cuts], [*cuts, n], strict=True):
            if begin < end:
                tables = [np.array(options[begin:end]) for options in bought]
                took += dealer.deal(0, begin, [*map(Coded.of_table, tables)]).table().tolist()
        total = np.array(took).sum(axis=0) + dealer.change
        left = {job for pool in dealer.pools.values() for job, _ in pool.left}
        for job, option in dealer.own.items():
            took[job] = list(option)
        assert (
            total.tolist()
            == np.sum([t for j, t in enumerate(took) if j not in left], axis=0).tolist()
        )
        allowed = [{tuple(options[job]) for options in bought} for job in range(n)]
        assert all(tuple(option) in allowed[job] for job, option in enumerate(took))
        for pool in dealer.pools.values():
            assert pool.given == [floor(weight * pool.amount) for weight in weights]
            assert len(pool.left) < passes
        amounts = Counter({key: pool.amount for key, pool in dealer.pools.items()})
        dealers.append((amounts, total.tolist() if not left else len(left)))
    assert dealers[0] == dealers[1]
