"""A first schedule: always valid, found where nothing is limited, never late, beside greedy."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

import cms
from algorithms.branch_and_price import BranchAndPrice, run
from algorithms.branch_and_price.first import first_schedule
from algorithms.prices import jobs as prices
from cms import Configuration, Job, MachineType, Problem, Schedule, SizeBoundedConfigurations, check
from cms.plugin.algorithm import Named, NoOptions
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Counting, Unlimited
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import so_many, spread


def found(problem: Problem) -> Any:
    """The first schedule, checked; None if there is none."""
    schedule = first_schedule(problem, lambda: False)
    if schedule is not None:
        assert check(problem, schedule) == ()
    return schedule


@pytest.mark.parametrize("family", spread(8, FAMILIES))
def test_small_problems_have_one_wherever_they_have_any_but_for_tight_limits(family: str) -> None:
    for number in range(6):
        problem = instance(family, number)
        schedule, best = found(problem), optimum(problem)
        if best is None or not problem.limits:
            assert (schedule is None) == (best is None), (family, number)


def claims(problem: Problem, budget: Unlimited) -> Iterator[Any]:
    return BranchAndPrice().run(problem, NoOptions(), budget)


def test_auto_waits_for_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("prices were asked for")

    monkeypatch.setattr(prices, "price_jobs", refuse)
    for family in ("mixed-fleet", "size-bounded"):
        problem = generate(family, n=60, seed=1)
        claim = next(claims(problem, Unlimited()))
        assert type(claim) is Named
        assert claim.part == "first schedule"
        assert isinstance(claim.claim, Schedule)
        assert check(problem, claim.claim) == ()


@pytest.mark.parametrize("family", ["mixed-fleet", "size-bounded-mixed", "huge-demands"])
def test_auto_ends_at_whatever_look_it_is_stopped(family: str) -> None:
    problem = generate(family, n=60, seed=3)
    for looks in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        budget = Counting(looks)
        for _ in claims(problem, budget):
            pass
        assert budget.asked <= looks + 40, looks


def test_a_job_that_takes_what_each_of_many_machines_has_can_be_stopped() -> None:
    """It is one job: what is asked between jobs alone would be asked once."""
    blocks = [f"b{i}" for i in range(200)]
    problem = Problem(
        configurations=[Configuration({block: 1}, block) for block in blocks],
        jobs=[Job("x", 150, dict.fromkeys(blocks, 1))],
        machine_types=[MachineType(block, limit=1) for block in blocks],
    )
    looks = itertools.count()
    schedule = first_schedule(problem, lambda: next(looks) < 0)
    assert schedule is not None
    assert schedule.machine_count == 150
    assert next(looks) >= 150
    budget = iter([False] * 50)
    assert first_schedule(problem, lambda: next(budget, True)) is None


#: What a share gives, as parts of a whole machine; ``least`` is the job's own.
CURVES: dict[str, Callable[[float, float], float]] = {
    "in proportion": lambda share, least: share,
    "concave": lambda share, least: share**0.6,
    "convex": lambda share, least: share**1.4,
    "from a least share on": lambda share, least: share if share >= least else 0.0,
    "in whole steps": lambda share, least: int(4 * share) / 4,
}


def _shares(kind: str, seed: int) -> Problem:
    r = random.Random(f"{kind} {seed}")
    types, step, most = r.randint(1, 3), r.choice([10, 20]), r.choice([None, None, 4])
    shapes: list[Configuration | SizeBoundedConfigurations] = []
    machines, tables = [], [dict[str, Fraction]() for _ in range(r.randint(3, 4))]
    least = [r.uniform(0, 0.4) for _ in tables]
    for m in range(types):
        speed, sizes = r.uniform(1, 12), {f"g{m}:{s}": s for s in range(step, 101, step)}
        machines.append(MachineType(f"g{m}", f"{speed**0.85 * r.uniform(0.8, 1.25):.2f}"))
        shapes.append(SizeBoundedConfigurations(sizes, 100, f"g{m}", most))
        for table, low in zip(tables, least, strict=True):
            rate = speed * r.uniform(0.5, 2)
            given = {b: round(1000 * rate * CURVES[kind](s / 100, low)) for b, s in sizes.items()}
            table |= {block: Fraction(f, 1000) for block, f in given.items() if f}
    if seed % 2:
        shapes.append(Configuration({f"g0:{step}": 3, f"g0:{2 * step}": 2}, "g0"))
    jobs = [Job(f"j{at}", r.randint(1, 40), table) for at, table in enumerate(tables)]
    return Problem(configurations=shapes, jobs=jobs, machine_types=machines)


@pytest.mark.parametrize("kind", CURVES)
def test_before_it_branches_it_has_what_greedy_has(kind: str) -> None:
    asked = 0
    for seed in range(so_many(3, 100)):
        problem, budget, asking = _shares(kind, seed), Unlimited(), False
        for claim in run.claims(problem, budget):
            assert isinstance(claim, Named)
            of_greedy = claim.part.startswith("greedy: ")
            if asking and not of_greedy:
                break
            asking = asking or of_greedy
            if isinstance(claim.claim, Schedule):
                assert check(problem, claim.claim) == ()
                if budget.best is None or claim.claim.cost(problem) < budget.best.cost(problem):
                    budget.best = claim.claim
            elif isinstance(claim.claim, cms.Certificate) and budget.best is not None:
                budget.lower_bound = max(budget.lower_bound, claim.claim.bound(problem))
                if budget.best.cost(problem) <= budget.lower_bound:
                    break
        asked += asking
        assert budget.best is not None
        greedy = cms.solve(problem, method="greedy")
        assert greedy.cost is not None
        assert budget.best.cost(problem) <= greedy.cost, seed
    assert asked
