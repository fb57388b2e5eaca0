"""Guarantees where numbers are far apart: no tolerance may decide anything."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest

from algorithms.aggregated.program import Aggregated
from algorithms.lp_rounding import LpRounding, LpRoundingOptions, search
from algorithms.lp_rounding.search import cheapest_whole, limit_on_cost
from algorithms.solvers.integer import LARGEST
from algorithms.tables.integers import Tables
from cms import Configuration, Job, MachineType, Problem, Solution, solve
from cms.plugin.guarantee import Verdict
from cms.reduction.reduction import reduce
from cms.solving.driver import RunBudget
from cms.solving.ledger import Ledger
from tests.families import FAMILIES, instance
from tests.samples import so_many

VARIANTS = ["milp", "published", "supports", "enumeration", "doubling"]


def budget(problem: Problem) -> RunBudget:
    ledger = Ledger(problem, "test", trusted=True, clock=lambda: 0.0)
    return RunBudget(ledger, seed=0, threads=1, end=float("inf"))


def milp_c(tables: Tables) -> Fraction:
    """The cheapest machines that do if blocks can be cut, one vector after the other."""
    program = Aggregated(tables)
    most = limit_on_cost(tables)
    reach = [range(int(most / cost) + 1) for cost in tables.costs]
    vectors = sorted(itertools.product(*reach), key=tables.cost)
    for machines in vectors:
        if not program.beside(machines, None).value:
            return tables.cost(machines)
    raise AssertionError("no machines do")


def run(problem: Problem, variant: str, *, plain: bool) -> Solution:
    return solve(problem, "lp_rounding", options={"variant": variant, "plain": plain})


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("variant", ["published", "supports", "milp", "doubling"])
def test_a_machine_dearer_than_all_the_others(variant: str, plain: bool) -> None:
    types = [MachineType("A", 1), MachineType("B", 50), MachineType("C", 10**11)]
    shapes = [
        Configuration({"b": 1, "e": 1}, "B"),
        Configuration({"b": 1}, "A"),
        Configuration({"b": 1, "c": 1, "e": 2}, "C"),
    ]
    jobs = [Job(f"x{i}", 100, {"b": 1, "c": 2}) for i in range(4)] + [Job("y", 1, {"e": 1})]
    solution = run(
        Problem(configurations=shapes, jobs=jobs, machine_types=types), variant, plain=plain
    )
    factor = {"published": "7/2", "supports": "3", "milp": "2", "doubling": "2"}[variant]
    assert solution.cost is not None
    assert solution.cost <= (Fraction(factor) if plain else 1) * 449


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("blocks", [10**7, 10**9, 10**11, 10**320])
def test_machines_of_very_many_blocks(variant: str, blocks: int) -> None:
    shapes = [Configuration({"a": blocks, "b": 1}), Configuration({"b": 2})]
    jobs = [Job("x", 7 * blocks, {"a": 3, "b": 5}), Job("y", 5, {"b": 2})]
    problem = Problem(configurations=shapes, jobs=jobs)
    assert run(problem, variant, plain=False).cost == 3
    plain = run(problem, variant, plain=True)
    assert plain.cost is not None
    assert plain.cost <= 6


# -- MILP_c by cuts ------------------------------------------------------------------------------


def cheapest(problem: Problem) -> Fraction:
    tables = Tables.of(problem)
    vertex = Aggregated(tables).solve(None)
    machines, _ = cheapest_whole(tables, vertex, limit_on_cost(tables), budget(problem))
    return tables.cost(machines)


@pytest.mark.long
def test_cuts_end_at_milp_c() -> None:
    seen, each = 0, so_many(2, 4)
    for family in sorted(FAMILIES):
        for number in range(each):
            problem = reduce(instance(family, number)).problem
            if not LpRounding().support(problem, LpRoundingOptions()):
                continue
            tables = Tables.of(problem)
            if tables.unservable or not tables.n or tables.c > 4 or not all(tables.costs):
                continue
            if limit_on_cost(tables) > 12 * min(tables.costs):
                continue
            seen += 1
            assert cheapest(problem) == milp_c(tables), (family, number)
    assert seen > 5 * each


def test_cuts_too_large_for_cp_sat_are_made_weaker_and_the_machines_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d = 10**25
    shapes = [Configuration({"a": 2, "b": 1}), Configuration({"b": 2})]
    jobs = [
        Job("x", 3 * d + 1, {"a": d, "b": d - 1}),
        Job("y", 2 * d + 1, {"a": d - 1, "b": d}),
        Job("z", d, {"b": d}),
    ]
    problem = reduce(Problem(configurations=shapes, jobs=jobs)).problem
    excluded: list[list[int]] = []
    true = search._Search.cheapest

    def watched(self: search._Search, budget: Any) -> list[int]:
        excluded.extend(self.excluded)
        return true(self, budget)

    monkeypatch.setattr(search._Search, "cheapest", watched)
    assert cheapest(problem) == milp_c(Tables.of(problem))
    assert excluded


def test_where_milp_c_is_out_of_reach_nothing_is_stated_unless_machines_are_many() -> None:
    def problem(demand: int, costs: tuple[int | str, int | str]) -> Problem:
        types = [MachineType("m", costs[0]), MachineType("n", costs[1])]
        shapes = [Configuration({"a": 1}, "m"), Configuration({"a": 1, "b": 1}, "n")]
        jobs = [Job("x", demand, {"a": 1}), Job("y", 1, {"b": 1})]
        return Problem(configurations=shapes, jobs=jobs, machine_types=types)

    for demand, costs, stated in (
        (5, (1, 10**6), True),
        (5, ("1e-30", 1), False),
        (10**40, (1, 2), True),
        (10**5, (1, LARGEST), False),
    ):
        for plain in (False, True):
            solution = run(problem(demand, costs), "milp", plain=plain)
            assert solution.cost is not None
            assert (solution.guarantee is not None) == stated, (demand, costs)
            if solution.guarantee is not None:
                assert solution.guarantee.verdict is not Verdict.BREACHED
