"""The genetic operators: a child serves all jobs, and is counted right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms.mig_serving.search as genetic
from algorithms.mig_serving.fast import Filled, Services
from algorithms.mig_serving.search import Deployment
from cms import Configuration, Job, Problem
from instances.families import generate
from tests.algorithms.mig_serving.parts import PROBLEMS, Parts, assert_legal, assert_serves, parts
from tests.property.problems import share


def some_deployment(made: Parts, times: int = 1) -> Deployment:
    path = made.search.playout(made.services.needs)
    assert path is not None
    return made.genetic.deployment(path.machines * times)


def blocks_of_jobs(deployment: Deployment) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for machine in deployment.machines:
        for i, j, number in machine.blocks:
            found[i, j] += number
    return found


def assert_counted(services: Services, deployment: Deployment) -> None:
    assert_serves(services, deployment.machines)
    assert deployment.cost == services.cost(deployment.machines)
    left = services.missing(deployment.machines)
    parts_of_machines = zip(left, services.alone, services.needs, strict=True)
    spare = -sum(lack * float(alone) / need for lack, alone, need in parts_of_machines)
    assert abs(deployment.spare - spare) < 1e-9 * (1 + spare)


@share(2)
@given(PROBLEMS, st.integers(0, 5))
def test_mutation_keeps_every_jobs_blocks(problem: Problem, seed: int) -> None:
    made = parts(problem, seed)
    before = some_deployment(made)
    after = made.genetic.mutated(before)
    assert_counted(made.services, after)
    assert [m.shape for m in after.machines] == [m.shape for m in before.machines]
    assert blocks_of_jobs(after) == blocks_of_jobs(before)


def test_mutation_mixes_jobs() -> None:
    jobs = [Job(name, 3, {"b": 1}) for name in "xy"]
    made = parts(Problem(configurations=Configuration({"b": 3}), jobs=jobs))
    alone = made.genetic.deployment([made.services.filled(0, [(0, j, 3)]) for j in (0, 1)])
    mixed = [made.genetic.mutated(alone) for _ in range(5)]
    assert any(len(machine.gives) == 2 for each in mixed for machine in each.machines)


@share(2)
@given(PROBLEMS, st.integers(0, 5), st.sampled_from((0, "1/2", 1)))
def test_crossover_serves_all_jobs(problem: Problem, seed: int, erased: object) -> None:
    made = parts(problem, seed, erased=erased, playouts=4)
    parent = some_deployment(made)
    for _ in range(3):
        child = made.genetic.crossed(parent)
        assert child is not None
        assert_counted(made.services, child)


@pytest.mark.parametrize("chance", [0, 1])
def test_crossover_erases_serves_again_and_merges_with_its_chance(
    chance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(genetic, "_MERGING", chance)
    made = parts(generate("real-rows", n=8, seed=0), erased=1)
    asked, merged = [], made.genetic.merged

    def watched(machine: Filled, missing: Sequence[int]) -> Filled:
        asked.append(machine)
        return merged(machine, missing)

    monkeypatch.setattr(made.genetic, "merged", watched)
    parent = some_deployment(made)
    costs = [child.cost for _ in range(5) if (child := made.genetic.crossed(parent))]
    assert min(costs) < parent.cost
    assert bool(asked) == bool(chance)


@share(2)
@given(PROBLEMS, st.integers(0, 5))
def test_merging_makes_one_larger_block_of_several(problem: Problem, seed: int) -> None:
    made = parts(problem, seed)
    services = made.services
    deployment = some_deployment(made)
    missing = services.missing(deployment.machines)
    for machine in deployment.machines:
        after = made.genetic.merged(machine, missing)
        assert_legal(services, after)
        if after == machine:
            continue
        before = {(i, j): number for i, j, number in machine.blocks}
        now = {(i, j): number for i, j, number in after.blocks}
        # some job has a block that gives more than any it had; those of the others are there still
        assert any(
            sum(number for (_, job), number in before.items() if job == j) > 1
            and max(services.supply[j][i] for i, job in now if job == j)
            > max(services.supply[j][i] for i, job in before if job == j)
            and all(now.get(edge, 0) >= x for edge, x in before.items() if edge[1] != j)
            for j in {j for _, j in before} & {j for _, j in now}
        )


@pytest.mark.parametrize(
    ("mixed", "missing", "handed"),
    [(3, [5, 5, 9], ((0, 1, 1), (0, 2, 1), (1, 0, 1))), (2, [5, 7, 9], ((0, 1, 2), (1, 0, 1)))],
)
def test_two_small_instances_are_merged_and_idle_blocks_go_where_they_count_most(
    mixed: int, missing: list[int], handed: object
) -> None:
    supply = {"1g": 1, "2g": 3}
    jobs = [Job("x", 10, supply), Job("y", 10, {"1g": 1}), Job("z", 10, {"1g": 1})]
    shapes = [Configuration({"1g": 3}), Configuration({"2g": 1, "1g": 2})]
    made = parts(Problem(configurations=shapes, jobs=jobs), mixed=mixed)
    assert made.services.tables.problem.blocks == ("1g", "2g")
    machine = made.services.filled(0, [(0, 0, 2), (0, 1, 1)])
    assert made.genetic.merged(machine, missing).blocks == handed


@share(2)
@given(PROBLEMS)
def test_a_deployment_has_no_machine_it_can_do_without(problem: Problem) -> None:
    made = parts(problem)
    twice = some_deployment(made, 2)
    assert_counted(made.services, twice)
    left = made.services.missing(twice.machines)
    for machine in twice.machines:
        assert any(left[j] + amount > 0 for j, amount in machine.gives)


def rounds(
    monkeypatch: pytest.MonkeyPatch, costs: list[int], **options: Any
) -> tuple[list[tuple[int, int]], list[Deployment]]:
    """Run with children of these costs, one after the other; the parents that were asked."""
    made = parts(generate("real-rows", n=4, seed=0), **options)
    parents: list[Deployment] = []
    left = iter(costs)

    def child(parent: Deployment, budget: object) -> Deployment:
        parents.append(parent)
        return Deployment((), next(left), float(len(parents)))

    monkeypatch.setattr(made.genetic, "mutated", lambda deployment: deployment)
    monkeypatch.setattr(made.genetic, "crossed", child)
    found = made.genetic.improvements(Deployment((), 10, 0.0))
    return [(deployment.cost, turn) for deployment, turn in found], parents


def test_it_ends_after_rounds_without_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = [10, 9, 12, 9, 8, 9, 9, 9, 9, 9, 9, 9]
    found, parents = rounds(monkeypatch, costs, population=1, rounds_without_gain=3)
    # a gain begins the count anew
    assert found == [(9, 2), (8, 5)]
    assert len(parents) == 8


def test_the_fittest_are_the_next_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = [12, 9, 11, 9, 13, 13, 10, 13, 13]
    _, parents = rounds(monkeypatch, costs, population=3, rounds_without_gain=2)
    assert [parent.cost for parent in parents[:3]] == [10, 10, 10]
    # 9, 10 and 11 of the first round's four; then both of cost 9, that with more to spare first
    assert [parent.cost for parent in parents[3:6]] == [9, 10, 11]
    assert [parent.fitness for parent in parents[6:9]] == [(9, -4.0), (9, -2.0), (10, 0.0)]
