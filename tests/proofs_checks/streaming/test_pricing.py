"""Jobs priced many at a time pay what the checker's own search says, whatever their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from proofs_checks.checker.knapsacks import cheapest_price
from proofs_checks.checker.problem import Row
from proofs_checks.streaming.pricing import paid_by
from proofs_checks.streaming.problem import Rows
from proofs_checks.streaming.stored import exact_sum


def paid(
    rows: list[list[int]], costs: list[int], kind: str = "i8", left_out: tuple[int, ...] = ()
) -> int:
    table = np.array(rows, dtype=kind).reshape(len(rows), -1)
    found = paid_by(Rows(table[:, 0], table[:, 1:], None, {}), costs, left_out)
    assert found == sum(
        cheapest_price(costs, row[1:], row[0]) or 0
        for at, row in enumerate(rows)
        if at not in left_out
    )
    return found


@pytest.mark.parametrize(
    ("rows", "costs", "total"),
    [
        ([[10, 3, 7]], [2, 5], 7),  # 3 + 7
        ([[10, 3, 7], [0, 3, 7], [10, 0, 0]], [2, 5], 7),
        ([[10, 3, 7], [10, 3, 0]], [2, 0], 8),  # what is for nothing serves one of them
        ([[2**62, 1, 1]], [2, 5], 2**63),
        ([[2**46 + 1, 3, 2]], [3, 2], 2**46 + 1),  # 1 a unit: 3 and 2 make any number
        ([[10**6, 999, 1000]], [999, 1001], 10**6 + 1),  # one of the dearer and 1000 of the others
        ([[5, 1, 2]], [10**6, 3 * 10**6], 5 * 10**6),
        ([[2**30 - 1, 2**30 - 1, 1], [2**30 - 1, 1000, 2**20]], [1, 7], 1 + 7 * 1024),
    ],
)
def test_prices_that_were_found_by_hand(
    rows: list[list[int]], costs: list[int], total: int
) -> None:
    assert paid(rows, costs) == total


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("dearest", [1, 7, 73, 5000])
def test_many_jobs_at_once(kind: str, dearest: int) -> None:
    draw = np.random.default_rng(dearest)
    top = min(np.iinfo(kind).max, 2**50)
    for k in (1, 3, 5):
        sizes = draw.integers(0, 60, size=(120, k + 1))
        rows = (top >> sizes).astype(kind) - draw.integers(0, 2, size=sizes.shape)
        rows = np.maximum(rows, 0).tolist()
        costs = draw.integers(0 if k == 3 else 1, dearest + 1, size=k).tolist()
        paid(rows + rows[:50], costs, kind, (0, 7, 169))


def test_no_jobs_and_rows_beyond_64_bits() -> None:
    nothing = np.empty(0, np.int8), np.empty((0, 2), np.int8)
    assert paid_by(Rows(*nothing, None, {}), [1, 2], ()) == 0
    wide = {0: Row(1, 10**30, (10**10, 1)), 1: Row(1, 10**30, (0, 0))}
    rows = Rows(np.zeros(3, np.int8), np.zeros((3, 2), np.int8), None, wide)
    assert paid_by(rows, [3, 1], ()) == 3 * 10**20
    assert paid_by(rows, [3, 1], (0,)) == 0


def test_sums_are_exact() -> None:
    assert exact_sum(np.full(1000, 2**63 - 1)) == 1000 * (2**63 - 1)
    assert exact_sum(np.full(1000, 127, np.int8)) == 127_000
    assert exact_sum(np.array([-1, 2**62])) == 2**62 - 1
