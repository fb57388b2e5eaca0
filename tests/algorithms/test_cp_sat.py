"""The parts of the reference, each against a plain definition, and the problems that once hurt."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.cp_sat.machines import maximal_contents
from algorithms.cp_sat.mixture import exact_mixture
from algorithms.cp_sat.options import minimal_options
from algorithms.cp_sat.price_space import PriceSpace
from algorithms.cp_sat.prices import PriceSearch
from algorithms.cp_sat.program import LARGEST, Program, Settings, TooLarge
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    check,
    load_instance,
    solve,
)


class Unlimited:
    """A budget for the parts, without a driver."""

    seed, threads, stopped = 0, 1, False
    lower_bound, best = Fraction(0), None

    def remaining(self) -> float:
        return math.inf


def _minimal_by_definition(
    prices: list[int], supply: list[int], demand: int, budget: int
) -> set[tuple[int, ...]]:
    ranges = [range((-(-demand // f) if f else 0) + 1) for f in supply]
    found = set()
    for option in itertools.product(*ranges):
        total = sum(f * n for f, n in zip(supply, option, strict=True))
        needed = all(total - f < demand for f, n in zip(supply, option, strict=True) if n)
        cost = sum(p * n for p, n in zip(prices, option, strict=True))
        if total >= demand and needed and cost <= budget:
            found.add(option)
    return found


@given(st.data())
def test_the_minimal_options_are_those_of_the_definition(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    prices = data.draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    supply = data.draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    demand, budget = data.draw(st.integers(1, 20)), data.draw(st.integers(0, 40))
    found = minimal_options(prices, supply, demand, budget, most=10**6)
    assert found is not None
    assert len(found) == len(set(found))
    assert set(found) == _minimal_by_definition(prices, supply, demand, budget)


def test_a_job_without_demand_has_the_empty_option() -> None:
    assert minimal_options([1, 1], [3, 0], 0, 5, most=10) == [(0, 0)]


def test_options_that_are_too_many_are_given_up_at_once() -> None:
    # equal ratios: about 10**8 ways to mix the two types
    assert minimal_options([2, 3], [2, 3], 10**9, 10**9 + 10, most=100) is None


@given(st.data())
def test_the_maximal_contents_are_those_of_the_definition(data: st.DataObject) -> None:
    sizes = data.draw(
        st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1, max_size=4)
    )
    shape = SizeBoundedConfigurations(
        sizes, data.draw(st.integers(0, 20)), max_blocks=data.draw(st.none() | st.integers(1, 5))
    )
    counts = itertools.product(*(range(21 // size + 1) for size in sizes.values()))
    legal = [
        content
        for content in (dict(zip(sizes, many, strict=True)) for many in counts)
        if shape.allows({b: n for b, n in content.items() if n}) and any(content.values())
    ]
    maximal = {
        tuple(sorted((b, n) for b, n in content.items() if n))
        for content in legal
        if not any(shape.allows({**content, b: content[b] + 1}) for b in sizes)
    }
    found = maximal_contents(shape, most=10**6)
    assert found is not None
    assert {tuple(sorted(content.items())) for content in found} == maximal
    assert len(found) == len(maximal)


def test_a_set_with_too_many_contents_is_refused_with_the_reason() -> None:
    shares = SizeBoundedConfigurations({f"mps:{s}": s for s in range(1, 91)}, 100, max_blocks=48)
    problem = Problem(configurations=shares, jobs=[Job("a", 3, {"mps:1": 1})])
    with pytest.raises(ValueError, match="more than 20000 maximal configurations"):
        solve(problem, "cp_sat")


def test_a_mixture_is_exact_however_large_the_loads_are() -> None:
    # half of each pass, on machines with one block of each type
    loads = [(10**15 + 1, 0), (0, 10**15 + 1)]
    found = exact_mixture(loads, [0.5000001, 0.4999999], [(1, 1)], [5e14], 1e-5)
    assert found == ([Fraction(1, 2), Fraction(1, 2)], [Fraction(10**15 + 1, 2)])


def test_a_program_out_of_the_solvers_range_is_not_built() -> None:
    program = Program()
    with pytest.raises(TooLarge):
        program.variable(LARGEST)
    x = program.variable(2**40)
    with pytest.raises(TooLarge):
        program.at_least({x: 2**30}, 1)
    program.at_least({x: 3}, 7)


def test_the_compact_model_of_s3_needs_the_linear_relaxation() -> None:
    """Why the settings are what they are: CP-SAT's default level of linearisation gets stuck."""
    scenario: Any = load_instance("S3")
    problem = scenario.as_problem().problem
    program = Program()
    shapes = problem.listed_configurations
    x = [program.variable(50) for _ in shapes]
    program.minimise(dict.fromkeys(x, 1))
    use: list[dict[int, int]] = [
        {x[c]: s.blocks.get(b, 0) for c, s in enumerate(shapes)} for b in problem.blocks
    ]
    for j in range(problem.n_jobs):
        row = problem.rows.row(j)
        terms = {}
        for i, f in enumerate(row.supply):
            if f:
                y = program.variable(-(-row.demand // f))
                terms[y] = f
                use[i][y] = -1
        program.at_least(terms, row.demand)
    for load in use:
        program.at_least({v: n for v, n in load.items() if n}, 0)
    good = program.solve(_budget(), Settings(), effort=20.0)
    assert (good.status, good.bound) == ("optimal", 5)
    poor = program.solve(_budget(), Settings(linearization_level=1), effort=2.0)
    assert poor.status != "optimal"


def _budget() -> Any:
    from contextlib import nullcontext

    budget = Unlimited()
    budget.on_stop = lambda cancel: nullcontext()  # type: ignore[attr-defined]
    return budget


def test_the_prices_of_s5_reach_the_theory_when_nothing_rounds() -> None:
    """LP_DW of S5 is 176/15 (theory 6.10); costs without a common step leave no early end."""
    scenario: Any = load_instance("S5")
    problem = scenario.as_problem().problem
    (machine,) = problem.machine_types
    # a second, useless machine type of an incommensurable cost makes the step tiny
    fine = problem.replace(
        machine_types=[machine, MachineType("other", cost=Fraction(10**9 + 7, 10**9))]
    )
    search = PriceSearch(fine, _budget())
    list(search.run())
    assert search.best is not None
    assert search.best.bound == Fraction(176, 15)
    assert search.best.certificate.bound(fine) == Fraction(176, 15)


@given(st.data())
def test_scaled_prices_are_valid_and_their_bound_is_the_certificates(data: st.DataObject) -> None:
    limit = data.draw(st.none() | st.integers(0, 3))
    problem = Problem(
        configurations=[
            Configuration({"a": 2, "b": 1}, "m"),
            SizeBoundedConfigurations({"a": 2, "c": 3}, 7, "n"),
        ],
        machine_types=[MachineType("m", "1.5"), MachineType("n", 2, limit)],
        jobs=[Job("x", 7, {"a": 2, "b": 3, "c": 4}), Job("y", 5, {"b": 1, "c": 2})],
    )
    space = PriceSpace(problem)
    prices = [Fraction(data.draw(st.integers(0, 30)), 10) for _ in problem.blocks]
    scale, limit_prices = space.valid(prices)
    certificate = space.certificate([scale * price for price in prices], limit_prices)
    certificate.bound(problem)  # raises if the prices are not valid


@pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
def test_s5_at_any_multiple_of_its_rates_is_solved_and_proved(factor: int) -> None:
    scenario: Any = load_instance("S5")
    problem = scenario.as_problem().problem
    jobs = [Job(job.name, job.demand * factor, job.demand_function) for job in problem.jobs]
    large = Problem(
        configurations=problem.configurations, jobs=jobs, machine_types=problem.machine_types
    )
    solution = solve(large, "cp_sat", time_limit=None)
    assert check(large, solution.schedule) == ()
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert len(solution.schedule.groups) <= 100


def test_random_problems_of_many_equal_jobs_have_no_symmetry_to_fight() -> None:
    rng = random.Random(7)
    rows = [{"a": rng.randint(1, 9), "b": rng.randint(1, 9)} for _ in range(3)]
    jobs = [Job(f"j{n}", 10, rows[n % 3]) for n in range(60)]
    problem = Problem(configurations=[Configuration({"a": 2, "b": 1})], jobs=jobs)
    solution = solve(problem, "cp_sat", time_limit=None)
    assert solution.status == "optimal"


def test_machines_that_cost_nothing_are_not_used_in_vain() -> None:
    problem = Problem(
        configurations=[Configuration({"a": 1}, "free"), Configuration({"b": 2}, "paid")],
        machine_types=[MachineType("free", 0, limit=7), MachineType("paid")],
        jobs=[Job("x", 1, {"a": 1}), Job("y", 1, {"b": 1})],
    )
    solution = solve(problem, "cp_sat")
    assert solution.cost == 1
    assert all(group.assignment for group in solution.schedule.groups)


@pytest.mark.parametrize("demand", ["1e40", "1e309", "1e399"])
def test_demands_beyond_every_float_are_served_and_proved(demand: str) -> None:
    problem = Problem(
        configurations=Configuration({"a": 2, "b": 1}),
        jobs=[Job("x", demand, {"a": "6.5", "b": 1})],
    )
    solution = solve(problem, "cp_sat")
    assert (solution.status, solution.proof) == ("optimal", "checked")
    assert check(problem, solution.schedule) == ()


def test_a_cost_beyond_the_floats_is_refused_with_the_reason() -> None:
    problem = Problem(
        configurations=Configuration({"a": 1}),
        machine_types=[MachineType("machine", cost="1e301")],
        jobs=[Job("x", 1, {"a": 1})],
    )
    with pytest.raises(ValueError, match="choose a unit"):
        solve(problem, "cp_sat")


def test_numbers_of_sixteen_digits_do_not_cost_the_proof() -> None:
    """Too many options and products beyond 63 bits: the rounded programs close the gap."""
    sizes = (5, 10, 15, 20, 25, 30, 40, 50, 100)
    shares = SizeBoundedConfigurations({f"s{s}": s for s in sizes}, 100, max_blocks=48)
    jobs = [Job(f"j{n}", 100 + 17 * n, {f"s{s}": s**0.9 for s in sizes}) for n in range(12)]
    solution = solve(Problem(configurations=shares, jobs=jobs), "cp_sat", time_limit=None)
    assert (solution.status, solution.cost) == ("optimal", 28)


def test_a_limit_beyond_the_solvers_range_does_not_matter() -> None:
    problem: Any = load_instance("non-irup")
    cutting = problem.make()
    (machine,) = cutting.machine_types
    limited = cutting.replace(machine_types=[MachineType(machine.name, limit=10**19)])
    solution = solve(limited, "cp_sat", time_limit=None)
    assert (solution.status, solution.cost) == ("optimal", 3)


def test_a_machine_type_nobody_uses_may_cost_anything() -> None:
    problem = Problem(
        configurations=Configuration({"b0": 1, "b1": 2}, "m1"),
        machine_types=[MachineType("m0", 10**60, limit=5), MachineType("m1", 1, limit=5)],
        jobs=[Job("x", 2, {"b0": 1, "b1": 1})],
    )
    solution = solve(problem, "cp_sat", time_limit=None)
    assert (solution.status, solution.cost) == ("optimal", 1)


def test_a_large_problem_has_an_answer_after_the_first_pass() -> None:
    n = 1200
    problem = Problem.from_arrays(
        demands=[7 + j % 5 for j in range(n)],
        supply=[[2 + j % 3, 5] for j in range(n)],
        configurations=[[3, 0], [1, 1]],
    )
    solution = solve(problem, "cp_sat", time_limit=None)
    first_cost = next(at for at, line in enumerate(solution.history) if line.cost is not None)
    assert first_cost == 1
    assert solution.status == "optimal"
