"""Diving: machines that hold given blocks, against the optimum that enumeration finds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import cast

import pytest

from algorithms.branch_and_price.dive import Dive, Dived, Diver
from algorithms.branch_and_price.rounding import Undecided
from algorithms.prices.choices import choices_of
from algorithms.prices.jobs import Jobs
from algorithms.prices.region import Region, Row, configuration_of
from cms import Configuration, Job, MachineType, Problem, Schedule, SizeBoundedConfigurations, check
from cms.plugin.algorithm import Budget
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.oracle import optimum
from tests.samples import few


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
    machines = {Row((3,), 0, None): 9, Row((3,), 0, shape): 1}
    dived = Dived(Fraction(10), machines, choices_of([(0, (30,), 1)], 1))
    assert check(problem, dived.schedule(Jobs(problem))) == ()
