"""Branching: certificates that reach the optimum, checked also by the second checker."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.branch_and_price.candidates import CONTENTS, mixture, splits
from algorithms.branch_and_price.tree import prove_cost, prove_infeasible
from algorithms.prices.jobs import Jobs
from algorithms.prices.region import Row
from algorithms.prices.search import PriceSearch
from cms import (
    Branch,
    Certificate,
    Configuration,
    Job,
    MachinesWith,
    MachineType,
    Problem,
    Schedule,
    SizeBoundedConfigurations,
    check,
)
from instances import hard
from instances.families import generate
from tests.algorithms.branch_and_price.branched import ask_the_second_checker, proof
from tests.algorithms.branch_and_price.parts import Counting, Unlimited
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.references.named import EVERY, HARD
from tests.samples import few, no_round_up

#: A second or two.
SLOW = {"set-cover-f2-4"}


@pytest.mark.parametrize("name", [*sorted(HARD - SLOW), *few(0, sorted(SLOW))])
def test_worst_cases_of_the_theory_are_proved(name: str) -> None:
    problem, known = EVERY[name].make(), EVERY[name].optimum
    assert proof(problem, known).bound == known


@pytest.mark.parametrize("name", few(1, ["set-cover-f2-3", "set-cover-f2-4"]))
def test_set_covers_from_nothing_end_with_a_schedule_and_a_tree(name: str) -> None:
    problem, known = EVERY[name].make(), EVERY[name].optimum
    found = proof(problem, None)
    assert found.schedule is not None
    assert found.schedule.cost(problem) == found.bound == known
    assert isinstance(found.certificate, Branch)


def test_machines_of_a_size_bounded_set_are_told_apart_by_what_they_have() -> None:
    """Cutting stock without round-up: of totals all are whole, of machines with some blocks not."""
    problem = no_round_up()
    found = proof(problem, None)
    assert found.bound == 6
    assert isinstance(found.certificate, Branch)
    assert found.schedule is not None
    assert found.schedule.cost(problem) == 6


def test_few_numbers_tell_machines_of_very_many_blocks_apart() -> None:
    """Of all pairs of numbers there are 10^10."""
    wanted = 10**5
    problem = Problem(
        configurations=SizeBoundedConfigurations({"a": 1, "b": 1}, 2 * wanted),
        jobs=[Job(name, wanted, {name: 1}) for name in "ab"],
    )
    search = PriceSearch(Jobs(problem), Unlimited())
    list(search.run())
    half = Fraction(1, 2)
    contents = [(wanted, 0), (wanted, wanted - 1), (0, wanted - 1), (0, 0)]
    machines = [(Row(counts, 0, None), half) for counts in contents]
    found = mixture(search)._replace(machines=machines)
    branches = {split.quantity for split in splits(search, found) if split.rank == CONTENTS}
    full = Configuration({"a": wanted, "b": wanted - 1}, "machine")
    assert MachinesWith(full) in branches
    assert len(branches) < 10


#: Of a machine of cost 5 beside those of cost 2 in ``pairs``: no bargain, but a cost step of 1.
NO_BARGAIN = Configuration({"x": 1, "y": 1, "z": 2}, "other")


def pairs(demand: int, *more: Configuration | SizeBoundedConfigurations, other: int = 1) -> Problem:
    """Machines of cost 2 with two of three blocks each, and others."""
    shapes = [Configuration({a: 1, b: 1}, "machine") for a, b in ("xy", "yz", "xz")]
    known = [s.sizes if isinstance(s, SizeBoundedConfigurations) else s.blocks for s in more]
    giant = {"giant": 100} if any("giant" in blocks for blocks in known) else {}
    return Problem(
        configurations=[*more, *shapes],
        jobs=[
            *(Job(name, demand, {name: 1, **giant}) for name in "xyz"),
            Job("idle", 0, {"x": 1}),
        ],
        machine_types=[MachineType("machine", cost=2), MachineType("other", cost=other)],
    )


@pytest.mark.long
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_families_are_proved_from_the_optimum_and_from_nothing(family: str) -> None:
    for number in range(1000, 1012):
        problem = instance(family, number)
        best = optimum(problem)
        if best is None or not problem.cost_step:
            continue
        known = proof(problem, best)
        assert known.bound == best, number
        assert known.schedule is None
        nothing = proof(problem, None)
        assert nothing.bound == best, number
        if not problem.size_bounded_configurations and best:
            assert nothing.schedule is not None
            assert nothing.schedule.cost(problem) == best


@pytest.mark.long
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_what_has_no_schedule_is_proved_to_have_none(family: str) -> None:
    """All but cutting stock in a size-bounded set, whose branches may be too many."""
    for number in range(1000, 1020):
        problem = instance(family, number)
        claims = list(prove_infeasible(problem, Unlimited(), most_nodes=200))
        if optimum(problem) is not None:
            for claim in claims:
                assert isinstance(claim, Schedule)
                assert check(problem, claim) == ()
        elif not problem.size_bounded_configurations:
            (claim,) = claims
            assert isinstance(claim, Certificate)
            assert claim.proves_infeasible(problem), number
            ask_the_second_checker(problem, claim)


@pytest.mark.long
def test_a_ray_below_every_leaf_where_the_root_has_none() -> None:
    problem = generate("mixed-fleet", n=10, seed=1, types=3, cost_step="1/2")
    few = [
        MachineType(machine.name, machine.cost, limit)
        for machine, limit in zip(problem.machine_types, (3, 2, 2), strict=True)
    ]
    (claim,) = prove_infeasible(problem.replace(machine_types=few), Unlimited(), most_nodes=400)
    assert isinstance(claim, Branch)
    assert claim.proves_infeasible(problem.replace(machine_types=few))
    more = [MachineType(machine.name, machine.cost, 4) for machine in problem.machine_types]
    enough = problem.replace(machine_types=more)
    (schedule,) = prove_infeasible(enough, Unlimited(), most_nodes=400)
    assert isinstance(schedule, Schedule)
    assert check(enough, schedule) == ()


def test_certificates_hold_for_configurations_that_others_beat() -> None:
    """Below a branch on blocks a machine with fewer of them may be worth more."""
    beaten = [Configuration({block: 1}, "machine") for block in "xyz"]
    idle = [
        Configuration({"x": 1, "useless": 3}, "machine"),
        Configuration({"useless": 1}, "machine"),
    ]
    found = proof(pairs(5, *beaten, *idle, beaten[0], NO_BARGAIN, other=5), None)
    assert found.bound == 2 * 8
    assert isinstance(found.certificate, Branch)


def test_machines_of_no_cost_are_not_branched_on() -> None:
    """They may be rounded up; what the others cost decides."""
    problem = Problem(
        configurations=[
            Configuration({"a": 2}, "free"),
            *(Configuration({a: 1, b: 1}, "dear") for a, b in ("xy", "yz", "xz")),
        ],
        jobs=[Job("j", 7, {"a": 2}), *(Job(name, 3, {name: 1, "a": "0.1"}) for name in "xyz")],
        machine_types=[MachineType("free", 0), MachineType("dear", 2), MachineType("odd", 1)],
    )
    assert optimum(problem) == 0
    found = proof(problem, None)
    assert found.schedule is not None
    assert found.schedule.cost(problem) == 0


def test_the_limit_on_nodes_still_leaves_a_certificate() -> None:
    problem = hard.SET_COVER_F2_3.make()
    bounds = [proof(problem, 3, most_nodes=nodes).bound for nodes in (1, 7, 400)]
    assert bounds == sorted(bounds)
    assert 2 == bounds[0] < bounds[-1] == 3


def test_a_depth_that_certificates_cannot_have_is_not_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("algorithms.branch_and_price.tree.LARGEST_DEPTH", 3)
    found = proof(hard.SET_COVER_F2_4.make(), 4)
    assert found.bound < 4
    for claim in found.claims:
        assert isinstance(claim, Certificate)
        assert all(len(leaf.multipliers) <= 3 for leaf in claim.leaves())


@pytest.mark.parametrize("questions", [3, 30, 100, 300])
def test_stopped_anywhere_what_was_claimed_holds(questions: int) -> None:
    problem = generate("mixed-fleet", n=10, seed=1, types=3, cost_step="0.01")
    for claim in prove_cost(problem, Counting(questions), None, most_nodes=60):
        if isinstance(claim, Schedule):
            assert check(problem, claim) == ()
        else:
            assert claim.bound(problem) <= Fraction("10.7")


@pytest.mark.long
def test_leaves_are_written_in_short_numbers() -> None:
    problem = generate("mixed-fleet", n=12, seed=1, types=5, cost_step="0.01")
    found = proof(problem, Fraction("11.14"))
    assert found.certificate is not None
    assert found.bound == Fraction("11.14")
    numbers = [
        number
        for leaf in found.certificate.leaves()
        for number in (*leaf.prices.values(), *leaf.multipliers)
    ]
    assert len(numbers) > 50
    assert sorted(number.denominator for number in numbers)[len(numbers) * 9 // 10] <= 10**6
