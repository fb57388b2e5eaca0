"""Kinds of jobs, what each takes, and the schedule made of that."""

from __future__ import annotations

import operator
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.choices import Choices, choices_of
from tests.algorithms.branch_and_price.parts import reduced, searched
from tests.families import instance

Rows = list[tuple[int, tuple[int, ...], int]]

ROWS = st.lists(
    st.tuples(
        st.integers(0, 6), st.tuples(st.integers(0, 10**20), st.integers(0, 9)), st.integers(0, 9)
    ),
    max_size=8,
)


@given(ROWS)
def test_choices_add_up_at_any_size(rows: Rows) -> None:
    choices = choices_of(rows, 2)
    assert choices.load() == [sum(count * option[i] for _, option, count in rows) for i in (0, 1)]
    assert choices.kinds.tolist() == sorted(kind for kind, _, count in rows if count)
    assert (choices.counts > 0).all()


def content(choices: Choices) -> Counter[tuple[int, tuple[int, ...]]]:
    """How many jobs of a kind take an option."""
    found: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for kind, option, count in zip(*choices, strict=True):
        found[int(kind), tuple(option.tolist())] += int(count)
    return found


@given(ROWS, st.sets(st.integers(0, 6)))
def test_what_is_left_out_and_joined_again_is_the_same(rows: Rows, kinds: set[int]) -> None:
    choices = choices_of(rows, 2)
    mine = np.array(sorted(kinds), dtype=np.int64)
    rest = choices.without(mine)
    assert not kinds & set(rest.kinds.tolist())
    others = choices_of([row for row in rows if row[0] in kinds], 2)
    both = rest.joined(others)
    assert content(both) == content(choices)
    assert (np.diff(both.kinds) >= 0).all()


def test_reduced_costs_are_never_negative_at_the_best_prices() -> None:
    for number in range(20):
        for family in ("costs", "limits", "size_bounded"):
            jobs = reduced(instance(family, number))
            rows = [jobs.rows.row(kind) for kind in range(len(jobs))]
            if not rows or not all(any(row.supply) for row in rows):
                continue
            search = searched(jobs.problem)
            assert search.best is not None
            shapes = Shapes(jobs.problem, search.region.rows)
            vector = search.best.vector
            found = shapes.reduced_costs(vector, search.region)
            # Of a set with more blocks than all jobs can use they may be.
            most = jobs.problem.useful_blocks()
            own = [shape.counts for shape in search.region.rows if shape.shape is not None]
            proper = [
                cost
                for cost, counts in zip(found, shapes.counts, strict=True)
                if counts in own or all(map(operator.le, counts, most))
            ]
            assert min(proper, default=0) >= 0
            if all(machine.limit is None for machine in jobs.problem.machine_types):
                assert min(found) <= 0  # some machine is worth just what it costs
                assert min(found) == 0 or len(proper) < len(found)
