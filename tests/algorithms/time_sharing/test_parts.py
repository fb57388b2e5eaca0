"""What the exact method on shared blocks is made of: guesses, programs, cuts, dives, hosting."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from random import Random

import numpy as np
import pytest

from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.region import Region
from algorithms.solvers.integer import Hint
from algorithms.time_sharing.closing import MixProgram, cheaper_schedule, schedule_of
from algorithms.time_sharing.columns import Columns, Prices, Step
from algorithms.time_sharing.dive import Diver
from algorithms.time_sharing.hosting import Hosting
from algorithms.time_sharing.master import Cuts, Point
from algorithms.time_sharing.prices import PriceSearch
from bench.time_sharing.hosting import require_hosting
from cms import Configuration, TimeSharedJob, TimeSharedProblem, check, solve
from cms.certificate.conditions import Condition
from cms.certificate.quantity import BlocksOfJob
from cms.time_sharing import problem as problems
from cms.time_sharing.dearest import price_mix
from cms.time_sharing.functions import PriceFunction
from instances.families.time_sharing import random_mix
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.samples import few, so_many


def searched(problem: TimeSharedProblem) -> PriceSearch:
    columns = Columns(problem)
    columns.add_alone()
    search = PriceSearch(columns, Region(problem), Unlimited())
    for priced in search.run():
        assert priced.leaf.bound(problem) == priced.bound
    return search


def random_prices(rng: Random, n: int) -> Prices:
    """Slopes, steps and charges of either sign, some of them 0."""
    slopes = [rng.choice([0.0, rng.random(), rng.random()]) for _ in range(n)]
    steps = {
        job: [(rng.uniform(0.5, 4), rng.random() / 2) for _ in range(rng.randint(1, 3))]
        for job in range(n)
        if rng.random() < 0.4
    }
    charges = {rng.randrange(n): rng.uniform(-1, 1) for _ in range(2)}
    return Prices(np.array(slopes), steps, charges)


@pytest.mark.parametrize("cap", [None, 2])
def test_guesses_on_a_grid_are_admitted_and_worth_more_than_was_asked(cap: int | None) -> None:
    """Where all of the demands are left, and where some of them are, or nothing."""
    problem, rng = random_mix(4, most=6, max_jobs=cap), Random(f"guesses {cap}")
    columns, told = Columns(problem), 0
    for i, block in enumerate(problem.blocks):
        some = np.array([rng.choice([0, 0.3, 1]) for _ in problem.jobs])
        for left in (np.ones(problem.n_jobs), some):
            prices, last = random_prices(rng, problem.n_jobs), float("inf")
            guesses = columns.knapsack(i).guesses(prices, 0.1, 50, left)
            told += len(guesses)
            for guess in guesses:
                column = columns.listed[columns.add(i, guess)]
                assert problem.frame(block, column.mix).admitted
                assert cap is None or len(column.mix) <= cap
                parts = [(j, np.array([min(float(x) / left[j], 1.0)])) for j, x in column.shares]
                worth = sum(float(prices.worth(j, part)[0]) for j, part in parts)
                assert 0.1 < worth <= last + 1e-9
                last = worth
    assert told > 50


def test_mixes_that_are_listed_join_the_dearest_first_and_of_different_jobs() -> None:
    problem = random_mix(4, most=4)
    columns, functions = Columns(problem), {name: PriceFunction(1) for name in problem.job_names}
    search = PriceSearch(columns, Region(problem), Unlimited())
    prices, branches = Prices(np.ones(problem.n_jobs), {}), list[float]()
    for i, block in enumerate(problem.blocks):
        dearest, before = price_mix(problem, block, functions, {}, above=Fraction(0)), len(columns)
        price = dearest.mixes[0].worth
        for part, some in ((2.0, False), (0.5, True)):
            blocks = [float(price) * part if i == j else 99.0 for j in range(len(problem.blocks))]
            search._join(Point(1.0, [], [], blocks, prices, {}, branches))
            assert (len(columns) > before) == some
        new = columns.listed[before:]
        assert len({frozenset(column.mix) for column in new}) == len(new) <= 6
        assert sum(share for _, share in new[0].shares) == price


@pytest.mark.parametrize("listed", [True, False])
def test_below_a_branch_mixes_are_charged_for_the_job_that_it_counts(
    listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "_LISTED", 250_000 * listed)
    search = searched(random_mix(0, most=4))
    columns, block = search.columns, search.region.blocks[-1]
    job = next(job for job, _ in columns.lengths[-1])
    many = Condition(BlocksOfJob(block, columns.problem.job_names[job]), 1, 9)
    region = search.region.below([many])
    below = PriceSearch(columns, region, Unlimited(), Fraction(0))
    proved = list(below.prove(9))
    assert search.best is not None
    assert proved[-1].bound > search.best.bound
    assert below.point is not None
    assert below.point.branches[0] > 0
    counted = many.value * below.point.branches[0]
    assert below.master.paid(below.point) + counted == pytest.approx(below.point.value)


@pytest.mark.parametrize("seed", few(1, range(20)))
def test_bounds_hold_and_dives_end_in_valid_schedules(seed: int) -> None:
    problem = random_mix(seed, most=4, max_jobs=None)
    search = searched(problem)
    diver = Diver(search, Hosting(problem), Random(0), Unlimited())
    schedules = list(diver.schedules())
    assert schedules
    assert search.best is not None
    for schedule in schedules:
        assert not check(problem, schedule)
        assert schedule.cost(problem) >= search.best.bound


@pytest.mark.parametrize("seed", few(4, [43, *range(43), *range(44, 60)]))
def test_of_all_cuts_up_to_twelve_the_one_that_is_broken_most_is_found(seed: int) -> None:
    rng = Random(seed)
    per_cent = rng.sample(range(20, 100), 4)  # of the demand, by a larger and longer batch each
    points = [(10**at, Fraction(10**at, rate)) for at, rate in enumerate(per_cent)]
    job = TimeSharedJob("x", 100, 10**4, {"a": points})
    columns = Columns(TimeSharedProblem(configurations=Configuration({"a": 1}), jobs=[job]))
    columns.add_alone()
    for amount, _ in points:
        columns.add(0, {0: Fraction(amount)})
    shares = [column.shares[0][1] for column in columns.listed]
    mixes = [rng.random() for _ in shares]
    served = sum(mix * float(share) for mix, share in zip(mixes, shares, strict=True))
    mixes = [mix / served for mix in mixes]

    def have(step: Step) -> float:
        counted = sum(m * step.count(s) for m, s in zip(mixes, shares, strict=True))
        return counted / ceil(step.times)

    point = Point(1.0, [], mixes, [], Prices(np.zeros(1), {}), {}, [])
    found = Cuts(columns).broken(point)
    worst = min(have(Step(0, Fraction(hundredths, 100))) for hundredths in range(1, 1201))
    if worst < 0.999:
        assert have(found[0]) <= worst


def test_shares_a_hair_short_of_a_demand_are_found_for_what_they_are() -> None:
    for hair, needed in ((Fraction(0), 1), (Fraction(1, 10**12), 2)):
        jobs = [TimeSharedJob("x", Fraction(2, 3) + hair, 20, {"a": [(2, 3)]})]
        problem = TimeSharedProblem(configurations=Configuration({"a": 1}), jobs=jobs)
        columns = Columns(problem)
        columns.add_alone()
        shapes = Shapes(problem, Region(problem).rows)
        budget = Unlimited()
        inner = MixProgram(columns.listed, shapes, Fraction(0), None)
        found = inner.solve(budget, effort=1.0)
        assert found is not None
        assert found.cost == needed
        machines = dict(zip(shapes.shapes, found.machines, strict=True))
        assert not check(problem, schedule_of(columns, machines, dict(enumerate(found.mixes))))
        assert solve(problem, time_limit=None).cost == needed


@pytest.mark.parametrize("ended", [True, False])
def test_cp_sat_is_asked_where_scip_came_to_no_end(
    ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it finds then is told."""
    problem = random_mix(4, most=4)
    monkeypatch.setattr(MixProgram, "search", lambda *_, **__: (None, Hint(None, ended)))
    found = cheaper_schedule(searched(problem), Unlimited(), None)
    assert (found is None) == ended


def test_hosting_is_what_all_mixes_say() -> None:
    for seed in range(so_many(300, 10_000)):
        require_hosting(seed)


def test_a_rate_that_a_mix_gives_exactly_is_hosted_and_a_hair_more_is_not() -> None:
    points = {"b": [(8, "0.0149"), (16, "0.0271")]}
    for rule, limit in (("round_robin", "0.0569"), ("collect_then_run", "0.084")):
        problem = TimeSharedProblem(
            configurations=Configuration({"b": 1}),
            jobs=[TimeSharedJob(name, 1, limit, points) for name in ("x", "y")],
            rule=rule,
        )
        exact = Fraction(8) / Fraction("0.042"), Fraction(16) / Fraction("0.042")
        hosted = Hosting(problem).host("b", dict(zip("xy", exact, strict=True)))
        # Under round robin y's slot ends 0.0122 s later than its limit.
        assert (hosted and hosted.amounts) == (
            {"x": 8, "y": 16} if rule == "collect_then_run" else None
        )
        more = {"x": exact[0], "y": exact[1] + Fraction(1, 10**15)}
        assert Hosting(problem).host("b", more) is None
