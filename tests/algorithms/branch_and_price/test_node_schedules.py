"""Schedules near a fleet that branches lead to, and the options that are looked at there."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from algorithms.branch_and_price.node_schedules import NodeSchedules
from algorithms.branch_and_price.options import NearOptions
from algorithms.branch_and_price.run import _Run
from algorithms.branch_and_price.shapes import Shapes
from algorithms.branch_and_price.undecided import Undecided
from algorithms.prices.fraction import fractional
from algorithms.prices.sharded_jobs import listed
from cms import Claim, check
from cms.knapsack.pricing import cheapest_option, common_denominator
from cms.plugin.algorithm import Named
from cms.reduction.reduction import reduce
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Unlimited, searched


def test_where_a_fleet_is_more_than_enough_the_prices_of_the_root_choose_options() -> None:
    search = searched(generate("mixed-fleet", n=40, seed=1))
    jobs, root = search.jobs, search.best
    assert root is not None
    schedules = NodeSchedules(listed(jobs), Unlimited())
    vector = root.vector._replace(prices=(Fraction(0),) * len(root.vector.prices))
    nothing = root._replace(vector=vector)
    assert schedules._leaning(nothing) is nothing  # there is no root yet
    schedules.root = root
    prices, _ = common_denominator(root.vector.prices)
    near = NearOptions(jobs, schedules._leaning(nothing))
    for kind in range(len(jobs)):
        row = jobs.row(kind)
        best = cheapest_option(prices, row.supply, row.demand)
        assert best is not None
        first, *_ = near.some(kind, Fraction(1), 5)
        assert sum(p * n for p, n in zip(prices, first, strict=True)) == best.value


def test_a_nodes_own_prices_lead() -> None:
    search = searched(generate("mixed-fleet", n=10, seed=2))
    assert search.best is not None
    schedules = NodeSchedules(listed(search.jobs), Unlimited())
    schedules.root = search.best
    leaning = schedules._leaning(search.best).vector.prices
    pairs = zip(leaning, search.best.vector.prices, strict=True)
    assert all(price == own * Fraction(65, 64) for price, own in pairs)


def test_jobs_choose_until_they_fit_a_fleet_that_has_little_to_spare() -> None:
    problem = generate("size-bounded-mixed", n=12, seed=3, m=5, mig_cost="9/10")
    fleet = {0: 3, 1: 8}
    search = searched(problem)
    schedules, costs = NodeSchedules(listed(search.jobs), Unlimited()), search.region.costs
    worth = sum((number * costs[m] for m, number in fleet.items()), Fraction(0))
    assert search.best is not None
    assert search.best.bound < worth < search.best.bound + Fraction(11, 10)
    found = schedules.of_fleet(search, fleet, worth + 1)
    assert found is not None
    assert not check(problem, found)
    names = search.region.names
    used = dict.fromkeys(names, 0)
    for group in found.groups:
        used[group.configuration.machine or ""] += group.count
    assert all(used[names[m]] <= number for m, number in fleet.items())
    assert schedules.of_fleet(search, fleet, worth) is None  # it would cost no less
    assert schedules.of_fleet(search, {m: n // 2 for m, n in fleet.items()}, None) is None


def test_after_a_first_dive_for_a_fleet_some_jobs_keep_what_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = searched(generate("size-bounded-mixed", n=30, seed=3, m=5, mig_cost="9/10"))
    starts: list[Undecided] = []
    monkeypatch.setattr(NodeSchedules, "_last", lambda _, __, start, *___: starts.append(start))
    assert (
        NodeSchedules(listed(search.jobs), Unlimited()).of_fleet(search, {0: 2, 1: 2}, None) is None
    )
    first, *later = starts
    assert not first.decided
    assert later
    assert all(start.decided for start in later)
    for start in starts:
        assert {kind for kind, _ in start.decided} | {*start.open} == {*range(len(search.jobs))}


@pytest.mark.parametrize("until", [1, 2, 3])
def test_where_costs_are_fine_branching_follows_the_first_schedule(
    until: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = generate("mixed-fleet", n=600, seed=1, types=3, cost_step="1/2")
    search = searched(problem, refined=False)
    mixture, point = fractional(search), search.best
    assert point is not None
    done: list[str] = []

    class Run(_Run):
        """A run whose programs are only written down; so many of them leave it no schedule."""

        @property
        def _cost(self) -> Fraction | None:
            return Fraction(10**6) if done.count("programs") >= until else None

        def _climb(self, *_: Any) -> Iterator[Claim]:
            done.append("programs")
            yield from ()

        def _wide(self, *_: Any) -> Iterator[Claim]:
            done.append("all kinds")
            yield from ()

        def _tree(self, *_: Any, **__: Any) -> Iterator[Claim]:
            done.append("branching")
            yield from ()

    run = Run(reduce(problem), search.jobs, Unlimited())
    shapes = Shapes(search.jobs.problem, search.region.rows)
    monkeypatch.setattr(Run, "_exact_task", lambda *_: None)
    claims = [*run._close(search, shapes, point, mixture, None)]
    assert all(isinstance(each, Named) and each.part.startswith("greedy: ") for each in claims)
    assert done[: until + 3] == [*["programs"] * until, "all kinds", "branching", "programs"]
