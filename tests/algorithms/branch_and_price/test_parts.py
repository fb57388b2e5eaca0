"""What the method is made of: options, covers, dives, rounding and programs, by definition."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.branch_and_price.covers import cover
from algorithms.branch_and_price.dive import Dive, Dived, Diver
from algorithms.branch_and_price.mixture_rounding import Undecided
from algorithms.branch_and_price.options import minimal_options
from algorithms.branch_and_price.program import (
    Answer,
    Task,
    close,
    every_block,
    improvements,
    shortened,
    solver_bound,
)
from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.jobs import Jobs
from algorithms.prices.limits import Limit, Room
from algorithms.prices.region import Region, configuration_of
from algorithms.prices.region import Row as MachineRow
from algorithms.prices.taken_options import choices_of
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    Schedule,
    SizeBoundedConfigurations,
    SolverBound,
    check,
)
from cms.plugin.algorithm import Budget
from cms.problem.row import Row
from tests.algorithms.branch_and_price.parts import Unlimited, reduced, single
from tests.families import instance
from tests.oracle import optimum
from tests.samples import few


def test_options_that_are_too_many_are_given_up_at_once() -> None:
    # equal ratios: about 10**8 ways to mix the two types
    assert minimal_options([2, 3], [2, 3], 10**9, 10**9 + 10, most=100) is None


SCALE = 27720
pieces = st.lists(st.tuples(st.integers(2, 9), st.integers(1, 2)), min_size=1, max_size=3)


@given(pieces, st.integers(9, 14), st.integers(1, 3), st.booleans())
@example([(6, 1), (5, 2), (4, 2)], 12, 2, True)
def test_machines_are_found_within_a_cost_exactly_if_there_are_any(
    given: list[tuple[int, int]], capacity: int, most: int, limited: bool
) -> None:
    """Prices that sizes make lose what a machine is filled to less than its capacity."""
    sizes, wanted = zip(*sorted(dict(given).items()), strict=True)
    blocks = [f"b{i}" for i in range(len(sizes))]
    problem = Problem(
        configurations=SizeBoundedConfigurations(dict(zip(blocks, sizes, strict=True)), capacity),
        jobs=[Job(b, n, {b: 1}) for b, n in zip(blocks, wanted, strict=True)],
        machine_types=[MachineType("machine", limit=99)],
    )
    prices = [size * SCALE // capacity for size in sizes]
    slack = most * SCALE - sum(p * n for p, n in zip(prices, wanted, strict=True))
    room = Room([Limit("machine", {0: 1}, most)] if limited else [])
    found, none = cover(Region(problem), wanted, prices, [SCALE], slack, room, Unlimited())
    best = optimum(problem)
    assert best is not None
    assert (bool(found), none) == (best <= most, best > most)
    if found:
        assert len(found) <= most
        assert [*map(sum, zip(*(row.counts for row in found), strict=True))] == [*wanted]


def needs(load: Sequence[int], problem: Problem) -> Problem:
    """The same machines for jobs that want these blocks and no others."""
    pairs = zip(problem.blocks, load, strict=True)
    return Problem(
        configurations=problem.configurations,
        machine_types=problem.machine_types,
        jobs=[Job(block, n, {block: 1}) for block, n in pairs],
    )


def decided(load: Sequence[int]) -> Undecided:
    return Undecided(choices_of([(0, tuple(load), 1)], len(load)), {})


def diver_of(region: Region, budget: Budget | None = None) -> Diver:
    diver = Diver(Jobs(cast("Problem", region.problem)), region, budget or Unlimited())
    diver.rows |= dict.fromkeys(region.rows)
    return diver


def dives(
    diver: Diver, load: Sequence[int], target: int | Fraction, below: Fraction | None = None
) -> Iterator[Dived]:
    return diver.dives(decided(load), Fraction(target), below, slice(40))


def refuse_what_holds_too_little(
    dived: Dived, load: Sequence[int], problem: Problem, region: Region
) -> None:
    """Hand all blocks to jobs that want just these; the package's check says what is wrong."""
    machines = {configuration_of(problem, row): n for row, n in dived.machines.items()}
    given = {(block, block): n for block, n in zip(problem.blocks, load, strict=True) if n}
    schedule = Schedule.from_counts(needs(load, problem), machines, given)
    assert check(needs(load, problem), schedule) == ()
    assert dived.cost == sum(n * region.costs[row.machine] for row, n in dived.machines.items())


def random_machines(rng: random.Random) -> Problem:
    """One or two sets, perhaps beside listed configurations; jobs that could use any load."""
    blocks = "abcd"[: rng.randint(1, 4)]
    types = [
        MachineType(name, rng.choice(["1", "1", "2", "7/3", "0"]), rng.choice([None, None, 1, 2]))
        for name in "mno"
    ]
    sets = [
        SizeBoundedConfigurations(
            {block: rng.randint(2, 9) for block in rng.sample(blocks, rng.randint(1, len(blocks)))},
            rng.randint(9, 20),
            name,
            max_blocks=rng.choice([None, None, 3]),
        )
        for name in "mn"[: rng.randint(1, 2)]
    ]
    last = SizeBoundedConfigurations(dict.fromkeys(blocks, 5), 12, "all")
    listed = [
        Configuration({rng.choice(blocks): rng.randint(1, 4), rng.choice(blocks): 1}, "o")
        for _ in range(rng.randint(0, 2))
    ]
    return Problem(
        configurations=[*sets, last, *listed],
        jobs=[Job(block, rng.randint(6, 20), {block: 1}) for block in blocks],
        machine_types=[*types, MachineType("all", 3, rng.choice([None, None, 4]))],
    )


@pytest.mark.parametrize("part", few(1, range(4)))
def test_machines_hold_the_blocks_and_are_seldom_dearer_than_any_others(part: int) -> None:
    """And what a dive says that blocks cost at least, over all contents, they do cost."""
    best, tasks, told = 0, 0, 0
    for seed in range(60 * part, 60 * part + 60):
        rng = random.Random(seed)
        problem = random_machines(rng)
        region, load = Region(problem), [rng.randint(0, 6) for _ in problem.blocks]
        least = optimum(needs(load, problem))
        found = list(dives(diver_of(region), load, least or Fraction(0)))
        for dived in found:
            refuse_what_holds_too_little(dived, load, problem, region)
        costs = [dived.cost for dived in found]
        assert costs == sorted(set(costs), reverse=True)
        if least is None:
            assert not found
            continue
        assert all(cost >= least for cost in costs)
        dive = Dive(diver_of(region), decided(load))
        dive.run(frozenset(), None)
        assert dive.least is None or dive.least <= least
        told += dive.least is not None and dive.least > least - 1
        tasks += 1
        best += bool(found) and costs[-1] == least
    # What there are whole machines of is kept, which may be one too many.
    assert best >= 0.85 * tasks > 40
    assert told > 60 * 5 // 8


def test_machines_of_a_set_and_of_an_equal_listed_configuration_add_up() -> None:
    shape = Configuration({"a": 3}, "m")
    sets = SizeBoundedConfigurations({"a": 1}, 3, "m")
    problem = Problem(
        configurations=[shape, sets],
        jobs=[Job("x", 30, {"a": 1})],
        machine_types=[MachineType("m")],
    )
    machines = {MachineRow((3,), 0, None): 9, MachineRow((3,), 0, shape): 1}
    dived = Dived(Fraction(10), machines, choices_of([(0, (30,), 1)], 1))
    assert check(problem, dived.schedule(Jobs(problem))) == ()


NOTHING = Fraction(0)


@pytest.mark.parametrize(
    ("answer", "target", "expected"),
    [
        (Answer("infeasible", None), None, SolverBound(None, "CP-SAT")),
        (Answer("infeasible", None), 7, SolverBound("7.5", "CP-SAT")),
        (Answer("infeasible", None, None, exact=False), 7, None),
        (Answer("unknown", None, Fraction(6)), 7, SolverBound(6, "CP-SAT")),
        (Answer("unknown", None, Fraction(9)), 7, SolverBound("7.5", "CP-SAT")),
        (Answer("unknown", None, Fraction(9)), None, SolverBound(9, "CP-SAT")),
        (Answer("unknown", None), 7, None),
    ],
)
def test_an_answer_holds_for_costs_up_to_the_target(
    answer: Answer, target: int | None, expected: SolverBound | None
) -> None:
    jobs = reduced(instance("costs", 3))
    task = every_block(jobs, Fraction(0), None if target is None else Fraction(target))
    assert solver_bound(answer, task, Fraction(1, 2)) == expected


@given(st.integers(1, 10**60), st.lists(st.integers(0, 10**61), min_size=1, max_size=4))
def test_what_serves_a_shortened_row_serves_the_job(demand: int, supply: list[int]) -> None:
    row = Row(demand, tuple(supply), 1)
    inner, outer = shortened(row), shortened(row, outer=True)
    assert inner.demand <= 2**40 or inner == row._replace(supply=inner.supply)
    rng = random.Random(demand)
    for _ in range(20):
        option = [rng.choice([0, rng.randint(0, 10), -(-demand // f) if f else 0]) for f in supply]

        def enough(given: Row, option: list[int] = option) -> bool:
            return sum(f * n for f, n in zip(given.supply, option, strict=True)) >= given.demand

        assert not enough(inner) or enough(row)
        assert not enough(row) or enough(outer)


@pytest.mark.parametrize("exponent", [25, 40, 400])
def test_a_program_out_of_range_is_too_large_and_proves_nothing(exponent: int) -> None:
    problem = single({"a": 2}, 10**exponent, {"a": 3})
    jobs, shapes = Jobs(problem), Shapes(problem, ())
    fixed = Task(choices_of([(0, (10**exponent,), 1)], 1), {}, (), NOTHING, None)
    for task in (fixed, every_block(jobs, NOTHING, None, outer=True)):
        answer = close(shapes, jobs, task, Unlimited(), nodes=10, effort=1.0)
        assert answer == Answer("too large", None, exact=False)
        assert list(improvements(shapes, jobs, task, Unlimited())) == [answer]
        assert solver_bound(answer, task, Fraction(1)) is None
    # A short row has nothing left of a supply of 3: finding nothing is no proof.
    inner = close(shapes, jobs, every_block(jobs, NOTHING, None), Unlimited(), effort=1.0)
    assert (inner.status, inner.exact) == ("infeasible", False)
