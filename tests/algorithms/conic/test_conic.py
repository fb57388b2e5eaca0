"""Conic and the PTAS: corners, contents and both exact parts against enumeration."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

import algorithms.ptas
import algorithms.ptas.few_machines
import cms
from algorithms.conic import Conic, ConicOptions
from algorithms.ptas.few_machines import CompactProgram, DynamicProgram, Fleet
from cms import (
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    Solution,
    UnsupportedProblem,
    check,
    presolve,
    solve,
)
from instances import hard
from tests.algorithms.branch_and_price.parts import Counting, Unlimited, cases
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.references.programs import integer_program
from tests.samples import few, no_round_up, so_many, spread


def solved(problem: Problem, **options: Any) -> Solution:
    return solve(problem, "conic", options=options, time_limit=None, threads=1)


def of(
    sizes: Mapping[str, Any],
    capacity: Any,
    jobs: Mapping[str, tuple[Any, Mapping[str, Any]]],
    max_blocks: int | None = None,
    machine: MachineType | None = None,
) -> Problem:
    """A problem on one size-bounded set."""
    return Problem(
        configurations=SizeBoundedConfigurations(sizes, capacity, max_blocks=max_blocks),
        jobs=[Job(name, demand, supply) for name, (demand, supply) in jobs.items()],
        machine_types=[machine or MachineType("machine")],
    )


def random_problem(number: int) -> Problem:
    """A tiny problem of one machine type: a set, a list or both, with a limit now and then."""
    family = ("size_bounded", "max_blocks", "random_configurations")[number % 3]
    limit = (None, None, None, 2, 4)[number % 5]
    types = [MachineType("machine", Fraction(2 + number % 2, 2), limit)]
    return instance(family, number).replace(machine_types=types)


WAYS: list[dict[str, Any]] = [
    {"route": route, **plain} for route in ("points", "cells") for plain in ({}, {"plain": True})
]


def costs(problem: Problem) -> dict[str, Fraction | None]:
    """What every route that takes a problem finds; all but plain ones prove it."""
    found = {}
    for way in WAYS:
        if not Conic().support(problem, ConicOptions(**way)):
            assert way["route"] == "cells"
            continue
        solution = solved(problem, **way)
        found[str(way)] = solution.cost
        proved = solution.status in ("optimal", "infeasible")
        assert proved or "plain" in way, (way, solution.status)
    return found


@pytest.mark.parametrize("tens", few(3, range(50)))
def test_it_finds_the_optimum_of_tiny_problems_by_every_route(tens: int) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        problem = random_problem(number)
        found = costs(problem)
        assert len(found) >= 2
        assert set(found.values()) == {optimum(problem)}, (number, found)


def test_a_machine_more_than_the_bound_among_hundreds_of_millions() -> None:
    """132 times the demands of the theory's instance are 259 full machines; once, they need 3."""
    few, many = (
        hard.packing((44, 33, 12), 132, (2 * n, 3 * n, 6 * n)) for n in (133, 132 * 10**6 + 1)
    )
    assert solved(few).cost == integer_program(few) == 259 + 3
    solution = solved(many)
    assert (solution.cost, solution.status) == (259 * 10**6 + 3, "optimal")
    assert solution.lower_bound == 259 * 10**6 + 2


@pytest.mark.parametrize("seed", few(3, range(30)))
def test_it_finds_the_optimum_where_machines_hold_dozens_of_blocks(seed: int) -> None:
    rng = random.Random(f"dozens {seed}")
    k = rng.choice([2, 2, 3])
    blocks = [f"b{i}" for i in range(k)]
    jobs = {
        f"j{j}": (rng.randint(50, 400), {block: rng.randint(1, 9) for block in blocks})
        for j in range(rng.randint(1, 4))
    }
    problem = of({block: rng.randint(5, 12) for block in blocks}, rng.randint(70, 90), jobs)
    assert set(costs(problem).values()) == {integer_program(problem)}


@pytest.mark.parametrize(
    ("sizes", "capacity", "jobs"),
    [
        ((4, 7), 1_000_003, [(10**9 + 7, 3, 5), (3 * 10**9 + 1, 2, 7)]),
        ((10_007, 7_919), 10**7 + 19, [(5 * 10**9, 13, 9), (10**9 + 33, 1, 0), (10**10, 0, 3)]),
        ((353_017, 248_651), 1_000_003, [(10**9 + 1, 3, 2), (10**9 + 1, 0, 1)]),
    ],
)
def test_a_large_machine_and_demands_of_billions_end_proved(
    sizes: tuple[int, int], capacity: int, jobs: list[tuple[int, int, int]]
) -> None:
    rows = {f"j{at}": (demand, {"a": a, "b": b}) for at, (demand, a, b) in enumerate(jobs)}
    problem = of(dict(zip("ab", sizes, strict=True)), capacity, rows)
    solution, other = solved(problem), solve(problem, time_limit=None)
    assert solution.status == "optimal"
    assert cms.check(problem, solution.schedule) == ()
    assert other.cost is not None
    assert solution.cost == other.cost > 1_000


@pytest.mark.parametrize(
    ("limit", "status", "proof"),
    [(4, "infeasible", "checked"), (5, "infeasible", "solver"), (6, "optimal", "solver")],
)
def test_a_limit_is_kept_or_proved_too_low(limit: int, status: str, proof: str) -> None:
    types = [MachineType("machine", limit=limit)]
    solution = solved(no_round_up().replace(machine_types=types))
    assert (solution.status, solution.proof) == (status, proof)


EXACT_PARTS = (DynamicProgram, CompactProgram)


def searched(way: Any, problem: Problem, lowest: Any, highest: Any) -> list[Fraction]:
    """The costs of what a way finds between two costs; every schedule is checked."""
    reduction = presolve(problem)
    fleet = Fleet(reduction.problem)
    *found, last = way(fleet, Fraction(lowest), Fraction(highest)).run(Unlimited())
    assert last is None
    for one in found:
        assert not check(problem, reduction.restore(one))
    return [one.cost(reduction.problem) for one in found]


@pytest.mark.parametrize("way", EXACT_PARTS)
@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_a_way_finds_what_enumeration_finds(family: str, way: Any) -> None:
    for case in cases(family, so_many(6, 24)):
        step = Fleet(presolve(case.problem).problem).step
        if not step or not case.best:
            continue  # nothing to do, or nothing to pay
        for lowest in (0, case.best):
            costs = searched(way, case.problem, lowest, case.best + 3 * step)
            assert costs == sorted(costs, reverse=True), case.name
            assert costs[-1] == case.best, case.name
        # Below the optimum there is nothing.
        assert searched(way, case.problem, 0, case.best) == [], case.name


def test_a_search_ends_whenever_it_is_stopped() -> None:
    fleet = Fleet(presolve(hard.PARTITION_NO.make()).problem)
    table = DynamicProgram(fleet, Fraction(0), Fraction(9))
    whole = Counting(10**9)
    assert len(list(table.run(whole))) == 2
    for questions in range(0, whole.asked, 3):
        assert list(table.run(Counting(questions))) == []
    budget = Unlimited()
    budget.stopped = True
    assert list(CompactProgram(fleet, Fraction(0), Fraction(9)).run(budget)) == []


def run(problem: Problem, **options: Any) -> Solution:
    return solve(problem, "ptas", options=options, time_limit=None, threads=1)


@pytest.mark.parametrize("way", ["auto", "dynamic", "program"])
def test_where_the_bound_does_not_round_up_the_exact_part_has_the_last_word(way: str) -> None:
    solution = run(no_round_up(), exact=way, epsilon="1/10")
    assert (solution.status, solution.proof, solution.cost) == ("optimal", "solver", 6)
    assert (solution.lower_bound, solution.claimed_bound) == (5, 6)
    assert solution.history[-1].source.endswith(": exact part")


def test_where_the_numbers_are_too_large_the_error_says_what_would_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algorithms.ptas.few_machines, "MAX_CELLS", 1)
    with pytest.raises(UnsupportedProblem, match="cells .*; take a larger epsilon, or the method"):
        run(no_round_up(), exact="dynamic", epsilon="1/10")
    assert run(no_round_up(), exact="program", epsilon="1/10").cost == 6
    solution = run(no_round_up(), exact="dynamic", epsilon="1/5")
    assert (solution.cost, solution.stop_reason) == (6, "finished")
    # The bare algorithm has no other check than the theorem: 2 machines and 4 - 1 more are 5.
    two = hard.packing((44, 33, 12), 132, (2, 2, 4))
    assert run(two, exact="dynamic", epsilon="1/10").cost == 2
    with pytest.raises(UnsupportedProblem, match="take a larger epsilon"):
        run(two, exact="dynamic", epsilon=1, plain=True)
