"""Guarantees where numbers are far apart: no tolerance may decide anything."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from algorithms.aggregated.program import Aggregated, FixedMachines
from algorithms.lp_rounding import LpRounding, LpRoundingOptions, whole
from algorithms.lp_rounding.whole import Cut, cheapest_whole, cut_by, limit_on_cost
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
HUGE = 10**9


def budget(problem: Problem) -> RunBudget:
    ledger = Ledger(problem, "test", trusted=True, clock=lambda: 0.0)
    return RunBudget(ledger, seed=0, threads=1, end=float("inf"))


def milp_c(tables: Tables) -> Fraction:
    """The cheapest machines that do if blocks can be cut, one vector after the other."""
    program = FixedMachines(tables)
    most = limit_on_cost(tables)
    reach = [range(int(most / cost) + 1) for cost in tables.costs]
    vectors = sorted(itertools.product(*reach), key=tables.cost)
    for machines in vectors:
        found = program.solve(machines, None)
        assert found is not None
        if not found.lacking:
            return tables.cost(machines)
    raise AssertionError("no machines do")


def run(problem: Problem, variant: str, *, plain: bool) -> Solution:
    return solve(problem, "lp_rounding", options={"variant": variant, "plain": plain})


def one_for_all_or_one_each() -> Problem:
    """A hundredth of the blocks of ten machines on one; jobs need next to nothing."""
    names = [f"b{i}" for i in range(10)]
    shapes = [Configuration({name: HUGE}) for name in names]
    shapes.append(Configuration(dict.fromkeys(names, HUGE // 100)))
    return Problem(configurations=shapes, jobs=[Job(name, 1, {name: 1}) for name in names])


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("variant", ["published", "supports", "milp"])
def test_a_billionth_of_a_machine_is_there(variant: str, plain: bool) -> None:
    assert run(one_for_all_or_one_each(), variant, plain=plain).cost == (2 if plain else 1)


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


def test_a_demand_a_hair_above_a_block_takes_one_machine_more_and_no_others() -> None:
    shapes = [Configuration({"a": 1}), *(Configuration({f"b{i}": 1}) for i in range(6))]
    jobs = [Job("A", 10**8 + 1, {"a": 10**8}), *(Job(f"B{i}", 1, {f"b{i}": 1}) for i in range(6))]
    problem = Problem(configurations=shapes, jobs=jobs)
    # Two machines for A, and one for each other job: MILP_c is 8.
    assert run(problem, "milp", plain=True).cost == 16


@pytest.mark.parametrize("variant", ["milp", "enumeration"])
def test_demands_a_billionth_from_multiples_of_their_blocks(variant: str) -> None:
    d = HUGE
    jobs = [
        Job("x", 2 * d + 1, {"b0": d - 1, "b2": d, "b3": d}),
        Job("y", 3 * d, {"b0": 2 * d, "b1": d + 1, "b2": d}),
        Job("z", 2 * d + 1, {"b0": d + 1, "b2": 2 * d, "b3": 2 * d}),
    ]
    shape = Configuration({"b0": 2, "b1": 3, "b2": 2, "b3": 1})
    assert run(Problem(configurations=shape, jobs=jobs), variant, plain=True).cost == 2


@pytest.mark.parametrize("variant", ["supports", "doubling"])
def test_costs_a_billion_apart(variant: str) -> None:
    types = [MachineType("cheap", "0.00009"), MachineType("dear", 70_000)]
    shapes = [
        Configuration({"a": 1}, "cheap"),
        Configuration({"a": 10**9, "b": 3}, "dear"),
        Configuration({"b": 1, "c": 1}, "dear"),
    ]
    jobs = [Job("x", 5, {"a": 1}), Job("y", 2, {"b": 1}), Job("z", 1, {"c": 3})]
    problem = Problem(configurations=shapes, jobs=jobs, machine_types=types)
    best = solve(problem).cost
    solution = run(problem, variant, plain=True)
    assert best is not None
    assert solution.cost is not None
    assert solution.guarantee is not None
    assert solution.cost <= solution.guarantee.guarantee.allows(best)


def test_doubling_loses_no_machine_for_each_configuration_it_does_not_use() -> None:
    shapes = [Configuration({"b0": 2, "b1": 1}), Configuration({"b0": 3}), Configuration({"b1": 1})]
    rows = [(2, {"b1": 5}), (3, {"b1": 2}), (10**15, {"b0": 1, "b1": 1}), (10**6, {"b0": 1})]
    jobs = [Job(f"j{at}", demand, supply) for at, (demand, supply) in enumerate(rows)]
    problem = Problem(configurations=shapes, jobs=jobs)
    tables = Tables.of(reduce(problem).problem)
    vertex = Aggregated(tables).solve(None)
    assert vertex is not None
    solution = run(problem, "doubling", plain=True)
    assert solution.cost is not None
    assert solution.cost <= (1 + tables.phi) * vertex.value + tables.dearest(tables.p)


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


@pytest.mark.parametrize("variant", ["enumeration", "milp"])
def test_a_bound_a_tiny_part_above_a_whole_number(variant: str) -> None:
    jobs = [Job("x", 10**14 + 1, {"a": 1})]
    problem = Problem(configurations=Configuration({"a": 10**7}), jobs=jobs)
    assert run(problem, variant, plain=True).cost == 10**7 + 1


# -- MILP_c by cuts ------------------------------------------------------------------------------


def cheapest(problem: Problem) -> Fraction | None:
    tables = Tables.of(problem)
    vertex = Aggregated(tables).solve(None)
    assert vertex is not None
    found = cheapest_whole(tables, vertex, limit_on_cost(tables), budget(problem))
    return None if found is None else tables.cost(found.machines)


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
    excluded = []
    true = whole._Search.exclude

    def watched(self: whole._Search, machines: list[int]) -> None:
        true(self, machines)
        excluded.extend(self._excluded[-1:])

    monkeypatch.setattr(whole._Search, "exclude", watched)
    assert cheapest(problem) == milp_c(Tables.of(problem))
    assert excluded


def test_a_cut_is_worth_what_the_jobs_pay() -> None:
    shapes = [Configuration({"a": 2}), Configuration({"a": 1, "b": 5})]
    tables = Tables.of(Problem(configurations=shapes, jobs=[Job("x", 4, {"a": 1, "b": 1})]))
    cut = cut_by([Fraction(1, 2), Fraction(1, 3)], Fraction(4, 3), tables)
    assert cut == Cut([6, 8], 8)
    assert cut.keeps([0, 1])
    assert not cut.keeps([1, 0])


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


def test_machines_that_cost_nothing_are_no_part_of_the_cuts() -> None:
    types = [MachineType("free", 0), MachineType("paid", 3)]
    shapes = [Configuration({"a": 1}, "free"), Configuration({"a": 4, "b": 1}, "paid")]
    jobs = [Job("x", 10**12, {"a": 1}), Job("y", 5, {"b": 2})]
    problem = Problem(configurations=shapes, jobs=jobs, machine_types=types)
    assert run(problem, "milp", plain=True).cost == 18
    assert run(problem, "milp", plain=False).cost == 9
