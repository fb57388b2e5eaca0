"""Growth: how much all demands may grow together on the machines of a schedule."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    Proof,
    check,
    growth,
    solve,
)
from cms.shortages.growth import with_schedule
from cms.shortages.variants import PARTS, at_share
from tests.oracle import optimum
from tests.property.problems import problems, share
from tests.samples import few


def one(demand: Any, supply: Any = 1, blocks: int = 4) -> Problem:
    return Problem(
        configurations=Configuration({"b": blocks}, "m"),
        jobs=[Job("x", demand, {"b": supply})],
        machine_types=[MachineType("m")],
    )


@pytest.mark.parametrize("demand", [0, "1/3", 1, 4])
@pytest.mark.parametrize("certified", few(1, [True, False]))
def test_growth_ends_where_the_machines_do(demand: Any, certified: bool) -> None:
    problem = one(demand)
    solution = solve(problem)
    certificate = solution.certificate if certified else None
    grown = growth(problem, solution.schedule, certificate=certificate)
    if demand == 0:
        assert (grown.share, grown.sentence()) == (None, "")
    else:
        most = 4 / Fraction(demand)
        assert grown.share == most * PARTS // 1 / PARTS
        assert grown.proof is Proof.CHECKED


def test_a_spread_schedule_is_a_solution_of_its_own_right() -> None:
    problem = Problem(
        configurations=Configuration({"b": 10}),
        jobs=[Job("x", 2, {"b": 1}), Job("y", 3, {"b": 1})],
    )
    solution = solve(problem)
    grown = growth(problem, solution.schedule, certificate=solution.certificate)
    spread = with_schedule(problem, solution, grown.schedule)
    assert spread.schedule == grown.schedule
    assert (spread.status, spread.proof, spread.method) == ("optimal", "checked", solution.method)
    assert spread.certificate == solution.certificate
    assert not check(problem, spread.schedule)
    # a schedule that does not hold is refused by the driver, as any other start
    bad = with_schedule(problem, solution, solution.schedule)
    assert bad.cost == solution.cost


@share(5)
@given(problems(), st.booleans())
def test_growth_is_the_largest_thousandth_that_the_machines_meet(
    problem: Problem, certified: bool
) -> None:
    solution = solve(problem, time_limit=None)
    if solution.cost is None:
        return
    certificate = solution.certificate if certified else None
    grown = growth(problem, solution.schedule, certificate=certificate, time_limit=None)
    if grown.share is None:
        assert not problem.rows.wants.any()
        return
    assert grown.share >= 1
    types = [MachineType(m.name, m.cost, grown.machines[m.name]) for m in problem.machine_types]
    there = problem.replace(machine_types=types)
    parts = int(grown.share * PARTS)
    assert not check(at_share(there, parts), grown.schedule)
    if grown.proof is Proof.CHECKED:
        assert optimum(at_share(there, parts + 1)) is None
