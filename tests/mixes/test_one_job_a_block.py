"""Plain CMS is the time-shared problem in which a mix has one job: the same answers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from cms import (
    BlockPrices,
    InvalidCertificate,
    Problem,
    TimeSharedJob,
    TimeSharedProblem,
    solve,
)
from cms.referee.kinds import referee_of
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
def test_certificates_are_the_same(family: str, seed: int) -> None:
    problem = instance(family, seed)
    certificate, shared = solve(problem, threads=1).certificate, as_mixes_of_one(problem)
    assert certificate.bound(shared) == certificate.bound(problem)
    assert certificate.proves_infeasible(shared) is certificate.proves_infeasible(problem)


def test_prices_of_blocks_alone_prove_nothing_where_jobs_may_share() -> None:
    problem = instance("costs", 0)
    prices = BlockPrices({problem.blocks[0]: Fraction(0)})
    assert prices.bound(as_mixes_of_one(problem)) == 0
    for most in (2, None):
        message = refusal(InvalidCertificate, prices.bound, as_mixes_of_one(problem, most))
        assert message.startswith("block prices alone prove nothing about a TimeSharedProblem")
