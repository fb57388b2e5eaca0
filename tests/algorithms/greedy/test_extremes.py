"""Greedy on numbers of extreme sizes: a schedule, no exception, and the guarantee kept."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.greedy import Greedy, GreedyOptions
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    Reference,
    Solution,
    Status,
    StopReason,
    Verdict,
    check,
    solve,
)
from tests.property.problems import source
from tests.references.guarantees import VARIANTS, exactly, promise

PARTS = [{**options, **plain} for options in VARIANTS["greedy"] for plain in ({}, {"plain": True})]
D = 10**9


def supported(problem: Problem, options: Mapping[str, Any]) -> bool:
    return bool(Greedy().support(problem, GreedyOptions(**options)))


def finished(problem: Problem, options: Mapping[str, Any]) -> Solution:
    """A run to its end, with a schedule."""
    solution = solve(problem, "greedy", options=options, threads=1, time_limit=None)
    assert solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED), source(problem)
    assert solution.cost is not None, source(problem)
    assert check(problem, solution.schedule) == ()
    return solution


def kept(problem: Problem, options: Mapping[str, Any], best: Fraction) -> None:
    """A run within its guarantee; ``best`` is the optimum."""
    cost = finished(problem, options).cost
    promised = promise(problem, "greedy", options)
    assert cost is not None
    if promised is None:
        # Floats do not tell its gains apart: no factor is stated.
        assert max(job.demand for job in problem.jobs) > 10**200
        return
    exact = promised.against is Reference.LP_AGG
    value = exactly(problem, promised.against) if exact else best
    assert value <= best
    assert best <= cost <= promised.allows(value), (promised, source(problem))


# --- any numbers ----------------------------------------------------------------------------------


@st.composite
def extremes(draw: st.DrawFn) -> Problem:
    """Costs a million times as large or small, ten million blocks, demands a hair off."""
    blocks = ["a", "b", "c"][: draw(st.integers(1, 3))]
    costs = st.builds(
        lambda base, power: base * Fraction(10) ** power,
        st.integers(0, 5),
        st.sampled_from([-6, 0, 0, 6]),
    )
    types = [MachineType(f"m{i}", draw(costs)) for i in range(draw(st.integers(1, 3)))]
    counts = st.sampled_from([0, 1, 1, 2, 3, 10**7])
    shapes = []
    for _ in range(draw(st.integers(1, 3))):
        held = {block: draw(counts) for block in blocks}
        if any(held.values()):
            shapes.append(Configuration(held, draw(st.sampled_from(types)).name))
    shapes += [Configuration(dict.fromkeys(blocks, 1), types[0].name)]
    unit = draw(st.sampled_from([1, 10**6, D, 10**12]))
    off = st.integers(-1, 1)
    jobs = []
    for j in range(draw(st.integers(1, 4))):
        demand = unit * draw(st.integers(1, 4)) + draw(off)
        table = {b: max(0, unit * draw(st.integers(0, 3)) + draw(off)) for b in blocks}
        if not any(table.values()):
            table[blocks[0]] = demand
        jobs.append(Job(f"j{j}", demand, table))
    return Problem(configurations=list(dict.fromkeys(shapes)), machine_types=types, jobs=jobs)


@given(st.sampled_from(PARTS), extremes())
def test_the_guarantee_is_kept_on_extreme_numbers(
    options: Mapping[str, Any], problem: Problem
) -> None:
    exact = solve(problem, "price_and_branch", threads=1, time_limit=None)
    if exact.status is not Status.OPTIMAL:
        return
    assert exact.cost is not None
    if supported(problem, options):
        kept(problem, options, exact.cost)
    else:
        assert options.get("inner") == "exact"  # exponential in the blocks


# --- named numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["units", "inflated", "alone"])
@pytest.mark.parametrize("exponent", [450, 520, 600])
def test_no_factor_is_stated_where_floats_do_not_tell_gains_apart(
    exponent: int, variant: str
) -> None:
    types = [MachineType("A", 1), MachineType("B", 1), MachineType("C", 10**60)]
    shapes = [Configuration({"a": 1}, "A"), Configuration({"b": 1}, "B")]
    shapes.append(Configuration({"a": 1, "b": 1, "c": 1}, "C"))
    jobs = [Job("x", 10**exponent + 1, {"a": 1000, "b": 1, "c": 1000}), Job("y", 3, {"a": 2})]
    problem = Problem(configurations=shapes, machine_types=types, jobs=jobs)
    options = {"variant": variant, "plain": True}
    finished(problem, options)
    assert promise(problem, "greedy", options) is None


@pytest.mark.parametrize("method", ["greedy", "lp_rounding"])
def test_a_block_of_little_price_by_the_million_counts_in_the_bound(method: str) -> None:
    many = 10**12
    problem = Problem(
        configurations=[Configuration({"a": many, "b": 1}), Configuration({"b": many + 7})],
        jobs=[
            Job("x", 1000 * many + 3, {"a": 7, "b": 3}),
            Job("y", 5, {"b": 3}),
            Job("z", 10**9, {"b": 1, "a": 2}),
        ],
    )
    solution = solve(problem, method)
    assert solution.lower_bound == solution.cost == 143
    assert solution.guarantee is None or solution.guarantee.verdict is Verdict.VERIFIED
