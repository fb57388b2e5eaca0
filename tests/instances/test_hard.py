"""The theory's instances and the published scenarios: what is known of each, computed anew."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from cms import BlockPrices, Proof, Status, check, solve
from cms.certificate.certificate import round_up
from instances import hard, published, small
from instances.load_changes import before_and_after, draw
from tests.oracle import optimum
from tests.references.guarantees import METHODS, examine
from tests.references.programs import Arrays, compact, integer_program, lp_dw, lp_star
from tests.samples import in_turn

EVERY = hard.PROBLEMS | small.PROBLEMS
#: Those whose numbers floats cannot hold.
HUGE = {small.HUGE_DEMAND.name, small.HUGE_FLEET.name}
ORDINARY = sorted(EVERY.keys() - HUGE)
#: For enumeration.
SLOW = ("set-cover-f2-4", "harmonic-trap-4")


@pytest.mark.parametrize("name", ORDINARY)
def test_the_integer_program_and_enumeration_have_the_known_optimum(name: str) -> None:
    problem, known = EVERY[name].make(), EVERY[name].optimum
    assert integer_program(problem) == known
    assert name in SLOW or optimum(problem) == known


@pytest.mark.parametrize("name", sorted(n for n in ORDINARY if EVERY[n].bounds))
def test_the_lower_bounds_have_the_known_values(name: str) -> None:
    problem, known = EVERY[name].make(), EVERY[name].bounds
    arrays = Arrays(problem)
    found = {"LP_AGG": compact(arrays, arrays.truncated, (False, False))}
    if "MILP_C" in known:
        found["MILP_C"] = compact(arrays, arrays.truncated, (True, False))
    if "LP_STAR" in known and arrays.n * arrays.k * arrays.c < 5000:
        found["LP_STAR"] = lp_star(arrays)
    if "LP_DW" in known:
        found["LP_DW"] = lp_dw(problem)
    assert found == {b: pytest.approx(float(known[b]), abs=1e-6) for b in found}
    assert max(known.values()) <= (EVERY[name].optimum or 0)


def test_the_bound_without_truncation_is_a_tenth() -> None:
    arrays = Arrays(hard.NO_TRUNCATION_GAP.make())
    assert compact(arrays, arrays.supply, (False, False)) == pytest.approx(0.1)


@pytest.mark.parametrize("name", sorted(HUGE))
@pytest.mark.parametrize("method", ["auto", "greedy", "lp_rounding", "ptas"])
def test_the_huge_instances_are_met_by_a_handful_of_groups(method: str, name: str) -> None:
    one = EVERY[name]
    problem = one.make()
    solution = solve(problem, method, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert len(solution.schedule.groups) <= 100
    assert solution.cost is not None
    assert one.optimum is not None
    assert solution.cost >= one.optimum > 10**9
    if method == "auto":
        assert round_up(solution.certificate.bound(problem), problem.cost_step) == solution.cost


Options = Mapping[str, Any]

PLAIN: Options = {"plain": True}
GREEDY: Options = {"plain": True, "variant": "units", "inner": "exact"}
ROUNDING = ("milp", "published", "supports", "enumeration", "doubling")
ROUTES = ("auto", "points", "cells")


@pytest.mark.parametrize(("method", "name"), in_turn(3, METHODS, sorted(EVERY)))
def test_every_instance_ends_between_its_optimum_and_the_guarantee(method: str, name: str) -> None:
    one = EVERY[name]
    examine(one.make(), one.optimum, method, {})


EXACT = {"epsilon": "1/10"}
KNOWN: list[tuple[str, str, Options, int]] = [
    *((f"greedy-trap-{h}", "greedy", GREEDY, h) for h in (3, 4)),
    *((f"harmonic-trap-{q}", "greedy", GREEDY, n) for q, n in ((2, 4), (3, 8), (4, 13))),
    # the best pair first fills a machine half as well as is possible
    ("half-trap", "greedy", {**GREEDY, "inner": "greedy"}, 3),
    ("half-trap", "greedy", GREEDY, 2),
    # the theorem's factor 2 is reached exactly
    ("needless-doubling", "lp_rounding", PLAIN, 2),
    ("needless-doubling", "lp_rounding", {}, 1),
    # the optimum itself is twice MILP_c: no rounding of that program can promise less than 2
    ("partition-no", "lp_rounding", PLAIN, 2),
    ("partition-no", "lp_rounding", {}, 2),
    # a partition that exists is found after the rounding, not by it
    ("partition-yes", "lp_rounding", PLAIN, 2),
    ("partition-yes", "lp_rounding", {}, 1),
    # T-2 buys one of each; what counts whole machines, or supports, buys the one for all twice
    *(("decoys", "lp_rounding", {"variant": v, **PLAIN}, 2) for v in ROUNDING if v != "doubling"),
    ("decoys", "lp_rounding", {"variant": "doubling", **PLAIN}, 4),
    # the switch to the exact regime closes the gap of the bound
    *(("aggregated-lp-gap", "ptas", options, 4) for options in ({"epsilon": "1"}, EXACT)),
    *((name, "ptas", EXACT, n) for name, n in (("ceil-gap", 10), ("partition-no", 2))),
    *((name, "ptas", EXACT, 3) for name in ("non-irup", "explicit-list-yes")),
    # conic is exact where corners alone, or prices alone, are not
    ("non-irup", "conic", {"route": "points", **PLAIN}, 3),
    ("bin-packing", "conic", {"route": "points"}, 5),
    *(("slots-needed", "conic", {"route": route, **PLAIN}, 1) for route in ROUTES),
    ("explicit-list-no", "conic", {}, 4),
]


@pytest.mark.parametrize(("name", "method", "options", "machines"), KNOWN)
def test_a_method_takes_as_many_machines_as_the_theory_says(
    name: str, method: str, options: Options, machines: int
) -> None:
    one = EVERY[name]
    solution = examine(one.make(), one.optimum, method, options)
    assert solution is not None
    assert solution.machine_count == machines


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
