"""Leaving out what cannot matter keeps the optimum, and its schedules can be carried back."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from algorithms.prices.jobs import Jobs
from algorithms.prices.passes import certificate
from algorithms.prices.search import PriceSearch
from cms import (
    BlockPrices,
    Certificate,
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    check,
    solve,
)
from cms.certificate.certificate import first_certificate
from cms.presolver.presolve import presolve
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.property.schedules import random_schedule
from tests.samples import so_many, spread


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reduced_problem_has_the_same_optimum(family: str) -> None:
    for number in range(so_many(2, 25)):
        problem = instance(family, number)
        assert optimum(presolve(problem).problem) == optimum(problem), (family, number)


@pytest.mark.parametrize("family", spread(9, FAMILIES))
def test_any_schedule_of_the_reduced_problem_is_one_of_the_original(family: str) -> None:
    for number in range(so_many(5, 15)):
        problem = instance(family, number)
        reduction = presolve(problem)
        schedule = random_schedule(random.Random(number), reduction.problem)
        if schedule is not None:
            assert check(reduction.problem, schedule) == (), (family, number)
            restored = reduction.restore(schedule)
            assert check(problem, restored) == (), (family, number)
            assert restored.cost(problem) == schedule.cost(reduction.problem)


@pytest.mark.parametrize("family", ["sparse", "costs", "limits", "max_blocks", "edges"])
def test_prices_of_the_reduced_problem_hold_for_the_original(family: str) -> None:
    for number in range(so_many(5, 15)):
        problem = instance(family, number)
        reduction = presolve(problem)
        if first_certificate(problem).proves_infeasible(problem):
            continue  # a job that no machine serves: nothing to search for
        small = reduction.problem
        certificate = solve(small, "cp_sat", threads=1).certificate
        assert isinstance(certificate, BlockPrices)
        rent = sum(
            price * (small.machine_type(name).limit or 0)
            for name, price in certificate.limit_prices.items()
        )
        bound = certificate.bound(small)
        restored = reduction.restore_prices(certificate, bound + rent)
        assert restored.proves_infeasible(problem) == certificate.proves_infeasible(small)
        assert restored.bound(problem) == bound


def _shares(random: random.Random) -> Problem:
    """Draw shares of two machine types: in proportion, concave, with a least one, or any."""
    blocks, shapes = [], []
    for machine in "mn"[: random.randint(1, 2)]:
        sizes = {f"{machine}{size}": size for size in range(1, random.randint(3, 5))}
        most = random.choice([None, None, 2])
        shapes.append(SizeBoundedConfigurations(sizes, random.randint(3, 6), machine, most))
        blocks += list(sizes.items())
    listed = [Configuration({random.choice(blocks)[0]: 2}, "m")] if random.random() < 0.3 else []
    jobs = []
    for number in range(random.randint(1, 2)):
        curves: list[Callable[[int], int]] = [
            lambda size: 3 * size,
            lambda size: 10 * size // (size + 3),
            lambda size: 3 * size if size > 1 else 0,
            lambda size: random.randint(0, 9),
        ]
        curve = random.choice(curves)
        supply = {name: Fraction(curve(size), 3) for name, size in blocks}
        if any(supply.values()):
            jobs.append(Job(f"j{number}", random.randint(1, 4), supply))
    machines = [
        MachineType(m, random.randint(1, 4)) for m in dict.fromkeys(str(s.machine) for s in shapes)
    ]
    return Problem(configurations=[*shapes, *listed], jobs=jobs, machine_types=machines)


def test_where_smaller_blocks_replace_others_all_stays_as_it_was() -> None:
    went = 0
    for number in range(so_many(20, 1_000)):
        problem = _shares(random.Random(number))
        reduction = presolve(problem, fewer=True)
        small = reduction.problem
        went += len(problem.blocks) > len(small.blocks)
        assert optimum(small) == optimum(problem), number
        schedule = random_schedule(random.Random(number), small)
        if schedule is None or first_certificate(problem).proves_infeasible(problem):
            continue
        assert check(problem, reduction.restore(schedule)) == (), number
        search = PriceSearch(Jobs(small), Unlimited())
        points = list(search.run())
        if points:
            claim = certificate(reduction, search, points[-1]).claim
            assert isinstance(claim, Certificate), number
            assert claim.bound(problem) == points[-1].bound, number
    assert went > so_many(4, 250)


def test_nothing_is_left_that_serves_nobody_or_that_another_configuration_beats() -> None:
    for family in FAMILIES:
        for number in range(10):
            problem = presolve(instance(family, number)).problem
            assert all(job.demand > 0 for job in problem.jobs)
            for block in problem.blocks:
                assert any(block in dict(_table(problem, j)) for j in range(problem.n_jobs))
            shapes = problem.listed_configurations
            for one in shapes:
                rivals = [s for s in shapes if s is not one and s.machine == one.machine]
                assert not any(_beats(other, one) for other in rivals), (family, number)


def _table(problem: Problem, j: int) -> list[tuple[str, int]]:
    pairs = zip(problem.blocks, problem.rows.row(j).supply, strict=True)
    return [(block, supply) for block, supply in pairs if supply]


def _beats(one: Configuration, other: Configuration) -> bool:
    return all(one.blocks.get(block, 0) >= count for block, count in other.blocks.items())
