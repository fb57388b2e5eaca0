"""Greedy as a whole: traps, guarantees, huge numbers, the compiled loop, conformance."""

from __future__ import annotations

import random
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
    UnsupportedProblem,
    check,
    solve,
)
from cms.errors import InvalidOption
from cms.plugin.guarantee import Verdict
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


@pytest.mark.parametrize("exponent", [9, 12, 40])
def test_huge_demands_take_few_steps(exponent: int) -> None:
    problem = Problem(
        configurations=[Configuration({"a": 3, "b": 1}), Configuration({"b": 2})],
        jobs=[Job("x", 7 * 10**exponent, {"a": 3, "b": 5}), Job("y", 10**exponent + 1, {"b": 2})],
    )
    for variant in ("units", "inflated", "best"):
        solution = solve(problem, "greedy", options={"variant": variant})
        assert check(problem, solution.schedule) == ()
        assert solution.cost is not None
        assert solution.guarantee is not None
        assert solution.guarantee.verdict is not Verdict.BREACHED


def test_a_unit_of_one_job_does_not_outweigh_another_job() -> None:
    # Scaling a job changes nothing where every job's demand counts as 1 (theory 9.4).
    rng = random.Random(3)
    for _ in range(10):
        rows = [(rng.randint(3, 30), [rng.randint(0, 9), rng.randint(1, 9)]) for _ in range(5)]
        counts = []
        for factor in (1, 1000):
            jobs = [
                Job(
                    f"j{j}",
                    d * (factor if j == 2 else 1),
                    {"a": f * (factor if j == 2 else 1), "b": g * (factor if j == 2 else 1)},
                )
                for j, (d, (f, g)) in enumerate(rows)
            ]
            shapes = [
                Configuration({"a": 2}),
                Configuration({"b": 3}),
                Configuration({"a": 1, "b": 1}),
            ]
            options = {"variant": "inflated", "plain": True, "delta": "1/3"}
            problem = Problem(configurations=shapes, jobs=jobs)
            counts.append(solve(problem, "greedy", options=options).machine_count)
        assert counts[0] == counts[1]


def test_costs_decide_between_machines() -> None:
    jobs = [Job("x", 4, {"a": 1})]
    shapes = [Configuration({"a": 2}, "dear"), Configuration({"a": 1}, "cheap")]
    for cheap, cost in ((2, 6), (1, 4)):
        types = [MachineType("dear", 3), MachineType("cheap", cheap)]
        problem = Problem(configurations=shapes, machine_types=types, jobs=jobs)
        assert solve(problem, "greedy", options=PLAIN).cost == cost
        item = {**PLAIN, "inner": "greedy"}
        assert solve(problem, "greedy", options=item).cost == cost


def test_refusals_say_why() -> None:
    shape = Configuration({"a": 2})
    limited = Problem(configurations=shape, machine_types=[MachineType("machine", limit=1)])
    with pytest.raises(UnsupportedProblem, match="limit of 1 machines"):
        solve(limited, "greedy")
    many = Problem(configurations=Configuration({"a": 20}), jobs=[Job("x", 3, {"a": 1})])
    with pytest.raises(UnsupportedProblem, match="up to 20 blocks"):
        solve(many, "greedy", options={"inner": "exact"})
    wrong: list[tuple[dict[str, object], str]] = [
        ({"variant": "bets"}, "expected one of best, units"),
        ({"inner": "fast"}, "expected one of auto, greedy"),
        ({"delta": 0}, "expected a number > 0"),
        ({"plain": 1}, "expected True or False"),
    ]
    for options, words in wrong:
        with pytest.raises(InvalidOption, match=words):
            solve(Problem(configurations=shape), "greedy", options=options)


def test_nothing_to_do_and_nobody_to_serve() -> None:
    shape = Configuration({"a": 2})
    assert solve(Problem(configurations=shape), "greedy").machine_count == 0
    lost = Problem(configurations=shape, jobs=[Job("x", 1, {})])
    assert solve(lost, "greedy").status == "infeasible"
