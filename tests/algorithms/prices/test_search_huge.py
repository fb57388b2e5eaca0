"""Prices and mixtures of demands beyond what floating-point numbers tell apart."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.prices.fraction import fractional
from bench.peers import PEERS, CompactProgram
from cms import Configuration, Job, Problem, check, solve
from instances.families import generate
from tests.algorithms.branch_and_price.parts import (
    bought,
    certified,
    cost,
    held,
    searched,
    single,
)
from tests.samples import few


@pytest.mark.parametrize("exponent", [9, 12, 15, 18, 25])
def test_the_prices_of_a_huge_demand_are_exact(exponent: int) -> None:
    """A machine gives 14 of the demand, and any number of machines can be used up."""
    search = searched(single({"a": 2, "b": 1}, 10**exponent, {"a": "6.5", "b": 1}))
    assert search.best is not None
    assert search.best.vector.prices == (Fraction(13, 28), Fraction(1, 14))
    assert search.best.bound == Fraction(10**exponent, 14)


@pytest.mark.parametrize("exponent", [9, 12, 15])
def test_the_mixture_of_huge_demands_is_right_to_the_block(exponent: int) -> None:
    shapes = [Configuration({"a": 2, "b": 1}), Configuration({"b": 3}), Configuration({"c": 7})]
    jobs = [
        Job("x", 10**exponent, {"a": "6.5", "b": 1}),
        Job("y", 10**exponent + 7, {"a": 3, "b": 2, "c": 1}),
        Job("z", 3 * 10 ** (exponent - 1) + 1, {"a": 1, "b": 1, "c": 1}),
    ]
    search = searched(Problem(configurations=shapes, jobs=jobs))
    mixture = fractional(search)
    assert search.best is not None
    pairs = zip(bought(search, mixture), held(mixture, 3), strict=True)
    short = [
        have - need
        for (need, have), price in zip(pairs, search.best.vector.prices, strict=True)
        if price > 0
    ]
    assert short == [0] * len(short)
    assert abs(cost(search, mixture) - search.best.bound) <= Fraction(1, 20)


@pytest.mark.parametrize(
    "case", few(3, [(1, 2), (5, 6), (30, 1), (1, 0), (2, 0), (10, 3), (10, 11)])
)
def test_huge_and_small_demands_together_are_priced_to_the_machine(case: tuple[int, int]) -> None:
    """Demands of 10^3 to 10^12 blocks; LP_agg by HiGHS, which is below LP_DW, is nearly all."""
    n, seed = case
    problem = generate("huge-demands", n=n, seed=seed)
    peer = PEERS["highs_lp_simplex"]
    peer.load()
    program = CompactProgram.of(problem)
    answer = peer.solve(peer.prepare(program), 30.0, 0)
    assert answer.bound is not None
    search = searched(problem)
    assert search.best is not None
    assert float(search.best.bound) >= answer.bound * (1 - 1e-9)
    mixture = fractional(search)
    assert abs(cost(search, mixture) - search.best.bound) <= 1


def test_short_and_long_rows_price_alike() -> None:
    problem = Problem(
        configurations=[Configuration({"a": 3, "b": 1})],
        jobs=[
            Job("long", Fraction(10**30 + 1, 3), {"a": 10**29, "b": Fraction(10**30, 7)}),
            Job("short", 11, {"a": 2, "b": 3}),
        ],
    )
    search = searched(problem)
    assert certified(search, problem) == (search.best.bound if search.best else None)
    solution = solve(problem, "price_and_branch", time_limit=None)
    assert solution.status == "optimal"
    assert check(problem, solution.schedule) == ()
