"""The check of schedules: exact, complete, and in words that name the fault."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.problem.parts import (
    AnyConfiguration,
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.referee.kinds import check
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


# --- demands, exactly -----------------------------------------------------------------------------


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


# --- machines -------------------------------------------------------------------------------------


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


# --- against the definition -----------------------------------------------------------------------


def is_valid(problem: Problem, groups: list[MachineGroup]) -> bool:
    """The definition, machine by machine and block by block, in rationals."""
    blocks, jobs = set(problem.blocks), {job.name: job for job in problem.jobs}
    served = dict.fromkeys(jobs, Fraction(0))
    used = dict.fromkeys((machine.name for machine in problem.machine_types), 0)
    for shape, assignment, count in groups:
        name = shape.machine or (next(iter(used)) if len(used) == 1 else "?")
        named = dataclasses.replace(shape, machine=name)
        if count < 1 or not any(holds(allowed, named) for allowed in problem.configurations):
            return False
        used[name] += count
        for block in {block for block, _ in assignment}:
            taken = sum(n for (one, _), n in assignment.items() if one == block)
            if taken > shape.blocks.get(block, 0):
                return False
        for (block, job), n in assignment.items():
            if block not in blocks or job not in jobs or n < 1:
                return False
            served[job] += n * count * gives(jobs[job], block)
    limits = {machine.name: machine.limit for machine in problem.machine_types}
    return all(used[m] <= limit for m, limit in limits.items() if limit is not None) and all(
        served[name] >= job.demand for name, job in jobs.items()
    )


def holds(allowed: AnyConfiguration, shape: Configuration) -> bool:
    if isinstance(allowed, Configuration):
        return allowed == shape
    if not shape.blocks.keys() <= allowed.sizes.keys():
        return False
    size = sum((allowed.sizes[block] * n for block, n in shape.blocks.items()), Fraction(0))
    few = allowed.max_blocks is None or sum(shape.blocks.values()) <= allowed.max_blocks
    return allowed.machine == shape.machine and size <= allowed.capacity and few


AMOUNTS: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, 2, 3, Fraction(1, 3), Fraction(5, 2), 0.1, 10**12, 2**62, 2**63, 10**30]
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, list[MachineGroup]]:
    """A problem, and machines that more or less serve it."""
    types = [MachineType(name, 1, draw(st.sampled_from([None, None, 2, 5])))
             for name in draw(st.sampled_from(["m", "mn"]))]  # fmt: skip
    contents = st.dictionaries(st.sampled_from("pqr"), st.integers(1, 3), min_size=1)
    shapes: list[AnyConfiguration] = [
        Configuration(draw(contents), draw(st.sampled_from(types)).name)
        for _ in range(draw(st.integers(1, 3)))
    ]
    if draw(st.booleans()):
        most = draw(st.none() | st.integers(1, 3))
        machine = draw(st.sampled_from(types)).name
        shapes.append(SizeBoundedConfigurations(draw(contents), 4, machine, most))
    known = sorted(
        {b for s in shapes for b in (s.blocks if isinstance(s, Configuration) else s.sizes)}
    )
    jobs = [
        Job(name, draw(AMOUNTS), {block: draw(AMOUNTS) for block in known})
        for name in draw(st.sampled_from(["x", "xy"]))
    ]
    problem = Problem(configurations=shapes, jobs=jobs, machine_types=types)
    groups = []
    for _ in range(draw(st.integers(0, 4))):
        listed = [shape for shape in shapes if isinstance(shape, Configuration)]
        shape = draw(st.sampled_from(listed))
        if not draw(st.integers(0, 4)):
            shape = Configuration(draw(contents), draw(st.sampled_from([None, "m", "n"])))
        assignment = {}
        for block, held in shape.blocks.items():
            pair = block, draw(st.sampled_from([job.name for job in jobs]))
            assignment[pair] = draw(st.sampled_from([held, held, held, 1]))
        if not draw(st.integers(0, 9)):
            odd = st.tuples(st.sampled_from("pqz"), st.sampled_from("xyz"))
            assignment[draw(odd)] = draw(st.integers(-1, 3))
        count = draw(st.sampled_from([1, 1, 2, 3, 10**12, 2**62, 10**30, 0, -1]))
        groups.append(MachineGroup(shape, assignment, count))
    return problem, groups


@given(cases())
@example((one_job(0, 1), []))
@example((one_job(1, "1/3", 3), [group(Configuration({"b": 3}), x=3)]))
@example((one_job(2**63 - 1, 2**62), [group(count=2, x=1)]))
def test_the_check_agrees_with_the_definition(case: tuple[Problem, list[MachineGroup]]) -> None:
    problem, groups = case
    assert (check(problem, Schedule(groups)) == ()) == is_valid(problem, groups)
