"""Schedules: groups of machines, their columns and their exact check; groups from counts."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.checker.kinds import check
from cms.errors import InvalidSchedule
from cms.problem.parts import (
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.schedule.faults import Violation
from cms.schedule.schedule import MachineGroup, Schedule, machine_cost
from cms.values.frozen import FrozenMap
from cms.values.numbers import format_exact
from tests.samples import PAIR, columns, halves, ints, refusal

WHOLE = Configuration({"7g": 1}, "a100")

refused = partial(refusal, InvalidSchedule)


def test_a_schedule_gives_back_the_groups_it_was_made_of() -> None:
    given_groups = [
        MachineGroup(PAIR, {("half", "b"): 1, ("half", "a"): 1}, 3),
        MachineGroup(PAIR, {}, 1),
        MachineGroup(WHOLE, {("7g", "a"): 1}, 10**30),
    ]
    schedule = Schedule(iter(given_groups))
    assert list(schedule.groups) == given_groups
    assert [type(group) for group in schedule.groups] == [MachineGroup] * 3
    assert isinstance(schedule.groups[0].assignment, FrozenMap)
    assert (len(schedule.groups), schedule.groups[-1].count) == (3, 10**30)
    assert schedule.groups[1:] == given_groups[1:]
    with pytest.raises(IndexError):
        schedule.groups[3]
    assert schedule.machine_count == 10**30 + 4
    assert schedule.machines == {PAIR: 4, WHOLE: 10**30}
    assert repr(schedule) == f"Schedule({10**30 + 4} machines in 3 groups)"
    assert repr(schedule.groups) == "<3 groups of machines>"


def test_a_schedule_may_have_no_machines() -> None:
    for empty in (Schedule(), Schedule([]), Schedule.from_counts(halves(), {}, {})):
        assert (empty.machine_count, list(empty.groups), empty.machines) == (0, [], {})
        assert empty.cost(halves()) == 0
        assert check(halves(), empty) == ()
    assert Schedule() == Schedule(iter(()))


BAD: list[tuple[Any, str]] = [
    ([(PAIR, {}, 1), (PAIR, 1)], "group 1 is "),
    ([("half", {}, 1)], "group 0 is ('half'"),
    ([(SizeBoundedConfigurations({"a": 1}, 1), {}, 1)], "group 0 is (Size"),
    ([(PAIR, ["a"], 1)], "group 0 is (Configuration(2 x half), ['a']"),
    *(([(PAIR, {pair: 1}, 1)], f"group 0: a key of its assignment is {pair!r}")
      for pair in ("ab", ("a",), ("a", 5))),
    *(([(PAIR, {("a", "x"): n}, 1)], f"group 0: blocks 'a' for job 'x' is {n}")
      for n in (1.0, True)),
    *(([(PAIR, {}, n)], f"group 0: its count is {n!r}") for n in (1.5, "1", np.array([1, 2]))),
    ([(PAIR, {}, 10**5000)], "group 0: its count has more than 4300 digits"),
]  # fmt: skip


@pytest.mark.parametrize(("groups", "words"), BAD)
def test_groups_that_are_none_are_refused(groups: Any, words: str) -> None:
    assert words in refused(Schedule, groups)


@pytest.mark.parametrize("count", [1, 10**30])
def test_idle_machines_can_be_left_out(count: int) -> None:
    busy, idle = MachineGroup(PAIR, {("half", "a"): 1}, count), MachineGroup(WHOLE, {}, 3)
    for groups in ([busy, idle], [idle, busy, idle, busy], [idle], [busy], []):
        schedule = Schedule(groups)
        left = schedule.without_idle_machines()
        assert list(left.groups) == [group for group in groups if group.assignment]
        assert list(schedule.groups) == groups


def test_what_a_schedule_was_made_of_may_change_later() -> None:
    assignment = {("half", "a"): 1}
    schedule = Schedule([MachineGroup(PAIR, assignment, 1)])
    assignment["half", "a"] = 2
    counts, jobs = ints(3, 1), ["a", "b"]
    wrapped = Schedule.from_columns(columns(group_count=counts, contents=jobs))
    counts[0], jobs[0] = 99, "z"
    assert schedule.groups[0].assignment == {("half", "a"): 1}
    assert wrapped == Schedule.from_columns(columns())


def test_the_cost_is_that_of_all_machines() -> None:
    problem = Problem(
        configurations=[Configuration({"b": 1}, "m"), Configuration({"b": 2}, "n")],
        machine_types=[MachineType("m", "1/3"), MachineType("n", "0.75")],
    )
    schedule = Schedule(
        [
            MachineGroup(Configuration({"b": 1}, "m"), {}, 3),
            MachineGroup(Configuration({"b": 9}, "n"), {}, 10**12),
        ]
    )
    assert schedule.cost(problem) == 1 + Fraction(3 * 10**12, 4)
    for machine in ("o", None):  # with two types it must be said
        lost = Configuration({"b": 1}, machine)
        assert refused(Schedule([MachineGroup(lost, {}, 1)]).cost, problem) == (
            f"configuration {lost!r} belongs to the machine type {machine!r}; the problem has m, n"
        )
    # with one type it goes without saying
    assert machine_cost(halves(), PAIR) == 1


def test_two_entries_of_one_block_and_job_are_one() -> None:
    schedule = Schedule.from_columns(columns(entry_content=ints(1, 1)))
    groups = [MachineGroup(PAIR, {("half", "b"): 2}, 3), MachineGroup(PAIR, {}, 1)]
    assert list(schedule.groups) == groups
    assert (schedule, hash(schedule)) == (Schedule(groups), hash(Schedule(groups)))


@pytest.mark.parametrize(
    "values",
    [np.array([3, 1], dtype=np.uint8), np.array([3, 1], dtype=">i4"),
     np.array([3, 1], dtype=object), [3, 1], (np.int8(3), 1), np.array([3, 0, 1, 0])[::2]],
    ids=lambda values: type(values).__name__,
)  # fmt: skip
def test_a_column_may_be_whole_numbers_of_any_kind(values: Any) -> None:
    schedule = Schedule.from_columns(columns(group_count=values))
    assert schedule.columns.group_count.dtype == np.int64
    assert schedule == Schedule.from_columns(columns())


def test_a_count_beyond_64_bits_is_a_python_integer() -> None:
    unsigned = np.array([2**63, 1], dtype=np.uint64)
    for values in ([2**63, 1], unsigned, [10**30, 1], [-(2**63) - 1, 0]):
        schedule = Schedule.from_columns(columns(group_count=values))
        assert schedule.columns.group_count.dtype == object
        assert [group.count for group in schedule.groups] == [int(value) for value in values]
        assert {type(group.count) for group in schedule.groups} == {int}
        assert pickle.loads(pickle.dumps(schedule)) == schedule


LENGTHS, GROUPS = "have other lengths", "column group_count"
BAD_COLUMNS: list[tuple[str, Any, str]] = [
    ("group_count", np.array([1.5, 1]), f"{GROUPS} has dtype float64"),
    ("group_count", np.array([1.5, 1], dtype=object), f"{GROUPS}: entry 0 is 1.5"),
    ("group_count", ints(3, 1).reshape(2, 1), f"{GROUPS} has shape (2, 1)"),
    ("group_count", np.array([3, 1], dtype="m8[s]"), f"{GROUPS} has dtype timedelta"),
    ("group_count", ints(3), LENGTHS),
    ("group_configuration", ints(0, 1), "configuration index"),
    ("entry_start", ints(0, 3, 2), LENGTHS),
    # differences of unsigned integers are never negative
    ("entry_start", np.array([0, 3, 2], dtype=np.uint64), LENGTHS),
    ("entry_block", ints(0, 1), "block index"),
    ("entry_content", ints(0, 2), "content index"),
    # a second column of one block would let a machine give its blocks twice
    ("blocks", ("half", "half"), "two blocks are called 'half'"),
    ("blocks", (5,), "block name is 5"),
    ("configurations", ("half",), "a configuration is 'half'"),
    ("configurations", (SizeBoundedConfigurations({"half": 1}, 2),), "a configuration is Siz"),
]


@pytest.mark.parametrize(("column", "values", "words"), BAD_COLUMNS)
def test_columns_that_do_not_fit_are_refused(column: str, values: Any, words: str) -> None:
    assert words in refused(Schedule.from_columns, columns(**{column: values}))


class Chameleon(Configuration):
    """A configuration that is not the same whenever it is asked."""


def test_a_subclass_of_configuration_is_not_trusted() -> None:
    assert refused(Schedule.from_columns, columns(configurations=(Chameleon({"half": 2}),)))
    assert refused(Schedule, [MachineGroup(Chameleon({"half": 2}), {}, 1)])
    for thing in (None, 5, (), ("half",) * 9):
        assert refused(Schedule.from_columns, thing)


ONE = Configuration({"b": 1})


def one_job(demand: Any, supply: Any, per_machine: int = 1, limit: int | None = None) -> Problem:
    return Problem(
        configurations=Configuration({"b": per_machine}),
        jobs=[Job("x", demand, {"b": supply})],
        machine_types=[MachineType("machine", limit=limit)],
    )


def group(shape: Configuration = ONE, count: int = 1, **given_blocks: int) -> MachineGroup:
    """Blocks b for jobs."""
    return MachineGroup(shape, {("b", job): n for job, n in given_blocks.items()}, count)


def gives(job: Job, block: str) -> Fraction:
    assert isinstance(job.demand_function, DemandFunction)
    return job.demand_function(block)


def faults(problem: Problem, *groups: MachineGroup) -> list[str]:
    return [str(fault) for fault in check(problem, Schedule(groups))]


@pytest.mark.parametrize(
    ("demand", "supply", "blocks"),
    [
        (1, 1, 1),
        (0, 5, 0),
        ("1", "1/3", 3),  # 3 x 1/3 = 1
        (1, 0.1, 10),  # ten times the decimal 0.1, though ten times the float 0.1 is not 1.0
        (999.9999999999999, 333.3333333333333, 3),
        # 1000.0000000000001 is the next decimal: a fourth block is needed
        (1000.0000000000001, 333.3333333333333, 4),
        (10**30, 7, -(-(10**30) // 7)),
        (10**30, 10**30 + 1, 1),
        (2**63 - 1, 2**62, 2),
        (2**200, 2**100 - 1, -(-(2**200) // (2**100 - 1))),
        (5e-324, 1e308, 1),
        (1e308, 5e-324, 2 * 10**631),  # 10**308 / (5 / 10**324) = 10**632 / 5
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_demand_is_met_by_these_blocks_and_by_no_fewer(
    demand: Any, supply: Any, blocks: int
) -> None:
    problem = one_job(demand, supply)
    assert faults(problem, *[group(count=blocks, x=1)] * (blocks > 0)) == []
    if blocks:
        (fault,) = check(problem, Schedule([group(count=blocks - 1, x=1)] * (blocks > 1)))
        served = (blocks - 1) * gives(problem.jobs[0], "b")
        assert fault == Violation(
            "demand",
            "job 'x'",
            f"{format_exact(served)} of its demand served",
            format_exact(problem.jobs[0].demand),
        )


@pytest.mark.parametrize("held", [2**62, 2**63 - 1, 2**63, 10**30])
def test_blocks_on_one_machine_may_be_very_many(held: int) -> None:
    shape = Configuration({"b": held})
    problem = one_job(held, 1, per_machine=held)
    assert faults(problem, group(shape, x=held)) == []
    assert faults(problem, group(shape, x=held + 1)) == [
        f"group 0 has {held + 1} blocks 'b' in use on a machine, needs at most the {held} of its "
        "configuration"
    ]
    twice = MachineGroup(shape, {("b", "x"): held, ("b", "nobody"): held}, 1)
    assert [fault.kind for fault in check(problem, Schedule([twice]))] == ["blocks", "job"]


BAD_COUNTS: list[tuple[Any, Any, str]] = [
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


@pytest.mark.parametrize(("machines", "given_blocks", "words"), BAD_COUNTS)
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
def drawn_counts(
    draw: st.DrawFn,
) -> tuple[Problem, dict[Configuration, int], dict[tuple[str, str], int]]:
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
@given(drawn_counts())
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
    drawn_counts(),
    st.lists(st.sampled_from([2**31, 2**62 - 1, 2**63, 10**30]), min_size=3, max_size=3),
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
