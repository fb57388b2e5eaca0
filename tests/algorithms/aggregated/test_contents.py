"""The aggregated program of sets too large to be listed: contents join by their prices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

from algorithms.aggregated.program import Aggregated, solved
from algorithms.tables import integers
from algorithms.tables.integers import Tables
from cms import Job, MachineType, Problem, SizeBoundedConfigurations, Verdict, check, solve
from cms.reduction.reduction import reduce
from tests.property.problems import size_bounded, source
from tests.samples import few


def vast(jobs: int, *, cost: int = 1, unit: int = 1) -> Problem:
    """Blocks by size, some millions of maximal contents; no block that smaller ones replace."""
    sizes = {f"t{i}": 100 + 7 * i for i in range(30)}
    table = [
        {b: s * s // 2500 + (i + j) % 5 for i, (b, s) in enumerate(sizes.items())}
        for j in range(jobs)
    ]
    return Problem(
        configurations=SizeBoundedConfigurations(sizes, 1000),
        machine_types=[MachineType("machine", cost)],
        jobs=[Job(f"j{j}", unit * (11 + 3 * j), row) for j, row in enumerate(table)],
    )


@given(size_bounded(machine="m", beside=True))
def test_the_program_is_that_over_all_contents(problem: Problem) -> None:
    small = reduce(problem).problem
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(integers, "MOST_SHAPES", 100_000)
        every = Tables.of(small)
        patched.setattr(integers, "MOST_SHAPES", 0)
        some = Tables.of(small)
    if every.unservable or not every.n:
        return
    assert bool(some.vast) == bool(small.size_bounded_configurations)
    assert not every.vast
    listed, found = Aggregated(every).solve(None), solved(some, None)
    assert listed is not None
    assert found is not None
    tables, vertex = found
    assert vertex.value == listed.value, source(problem)
    assert sum(map(bool, vertex.machines)) <= some.p
    # No machine is worth more than it costs.
    for row, cost in zip(every.counts, every.costs, strict=True):
        assert sum(map(Fraction.__mul__, vertex.prices, map(Fraction, row))) <= cost
    assert len(set(tables.shapes)) == tables.c


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("lp_rounding", {}),
        ("lp_rounding", {"plain": True}),
        ("lp_rounding", {"variant": "doubling"}),
        ("greedy", {}),
        ("greedy", {"plain": True}),
    ],
    ids=str,
)
@pytest.mark.parametrize("cost", few(1, [1, 0]))
def test_sets_too_large_to_be_listed_are_solved(
    method: str, options: dict[str, Any], cost: int
) -> None:
    problem = vast(12, cost=cost)
    solution = solve(problem, method, options=options, threads=1)
    assert solution.cost is not None
    assert check(problem, solution.schedule) == ()
    assert solution.guarantee is not None
    assert solution.guarantee.verdict is Verdict.VERIFIED
    # The strongest statement, and one against the whole machines where these cost nothing.
    stated = "T-2", "T-add" if cost else "Theorem A"
    assert solution.guarantee.guarantee.theorem.startswith(stated)
