"""The theory's instances: every number that is known of one is computed again, another way.

The linear programs are solved in floats by scipy and compared within 1e-6; the optima of the huge
instances, which floats cannot hold, are shown by a schedule and a certificate in exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from cms import BlockPrices, check
from cms.schedule.schedule import Schedule
from instances import hard, small
from tests.references.named import EVERY, HUGE
from tests.references.programs import Arrays, compact, integer_program, lp_dw, lp_star

ORDINARY = sorted(EVERY.keys() - HUGE)


@pytest.mark.parametrize("name", ORDINARY)
def test_the_integer_program_has_the_known_optimum(name: str) -> None:
    assert integer_program(EVERY[name].make()) == EVERY[name].optimum


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


def test_the_huge_demand_is_met_by_groups_and_proved_by_a_price() -> None:
    one = small.HUGE_DEMAND
    problem = one.make()
    each = -(-(10**13) // 9)
    assert one.optimum == 5 * each
    shape = problem.listed_configurations[0]
    given = {("b", job): each for job in problem.job_names}
    schedule = Schedule.from_counts(problem, {shape: 5 * each}, given)
    assert not check(problem, schedule)
    assert BlockPrices({"b": 1}).bound(problem) == one.optimum


def test_the_huge_fleet_is_met_by_groups_and_proved_by_prices() -> None:
    one = small.HUGE_FLEET
    problem = one.make()
    whole, sevenths = 10**12 // 800, -(-(10**12) // 60)
    shapes = {str(shape): shape for shape in problem.listed_configurations}
    schedule = Schedule.from_counts(
        problem,
        {shapes["7g"]: whole, shapes["7 x 1g"]: sevenths // 7},
        {("7g", "whole"): whole, ("1g", "sevenths"): sevenths},
    )
    assert not check(problem, schedule)
    assert schedule.machine_count == one.optimum
    prices = {f"{size}g": Fraction(size, 7) for size in (1, 3, 4, 7)}
    assert BlockPrices(prices).bound(problem) == one.optimum
