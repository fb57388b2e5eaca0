"""The compact integer program against enumeration."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from algorithms.ptas import optimum
from algorithms.ptas.compact import CompactProgram, Ended
from algorithms.ptas.fleet import Fleet, FleetFound
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, check
from cms.reduction.reduction import reduce
from instances import hard
from tests.algorithms.price_and_branch.parts import Unlimited
from tests.algorithms.prices.parts import cases
from tests.families import FAMILIES
from tests.samples import so_many, spread


def solved(
    problem: Problem, lowest: Fraction, highest: Fraction
) -> tuple[list[FleetFound], Fraction | None]:
    """What the program finds, and what it says that a schedule costs at least."""
    program = CompactProgram(Fleet(reduce(problem).problem), lowest, highest, Fraction(1, 2))
    assert program.too_large is None
    *found, last = program.run(Unlimited())
    assert isinstance(last, Ended)
    return [item for item in found if isinstance(item, FleetFound)], last.bound


@pytest.mark.parametrize("family", spread(6, sorted(FAMILIES.keys() - {"long_numbers"})))
def test_it_finds_what_enumeration_finds(family: str) -> None:
    for case in cases(family, so_many(4, 8)):
        fleet = Fleet(reduce(case.problem).problem)
        if not fleet.step:
            continue  # nothing to do, or nothing to pay
        step = fleet.step
        found, bound = solved(case.problem, Fraction(0), case.best + step)
        assert bound == case.best, case.name
        assert found[-1].cost == case.best, case.name
        costs = [item.cost for item in found]
        assert costs == sorted(costs, reverse=True)
        for item in found:
            schedule = reduce(case.problem).restore(fleet.schedule(item))
            assert not check(case.problem, schedule), case.name
        # Below the optimum there is nothing.
        assert solved(case.problem, Fraction(0), case.best) == ([], case.best), case.name


def test_a_bound_that_does_not_round_up_is_closed() -> None:
    assert solved(hard.NON_IRUP.make(), Fraction(2), Fraction(3)) == ([], 3)


def test_numbers_beyond_the_solver_are_named() -> None:
    large = Problem(
        configurations=Configuration({"a": 1, "b": 1}),
        jobs=[Job("x", 2**62 - 1, {"a": 2**61 + 1, "b": 2**61})],
    )
    assert reason(large).startswith("demands would be numbers beyond 2**60")
    far = Problem(
        configurations=[Configuration({"a": 1}, "m"), Configuration({"b": 1}, "n")],
        jobs=[Job("x", 5, {"a": 1}), Job("y", 1, {"b": 1})],
        machine_types=[MachineType("m", 1), MachineType("n", 10**20)],
    )
    assert reason(far, 2 * 10**20).startswith("costs of machines would be numbers beyond 2**60")


def reason(problem: Problem, highest: int = 9) -> str:
    """Why the program is not built."""
    fleet = Fleet(reduce(problem).problem)
    program = CompactProgram(fleet, Fraction(0), Fraction(highest), Fraction(1))
    assert program.too_large is not None
    return program.too_large


def test_a_common_divisor_of_what_a_job_is_given_is_taken_out() -> None:
    h = 10**18
    problem = Problem(
        configurations=SizeBoundedConfigurations({"a": 44, "b": 33, "c": 12}, 132),
        jobs=[
            Job("a", 2 * h, {"a": h}),
            Job("b", 3 * h, {"b": h}),
            Job("c", 6 * h - 1, {"c": h}),
        ],
    )
    assert solved(problem, Fraction(2), Fraction(3)) == ([], 3)


#: Primes far apart below a billion: costs with these denominators have no common step to speak of.
PRIMES = (1000033, 1000037, 1000039, 15485863, 179424673, 982451653)


@pytest.mark.parametrize("seed", range(12))
def test_costs_without_a_common_step_are_right_to_a_millionth(seed: int) -> None:
    rng = random.Random(seed)
    blocks = ["a", "b", "c"]
    types = [MachineType(f"m{p}", Fraction(rng.randint(p, 3 * p), p)) for p in PRIMES]
    problem = Problem(
        configurations=[
            Configuration({block: rng.randint(1, 2) for block in rng.sample(blocks, 2)}, one.name)
            for one in types
        ],
        jobs=[
            Job(f"x{j}", rng.randint(2, 6), {b: rng.randint(1, 3) for b in blocks}) for j in "pq"
        ],
        machine_types=types,
    )
    best = optimum(problem)
    fleet = Fleet(reduce(problem).problem)
    assert best is not None
    assert best.cost is not None
    assert fleet.step < Fraction(1, 2**40)
    program = CompactProgram(fleet, Fraction(0), 2 * best.cost, Fraction(1, 10))
    assert program.too_large is None
    *_, found, last = program.run(Unlimited())
    assert isinstance(found, FleetFound)
    assert isinstance(last, Ended)
    assert last.bound is not None
    near = 1 + Fraction(1, 2**20)
    assert last.bound <= best.cost <= found.cost < last.bound * near
    schedule = reduce(problem).restore(fleet.schedule(found))
    assert not check(problem, schedule)


def test_it_ends_when_it_is_stopped() -> None:
    budget = Unlimited()
    budget.stopped = True
    fleet = Fleet(reduce(hard.NON_IRUP.make()).problem)
    program = CompactProgram(fleet, Fraction(0), Fraction(9), Fraction(1))
    assert list(program.run(budget)) == [Ended(None)]
