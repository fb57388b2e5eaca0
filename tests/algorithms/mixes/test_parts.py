"""What the exact method on shared blocks is made of: guesses, programs, dives, tidying."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from random import Random
from typing import Any

import numpy as np
import pytest

from algorithms.branch_and_price.shapes import Shapes
from algorithms.mixes.block_list import Guesser, guesser_of
from algorithms.mixes.closing import Closing
from algorithms.mixes.columns import Columns, Step
from algorithms.mixes.dive import Diver
from algorithms.mixes.hosting import Hosting
from algorithms.mixes.knapsack import BlockKnapsack, Guess, Prices
from algorithms.mixes.master import Cuts, Master, Point
from algorithms.mixes.prices import PriceSearch
from algorithms.mixes.program import MixProgram, Rules, schedule_of
from algorithms.mixes.tidy import tidied
from algorithms.prices.region import Region
from algorithms.solvers.integer import Hint
from cms import Configuration, TimeSharedJob, TimeSharedProblem, check, solve
from cms.certificate.conditions import Condition
from cms.certificate.quantity import BlocksOfJob, MachinesOf
from cms.solving.driver import RunBudget
from cms.solving.ledger import Ledger
from instances.families.time_sharing import random_mix
from tests.samples import few


def unlimited(problem: TimeSharedProblem) -> RunBudget:
    ledger = Ledger(problem, "test", trusted=True, clock=lambda: 0.0)
    return RunBudget(ledger, seed=0, threads=1, end=float("inf"))


def searched(problem: TimeSharedProblem) -> PriceSearch:
    columns = Columns(problem)
    columns.add_alone()
    guessers = [guesser_of(columns, i) for i in range(len(problem.blocks))]
    search = PriceSearch(columns, Region(problem), guessers, unlimited(problem))
    for priced in search.run():
        assert priced.leaf.bound(problem) == priced.bound
    return search


def test_below_a_branch_guesses_are_paid_for_the_turns_that_it_counts() -> None:
    search = searched(random_mix(0, most=4))
    columns, block = search.columns, search.region.blocks[-1]
    job = next(job for job, _ in columns.lengths(len(search.region.blocks) - 1))
    many = Condition(BlocksOfJob(block, columns.problem.job_names[job]), 1, 9)
    seen: list[Prices] = []

    class Told(BlockKnapsack):
        def guesses(self, prices: Prices, *rest: Any) -> list[Guess]:
            seen.append(prices)
            return super().guesses(prices, *rest)

    guessers: list[Guesser] = [Told(columns, i) for i in range(len(search.region.blocks))]
    region = search.region.below([many])
    below = PriceSearch(columns, region, guessers, unlimited(columns.problem), Fraction(0))
    proved = list(below.prove(9))
    assert search.best is not None
    assert proved[-1].bound > search.best.bound
    charged = [prices.turns for prices in seen if prices.turns]
    assert charged
    assert all(list(turns) == [job] and turns[job][0][1] > 0 for turns in charged)


@pytest.mark.parametrize("seed", few(2, range(12)))
def test_a_program_that_moves_on_is_worth_what_a_new_one_is(seed: int) -> None:
    """Below one branch after the other, back again, and below two on the same side."""
    problem = random_mix(seed, most=5)
    search = searched(problem)
    kept = Master(search.columns, search.region, penalty=100.0)
    whole, last = problem.configurations[0], len(problem.blocks) - 1
    assert isinstance(whole, Configuration)
    block, mix = problem.blocks[last], next(c.mix for c in search.columns.listed if c.block == last)
    ((job, amount), *_) = mix.items()
    below, above = Condition(MachinesOf(whole), -1, 1), Condition(MachinesOf(whole), 1, 2)
    shared, none = (Condition(BlocksOfJob(block, job), 1, n) for n in (2, 1))
    turns = Condition(BlocksOfJob(block, job, amount), 1, 3)
    cheap = search.point
    assert cheap is not None
    for path in ((below,), (above,), (above, shared), (none, below, shared), (shared, turns), ()):
        region = search.region.below(path)
        kept.move(region)
        for i, guesser in enumerate(search.guessers):
            for guess in guesser.guesses(cheap.prices, cheap.blocks[i], 2):
                search.columns.add(i, guess.amounts)
        found, new = kept.solve(None), Master(search.columns, region, penalty=100.0).solve(None)
        assert found is not None
        assert new is not None
        assert found.value == pytest.approx(new.value)
        assert len(found.branches) == len(path)
        pairs = zip(path, found.branches, strict=True)
        cheap = found._replace(blocks=[price / 2 for price in found.blocks], branches=[])
        counted = sum(c.sign * c.value * multiplier for c, multiplier in pairs)
        assert kept.paid(found) + counted == pytest.approx(found.value)


@pytest.mark.parametrize("seed", few(1, range(20)))
def test_bounds_hold_and_dives_end_in_valid_schedules(seed: int) -> None:
    problem = random_mix(seed, most=4, max_jobs=None)
    search = searched(problem)
    diver = Diver(search, Hosting(problem), Random(0), unlimited(problem))
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

    point = Point(1.0, [], mixes, [], Prices(np.zeros(1), {}), {})
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
        budget = unlimited(problem)
        inner = MixProgram(columns.listed, shapes, Rules(Fraction(0), None))
        found, _ = inner.solve(budget, effort=1.0)
        assert found is not None
        assert found.cost == needed
        assert not check(problem, schedule_of(shapes, columns.listed, found))
        assert solve(problem, time_limit=None).cost == needed


@pytest.mark.parametrize("ended", [True, False])
def test_cp_sat_is_asked_where_scip_came_to_no_end(
    ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it finds then is told."""
    problem = random_mix(4, most=4)
    monkeypatch.setattr(MixProgram, "search", lambda *_, **__: (None, Hint(None, ended)))
    closing = Closing(searched(problem), unlimited(problem))
    assert len(list(closing.look(None, "test"))) == (not ended)


def test_tidying_leaves_every_job_served() -> None:
    problem = random_mix(5, most=5, max_jobs=None)
    columns = Columns(problem)
    columns.add_alone()
    search = searched(problem)
    counts = dict.fromkeys(range(len(search.columns)), 3)
    listed = search.columns.listed
    kept = tidied(search.columns, counts)
    served = dict.fromkeys(search.columns.jobs, Fraction(0))
    for number, count in kept.items():
        for job, share in listed[number].shares:
            served[job] += count * share
    assert all(part >= 1 for part in served.values())
    before = sum(count * len(listed[n].shares) for n, count in counts.items())
    assert sum(count * len(listed[n].shares) for n, count in kept.items()) < before
