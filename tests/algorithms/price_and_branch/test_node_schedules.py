"""Schedules near a fleet that branches lead to, and the options that are looked at there."""

from __future__ import annotations

from fractions import Fraction

from algorithms.closing.near import NearOptions
from algorithms.price_and_branch.node_schedules import NodeSchedules
from cms.knapsack.pricing import cheapest_option, common_denominator
from instances.families import generate
from tests.algorithms.price_and_branch.parts import Unlimited, searched


def test_where_a_fleet_is_more_than_enough_the_prices_of_the_root_choose_options() -> None:
    search = searched(generate("mixed-fleet", n=40, seed=1))
    jobs, root = search.jobs, search.best
    assert root is not None
    schedules = NodeSchedules(jobs, Unlimited())
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
    schedules = NodeSchedules(search.jobs, Unlimited())
    schedules.root = search.best
    leaning = schedules._leaning(search.best).vector.prices
    pairs = zip(leaning, search.best.vector.prices, strict=True)
    assert all(price == own * Fraction(65, 64) for price, own in pairs)
