"""Thousands of rows beyond 63 bits, priced on images: what they buy serves them all the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cms import Problem
from cms.knapsack.pricing import cheapest_option, price_jobs


def many_long_rows(n: int, seed: int) -> Problem:
    rng = random.Random(seed)
    return Problem.from_arrays(
        demands=np.array([10**25 + rng.randint(0, 10**24) for _ in range(n)], dtype=object),
        supply=np.array(
            [[rng.randint(1, 10**20), rng.randint(10**19, 10**21)] for _ in range(n)], dtype=object
        ),
        configurations=[[3, 0], [1, 2]],
    )


@pytest.mark.parametrize("seed", range(2))
def test_every_option_serves_its_exact_row(seed: int) -> None:
    rows = many_long_rows(4_200, seed).rows
    assert len(rows.wide) == 4_200
    found = price_jobs(rows, [3, 10], want_options=True)
    assert found is not None
    assert found.options is not None
    paid = 0
    for j, option in enumerate(found.options.tolist()):
        row = rows.row(j)
        assert sum(f * n for f, n in zip(row.supply, option, strict=True)) >= row.demand
        paid += 3 * option[0] + 10 * option[1]
    assert list(found.load) == found.options.sum(axis=0).tolist()
    assert found.total <= paid
    exact = 0
    for j in range(4_200):
        best = cheapest_option([3, 10], rows.row(j).supply, rows.row(j).demand)
        assert best is not None
        exact += best.value
    assert found.total <= exact
    bare = price_jobs(rows, [3, 10])
    assert bare is not None
    assert (bare.total, bare.load) == (found.total, found.load)
