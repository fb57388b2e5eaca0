"""Prices and mixtures of demands beyond what floating-point numbers tell apart."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.prices.search import fractional
from bench.peers import PEERS, CompactProgram
from instances.families import generate
from tests.algorithms.branch_and_price.parts import cost, searched, single
from tests.samples import few


@pytest.mark.parametrize("exponent", [9, 12, 15, 18, 25])
def test_the_prices_of_a_huge_demand_are_exact(exponent: int) -> None:
    """A machine gives 14 of the demand, and any number of machines can be used up."""
    search = searched(single({"a": 2, "b": 1}, 10**exponent, {"a": "6.5", "b": 1}))
    assert search.best is not None
    assert search.best.vector.prices == (Fraction(13, 28), Fraction(1, 14))
    assert search.best.bound == Fraction(10**exponent, 14)


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
