"""Rounded linear programs: whole machines by cuts, supports and vectors, and what is stated."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest

from algorithms.aggregated.program import Aggregated
from algorithms.lp_rounding import LpRounding, LpRoundingOptions, search
from algorithms.lp_rounding.search import cheapest_support, cheapest_whole, limit_on_cost, vectors
from algorithms.solvers.integer import LARGEST
from algorithms.tables.integers import Tables
from cms import Configuration, Job, MachineType, Problem, Verdict, presolve, solve
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.families import FAMILIES, instance
from tests.samples import so_many


def test_the_best_support_is_the_best_of_all_supports() -> None:
    for family in ("a100", "random_configurations", "costs"):
        for number in range(6):
            problem = presolve(instance(family, number)).problem
            tables = Tables.of(problem)
            if tables.unservable or not tables.n or tables.c > 6:
                continue
            found = cheapest_support(tables, Unlimited())
            assert found is not None
            values = []
            for there in itertools.product([False, True], repeat=tables.c):
                program = Aggregated(tables)
                used = [at for at in range(tables.c) if there[at]]
                absent = [at for at in range(tables.c) if not there[at]]
                if tables.served_by(list(map(int, there))):
                    values.append(program.solve(None, used, absent).value)
            assert found.value == min(values)


def test_machine_vectors_come_by_cost_and_all_of_them() -> None:
    types = [MachineType("m", 2), MachineType("n", 3)]
    shapes = [Configuration({"a": 1}, "m"), Configuration({"b": 1}, "n")]
    tables = Tables.of(Problem(configurations=shapes, machine_types=types))
    found = list(vectors(tables, Fraction(4), Fraction(9)))
    costs = [2 * x + 3 * y for x, y in found]
    assert costs == sorted(costs)
    every = {(x, y) for x in range(5) for y in range(4) if 4 <= 2 * x + 3 * y <= 9}
    assert {tuple(vector) for vector in found} == every
    assert len(found) == len(every)


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


def cheapest(problem: Problem) -> Fraction:
    tables = Tables.of(problem)
    vertex = Aggregated(tables).solve(None)
    machines, _ = cheapest_whole(tables, vertex, limit_on_cost(tables), Unlimited())
    return tables.cost(machines)


@pytest.mark.long
def test_cuts_end_at_milp_c() -> None:
    seen, each = 0, so_many(2, 4)
    for family in sorted(FAMILIES):
        for number in range(each):
            problem = presolve(instance(family, number)).problem
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
    problem = presolve(Problem(configurations=shapes, jobs=jobs)).problem
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
            options = {"variant": "milp", "plain": plain}
            solution = solve(problem(demand, costs), "lp_rounding", options=options)
            assert solution.cost is not None
            assert (solution.guarantee is not None) == stated, (demand, costs)
            if solution.guarantee is not None:
                assert solution.guarantee.verdict is not Verdict.BREACHED
