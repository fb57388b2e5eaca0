"""The genetic operators: a child serves all jobs, and is counted right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.mig_serving.genetic import Deployment
from algorithms.mig_serving.services import Services
from algorithms.mig_serving.tree_search import Path
from cms import Configuration, Job, Problem
from instances.families import generate
from tests.algorithms.mig_serving.parts import PROBLEMS, Parts, assert_legal, assert_serves, parts
from tests.property.problems import share


def some_deployment(made: Parts) -> Deployment:
    path = made.search.playout(made.services.needs)
    assert path is not None
    return made.genetic.deployment(path.machines)


def blocks_of_jobs(services: Services, deployment: Deployment) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for machine in deployment.machines:
        for i, j, number in machine.blocks:
            found[i, j] += number
    return found


def assert_counted(services: Services, deployment: Deployment) -> None:
    assert_serves(services, deployment.machines)
    assert deployment.cost == services.cost(deployment.machines)
    spare = -sum(
        left * float(alone) / need
        for left, alone, need in zip(
            services.missing(deployment.machines), services.alone, services.needs, strict=True
        )
    )
    assert abs(deployment.spare - spare) < 1e-9 * (1 + spare)


@share(2)
@given(PROBLEMS, st.integers(0, 5))
def test_mutation_keeps_every_jobs_blocks(problem: Problem, seed: int) -> None:
    made = parts(problem, seed, exchanges=20)
    before = some_deployment(made)
    after = made.genetic.mutated(before)
    assert_counted(made.services, after)
    assert [m.shape for m in after.machines] == [m.shape for m in before.machines]
    assert blocks_of_jobs(made.services, after) == blocks_of_jobs(made.services, before)


def test_mutation_mixes_jobs() -> None:
    made = parts(
        Problem(
            configurations=Configuration({"b": 3}),
            jobs=[Job("x", 3, {"b": 1}), Job("y", 3, {"b": 1})],
        ),
        exchanges=1,
    )
    alone = [made.services.filled(0, [(0, j, 3)]) for j in (0, 1)]
    mixed = made.genetic.mutated(made.genetic.deployment(alone))
    assert sorted(m.blocks for m in mixed.machines) == [
        ((0, 0, 1), (0, 1, 2)),
        ((0, 0, 2), (0, 1, 1)),
    ]


@share(2)
@given(PROBLEMS, st.integers(0, 5), st.sampled_from((0, "1/2", 1)), st.sampled_from((0, 1)))
def test_crossover_serves_all_jobs(
    problem: Problem, seed: int, erased: object, merging: int
) -> None:
    made = parts(problem, seed, erased=erased, merging=merging, playouts=4)
    parent = some_deployment(made)
    child = made.genetic.crossed(parent)
    assert child is not None
    assert_counted(made.services, child)


def test_crossover_erases_and_serves_again() -> None:
    problem = generate("real-rows", n=8, seed=0)
    made = parts(problem, merging=0, erased=1)
    parent = some_deployment(made)
    children = [made.genetic.crossed(parent) for _ in range(5)]
    assert all(child is not None and child.cost <= parent.cost for child in children)
    assert any(child is not None and child.cost < parent.cost for child in children)


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


def test_merging_two_small_instances_into_a_large_one() -> None:
    made = parts(
        Problem(
            configurations=[Configuration({"1g": 3}), Configuration({"2g": 1, "1g": 1})],
            jobs=[Job("x", 10, {"1g": 1, "2g": 3}), Job("y", 10, {"1g": 1})],
        )
    )
    services = made.services
    one, two = (
        services.tables.problem.blocks.index("1g"),
        services.tables.problem.blocks.index("2g"),
    )
    machine = services.filled(0, [(one, 0, 2), (one, 1, 1)])
    after = made.genetic.merged(machine, [5, 5])
    assert sorted(after.blocks) == sorted([(two, 0, 1), (one, 1, 1)])


@share(2)
@given(PROBLEMS)
def test_a_deployment_has_no_machine_it_can_do_without(problem: Problem) -> None:
    made = parts(problem)
    path = made.search.playout(made.services.needs)
    assert path is not None
    twice = made.genetic.deployment([*path.machines, *path.machines])
    assert_counted(made.services, twice)
    left = made.services.missing(twice.machines)
    for machine in twice.machines:
        assert any(left[j] + amount > 0 for j, amount in machine.gives)


def test_the_fitter_is_cheaper_and_then_has_more_to_spare() -> None:
    cheap, dear = Deployment((), 3, 0.0), Deployment((), 4, 2.0)
    assert cheap.fitness < dear.fitness
    assert Deployment((), 3, 0.5).fitness < cheap.fitness


class Running:
    """Of a budget, what the genetic algorithm looks at."""

    stopped = False


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
    found = made.genetic.improvements([Deployment((), 10, 0.0)], Running())  # type: ignore[arg-type]
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


def test_crossover_merges_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parts(generate("real-rows", n=8, seed=0), merging=1, erased=0)
    parent = some_deployment(made)
    marked = made.services.filled(0, [])  # a machine that gives nobody anything
    monkeypatch.setattr(made.genetic, "merged", lambda machine, missing: marked)
    seen: list[Sequence[int]] = []
    best = made.search.best

    def asked(missing: Sequence[int], budget: object) -> Path | None:
        seen.append(missing)
        return best(missing)

    monkeypatch.setattr(made.search, "best", asked)
    child = made.genetic.crossed(parent)
    assert child is not None
    # two machines are gone, the one erased and the one merged away: the search serves both
    lost = [a - b for a, b in zip(seen[0], made.services.missing(parent.machines), strict=True)]
    given = [dict(machine.gives) for machine in parent.machines]
    assert any(
        lost == [one.get(j, 0) + other.get(j, 0) for j in range(8)]
        for one, other in combinations(given, 2)
    )
    assert_serves(made.services, child.machines)


def test_nothing_is_merged_where_it_is_not_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parts(generate("real-rows", n=8, seed=0), merging=0)

    def refused(machine: object, missing: object) -> None:
        raise AssertionError("merged all the same")

    monkeypatch.setattr(made.genetic, "merged", refused)
    parent = some_deployment(made)
    for _ in range(10):
        assert made.genetic.crossed(parent) is not None
