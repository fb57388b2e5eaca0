"""Kinds of jobs: rows that are equal up to a factor, found exactly."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cms.knapsack.kinds
from cms.knapsack.kinds import kinds
from cms.problem.rows import Rows
from cms.running.stopping import Stopped
from tests.samples import rows_of

Line = tuple[int, list[int], int]


def by_definition(lines: list[Line]) -> list[int]:
    """The kind of each job, numbered by first jobs: the quotients min(f, d) / d as fractions."""
    seen: dict[object, int] = {}
    return [
        seen.setdefault(
            tuple(Fraction(min(f, d), d) for f in supply) if d else "no demand", len(seen)
        )
        for d, supply, _ in lines
    ]


def rows_from(lines: list[Line]) -> Rows:
    return Rows.from_fractions([(Fraction(d), list(map(Fraction, fs))) for d, fs, _ in lines], 2)


numbers = st.integers(0, 4) | st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62 + 1, 10**30])


@given(
    st.lists(
        st.tuples(numbers, st.lists(numbers, min_size=2, max_size=2), st.integers(1, 7)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([None, 0, 7]),
    st.randoms(use_true_random=False),
)
@example([(0, [1, 2], 1), (5, [0, 0], 1)], None, random.Random(1))  # nothing wanted, no server
@example([(2**53, [2**52, 1], 1), (2**53 + 2, [2**52 + 1, 1], 1)], None, random.Random(1))
@example([(10**17 + 1, [1, 1], 1), (10**17 + 2, [1, 1], 1)], None, random.Random(1))  # as floats
@example([(2**40, [1, 1], 1), (2**40, [1 + 2**24, 1], 1)], 0, random.Random(1))
def test_jobs_are_of_one_kind_exactly_if_their_rows_are_equal_up_to_a_factor(
    drawn: list[Line], same_hash: int | None, rng: random.Random
) -> None:
    """Whatever the order, in parts of four rows, and where all hashes are equal."""
    lines = [*drawn, *((d * t, [f * t for f in fs], t) for d, fs, t in drawn)]
    rng.shuffle(lines)
    rows, expected = rows_from(lines), by_definition(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cms.knapsack.kinds, "_ROWS", 4)
        if same_hash is not None:
            patch.setattr(
                cms.knapsack.kinds, "_hashes",
                lambda rows, _: np.full(len(rows), same_hash, dtype=np.uint64),
            )  # fmt: skip
        found = kinds(rows)
    assert found.kind_of.tolist() == expected
    firsts = [expected.index(kind) for kind in range(max(expected) + 1)]
    assert found.weights.tolist() == [expected.count(kind) for kind in range(len(firsts))]
    assert [found.rows.row(kind) for kind in range(len(firsts))] == [rows.row(j) for j in firsts]
    assert (found.rows is rows) == (len(firsts) == len(lines))


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_there_may_be_no_jobs_or_no_blocks(shape: tuple[int, int]) -> None:
    found = kinds(rows_of(np.full(shape[0], 4), np.ones(shape, dtype=np.int64)))
    assert found.kind_of.tolist() == [0] * shape[0]
    assert found.weights.tolist() == [shape[0]] * bool(shape[0])


def test_denominators_do_not_matter_and_a_stopped_run_ends() -> None:
    rows = rows_of([0.5, "1/3", 2], [[0.25], ["1/6"], [1]])
    assert kinds(rows).kind_of.tolist() == [0, 0, 0]
    with pytest.raises(Stopped):
        kinds(rows, lambda: True)
