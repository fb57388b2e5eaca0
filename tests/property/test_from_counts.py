"""Any counts of machines and blocks that fit together become groups of machines that do as told.

The groups are added up here block by block in Python's integers; nothing of the sweep is used.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import Configuration, InvalidSchedule, Job, Problem, Schedule

BLOCKS, JOBS = ("a", "b", "c"), ("j0", "j1", "j2", "j3")
SHAPES = st.lists(
    st.dictionaries(st.sampled_from(BLOCKS), st.integers(1, 4), min_size=1).map(Configuration),
    min_size=1,
    max_size=4,
    unique=True,
)
#: Numbers of machines: a few, about as many as int64 holds, and many more.
HUGE = [2**31, 10**18, 2**62 - 1, 2**63, 10**30]
Given = dict[tuple[str, str], int]


def problem_of(shapes: list[Configuration]) -> Problem:
    every = Configuration(dict.fromkeys(BLOCKS, 1))
    jobs = [Job(name, 1, dict.fromkeys(BLOCKS, 1)) for name in JOBS]
    return Problem(configurations=[*shapes, every], jobs=jobs)


@st.composite
def counts(draw: st.DrawFn) -> tuple[Problem, dict[Configuration, int], Given]:
    """Machines, and blocks given to jobs within what they have."""
    shapes = draw(SHAPES)
    number = st.one_of(st.integers(0, 6), st.sampled_from(HUGE).flatmap(_about))
    machines = {shape: draw(number) for shape in shapes}
    taken: Given = {}
    for block in BLOCKS:
        left = sum(shape.blocks.get(block, 0) * count for shape, count in machines.items())
        for job in draw(st.permutations(JOBS))[: draw(st.integers(0, 4))]:
            share = draw(st.one_of(st.just(left), st.integers(0, left), st.integers(0, 9)))
            amount = min(share, left)
            left -= amount
            if amount:
                taken[block, job] = amount
    return problem_of(shapes), machines, taken


def _about(huge: int) -> st.SearchStrategy[int]:
    return st.integers(-3, 3).map(lambda off: huge + off)


@given(counts())
def test_groups_do_what_the_counts_say(
    case: tuple[Problem, dict[Configuration, int], Given],
) -> None:
    problem, machines, taken = case
    schedule = Schedule.from_counts(problem, machines, taken)
    found: Counter[Configuration] = Counter()
    given_out: Counter[tuple[str, str]] = Counter()
    for configuration, assignment, count in schedule.groups:
        assert type(count) is int
        assert count >= 1
        found[configuration] += count
        used: Counter[str] = Counter()
        for (block, job), each in assignment.items():
            assert type(each) is int
            assert each >= 1
            used[block] += each
            given_out[block, job] += each * count
        assert all(each <= configuration.blocks.get(block, 0) for block, each in used.items())
    assert dict(found) == {shape: count for shape, count in machines.items() if count}
    assert dict(given_out) == taken
    assert schedule.machine_count == sum(machines.values())
    # theory 1.2: a group for each configuration in use, two more for each entry
    assert len(schedule.groups) <= len(found) + 2 * len(taken)


@given(counts())
def test_arrays_of_indices_mean_what_names_mean(
    case: tuple[Problem, dict[Configuration, int], Given],
) -> None:
    problem, machines, taken = case
    entries = sorted(taken.items(), reverse=True)
    arrays = (
        np.array([problem.job_index(job) for (_, job), _ in entries], dtype=np.int64),
        np.array([problem.blocks.index(block) for (block, _), _ in entries], dtype=np.int64),
        np.array([amount for _, amount in entries], dtype=object),
    )
    by_name = Schedule.from_counts(problem, machines, taken)
    assert Schedule.from_counts(problem, machines, arrays) == by_name


@given(counts(), st.sampled_from(BLOCKS), st.sampled_from(JOBS), st.sampled_from([1, 10**20]))
def test_more_blocks_than_there_are_are_refused(
    case: tuple[Problem, dict[Configuration, int], Given], block: str, job: str, more: int
) -> None:
    problem, machines, taken = case
    available = sum(shape.blocks.get(block, 0) * count for shape, count in machines.items())
    others = sum(n for (b, j), n in taken.items() if b == block and j != job)
    with pytest.raises(InvalidSchedule, match=f"blocks '{block}'"):
        Schedule.from_counts(problem, machines, {**taken, (block, job): available - others + more})
