"""The columns of a schedule: whole numbers of any kind, and nothing that does not fit together."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest

from cms.errors import InvalidSchedule
from cms.problem.parts import Configuration, SizeBoundedConfigurations
from cms.schedule.schedule import MachineGroup, Schedule
from tests.samples import PAIR, columns, ints, refusal

refused = partial(refusal, InvalidSchedule)


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
BAD: list[tuple[str, Any, str]] = [
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


@pytest.mark.parametrize(("column", "values", "words"), BAD)
def test_columns_that_do_not_fit_are_refused(column: str, values: Any, words: str) -> None:
    assert words in refused(Schedule.from_columns, columns(**{column: values}))


class Chameleon(Configuration):
    """A configuration that is not the same whenever it is asked."""


def test_a_subclass_of_configuration_is_not_trusted() -> None:
    assert refused(Schedule.from_columns, columns(configurations=(Chameleon({"half": 2}),)))
    assert refused(Schedule, [MachineGroup(Chameleon({"half": 2}), {}, 1)])
    for thing in (None, 5, (), ("half",) * 9):
        assert refused(Schedule.from_columns, thing)
