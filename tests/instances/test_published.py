"""The published scenarios: their problems, and the optimum and bound that are known of each."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import pytest

from cms import BlockPrices, Proof, Status, check, solve
from instances import published
from instances.load_changes import before_and_after, draw

SCENARIOS = ["S1", "S2", "S3", "S4", "S5", "S6"]
SMALL = (1, 2, 3, 4, 7)
#: Prices of 1g, 2g, 3g, 4g, 7g that prove the bound, and their denominator.
PRICES = {
    **dict.fromkeys(("S1", "S2", "S3", "S4"), (SMALL, 7)),
    "S5": ((2, 4, 7, 8, 15), 15),
    "S6": ((3, 6, 10, 12, 22), 22),
}
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_optimum_is_found_and_the_known_prices_prove_the_known_bound(name: str) -> None:
    scenario = published.scenario(name)
    problem, optimum = scenario.build_problem().problem, scenario.optimum
    numerators, denominator = PRICES[name]
    prices = {p: Fraction(n, denominator) for p, n in zip(PROFILES, numerators, strict=True)}
    bound = BlockPrices(prices).bound(problem)
    assert bound == scenario.bounds["LP_DW"]
    assert -(-bound // 1) == optimum
    solution = solve(problem)
    assert solution.cost == optimum
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert not check(problem, solution.schedule)
    assert solution.certificate.bound(problem) > optimum - 1


def test_a_name_that_is_no_scenario_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'S7'"):
        published.S7  # noqa: B018


def test_loads_that_change_and_days_are_drawn_from_a_seed_for_ever() -> None:
    before, after = before_and_after(200, sigma="0.3", seed=1)
    assert str(before.services[0]) == "bert-S1 (bert): 81.7 requests/s within 6434 ms"
    assert str(after.services[0]) == "bert-S1 (bert): 129.1 requests/s within 6434 ms"
    drawn = draw(services=3, days=1, seed=1)
    assert str(drawn.services[0]) == (
        "densenet169-S2 (densenet169): 1066.6 requests/s within 216.5 ms"
    )
    rates = drawn.rates_rps[drawn.services[0].name]
    assert (len(rates), max(rates)) == (25, drawn.services[0].rate_rps)
    shared = draw(services=4, seed=2, sharing=True)
    assert (
        hashlib.sha256(repr(shared.rates_rps).encode()).hexdigest().startswith("b1e7f14857983fa8")
    )
