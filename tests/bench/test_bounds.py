"""The bound that leaves layouts out: its value, that it holds, and what becomes of it in a run."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.row import Outcome, RunRow
from bench.rules import BOUNDS
from bench.runs import perform
from bench.task import NAMED, Kind, Source, Task
from cms import Job, MachineType, Problem, SizeBoundedConfigurations, UnsupportedProblem
from instances.families import generate
from tests.bench.stand_in import on_a100

BOUND = BOUNDS["partition_free"]
SLICES = (1, 2, 3, 4, 7)


def value(problem: Problem) -> Fraction:
    return BOUND.certificate(problem).bound(problem)


def fewest_slices(demand: int, supply: list[int]) -> int:
    """Try every multiset of instances none of which alone would be one too many."""
    most = [range(ceil(demand / gives) + 1) if gives else range(1) for gives in supply]
    return min(
        sum(count * size for count, size in zip(counts, SLICES, strict=True))
        for counts in product(*most)
        if sum(count * gives for count, gives in zip(counts, supply, strict=True)) >= demand
    )


def performed(source: Source) -> RunRow:
    task = Task(
        suite="s", kind=Kind.BOUND, source=source, method=BOUND.name, time_limit=9, warm_up=False
    )
    return perform(task, 1, lambda stage, facts: None)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 60),
            st.lists(st.integers(0, 60).map(lambda n: n if n >= 10 else 0), min_size=5, max_size=5),
        ).filter(lambda row: any(row[1])),
        min_size=1,
        max_size=2,
    ),
    st.integers(1, 3),
)
def test_it_is_the_fewest_slices_of_every_service_over_seven(
    rows: list[tuple[int, list[int]]], cost: int
) -> None:
    slices = sum(fewest_slices(demand, supply) for demand, supply in rows)
    assert value(on_a100(rows, cost)) == Fraction(cost * slices, 7)


SHARES = SizeBoundedConfigurations({"a": 1}, capacity=2)


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (
            on_a100([(1, [1] * 5)]).replace(machine_types=[MachineType("a100-80gb", limit=3)]),
            "limit",
        ),
        (generate("mixed-fleet", n=3, seed=1), "one GPU type, not several"),
        (Problem(configurations=SHARES, jobs=[Job("x", 1, {"a": 1})]), "MIG layouts, not shares"),
        (generate("random-configurations", n=3, seed=1), "MIG alone"),
        (on_a100([(1, [0] * 5)]), "no block serves job 'j0'"),
    ],
)
def test_what_it_does_not_know_it_says(problem: Problem, why: str) -> None:
    with pytest.raises(UnsupportedProblem, match=why):
        BOUND.certificate(problem)


def test_a_bound_is_a_run_with_a_lower_bound_and_no_schedule() -> None:
    row = performed(Source(family="S5", module=NAMED))
    assert (row.kind, row.outcome, row.status, row.proof) == (
        "bound", Outcome.ANSWERED, "no_schedule", "none",
    )  # fmt: skip
    assert (row.lower_bound, row.cost, row.gap, row.checker) == (Fraction(82, 7), None, None, "cms")
    assert row.seconds is not None
    assert row.check_seconds is not None
    assert RunRow.from_line(row.to_line()) == row
