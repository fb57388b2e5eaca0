"""The columns of a schedule: whole numbers of any kind, and nothing that does not fit together."""

from __future__ import annotations

import pickle
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from cms.errors import InvalidSchedule
from cms.problem.parts import Configuration, Job, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.referee.check import check
from cms.schedule.columns import Columns, whole_array
from cms.schedule.schedule import MachineGroup, Schedule
from tests.samples import PAIR, columns, ints, refusal

refused = partial(refusal, InvalidSchedule)


def test_columns_are_the_groups_in_another_form() -> None:
    schedule = Schedule.from_columns(columns())
    assert list(schedule.groups) == [
        MachineGroup(PAIR, {("half", "a"): 1, ("half", "b"): 1}, 3),
        MachineGroup(PAIR, {}, 1),
    ]
    assert schedule == Schedule(schedule.groups)
    assert hash(schedule) == hash(Schedule(schedule.groups))


def test_two_entries_of_one_block_and_job_are_one() -> None:
    schedule = Schedule.from_columns(columns(entry_content=ints(1, 1)))
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
        ("group_count", np.array([True, False]), "column group_count has dtype bool; expected"),
        ("group_count", np.array([1.5, 1], dtype=object), "column group_count: entry 0 is 1.5; e"),
        ("group_count", [3, float("nan")], "column group_count: entry 1 is nan; expected a whole"),
        ("group_count", ints(3, 1).reshape(2, 1), "column group_count has shape (2, 1); expected"),
        ("group_count", 3, "column group_count is 3; expected a row of whole numbers"),
        ("group_count", np.array([3, 1], dtype="m8[s]"), "column group_count has dtype timedelta"),
        ("group_count", ints(3), "columns of 1 groups and 2 entries have other lengths: one"),
        ("group_configuration", ints(0), "columns of 2 groups and 2 entries have other lengths"),
        ("group_configuration", ints(0, 1), "a configuration index lies outside 0 ... 0"),
        ("entry_start", ints(0, 2), "columns of 2 groups and 2 entries have other lengths"),
        ("entry_start", ints(0, 3, 2), "columns of 2 groups and 2 entries have other lengths"),
        # differences of unsigned integers are never negative
        ("entry_start", np.array([0, 3, 2], dtype=np.uint64), "columns of 2 groups and 2 entries"),
        ("entry_start", [0, 2**70, 2], "columns of 2 groups and 2 entries have other lengths"),
        ("entry_block", ints(0, 1), "a block index lies outside 0 ... 0"),
        ("entry_content", ints(0, 2), "a content index lies outside 0 ... 1"),
        ("entry_count", ints(1, 1, 1), "columns of 2 groups and 3 entries have other lengths"),
        # a second column of one block would let a machine give its blocks twice
        ("blocks", ("half", "half"), "two blocks are called 'half'; every block needs a name of"),
        ("blocks", (5,), "block name is 5; expected a text that is not empty"),
        ("contents", ("a", 5), "job name is 5; expected a text"),
        ("configurations", ("half",), "a configuration is 'half'; expected a Configuration"),
        ("configurations", (SizeBoundedConfigurations({"half": 1}, 2),), "a configuration is Siz"),
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


def test_names_that_no_entry_speaks_of_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few lists of names must not become a table of all their pairs."""
    looked_up = []

    def counted(values: Any, what: str) -> Any:
        looked_up.append(len(values))
        return whole_array(values, what)

    monkeypatch.setattr(import_module("cms.schedule.faults"), "whole_array", counted)
    many = range(300)
    made = Columns(
        tuple(f"b{i}" for i in many),
        ("x",),
        tuple(Configuration({f"b{i}": 1}) for i in many),
        *(np.array(row) for row in ([7, 8], [1, 1], [0, 1, 2], [7, 9], [0, 0], [1, 1])),
    )
    problem = Problem(configurations=made.configurations, jobs=[Job("x", 1, {"b7": 1})])
    faults = check(problem, Schedule.from_columns(made))
    assert [str(fault) for fault in faults] == [
        "group 1 has 1 blocks 'b9' in use on a machine, needs at most the 0 of its configuration"
    ]
    assert looked_up == [2]
