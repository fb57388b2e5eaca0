"""What certificates about mixes say of one job's choices: held to the optimum with it forced.

The optimum is that of the plain problem that a time-shared one is in disguise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

import pytest

from cms import (
    Configuration,
    Job,
    MixPrices,
    PriceFunction,
    Problem,
    TimeSharedJob,
    TimeSharedProblem,
    solve,
)
from cms.fleet.what_if import one_job
from cms.fleet.what_if.one_job import Given, shared_job
from tests.property.problems import proved_optimum as optimum
from tests.references.mixes import Output, images, time_shared_toy
from tests.samples import few, so_many
from tests.time_sharing.test_prices import fitted


def is_on(block: str, output: Output, *, alone: bool = False) -> bool:
    """Whether a job gets something on this type of block, and alone if that is asked."""
    return output[2] == block and (output[3] or not alone)


def with_jobs(plain: Problem, jobs: Iterable[Job]) -> Fraction | None:
    """The optimum with other jobs."""
    configurations, types = plain.configurations, plain.machine_types
    return optimum(Problem(configurations=configurations, jobs=jobs, machine_types=types))


def forced(
    plain: Problem, outputs: dict[str, Output], name: str, must: Callable[[Output], bool]
) -> Fraction | None:
    """The optimum where some block of the job is as said."""
    costs = []
    for output, what in outputs.items():
        if what[0] == name and must(what):
            jobs = [
                Job(job.name, max(Fraction(0), job.demand - what[1] * (job.name == name)),
                    job.demand_function)
                for job in plain.jobs
            ]  # fmt: skip
            costs.append(with_jobs(plain, [*jobs, Job("the one", 1, {output: 1})]))
    return min((cost for cost in costs if cost is not None), default=None)


def only_on(
    plain: Problem, outputs: dict[str, Output], name: str, blocks: Iterable[str]
) -> Fraction | None:
    """The optimum where the job has blocks of these types alone."""
    jobs = []
    for job in plain.jobs:
        table = dict(job.demand_function.items())  # type: ignore[union-attr]
        if job.name == name:
            table = {output: r for output, r in table.items() if outputs[output][2] in blocks}
        jobs.append(Job(job.name, job.demand, table))
    return with_jobs(plain, jobs)


def require_bounds(seed: int) -> int:
    """Ask about every job and block of a toy; return how many choices cost more than the bound."""
    rng = random.Random(f"choices {seed}")
    problem = time_shared_toy(rng)
    solution = solve(problem, time_limit=None, threads=1)
    if solution.cost is None:
        return 0
    plain, outputs = images(problem)
    dearer = 0
    certificates = [solution.certificate, fitted(problem, rng)]
    for certificate in certificates:
        if not isinstance(next(certificate.leaves()), MixPrices):
            continue  # of one job a block
        bound = certificate.bound(problem)
        for job in problem.jobs:
            if not job.demand:
                continue
            found = shared_job(problem, certificate, job.name)
            base = found.bound_if(Given())
            assert base is not None
            assert found.alone is not None
            assert bound <= base <= solution.cost
            for block, alone in found.alone.items():
                every, own = set(problem.blocks), partial(is_on, block)
                for given, least in (
                    ((Given({block: 1}),), forced(plain, outputs, job.name, own)),
                    (
                        (Given({block: 1}), alone),
                        forced(plain, outputs, job.name, partial(own, alone=True)),
                    ),
                    (
                        (Given(without=frozenset({block})),),
                        only_on(plain, outputs, job.name, every - {block}),
                    ),
                    (
                        (Given(without=frozenset(every) - {block}),),
                        only_on(plain, outputs, job.name, {block}),
                    ),
                ):
                    said = found.bound_if(*given)
                    if said is None:
                        assert least is None
                    else:
                        assert said >= base
                        assert least is None or said <= least
                        dearer += said > bound
    return dearer


@pytest.mark.parametrize("part", few(1, range(20)))
def test_no_choice_costs_less_than_its_bound(part: int) -> None:
    assert sum(require_bounds(20 * part + number) for number in range(so_many(3, 20)))


def gpu_or_half() -> TimeSharedProblem:
    points = {"gpu": [(4, 2)], "half": [(4, 6)]}
    return TimeSharedProblem(
        configurations=[Configuration({"gpu": 1}), Configuration({"half": 2})],
        jobs=[TimeSharedJob(name, demand=1, limit=20, points=points) for name in "xy"],
    )


def test_what_is_not_decided_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gpu_or_half()
    functions = {name: PriceFunction("1/2") for name in "xy"}
    prices = MixPrices({"gpu": 1, "half": "1/2"}, functions=functions)
    half = Given({"half": 1})
    found = shared_job(problem, prices, "x")
    assert found.alone is not None
    assert found.bound_if(half) == Fraction(7, 6)
    assert found.bound_if(Given({"gpu": 1}), found.alone["gpu"]) == Fraction(3, 2)
    assert found.bound_if(half, found.alone["half"]) == Fraction(7, 6)
    monkeypatch.setattr(one_job, "NODE_LIMIT", 0)
    assert shared_job(problem, prices, "x").bound_if(half) == 1
