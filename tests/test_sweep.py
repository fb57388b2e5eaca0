"""From counts to groups: what handing the blocks out one by one gives, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.checker.kinds import check
from cms.errors import InvalidSchedule
from cms.problem.parts import Configuration, Job
from cms.problem.problem import Problem
from cms.schedule.schedule import Schedule
from tests.samples import PAIR, halves, ints, refusal

BAD: list[tuple[Any, Any, str]] = [
    ({PAIR: 1}, {("half", "a"): 3}, "3 blocks 'half'"),
    ({PAIR: 10**30}, {("half", "a"): 3 * 10**30}, f"{3 * 10**30} blocks 'half'"),
    *(({PAIR: n}, {}, f"Configuration(2 x half) is {n}") for n in (-1, 1.0, 2.7, None)),
    ({"half": 1}, {}, "machines has 'half'"),
    ([PAIR], {}, "machines is [Configuration(2 x half)]"),
    ({PAIR: 1}, {("half", "a"): -1}, "blocks 'half' given to job 'a' is -1"),
    ({PAIR: 1}, {("half", "z"): 1}, "job 'z'"),
    ({PAIR: 1}, (ints(0), ints(0), 1), "given counts is 1"),
    ({PAIR: 1}, (ints(0), ints(0), ints(1, 1)), "1 jobs, 1 blocks and 2 counts"),
    ({PAIR: 1}, (ints(0), ints(0), np.array([1.0])), "given counts has dtype float64"),
    ({PAIR: 1}, (ints(0), ints(0), ints(-1)), "count -1"),
    *(({PAIR: 1}, (ints(j), ints(0), ints(1)), "job index") for j in (2, -1)),
    *(({PAIR: 1}, (ints(0), ints(i), ints(1)), "block index") for i in (1, -1)),
]


@pytest.mark.parametrize(("machines", "given_blocks", "words"), BAD)
def test_counts_that_make_no_sense_are_refused(
    machines: Any, given_blocks: Any, words: str
) -> None:
    problem = halves("a", "b")
    assert words in refusal(InvalidSchedule, Schedule.from_counts, problem, machines, given_blocks)


def machine_by_machine(
    problem: Problem, machines: Mapping[Configuration, int], blocks: Mapping[tuple[str, str], int]
) -> list[tuple[Configuration, dict[tuple[str, str], int]]]:
    """Line the machines up, and hand their blocks out one by one in the order of the jobs."""
    line = [(shape, Counter[tuple[str, str]]()) for shape, n in machines.items() for _ in range(n)]
    for block in problem.blocks:
        queue = [job for job in problem.job_names for _ in range(blocks.get((block, job), 0))]
        for shape, assignment in line:
            for job in queue[: shape.blocks.get(block, 0)]:
                assignment[block, job] += 1
            del queue[: shape.blocks.get(block, 0)]
        assert not queue
    return [(shape, dict(assignment)) for shape, assignment in line]


@st.composite
def counts(draw: st.DrawFn) -> tuple[Problem, dict[Configuration, int], dict[tuple[str, str], int]]:
    names = ["p", "q", "r"]
    contents = st.dictionaries(st.sampled_from(names), st.integers(1, 3), min_size=1)
    shapes = draw(st.lists(contents.map(Configuration), min_size=1, max_size=3, unique=True))
    problem = Problem(
        configurations=[*shapes, Configuration(dict.fromkeys(names, 1))],
        jobs=[Job(name, 0, {}) for name in draw(st.permutations("abcd"))],
    )
    machines = {shape: draw(st.integers(0, 5)) for shape in shapes}
    given_blocks = {}
    for block in names:
        left = sum(shape.blocks.get(block, 0) * n for shape, n in machines.items())
        for job in draw(st.permutations("abcd")):
            number = draw(st.integers(0, left))
            given_blocks[block, job] = number
            left -= number
    return problem, machines, given_blocks


@pytest.mark.parametrize("kind", [None, np.int64, np.int32, np.uint64, object, list])
@given(counts())
def test_groups_are_what_handing_out_the_blocks_one_by_one_gives(
    kind: Any, drawn: tuple[Problem, dict[Configuration, int], dict[tuple[str, str], int]]
) -> None:
    problem, machines, given_blocks = drawn
    entries: Any = given_blocks
    if kind is not None:
        places = [
            (problem.job_index(j), problem.block_index[i], n) for (i, j), n in given_blocks.items()
        ]
        entries = [np.array(part, kind) if kind is not list else [*part] for part in zip(*places)]  # noqa: B905
    schedule = Schedule.from_counts(problem, machines, entries)
    line = [
        (group.configuration, dict(group.assignment))
        for group in schedule.groups
        for _ in range(group.count)
    ]
    assert line == machine_by_machine(problem, machines, given_blocks)


@pytest.mark.parametrize("many", [2**62, 2**63 - 1, 2**63, 2**63 + 5, 2**64 - 1, 2**64])
def test_a_machine_of_so_many_blocks_is_counted_to_the_last_one(many: int) -> None:
    """From 2^63 to 2^64 numpy's integers are of another kind, and floats beside the others."""
    wide = Configuration({"a": 7, "b": many})
    problem = Problem(
        configurations=[wide, Configuration({"a": 7})],
        jobs=[Job("x", 3 * many // 2, {"b": 1}), Job("y", 3, {"a": 1})],
    )
    given = {("b", "x"): 3 * many // 2, ("a", "y"): 3}
    schedule = Schedule.from_counts(problem, {wide: 2}, given)
    assert check(problem, schedule) == ()
    assert schedule.machine_count == 2


@given(
    counts(), st.lists(st.sampled_from([2**31, 2**62 - 1, 2**63, 10**30]), min_size=3, max_size=3)
)
def test_however_many_machines_groups_add_up_and_are_few(
    drawn: tuple[Problem, dict[Configuration, int], dict[tuple[str, str], int]],
    times: tuple[int, ...],
) -> None:
    problem, machines, given_blocks = drawn
    machines = {shape: n * many for (shape, n), many in zip(machines.items(), times, strict=False)}
    wanted: dict[tuple[str, str], int] = {}
    for block in "pqr":
        left = sum(shape.blocks.get(block, 0) * n for shape, n in machines.items())
        for job in "abcd":
            number = min(left, given_blocks[block, job] * times[0])
            left -= number
            wanted |= {(block, job): number} if number else {}
    schedule = Schedule.from_counts(problem, machines, wanted)
    assert dict(schedule.machines) == {shape: n for shape, n in machines.items() if n}
    handed = Counter[tuple[str, str]]()
    for shape, assignment, count in schedule.groups:
        for pair, each in assignment.items():
            handed[pair] += each * count
        for block in shape.blocks:
            assert (
                sum(n for (one, _), n in assignment.items() if one == block) <= shape.blocks[block]
            )
    assert handed == wanted
    # theory 1.2: a group for each configuration in use, two more for each entry
    assert len(schedule.groups) <= len(schedule.machines) + 2 * len(wanted)
    with pytest.raises(InvalidSchedule, match="blocks 'p'"):
        Schedule.from_counts(problem, machines, {**wanted, ("p", "a"): 10**40})
