"""Kinds of jobs: rows of equal integers, found exactly."""

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

Line = tuple[int, list[int]]


def by_definition(rows: Rows) -> list[int]:
    """The kind of each job, numbered by first jobs."""
    seen: dict[object, int] = {}
    return [seen.setdefault((rows.row(j)[:2], j in rows.wide), len(seen)) for j in range(len(rows))]


def rows_from(lines: list[Line]) -> Rows:
    return Rows.from_fractions([(Fraction(d), list(map(Fraction, fs))) for d, fs in lines], 2)


numbers = st.integers(0, 4) | st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62 + 1, 10**30])


@given(
    st.lists(
        st.tuples(numbers, st.lists(numbers, min_size=2, max_size=2)), min_size=1, max_size=12
    ),
    st.sampled_from([None, 0, 7]),
    st.randoms(use_true_random=False),
)
@example([(2**53, [2**52, 1]), (2**53 + 1, [2**52, 1])], None, random.Random(1))  # as floats
@example([(2**40, [1, 1]), (2**40, [1 + 2**24, 1]), (10**30, [1, 1])], 0, random.Random(1))
@example([(0, [0, 0]), (10**30, [1, 1])], 0, random.Random(1))  # wide: 0 in the arrays
def test_jobs_are_of_one_kind_exactly_if_their_rows_are_equal(
    drawn: list[Line], same_hash: int | None, rng: random.Random
) -> None:
    """Whatever the order, in parts of four rows, and where all hashes are equal."""
    lines = drawn * 2
    rng.shuffle(lines)
    rows = rows_from(lines)
    expected = by_definition(rows)
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


def test_denominators_do_not_matter_and_a_stopped_run_ends() -> None:
    rows = rows_of([0.5, "1/3", 2], [[0.25], ["1/6"], [1]])
    assert kinds(rows).kind_of.tolist() == [0, 0, 0]
    with pytest.raises(Stopped):
        kinds(rows, lambda: True)
