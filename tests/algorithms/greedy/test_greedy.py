"""Greedy as a whole: traps, guarantees, huge numbers, the compiled loop, conformance."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.greedy import opening
from algorithms.greedy.opening import Opening
from algorithms.tables.integers import Tables
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    solve,
)
from cms.reduction.reduction import reduce
from instances.families import generate

PLAIN = {"variant": "units", "inner": "exact", "plain": True}


def test_the_compiled_loop_does_what_the_plain_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = reduce(generate("real-rows", n=400, seed=2, m=5)).problem
    tables = Tables.of(problem)
    plain = Opening(tables, "greedy", "demands", Fraction(1, 7)).finish()
    monkeypatch.setattr(opening, "_COMPILED_JOBS", 1)
    found = Opening(tables, "greedy", "demands", Fraction(1, 7)).finish()
    assert plain is not None
    assert found is not None
    assert found[0] == plain[0]
    assert (found[1] == plain[1]).all()


def test_costs_decide_between_machines() -> None:
    jobs = [Job("x", 4, {"a": 1})]
    shapes = [Configuration({"a": 2}, "dear"), Configuration({"a": 1}, "cheap")]
    for cheap, cost in ((2, 6), (1, 4)):
        types = [MachineType("dear", 3), MachineType("cheap", cheap)]
        problem = Problem(configurations=shapes, machine_types=types, jobs=jobs)
        assert solve(problem, "greedy", options=PLAIN).cost == cost
        item = {**PLAIN, "inner": "greedy"}
        assert solve(problem, "greedy", options=item).cost == cost
