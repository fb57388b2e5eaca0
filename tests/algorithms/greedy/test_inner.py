"""Filling a single machine: every inner method keeps its factor of the best allocation."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from algorithms.greedy.inner import INNER, PathRounding, assignment
from algorithms.greedy.promises import FACTORS
from algorithms.solvers.linear import LinearProgram
from tests.samples import so_many

Floats = NDArray[np.float64]


def case(rng: random.Random) -> tuple[list[int], Floats, Floats]:
    k, m = rng.randint(1, 3), rng.randint(1, 3)
    blocks = [rng.randint(0, 2) for _ in range(k)]
    budgets = np.array([rng.choice([1.0, 2.0, 3.0, 5.0]) for _ in range(m)])
    bids = np.array(
        [[rng.choice([0.0, 1.0, 1.0, 2.0, 2.5, 3.0]) for _ in range(m)] for _ in blocks]
    )
    return blocks, np.minimum(bids, budgets), budgets


def worth(given: NDArray[Any], bids: Floats, budgets: Floats) -> float:
    return float(np.minimum((given * bids).sum(axis=0), budgets).sum())


def brute_force(blocks: list[int], bids: Floats, budgets: Floats) -> float:
    m = bids.shape[1]
    units = [i for i, number in enumerate(blocks) for _ in range(number)]
    best = 0.0
    for owners in itertools.product(range(m), repeat=len(units)):
        got = np.zeros(m)
        for i, j in zip(units, owners, strict=True):
            got[j] += bids[i, j]
        best = max(best, float(np.minimum(got, budgets).sum()))
    return best


def test_where_floats_come_to_no_end_rationals_find_the_same_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(7)
    for _ in range(100):
        blocks, bids, budgets = case(rng)
        by_floats = assignment(blocks, bids, budgets)
        with monkeypatch.context() as patch:
            patch.setattr(LinearProgram, "solve", lambda self, budget: None)
            exactly = assignment(blocks, bids, budgets)
        assert (exactly.sum(axis=1) <= np.array(blocks) + 1e-9).all()
        paid = (exactly * bids).sum(axis=0)
        assert (paid <= budgets * (1 + 1e-9)).all()
        assert paid.sum() == pytest.approx((by_floats * bids).sum())


@pytest.mark.parametrize("method", sorted(INNER))
@pytest.mark.parametrize("zeros", [0, 8, 13, 40])
def test_a_method_keeps_its_factor_and_gives_no_block_twice(method: str, zeros: int) -> None:
    rng = random.Random(f"{method} {zeros}")
    for _ in range(so_many(50, 150) if zeros else 250):
        blocks, bids, budgets = case(rng)
        budgets *= [10.0 ** rng.randint(-zeros, zeros) for _ in budgets]
        bids *= [[10.0 ** rng.randint(-zeros, zeros) for _ in budgets] for _ in blocks]
        bids = np.minimum(bids, budgets)
        given = INNER[method](blocks, bids, budgets)
        assert (given >= 0).all()
        assert (given.sum(axis=1) <= blocks).all()
        best = brute_force(blocks, bids, budgets)
        less = 1e-5 if zeros else 1e-9
        assert worth(given, bids, budgets) >= float(FACTORS[method]) * best * (1 - less)


def test_rounding_along_cycles_and_paths_keeps_totals_and_three_quarters() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        parts, bids = rng.uniform(0.05, 0.95, (3, 3)), rng.uniform(0.2, 3, (3, 3))
        budgets = np.maximum((parts * bids).sum(axis=0), bids.max(axis=0))
        rounded = PathRounding(bids, budgets, np.zeros(3)).rounded(parts)
        assert (rounded.sum(axis=1) <= np.ceil(parts.sum(axis=1))).all()
        assert worth(rounded, bids, budgets) >= 0.75 * worth(parts, bids, budgets)
