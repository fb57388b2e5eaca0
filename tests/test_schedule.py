"""Schedules: groups of machines, whatever their number, that never change."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cms.checker.kinds import check
from cms.errors import InvalidSchedule
from cms.problem.parts import Configuration, MachineType, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.schedule.schedule import MachineGroup, Schedule, machine_cost
from cms.values.frozen import FrozenMap
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
