"""Schedules: groups of machines in columns, built from counts whatever their size, immutable."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.check import check
from cms.columns import Columns
from cms.errors import InvalidSchedule
from cms.frozen import FrozenMap
from cms.model import Configuration, Job, MachineType, SizeBoundedConfigurations
from cms.problem import Problem
from cms.schedule import MachineGroup, Schedule, machine_cost

PAIR = Configuration({"half": 2})
WHOLE = Configuration({"7g": 1}, "a100")


def refused(make: Callable[..., object], *arguments: Any, **named: Any) -> str:
    with pytest.raises(InvalidSchedule) as error:
        make(*arguments, **named)
    return str(error.value)


def halves(*names: str, demand: int = 1) -> Problem:
    """Jobs that each half of a machine gives 1."""
    return Problem(configurations=PAIR, jobs=[Job(name, demand, {"half": 1}) for name in names])


def ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def columns(**other: Any) -> Columns:
    """Two groups: 3 machines with a half for a and one for b, and 1 idle machine."""
    parts: dict[str, Any] = {
        "blocks": ("half",),
        "jobs": ("a", "b"),
        "configurations": (PAIR,),
        "group_configuration": ints(0, 0),
        "group_count": ints(3, 1),
        "entry_start": ints(0, 2, 2),
        "entry_block": ints(0, 0),
        "entry_job": ints(0, 1),
        "entry_count": ints(1, 1),
    }
    return Columns(**{**parts, **other})


# --- groups ---------------------------------------------------------------------------------------


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


def test_a_wrong_schedule_is_a_schedule_all_the_same() -> None:
    # whether it serves a problem is for `check` to say
    group = MachineGroup(PAIR, {("half", "a"): 0, ("quarter", "nobody"): -5}, -1)
    assert list(Schedule([group]).groups) == [group]


def test_whole_numbers_of_numpy_and_names_of_numpy_become_plain() -> None:
    count: Any = np.int32(2)
    group = Schedule([MachineGroup(PAIR, {(np.str_("half"), np.str_("a")): count}, count)]).groups[
        0
    ]
    ((block, job),) = group.assignment
    assert [type(x) for x in (block, job, *group.assignment.values(), group.count)] == [
        str, str, int, int,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (5, "groups is 5; expected a sequence of MachineGroup objects"),
        (None, "groups is None; expected a sequence of MachineGroup objects"),
        ([5], "group 0 is 5; expected MachineGroup(configuration, assignment, count)"),
        ([(PAIR, {}, 1), (PAIR, 1)], "group 1 is (Configuration(2 x half), 1); expected MachineGr"),
        ([["c", {}, 1]], "group 0 is ['c', {}, 1]; expected MachineGroup"),
        ([("half", {}, 1)], "group 0: its configuration is 'half'; expected a Configuration"),
        (
            [(SizeBoundedConfigurations({"a": 1}, 1), {}, 1)],
            "group 0: its configuration is SizeBoundedConfigurations(sizes=",
        ),
        ([(PAIR, ["a"], 1)], "group 0: its assignment is ['a']; expected a mapping {(block, job):"),
        ([(PAIR, None, 1)], "group 0: its assignment is None; expected a mapping"),
        ([(PAIR, {"ab": 1}, 1)], "group 0: a key of its assignment is 'ab'; expected (block, job)"),
        ([(PAIR, {("a",): 1}, 1)], "group 0: a key of its assignment is ('a',); expected (block,"),
        ([(PAIR, {("a", 5): 1}, 1)], "group 0: a key of its assignment is ('a', 5); expected (bl"),
        ([(PAIR, {("a", "x"): 1.0}, 1)], "group 0: blocks 'a' for job 'x' is 1.0; expected a who"),
        ([(PAIR, {("a", "x"): True}, 1)], "group 0: blocks 'a' for job 'x' is True; expected a w"),
        ([(PAIR, {}, 1.5)], "group 0: its count is 1.5; expected a whole number"),
        ([(PAIR, {}, "1")], "group 0: its count is '1'; expected a whole number"),
        ([(PAIR, {}, np.array([1, 2]))], "group 0: its count is array([1, 2]); expected a whole"),
        ([(PAIR, {}, 10**5000)], "group 0: its count has more than 4300 digits; expected a whole"),
    ],
)
def test_groups_that_are_none_are_refused(groups: Any, message: str) -> None:
    assert refused(Schedule, groups).startswith(message)


# --- columns --------------------------------------------------------------------------------------


def test_columns_are_the_groups_in_another_form() -> None:
    schedule = Schedule.from_columns(columns())
    assert list(schedule.groups) == [
        MachineGroup(PAIR, {("half", "a"): 1, ("half", "b"): 1}, 3),
        MachineGroup(PAIR, {}, 1),
    ]
    assert schedule == Schedule(schedule.groups)
    assert hash(schedule) == hash(Schedule(schedule.groups))


def test_two_entries_of_one_block_and_job_are_one() -> None:
    schedule = Schedule.from_columns(columns(entry_job=ints(1, 1)))
    assert schedule.groups[0].assignment == {("half", "b"): 2}


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


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("group_count", np.array([1.5, 1]), "column group_count has dtype float64; expected whole"),
        ("group_count", np.array([1.0, 1]), "column group_count has dtype float64; expected whole"),
        ("group_count", np.array([True, False]), "column group_count has dtype bool; expected"),
        ("group_count", np.array(["3", "1"]), "column group_count has dtype <U1; expected whole"),
        ("group_count", np.array([3 + 0j, 1]), "column group_count has dtype complex128; expec"),
        ("group_count", np.array([1.5, 1], dtype=object), "column group_count: entry 0 is 1.5; e"),
        ("group_count", [None, 1], "column group_count: entry 0 is None; expected a whole number"),
        ("group_count", [3, float("nan")], "column group_count: entry 1 is nan; expected a whole"),
        ("group_count", ints(3, 1).reshape(2, 1), "column group_count has shape (2, 1); expected"),
        ("group_count", np.array(3), "column group_count has shape (); expected a single row"),
        ("group_count", 3, "column group_count is 3; expected a row of whole numbers"),
        ("group_count", {3, 1}, "column group_count is {1, 3}; expected a row of whole numbers"),
        ("group_count", np.zeros(2, dtype=[("a", int)]), "column group_count has dtype [('a', '"),
        ("group_count", np.array([3, 1], dtype="m8[s]"), "column group_count has dtype timedelta"),
        ("group_count", ints(3), "columns of 1 groups and 2 entries have other lengths: one"),
        ("group_configuration", ints(0), "columns of 2 groups and 2 entries have other lengths"),
        ("group_configuration", ints(0, 1), "a configuration index lies outside 0 ... 0"),
        ("group_configuration", ints(-1, 0), "a configuration index lies outside 0 ... 0"),
        ("entry_start", ints(0, 2), "columns of 2 groups and 2 entries have other lengths"),
        ("entry_start", ints(), "columns of 2 groups and 2 entries have other lengths"),
        ("entry_start", ints(1, 2, 2), "columns of 2 groups and 2 entries have other lengths"),
        ("entry_start", ints(0, 1, 1), "columns of 2 groups and 2 entries have other lengths"),
        ("entry_start", ints(0, 3, 2), "columns of 2 groups and 2 entries have other lengths"),
        # differences of unsigned integers are never negative
        ("entry_start", np.array([0, 3, 2], dtype=np.uint64), "columns of 2 groups and 2 entries"),
        ("entry_start", [0, 2**70, 2], "columns of 2 groups and 2 entries have other lengths"),
        ("entry_block", ints(0, 1), "a block index lies outside 0 ... 0"),
        ("entry_block", ints(0), "columns of 2 groups and 2 entries have other lengths"),
        ("entry_block", [0, 2**70], "a block index lies outside 0 ... 0"),
        ("entry_job", ints(0, 2), "a job index lies outside 0 ... 1"),
        ("entry_job", ints(0, -1), "a job index lies outside 0 ... 1"),
        ("entry_count", ints(1, 1, 1), "columns of 2 groups and 3 entries have other lengths"),
        # a second column of one block would let a machine give its blocks twice
        ("blocks", ("half", "half"), "two blocks are called 'half'; every block needs a name of"),
        ("blocks", (5,), "block name is 5; expected a text that is not empty"),
        ("blocks", "h", "block names are the text 'h'; expected a list of names"),
        ("jobs", ("a", 5), "job name is 5; expected a text"),
        ("configurations", ("half",), "a configuration is 'half'; expected a Configuration"),
        ("configurations", (SizeBoundedConfigurations({"half": 1}, 2),), "a configuration is Siz"),
        ("configurations", (), "a configuration index lies outside 0 ... -1"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_refused(column: str, values: Any, message: str) -> None:
    assert refused(Schedule.from_columns, columns(**{column: values})).startswith(message)


@pytest.mark.parametrize("thing", [None, 5, (), ("half",) * 9])
def test_only_columns_are_columns(thing: Any) -> None:
    assert refused(Schedule.from_columns, thing).startswith("a schedule's columns are ")


class Chameleon(Configuration):
    """A configuration that is not the same whenever it is asked."""


def test_a_subclass_of_configuration_is_not_trusted() -> None:
    assert refused(Schedule.from_columns, columns(configurations=(Chameleon({"half": 2}),)))
    assert refused(Schedule, [MachineGroup(Chameleon({"half": 2}), {}, 1)])


# --- what cannot be changed -----------------------------------------------------------------------


def changes(schedule: Schedule) -> Iterator[Callable[[], object]]:
    for name in ("columns", "groups", "machine_count", "machines", "new"):
        yield partial(setattr, schedule, name, None)
    yield partial(delattr, schedule, "columns")
    for array in schedule.columns[3:]:
        yield partial(array.__setitem__, 0, 7)
        yield partial(array.setflags, write=True)
    yield lambda: schedule.groups.append(None)  # type: ignore[attr-defined]
    yield lambda: schedule.groups[0].assignment.update({})  # type: ignore[attr-defined]
    yield lambda: schedule.columns.jobs.append("c")  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [3, 10**30])
def test_a_schedule_cannot_be_changed(count: int) -> None:
    schedule = Schedule.from_columns(columns(group_count=[count, 1], entry_count=[count, 1]))
    for twin in (schedule, pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
        for change in changes(twin):
            with pytest.raises((AttributeError, TypeError, ValueError)):
                change()
        assert twin == schedule
        assert hash(twin) == hash(schedule)
        assert (twin.machine_count, twin.groups[0].assignment["half", "a"]) == (count + 1, count)


def test_what_a_schedule_was_made_of_may_change_later() -> None:
    assignment = {("half", "a"): 1}
    schedule = Schedule([MachineGroup(PAIR, assignment, 1)])
    assignment["half", "a"] = 2
    counts, jobs = ints(3, 1), ["a", "b"]
    wrapped = Schedule.from_columns(columns(group_count=counts, jobs=jobs))
    counts[0], jobs[0] = 99, "z"
    assert schedule.groups[0].assignment == {("half", "a"): 1}
    assert wrapped == Schedule.from_columns(columns())


def test_schedules_differ_by_any_group() -> None:
    group = MachineGroup(PAIR, {("half", "a"): 1}, 1)
    different = [
        [],
        [group],
        [group, group],
        [group._replace(count=2)],
        [group._replace(assignment={("half", "b"): 1})],
        [group._replace(assignment={("half", "a"): 2})],
        [group._replace(configuration=Configuration({"half": 2}, "m"))],
    ]
    assert len({Schedule(groups) for groups in different}) == len(different)
    assert Schedule([group]) != [group]


# --- costs ----------------------------------------------------------------------------------------


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


# --- from counts to groups ------------------------------------------------------------------------


def test_three_jobs_share_two_machines() -> None:
    # halves 0 1 | 2 3: a gets 0, b gets 1 and 2, c gets 3
    schedule = Schedule.from_counts(
        halves("a", "b", "c"), {PAIR: 2}, {("half", "c"): 1, ("half", "a"): 1, ("half", "b"): 2}
    )
    assert list(schedule.groups) == [
        (PAIR, {("half", "a"): 1, ("half", "b"): 1}, 1),
        (PAIR, {("half", "b"): 1, ("half", "c"): 1}, 1),
    ]


@pytest.mark.parametrize("scale", [1, 10**12, 2**62, 10**30])
def test_the_number_of_groups_does_not_depend_on_the_number_of_machines(scale: int) -> None:
    # 5 machines of 2 halves, 3 for a and 6 for b: aa | ab | bb bb | b idle, however often
    problem = halves("a", "b")
    given_blocks = {("half", "a"): 3 * scale, ("half", "b"): 6 * scale}
    schedule = Schedule.from_counts(problem, {PAIR: 5 * scale}, given_blocks)
    assert schedule.machine_count == 5 * scale
    assert len(schedule.groups) <= 5
    assert totals(schedule) == given_blocks
    assert check(problem, schedule) == ()
    if scale == 1:
        assert list(schedule.groups) == [
            (PAIR, {("half", "a"): 2}, 1),
            (PAIR, {("half", "a"): 1, ("half", "b"): 1}, 1),
            (PAIR, {("half", "b"): 2}, 2),
            (PAIR, {("half", "b"): 1}, 1),
        ]


def test_a_machine_may_have_any_number_of_blocks() -> None:
    huge = Configuration({"b": 2**70})
    problem = Problem(configurations=huge, jobs=[Job("x", 2**71 - 1, {"b": 1})])
    schedule = Schedule.from_counts(problem, {huge: 2}, {("b", "x"): 2**71 - 1})
    assert [(g.count, dict(g.assignment)) for g in schedule.groups] == [
        (1, {("b", "x"): 2**70}),
        (1, {("b", "x"): 2**70 - 1}),
    ]
    assert check(problem, schedule) == ()


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, object])
def test_counts_may_be_arrays(kind: Any) -> None:
    problem = halves("a", "b", "c")
    arrays = [np.array(part, dtype=kind) for part in ([2, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 2])]
    expected = {("half", "c"): 1, ("half", "a"): 1, ("half", "b"): 2}
    for given_blocks in (tuple(arrays), tuple(part.tolist() for part in arrays), arrays):
        schedule = Schedule.from_counts(problem, {PAIR: 2}, given_blocks)  # type: ignore[arg-type]
        assert schedule == Schedule.from_counts(problem, {PAIR: 2}, expected)


@pytest.mark.parametrize(
    ("machines", "given_blocks", "message"),
    [
        ({PAIR: 1}, {("half", "a"): 3}, "3 blocks 'half' are given to jobs, the machines have 2"),
        ({}, {("half", "a"): 1}, "1 blocks 'half' are given to jobs, the machines have 0"),
        ({PAIR: 10**30}, {("half", "a"): 3 * 10**30}, f"{3 * 10**30} blocks 'half' are given to"),
        ({PAIR: -1}, {}, "number of machines with configuration Configuration(2 x half) is -1; e"),
        ({PAIR: 1.0}, {}, "number of machines with configuration Configuration(2 x half) is 1.0"),
        ({PAIR: 2.7}, {}, "number of machines with configuration Configuration(2 x half) is 2.7"),
        ({PAIR: None}, {}, "number of machines with configuration Configuration(2 x half) is No"),
        ({"half": 1}, {}, "machines has 'half'; expected Configuration objects"),
        ([PAIR], {}, "machines is [Configuration(2 x half)]; expected {configuration: count}"),
        ({PAIR: 1}, {("half", "a"): -1}, "number of blocks 'half' given to job 'a' is -1; expec"),
        ({PAIR: 1}, {("half", "a"): 1.0}, "number of blocks 'half' given to job 'a' is 1.0; exp"),
        ({PAIR: 1}, {("half", "z"): 1}, "given names the job 'z', which the problem does not have"),
        ({PAIR: 1}, {("haf", "a"): 1}, "given names the block 'haf', which the problem does not "),
        ({PAIR: 1}, {"half": 1}, "a key of given is 'half'; expected (block, job), two names"),
        ({PAIR: 1}, {("half", 0): 1}, "a key of given is ('half', 0); expected (block, job), two"),
        ({PAIR: 1}, None, "given is None; expected {(block, job): count} or three arrays"),
        ({PAIR: 1}, (ints(0), ints(0)), "given is (array([0]), array([0])); expected {(block, jo"),
        ({PAIR: 1}, (ints(0), ints(0), 1), "given counts is 1; expected a row of whole numbers"),
        ({PAIR: 1}, (ints(0), ints(0), ints(1, 1)), "given has 1 jobs, 1 blocks and 2 counts; ex"),
        ({PAIR: 1}, (ints(0), ints(0), [1.5]), "given counts: entry 0 is 1.5; expected a whole n"),
        ({PAIR: 1}, (ints(0), ints(0), np.array([1.0])), "given counts has dtype float64; expec"),
        ({PAIR: 1}, (ints(0), ints(0), ints(-1)), "given has the count -1; expected counts >= 0"),
        ({PAIR: 1}, (ints(2), ints(0), ints(1)), "given has a job index outside 0 ... 1"),
        ({PAIR: 1}, (ints(-1), ints(0), ints(1)), "given has a job index outside 0 ... 1"),
        ({PAIR: 1}, (ints(0), ints(1), ints(1)), "given has a block index outside 0 ... 0"),
        ({PAIR: 1}, (ints(0), ints(-1), ints(1)), "given has a block index outside 0 ... 0"),
    ],
)
def test_counts_that_make_no_sense_are_refused(
    machines: Any, given_blocks: Any, message: str
) -> None:
    problem = halves("a", "b")
    assert refused(Schedule.from_counts, problem, machines, given_blocks).startswith(message)


def totals(schedule: Schedule) -> dict[tuple[str, str], int]:
    """Blocks of each type that each job gets on all machines."""
    sums: Counter[tuple[str, str]] = Counter()
    for group in schedule.groups:
        for pair, number in group.assignment.items():
            sums[pair] += number * group.count
    return dict(sums)


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
def counts(
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


@given(counts(), st.booleans())
def test_groups_are_what_handing_out_the_blocks_one_by_one_gives(
    drawn: tuple[Problem, dict[Configuration, int], dict[tuple[str, str], int]], as_arrays: bool
) -> None:
    problem, machines, given_blocks = drawn
    entries: Any = given_blocks
    if as_arrays:
        entries = tuple(
            np.array(part, dtype=np.int64)
            for part in zip(
                *((problem.job_index(j), problem.block_index[i], n)
                  for (i, j), n in given_blocks.items()),
                strict=True,
            )
        )  # fmt: skip
    schedule = Schedule.from_counts(problem, machines, entries)
    line = [
        (group.configuration, dict(group.assignment))
        for group in schedule.groups
        for _ in range(group.count)
    ]
    assert line == machine_by_machine(problem, machines, given_blocks)
    used = sum(number > 0 for number in machines.values())
    assert len(schedule.groups) <= used + 4 * sum(number > 0 for number in given_blocks.values())
    assert totals(schedule) == {pair: n for pair, n in given_blocks.items() if n}


@given(counts(), st.sampled_from([10**9, 2**61, 10**20]))
def test_a_thousandfold_fleet_has_groups_for_every_block_it_gives(
    drawn: tuple[Problem, dict[Configuration, int], dict[tuple[str, str], int]], scale: int
) -> None:
    problem, machines, given_blocks = drawn
    many = {shape: n * scale for shape, n in machines.items()}
    more = {pair: n * scale for pair, n in given_blocks.items()}
    schedule = Schedule.from_counts(problem, MappingProxyType(many), more)
    assert check(problem, schedule) == ()
    assert totals(schedule) == {pair: n for pair, n in more.items() if n}
    assert schedule.machines == {shape: n for shape, n in many.items() if n}


def test_the_groups_of_many_jobs_are_made_when_asked_for() -> None:
    n = 200_000
    problem = Problem.from_arrays(
        demands=np.ones(n, dtype=np.int64),
        supply=np.ones((n, 1), dtype=np.int64),
        configurations=[[3]],
    )
    (three,) = problem.listed_configurations
    jobs = np.arange(n)
    schedule = Schedule.from_counts(
        problem,
        {three: n // 3 + 1},
        (jobs, np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)),
    )
    assert len(schedule.groups) == n // 3 + 1
    assert schedule.groups[1].assignment == {("b0", f"j{j}"): 1 for j in (3, 4, 5)}
    assert schedule.columns.jobs is problem.job_names
    assert check(problem, schedule) == ()
