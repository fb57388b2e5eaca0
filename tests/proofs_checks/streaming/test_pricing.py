"""Jobs priced many at a time pay what the checker's own search says, whatever their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_checks.checker.knapsacks import cheapest_price
from proofs_checks.checker.problem import Row
from proofs_checks.streaming import pricing
from proofs_checks.streaming.pricing import paid_by
from proofs_checks.streaming.problem import Rows


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


KINDS = ("small", "near ties", "dear", "far apart", "at the edge")


def drawn(
    draw: np.random.Generator, kind: str, jobs: int = 20
) -> tuple[list[list[int]], list[int]]:
    """Rows and costs."""
    k = int(draw.integers(1, 4 if kind == "at the edge" else 7))
    slices = draw.integers(1, 8, k)
    unit = int(draw.choice([1, 7, 100, 10**6]))
    if kind == "small":
        costs = draw.integers(0, 9, k)
        supply = draw.integers(0, 12, (jobs, k))
    elif kind == "near ties":
        costs = slices * unit + draw.integers(0, 2, k)
        supply = slices * unit + draw.integers(-1, 2, (jobs, k))
    elif kind == "dear":
        costs = slices * 2**32 + draw.integers(0, 2**30, k)
        supply = slices * unit + draw.integers(0, unit, (jobs, k))
    elif kind == "far apart":
        costs, supply = (2 ** draw.integers(0, 40, size) for size in (k, (jobs, k)))
    else:
        # Prices up to 2^51, and times a cover around 2^62: what is priced at once, and what is not.
        dear = 2 ** int(draw.integers(40, 52))
        costs = dear - draw.integers(0, 5, k) - slices * int(draw.integers(0, 2**30))
        supply = 2**62 // dear - draw.integers(-2, 9, (jobs, k))
    supply = np.maximum(supply, 0) * (draw.random((jobs, k)) < 0.9)
    most = {"at the edge": 5, "near ties": 9}.get(kind, draw.choice([3, 9, 42]))
    load = 2.0 ** draw.integers(-3, most, jobs)
    demand = np.minimum(supply.max(axis=1) * load + draw.integers(0, 3, jobs), 2.0**61)
    return np.column_stack([demand.astype(np.int64), supply]).tolist(), costs.tolist()


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_prices_of_any_size(kind: str, seed: int) -> None:
    paid(*drawn(np.random.default_rng(seed), kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("nodes", "at_once"), [(1, 2), (5, 7), (40, 40)])
def test_few_nodes_and_jobs_at_once(
    monkeypatch: pytest.MonkeyPatch, kind: str, nodes: int, at_once: int
) -> None:
    monkeypatch.setattr(pricing, "_MOST_NODES", nodes)
    monkeypatch.setattr(pricing, "_NODES_AT_ONCE", at_once)
    monkeypatch.setattr(pricing, "_JOBS_AT_ONCE", at_once)
    for seed in range(5):
        paid(*drawn(np.random.default_rng(seed), kind))


def test_ordinary_jobs_are_not_priced_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    slices = np.array([1, 2, 3, 4, 7])
    supply = np.sort(slices * draw.integers(800, 1200, (500, 5)), axis=1)
    demand = supply[:, 4] * 30 + draw.integers(0, 1000, 500)
    rows = np.column_stack([demand, supply]).tolist()
    costs = (slices * 2**32 + draw.integers(0, 2**28, 5)).tolist()
    total = sum(cheapest_price(costs, row[1:], row[0]) or 0 for row in rows)
    monkeypatch.setattr(pricing, "cheapest_price", None)
    assert paid_by(Rows(demand, supply, None, {}), costs, ()) == total


def test_no_jobs_and_rows_beyond_64_bits() -> None:
    nothing = np.empty(0, np.int8), np.empty((0, 2), np.int8)
    assert paid_by(Rows(*nothing, None, {}), [1, 2], ()) == 0
    wide = {0: Row(1, 10**30, (10**10, 1)), 1: Row(1, 10**30, (0, 0))}
    rows = Rows(np.zeros(3, np.int8), np.zeros((3, 2), np.int8), None, wide)
    assert paid_by(rows, [3, 1], ()) == 3 * 10**20
    assert paid_by(rows, [3, 1], (0,)) == 0
