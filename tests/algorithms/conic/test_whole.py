"""The whole method against optima found otherwise, and what it refuses."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from algorithms.conic import Conic, ConicOptions
from cms import MachineType, Problem, check, solve
from instances.families import generate
from tests.algorithms.conic.parts import of, random_problem, solved
from tests.oracle import optimum
from tests.references.programs import integer_program
from tests.samples import few, so_many

WAYS: list[dict[str, Any]] = [
    {"route": "points"},
    {"route": "points", "plain": True},
    {"route": "cells"},
    {"route": "cells", "plain": True},
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


# --- lists ----------------------------------------------------------------------------------------

ON_A100 = ("real-rows", "arbitrary", "sparse", "near-ties", "superlinear", "sublinear")


@pytest.mark.parametrize("family", ON_A100)
def test_it_agrees_with_cp_sat_on_an_a100(family: str) -> None:
    for seed in range(so_many(2, 40)):
        problem = generate(family, n=1 + (7 * seed + 4) % 12, seed=seed, m=(1, 5, 30)[seed % 3])
        wanted = solve(problem, "cp_sat", threads=1).cost
        assert wanted is not None
        assert set(costs(problem).values()) == {wanted}, seed


# --- sets -----------------------------------------------------------------------------------------


def no_round_up(times: int) -> Problem:
    """132 times the demands of the theory's instance are 259 full machines; once, they need 3."""
    demands = {"a": 2 * times, "b": 3 * times, "c": 6 * times}
    return of(
        {"a": 44, "b": 33, "c": 12}, 132, {name: (d, {name: 1}) for name, d in demands.items()}
    )


def test_a_machine_more_than_the_bound_among_hundreds_of_millions() -> None:
    assert solved(no_round_up(133)).cost == integer_program(no_round_up(133)) == 259 + 3
    solution = solved(no_round_up(132 * 10**6 + 1))
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


# --- huge numbers ---------------------------------------------------------------------------------

HUGE = {
    "small blocks": of(
        {"a": 4, "b": 7},
        1_000_003,
        {"x": (10**9 + 7, {"a": 3, "b": 5}), "y": (3 * 10**9 + 1, {"a": 2, "b": 7})},
    ),
    "without a common measure": of(
        {"a": 10_007, "b": 7_919},
        10**7 + 19,
        {"x": (5 * 10**9, {"a": 13, "b": 9}), "y": (10**9 + 33, {"a": 1}), "z": (10**10, {"b": 3})},
    ),
    "large blocks": of(
        {"a": 353_017, "b": 248_651},
        1_000_003,
        {"x": (10**9 + 1, {"a": 3, "b": 2}), "y": (10**9 + 1, {"b": 1})},
    ),
}


@pytest.mark.parametrize("name", few(3, sorted(HUGE)))
def test_a_large_machine_and_demands_of_billions_end_proved(name: str) -> None:
    problem = HUGE[name]
    solution = solved(problem)
    assert solution.status == "optimal"
    assert not check(problem, solution.schedule)
    assert solution.machine_count is not None
    assert solution.machine_count > 1_000


# --- the edges of the model -----------------------------------------------------------------------


# Cutting stock of 655/132 machines that needs six: NON_IRUP, and what fills three machines more.
# (Of NON_IRUP itself proper contents prove 23/11.)
SIZES = {"a": 44, "b": 33, "c": 12}
NO_ROUND_UP: dict[str, tuple[Any, Any]] = {
    block: (demand, {block: 1}) for block, demand in zip("abc", (5, 7, 17), strict=True)
}


@pytest.mark.parametrize(
    ("limit", "status", "proof"),
    [(4, "infeasible", "checked"), (5, "infeasible", "solver"), (6, "optimal", "solver")],
)
def test_a_limit_is_kept_or_proved_too_low(limit: int, status: str, proof: str) -> None:
    machine = MachineType("machine", limit=limit)
    solution = solved(of(SIZES, 132, NO_ROUND_UP, machine=machine))
    assert (solution.status, solution.proof) == (status, proof)


# --- refusals and options -------------------------------------------------------------------------
