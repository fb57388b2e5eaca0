"""What holds for the optimum and for every bound, whatever the problem (theory 9).

Nothing here is asserted of what an algorithm happens to find: greedy and rounding are not monotone.
An infeasible problem costs more than any other: its optimum is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cms
from cms import BlockPrices, Configuration, Job, Problem, Reference, solve
from cms.certificate.certificate import round_up
from cms.knapsack.pricing import price_jobs
from cms.problem.parts import held_blocks
from tests.oracle import given as gives
from tests.oracle import machines, options
from tests.property.problems import (
    BLOCKS,
    PLENTY,
    TINY,
    UNIT,
    UNLIMITED,
    problems,
    proved_optimum,
    rebuilt,
    share,
    shown,
    source,
    supply,
)
from tests.property.test_metamorphic import HARDER, SAME_BESIDE, Edit, edited
from tests.references.guarantees import normalised, program
from tests.references.programs import compact

Cost: TypeAlias = Fraction | float
Prices: TypeAlias = dict[str, Fraction]

#: What a linear program in floats may be off, relative to its value and 1.
TOLERANCE = 1e-6
#: The kinds on which prices can be scaled into their region: no machine is free.
PRICED = tuple(kind for kind in TINY if kind != "free machines")


def least(problem: Problem) -> Cost:
    """The optimum; infinity if there is no schedule."""
    best = proved_optimum(problem)
    return math.inf if best is None else best


def at_most(one: float, other: float) -> bool:
    return one <= other + TOLERANCE * (1 + abs(other))


def servable(problem: Problem) -> bool:
    """Whether every job has a block that gives it something and that some machine can have."""
    held = set(held_blocks(problem.configurations))
    return all(
        not job.demand or any(amount and block in held for block, amount in supply(job).items())
        for job in problem.jobs
    )


def called(edit: Callable[..., object]) -> str:
    return edit.__name__


@given(problems())
def test_a_counterexample_is_written_as_the_code_that_rebuilds_it(problem: Problem) -> None:
    assert eval(source(problem), dict(vars(cms))) == problem


# --- the chain of bounds --------------------------------------------------------------------------


def single_job_bound(problem: Problem) -> int:
    """As many machines as the job that needs the most, each machine serving nobody else."""
    contents = [held for _, held in machines(problem)]
    most = 0
    for job in problem.jobs:
        table = [min(gives(job, block), job.demand) for block in problem.blocks]
        best = max(
            min(job.demand, sum((f * n for f, n in zip(table, held, strict=True)), Fraction(0)))
            for held in contents
        )
        most = max(most, math.ceil(job.demand / best) if job.demand else 0)
    return most


@share(5)
@given(problems(UNIT))
def test_every_bound_of_the_theory_is_in_its_place_below_the_optimum(problem: Problem) -> None:
    best = proved_optimum(problem)
    assert best is not None
    agg, star, milp, dw = (
        program(problem, against)
        for against in (Reference.LP_AGG, Reference.LP_STAR, Reference.MILP_C, Reference.LP_DW)
    )
    assert at_most(agg, star)
    assert at_most(star, milp)
    assert at_most(agg, dw)
    for value in (agg, star, milp, dw):
        assert math.ceil(value - TOLERANCE * (1 + value)) <= best
    assert single_job_bound(problem) <= best
    busy = sum(1 for job in problem.jobs if job.demand)
    assert -(-busy // max(sum(held) for _, held in machines(problem))) <= best


@share(6)
@given(problems(UNIT))
def test_huge_quantities_cost_what_the_linear_program_says_and_a_constant(problem: Problem) -> None:
    arrays = normalised(problem)
    assume(arrays.n)
    without_truncation = compact(arrays, arrays.supply, (False, False))
    assert without_truncation is not None
    for times in (1, 2, 7):
        jobs = [Job(job.name, job.demand * times, supply(job)) for job in problem.jobs]
        cost = float(least(rebuilt(problem, jobs=jobs)))
        below = times * without_truncation
        assert at_most(below, cost)
        assert at_most(cost, below + arrays.n + min(arrays.c, arrays.k))


# --- harder problems cost no less -----------------------------------------------------------------


@pytest.mark.parametrize("edit", HARDER, ids=called)
@share(20)
@given(st.data())
def test_a_harder_problem_costs_no_less(edit: Edit, data: st.DataObject) -> None:
    problem = data.draw(problems())
    harder = data.draw(edited(edit, problem))
    assert least(problem) <= least(harder)


@pytest.mark.parametrize("edit", HARDER[:-2], ids=called)
@share(20)
@given(st.data())
def test_a_harder_problem_has_no_lower_bounds(edit: Edit, data: st.DataObject) -> None:
    problem = data.draw(problems(UNIT))
    harder = data.draw(edited(edit, problem))
    assume(servable(harder))
    for against in (Reference.LP_AGG, Reference.LP_STAR, Reference.MILP_C, Reference.LP_DW):
        assert at_most(program(problem, against), program(harder, against)), against


@pytest.mark.parametrize("edit", SAME_BESIDE, ids=called)
@share(20)
@given(st.data())
def test_a_problem_written_another_way_costs_the_same(edit: Edit, data: st.DataObject) -> None:
    problem = data.draw(problems())
    assert least(problem) == least(data.draw(edited(edit, problem)))


@pytest.mark.parametrize("edit", SAME_BESIDE, ids=called)
@share(20)
@given(st.data())
def test_a_problem_written_another_way_has_the_same_bounds(edit: Edit, data: st.DataObject) -> None:
    problem = data.draw(problems(UNIT))
    again = data.draw(edited(edit, problem))
    for against in (Reference.LP_AGG, Reference.LP_STAR, Reference.MILP_C, Reference.LP_DW):
        one, two = program(problem, against), program(again, against)
        assert at_most(one, two), against
        assert at_most(two, one), against


# --- sums and merges ------------------------------------------------------------------------------


@share(6)
@given(st.data())
def test_two_demands_together_cost_no_more_than_one_by_one(data: st.DataObject) -> None:
    problem = data.draw(problems(UNLIMITED))
    more = [data.draw(st.integers(0, 9)) for _ in problem.jobs]

    def wanting(demands: list[Fraction]) -> Cost:
        jobs = [Job(j.name, d, supply(j)) for j, d in zip(problem.jobs, demands, strict=True)]
        return least(shown(rebuilt(problem, jobs=jobs)))

    both = [job.demand + extra for job, extra in zip(problem.jobs, more, strict=True)]
    assert wanting(both) <= least(problem) + wanting([Fraction(extra) for extra in more])


@share(6)
@given(st.data())
def test_two_halves_of_the_jobs_cost_no_less_than_all_of_them(data: st.DataObject) -> None:
    problem = data.draw(problems(UNLIMITED))
    cut, jobs = data.draw(st.integers(0, problem.n_jobs)), list(problem.jobs)
    first, second = (least(rebuilt(problem, jobs=part)) for part in (jobs[:cut], jobs[cut:]))
    assert max(first, second) <= least(problem) <= first + second


@share(6)
@given(problems(UNLIMITED), st.integers(2, 5))
def test_a_multiple_of_all_demands_costs_at_most_that_multiple(problem: Problem, q: int) -> None:
    jobs = [Job(job.name, q * job.demand, supply(job)) for job in problem.jobs]
    once, times = least(problem), least(shown(rebuilt(problem, jobs=jobs)))
    assert once <= times <= q * once


@share(5)
@given(st.data())
def test_two_equal_jobs_cost_at_most_a_machine_more_than_one_of_both_demands(
    data: st.DataObject,
) -> None:
    problem = data.draw(problems(UNIT))
    assume(problem.n_jobs)
    *others, job = problem.jobs
    demand = data.draw(st.integers(1, 12))
    separate = [*others, job, Job("twin", demand, supply(job))]
    merged = [*others, Job(job.name, job.demand + demand, supply(job))]
    assume(any(supply(job).values()))
    one, two = (least(shown(rebuilt(problem, jobs=jobs))) for jobs in (merged, separate))
    assert one <= two <= one + 1


@share(5)
@given(st.data())
def test_the_larger_of_two_configurations_in_place_of_both_never_hurts(data: st.DataObject) -> None:
    problem = data.draw(problems(("listed", "equal ratios", "thirds", "set cover")))
    shapes = list(problem.listed_configurations)
    assume(len(shapes) >= 2)
    one, two = (shapes.pop(data.draw(st.integers(0, len(shapes) - 1))) for _ in range(2))
    blocks = {b: max(one.blocks.get(b, 0), two.blocks.get(b, 0)) for b in problem.blocks}
    merged = shown(rebuilt(problem, configurations=[*shapes, Configuration(blocks, one.machine)]))
    assert least(merged) <= least(problem)


@share(5)
@given(st.data())
def test_a_better_block_in_place_of_another_never_hurts(data: st.DataObject) -> None:
    problem = data.draw(problems(("listed", "equal ratios", "thirds", "costs")))
    good, bad = (data.draw(st.sampled_from(problem.blocks)) for _ in range(2))
    jobs = [
        Job(j.name, j.demand, {**supply(j), good: max(supply(j)(good), supply(j)(bad))})
        for j in problem.jobs
    ]
    shapes = list(problem.listed_configurations)
    at = data.draw(st.integers(0, len(shapes) - 1))
    counts = dict(shapes[at].blocks)
    assume(good != bad and counts.get(bad, 0))
    counts[bad] -= 1
    counts[good] = counts.get(good, 0) + 1
    better = Configuration(counts, shapes[at].machine)
    before = shown(rebuilt(problem, jobs=jobs))
    after = shown(rebuilt(before, configurations=[*shapes[:at], better, *shapes[at + 1 :]]))
    assert least(after) <= least(before)


# --- feasibility ----------------------------------------------------------------------------------


@share(4)
@given(problems(UNLIMITED))
def test_a_problem_is_infeasible_iff_a_job_has_no_usable_block(problem: Problem) -> None:
    assert (least(problem) < math.inf) == servable(problem)


@share(4)
@given(problems(("unservable",)), st.sampled_from(BLOCKS))
def test_a_usable_block_makes_it_feasible(problem: Problem, block: str) -> None:
    shapes = [*problem.configurations, Configuration({block: 1}, problem.machine_types[0].name)]
    jobs = [Job(job.name, job.demand, {**supply(job), block: 1}) for job in problem.jobs]
    assert least(problem) == math.inf
    assert least(rebuilt(problem, configurations=shapes, jobs=jobs)) < math.inf


# --- prices ---------------------------------------------------------------------------------------


@st.composite
def block_prices(draw: st.DrawFn, problem: Problem) -> Prices:
    """Prices at which some machine is worth exactly what it costs, and none is worth more."""
    raw = {block: Fraction(draw(st.integers(0, 6))) for block in problem.blocks}
    worth = [
        worth_of(raw, dict(zip(problem.blocks, held, strict=True)))
        / problem.machine_types[machine].cost
        for machine, held in machines(problem)
    ]
    most = max(worth, default=Fraction(0)) or Fraction(1)
    return {block: price / most for block, price in raw.items()}


def worth_of(prices: Mapping[str, Fraction], blocks: Mapping[str, int]) -> Fraction:
    return sum((prices[block] * number for block, number in blocks.items()), Fraction(0))


def bound_of(problem: Problem, prices: Prices) -> Fraction:
    return BlockPrices(prices).bound(problem)


@share(4)
@given(st.data())
def test_prices_in_their_region_bound_the_optimum(data: st.DataObject) -> None:
    problem = data.draw(problems(PRICED))
    bound = bound_of(problem, data.draw(block_prices(problem)))
    assert round_up(bound, problem.cost_step) <= least(problem)


@given(st.data())
def test_the_bound_is_concave_and_homogeneous_in_the_prices(data: st.DataObject) -> None:
    problem = data.draw(problems(PRICED))
    one, two = data.draw(block_prices(problem)), data.draw(block_prices(problem))
    middle = {block: (one[block] + two[block]) / 2 for block in one}
    mean = (bound_of(problem, one) + bound_of(problem, two)) / 2
    assert bound_of(problem, middle) >= mean
    part = data.draw(st.fractions(0, 1, max_denominator=9))
    shrunk = {block: price * part for block, price in one.items()}
    assert bound_of(problem, shrunk) == part * bound_of(problem, one)


@given(st.data())
def test_what_the_jobs_buy_is_a_supergradient(data: st.DataObject) -> None:
    problem = data.draw(problems(TINY))
    vectors = st.lists(
        st.integers(0, 9), min_size=len(problem.blocks), max_size=len(problem.blocks)
    )
    one, two = data.draw(vectors), data.draw(vectors)
    here, there = price_jobs(problem.rows, one), price_jobs(problem.rows, two)
    assert here is not None
    assert there is not None
    assert np.dot(here.load, one) == here.total
    assert np.dot(here.load, two) >= there.total


@share(5)
@given(st.data())
def test_no_prices_prove_more_than_the_program_over_options(data: st.DataObject) -> None:
    problem = data.draw(problems(UNIT))
    bound = bound_of(problem, data.draw(block_prices(problem)))
    assert at_most(float(bound), program(problem, Reference.LP_DW))


@share(4)
@given(st.data())
def test_cost_less_bound_is_the_sum_of_all_reduced_costs(data: st.DataObject) -> None:
    # Theory 6.7. In an optimal schedule no part is more than cost less bound, and none below 0.
    problem = data.draw(problems(PRICED))
    prices = data.draw(block_prices(problem))
    solution = solve(problem, threads=1, time_limit=PLENTY)
    if solution.cost is None:
        return
    schedule, taken = solution.schedule, dict[str, dict[str, int]]()
    for group in schedule.groups:
        for (block, name), each in group.assignment.items():
            mine = taken.setdefault(name, {})
            mine[block] = mine.get(block, 0) + each * group.count
    types = {machine.name: machine.cost for machine in problem.machine_types}
    on_machines, idle = Fraction(0), Fraction(0)
    for shape, number in schedule.machines.items():
        worth = worth_of(prices, shape.blocks)
        on_machines += number * (types[shape.machine or problem.machine_types[0].name] - worth)
        idle += number * worth
    reduced = []
    for job in problem.jobs:
        paid = worth_of(prices, taken.get(job.name, {}))
        idle -= paid
        table = [gives(job, block) for block in problem.blocks]
        cheapest = min(
            worth_of(prices, dict(zip(problem.blocks, option, strict=True)))
            for option in options(table, job.demand)
        )
        reduced.append(paid - cheapest)
    gap = solution.cost - bound_of(problem, prices)
    assert on_machines + idle + sum(reduced) == gap
    assert min([on_machines, idle, *reduced]) >= 0
