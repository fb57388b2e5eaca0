"""Growth: how much all demands may grow together on the machines of a schedule."""

from __future__ import annotations

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
from cms.shortages.shortage import with_schedule
from cms.shortages.variants import PARTS, at_share
from tests.oracle import optimum
from tests.property.problems import problems, share


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
