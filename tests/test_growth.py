"""Growth: how much all demands may grow together on the machines of a schedule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cms import (
    BlockPrices,
    Job,
    MachineType,
    Problem,
    Proof,
    SizeBoundedConfigurations,
    check,
    find_growth,
    solve,
)  # fmt: skip
from cms.infeasibility.variants import PARTS, at_share
from tests.oracle import optimum
from tests.property.problems import problems, share


@share(5)
@given(problems(), st.booleans())
def test_growth_is_the_largest_thousandth_that_the_machines_meet(
    problem: Problem, certified: bool
) -> None:
    solution = solve(problem, time_limit=None)
    if solution.cost is None:
        return
    certificate = solution.certificate if certified else None
    grown = find_growth(problem, solution.schedule, certificate=certificate, time_limit=None)
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


def test_proper_counts_too_few_for_larger_demands_are_no_obstacle() -> None:
    shares = SizeBoundedConfigurations({"a": 1, "b": 3}, capacity=7)
    problem = Problem(configurations=shares, jobs=[Job("x", 2, {"a": 1}), Job("y", 2, {"b": 1})])
    known = BlockPrices({"a": "1/7", "b": "3/7"}, proper={"a": 2, "b": 2})
    assert find_growth(problem, solve(problem).schedule, certificate=known).share == 1.5
