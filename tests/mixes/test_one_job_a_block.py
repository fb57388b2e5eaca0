"""Plain CMS is the time-shared problem in which a mix has one job: the same answers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from cms import (
    BlockPrices,
    InvalidCertificate,
    MachineGroup,
    Mix,
    Problem,
    Schedule,
    TimeSharedJob,
    TimeSharedProblem,
    check,
    solve,
)
from cms.referee.check import referee_of
from tests.families import instance
from tests.files.documents import problems
from tests.samples import refusal

FAMILIES = ("costs", "machine_types", "max_blocks", "edges")


def as_mixes_of_one(problem: Problem, max_jobs: int | None = 1) -> TimeSharedProblem:
    """Each supply f as a batch of f that takes 1, in time for a limit of 2."""
    jobs = [
        TimeSharedJob(
            job.name,
            job.demand,
            2,
            {b: [(f, 1)] for b in problem.blocks if (f := job.demand_function(b))},
        )
        for job in problem.jobs
    ]
    return TimeSharedProblem(
        configurations=problem.configurations,
        jobs=jobs,
        machine_types=problem.machine_types,
        blocks=problem.blocks,
        max_jobs=max_jobs,
    )


def with_mixes(problem: Problem, schedule: Schedule) -> Schedule:
    """The same schedule, each job a mix."""
    jobs = {job.name: job for job in problem.jobs}
    return Schedule(
        MachineGroup(
            group.configuration,
            {
                (block, Mix({name: jobs[name].demand_function(block)})): count
                for (block, name), count in group.assignment.items()
                if jobs[name].demand_function(block)
            },
            group.count,
        )
        for group in schedule.groups
    )


@given(problem=problems())
def test_without_sharing_it_is_the_same_problem(problem: Problem) -> None:
    shared = as_mixes_of_one(problem)
    assert shared.unshared() == problem
    assert shared != problem
    assert shared.useful_blocks() == problem.useful_blocks()
    assert shared.usable_types() == problem.usable_types()
    assert shared.cost_step == problem.cost_step
    first, plain = referee_of(shared).first(), referee_of(problem).first()
    assert (first.infeasible, first.schedule) == (plain.infeasible, plain.schedule)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(2))
def test_schedules_and_certificates_are_the_same(family: str, seed: int) -> None:
    problem = instance(family, seed)
    solution = solve(problem, threads=1)
    shared = as_mixes_of_one(problem)
    mixes = with_mixes(problem, solution.schedule)
    if solution.cost is not None:
        assert check(shared, mixes) == ()
        assert mixes.cost(shared) == solution.cost
        short = Schedule([g._replace(count=1) for g in mixes.groups[:-1]])
        plain = Schedule([g._replace(count=1) for g in solution.schedule.groups[:-1]])
        kinds = [(fault.kind, fault.where) for fault in check(shared, short)]
        assert kinds == [(fault.kind, fault.where) for fault in check(problem, plain)]
    assert solution.certificate.bound(shared) == solution.certificate.bound(problem)
    proved = solution.certificate.proves_infeasible(problem)
    assert solution.certificate.proves_infeasible(shared) is proved


def test_prices_of_blocks_alone_prove_nothing_where_jobs_may_share() -> None:
    problem = instance("costs", 0)
    prices = BlockPrices({problem.blocks[0]: Fraction(0)})
    assert prices.bound(as_mixes_of_one(problem)) == 0
    for most in (2, None):
        message = refusal(InvalidCertificate, prices.bound, as_mixes_of_one(problem, most))
        assert message.startswith("block prices alone prove nothing about a TimeSharedProblem")
