"""Kinds of jobs: rows that are equal up to a factor, found exactly."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms.knapsack.kinds
from cms.knapsack.kinds import kinds
from cms.problem.rows import Rows
from cms.running.stopping import Stopped
from tests.samples import rows_of

Line = tuple[int, list[int]]


def by_definition(lines: list[Line]) -> list[int]:
    """The kind of each job, numbered by first jobs: the quotients min(f, d) / d as fractions."""
    seen: dict[object, int] = {}
    return [
        seen.setdefault(
            tuple(Fraction(min(f, d), d) for f in supply) if d else "no demand", len(seen)
        )
        for d, supply in lines
    ]


def rows_from(lines: list[Line]) -> Rows:
    k = len(lines[0][1])
    return Rows.from_fractions([(Fraction(d), list(map(Fraction, fs))) for d, fs in lines], k)


def assert_kinds(lines: list[Line]) -> None:
    rows = rows_from(lines)
    found, expected = kinds(rows), by_definition(lines)
    assert found.kind_of.tolist() == expected
    assert found.first.tolist() == [expected.index(kind) for kind in range(max(expected) + 1)]
    assert found.weights.tolist() == [expected.count(kind) for kind in range(max(expected) + 1)]
    assert [found.rows.row(kind) for kind in range(len(found.rows))] == [
        rows.row(j) for j in found.first.tolist()
    ]


numbers = st.integers(0, 4) | st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62 + 1, 10**30])


@given(
    st.lists(
        st.tuples(numbers, st.lists(numbers, min_size=2, max_size=2), st.integers(1, 7)),
        min_size=1,
        max_size=12,
    )
)
def test_jobs_are_of_one_kind_if_their_rows_are_equal_up_to_a_factor(
    drawn: list[tuple[int, list[int], int]],
) -> None:
    lines = [(d, fs) for d, fs, _ in drawn] + [(d * t, [f * t for f in fs]) for d, fs, t in drawn]
    assert_kinds(lines)
    random.Random(1).shuffle(lines)
    assert_kinds(lines)


@pytest.mark.parametrize("same", [0, 7])
def test_equal_hashes_are_no_proof(same: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cms.knapsack.kinds, "_hashes", lambda rows, _: np.full(len(rows), same, dtype=np.uint64)
    )
    rng = random.Random(same)
    lines = [(rng.randint(0, 9), [rng.randint(0, 9), rng.randint(0, 9)]) for _ in range(60)]
    lines += [(2**53 + d, fs) for d, fs in lines] + [(10**30, [1, d]) for d in (1, 2)]
    # 2**40 x 1 and 2**40 x (1 + 2**24) differ by 2**64
    lines += [(2**40, [1, 1]), (2**40, [1 + 2**24, 1])]
    assert_kinds(lines)
    assert_kinds(lines[::-1])
    assert_kinds(lines[-4:])


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_there_may_be_no_jobs_or_no_blocks(shape: tuple[int, int]) -> None:
    found = kinds(rows_of(np.full(shape[0], 4), np.ones(shape, dtype=np.int64)))
    assert found.kind_of.tolist() == [0] * shape[0]
    assert found.weights.tolist() == [shape[0]] * bool(shape[0])


def test_rows_are_hashed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing depends on the parts; each is a look at the budget."""
    rng = random.Random(3)
    lines = [(rng.randint(0, 3), [rng.randint(0, 3), rng.randint(0, 2)]) for _ in range(200)]
    whole = kinds(rows_from(lines))
    monkeypatch.setattr(cms.knapsack.kinds, "_ROWS", 8)
    asked = []

    def look() -> bool:
        asked.append(1)
        return False

    parts = kinds(rows_from(lines), look)
    assert parts.kind_of.tolist() == whole.kind_of.tolist() == by_definition(lines)
    assert len(asked) >= 200 // 8
    with pytest.raises(Stopped):
        kinds(rows_from(lines), lambda: True)
