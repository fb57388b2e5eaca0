"""The check of schedules: exact, complete, and in words that name the fault."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cms.checker.kinds import check
from cms.problem.parts import (
    Configuration,
    DemandFunction,
    Job,
    MachineType,
)
from cms.problem.problem import Problem
from cms.schedule.faults import Violation
from cms.schedule.schedule import MachineGroup, Schedule
from cms.values.numbers import format_exact

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
        short = [group(count=blocks - 1, x=1)] * (blocks > 1)
        (fault,) = check(problem, Schedule(short))
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
