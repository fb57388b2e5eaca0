"""MIG-serving: scores, tree search and genetic operators by definition, and the whole pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from algorithms.integer_problem import Tables
from algorithms.mig_serving.fast import Candidates, Filled, Services
from algorithms.mig_serving.search import Deployment, Genetic, MigServingOptions, Path, TreeSearch
from cms import Configuration, Job, Problem, Status, StopReason, check, load_instance, presolve
from instances.families import generate
from tests.families import FAMILIES
from tests.oracle import optimum
from tests.property.problems import problems, share
from tests.samples import few


class Parts(NamedTuple):
    """The parts of a run on one problem, which share one source of randomness."""

    services: Services
    candidates: Candidates
    search: TreeSearch
    genetic: Genetic


def parts(problem: Problem, seed: int = 0, **options: object) -> Parts:
    chosen = MigServingOptions(**options)  # type: ignore[arg-type]
    services = Services(Tables.of(presolve(problem).problem))
    candidates, random = Candidates(services, chosen), Random(seed)
    search = TreeSearch(services, candidates, chosen, random)
    return Parts(services, candidates, search, Genetic(services, search, chosen, random))


def usable(problem: Problem) -> bool:
    """Whether there is a job to be served, each can be, and machines have few blocks."""
    tables = Tables.of(presolve(problem).problem)
    return bool(tables.n) and not tables.unservable and max(map(sum, tables.counts)) <= 7


#: Families that MIG-serving's algorithms take: no limits, and machines that cost something.
REFUSED = ("costs", "edges", "limits", "groups", "infeasible_by_limit")
TAKEN = [family for family in FAMILIES if family not in REFUSED]
PROBLEMS: st.SearchStrategy[Problem] = problems(TAKEN).filter(usable)


def assert_legal(services: Services, machine: Filled) -> None:
    """No block is handed out that the configuration does not have; jobs get what these give."""
    held = [0] * services.tables.k
    gives: dict[int, int] = {}
    for i, j, number in machine.blocks:
        assert number > 0
        held[i] += number
        gives[j] = gives.get(j, 0) + number * services.supply[j][i]
    row = services.tables.counts[machine.shape]
    assert all(a <= b for a, b in zip(held, row, strict=True))
    assert machine.gives == tuple(sorted(gives.items()))


def score(services: Services, machine: Filled, missing: Sequence[int], *, capped: bool) -> Fraction:
    """The score by its definition, in rationals."""
    total = Fraction(0)
    for j, amount in machine.gives:
        left = Fraction(max(0, missing[j]), services.needs[j])
        worth = Fraction(amount, services.needs[j])
        total += left * (min(worth, left) if capped else worth)
    return total / services.tables.costs[machine.shape]


def every_machine(services: Services, jobs: Sequence[int], mixed: int) -> list[Filled]:
    """All ways to give every block of every configuration to one of the jobs."""
    found: dict[Filled, None] = {}
    for shape, row in enumerate(services.tables.counts):
        blocks = [i for i, count in enumerate(row) for _ in range(count)]
        for way in product(jobs, repeat=len(blocks)):
            if len(set(way)) <= mixed:
                given: dict[tuple[int, int], int] = {}
                for i, j in zip(blocks, way, strict=True):
                    given[i, j] = given.get((i, j), 0) + 1
                found[services.filled(shape, [(i, j, x) for (i, j), x in given.items()])] = None
    return list(found)


@given(PROBLEMS, st.integers(1, 2), st.booleans(), st.data())
def test_the_best_machine_is_the_best_of_all(
    problem: Problem, mixed: int, capped: bool, data: st.DataObject
) -> None:
    services, candidates, *_ = parts(problem, mixed=mixed, last_mile=0)
    missing = [data.draw(st.integers(1, need)) for need in services.needs]
    jobs = list(range(len(missing)))[:3]
    found = candidates.top(jobs, missing, keep=5, capped=capped)
    for machine in found:
        assert_legal(services, machine)
        assert len(machine.gives) <= mixed
        assert any(missing[j] > 0 for j, _ in machine.gives)
    scores = [float(score(services, machine, missing, capped=capped)) for machine in found]
    known = max(
        score(services, machine, missing, capped=capped)
        for machine in every_machine(services, jobs, mixed)
    )
    # Floats choose, so the order is right but for equals.
    assert scores[0] == pytest.approx(float(known), rel=1e-12)
    assert scores == pytest.approx(sorted(scores, reverse=True), rel=1e-12)


def test_in_the_last_mile_one_job_more_is_mixed_and_scores_are_capped() -> None:
    jobs = [Job(name, 101, {"b": 10}) for name in "wxyz"]
    candidates = parts(Problem(configurations=Configuration({"b": 4}), jobs=jobs)).candidates
    for missing, capped, mixed in ((11, True, 3), (11, False, 1), (10, True, 4), (10, False, 4)):
        [best] = candidates.top([0, 1, 2, 3], [missing] * 4, keep=1, capped=capped)
        assert len(best.gives) == mixed


def assert_completes(made: Parts, missing: list[int], path: Path | None) -> None:
    """The path's machines give every job what it lacks, and cost what the path says."""
    assert path is not None
    left = made.services.missing(path.machines)
    got = [need - after for need, after in zip(made.services.needs, left, strict=True)]
    assert all(amount >= lack for amount, lack in zip(got, missing, strict=True))
    assert path.cost == made.services.cost(path.machines)


@share(2)
@given(
    PROBLEMS,
    st.integers(0, 3),
    st.integers(1, 12),
    st.sampled_from(("minimum", "mean")),
    st.data(),
)
def test_playouts_and_the_search_serve_what_is_missing_and_never_undercount(
    problem: Problem, seed: int, buckets: int, backup: str, data: st.DataObject
) -> None:
    made = parts(problem, seed, buckets=buckets, backup=backup, playouts=8)
    missing = [data.draw(st.integers(-3, need)) for need in made.services.needs]
    for _ in range(4):  # with pools that other states left behind
        assert_completes(made, missing, made.search.playout(missing))
    assert_completes(made, missing, made.search.best(missing))
    assert made.search.best([0 for _ in missing]) == Path([], 0)


def some_deployment(made: Parts, times: int = 1) -> Deployment:
    path = made.search.playout(made.services.needs)
    assert path is not None
    return made.genetic.deployment(path.machines * times)


def blocks_of_jobs(deployment: Deployment) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for machine in deployment.machines:
        found += Counter({(i, j): number for i, j, number in machine.blocks})
    return found


def assert_counted(services: Services, deployment: Deployment) -> None:
    """The machines are legal, give every job what it demands, and are counted right."""
    tables = services.tables
    got = [0] * tables.n
    for machine in deployment.machines:
        assert_legal(services, machine)
        for i, j, number in machine.blocks:
            got[j] += number * tables.supply[j][i]
    assert all(a >= d for a, d in zip(got, tables.demands, strict=True))
    assert deployment.cost == services.cost(deployment.machines)
    left = services.missing(deployment.machines)
    lacks = zip(left, services.alone, services.needs, strict=True)
    spare = -sum(lack * float(alone) / need for lack, alone, need in lacks)
    assert abs(deployment.spare - spare) < 1e-9 * (1 + spare)


@share(2)
@given(PROBLEMS, st.integers(0, 5), st.sampled_from((0, "1/2", 1)))
def test_the_operators_serve_all_jobs(problem: Problem, seed: int, erased: object) -> None:
    made = parts(problem, seed, erased=erased, playouts=4)
    before = some_deployment(made)
    after = made.genetic.mutated(before)
    assert_counted(made.services, after)
    assert [m.shape for m in after.machines] == [m.shape for m in before.machines]
    assert blocks_of_jobs(after) == blocks_of_jobs(before)
    for _ in range(3):
        child = made.genetic.crossed(before)
        assert child is not None
        assert_counted(made.services, child)
    twice = some_deployment(made, 2)
    assert_counted(made.services, twice)
    left = made.services.missing(twice.machines)
    for machine in twice.machines:  # none that can be done without
        assert any(left[j] + amount > 0 for j, amount in machine.gives)


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


#: A minute is less than some runs need on a busy machine.
solve = partial(cms.solve, time_limit=None)
#: Short runs.
QUICK: dict[str, Any] = {"rounds_without_gain": 2, "population": 3, "playouts": 6, "erased": "1/2"}
BOTH = ("mig_serving_fast", "mig_serving")


@share(4)
@given(problems(TAKEN))
def test_schedules_are_between_the_optimum_and_the_fast_ones(problem: Problem) -> None:
    fast = solve(problem, "mig_serving_fast", threads=1)
    slow = solve(problem, "mig_serving", options=QUICK, threads=1)
    least = optimum(problem)
    if least is None:
        assert fast.status is slow.status is Status.INFEASIBLE
        return
    assert fast.cost is not None
    assert slow.cost is not None
    assert least <= slow.cost <= fast.cost
    assert not check(problem, slow.schedule)


@pytest.mark.parametrize(
    "known", few(3, [("S1", 2), ("S3", 6), ("S6", 17), ("S2", 4), ("S4", 7), ("S5", 13)])
)
def test_the_published_scenarios(known: tuple[str, int]) -> None:
    name, gpus = known
    scenario: Any = load_instance(name)
    problem = scenario.build_problem().problem
    assert solve(problem, "mig_serving_fast").cost == gpus
    slow = solve(problem, "mig_serving", options=QUICK)
    assert slow.cost is not None
    assert slow.cost <= gpus


def test_each_improvement_is_a_claim_and_a_seed_has_one_history() -> None:
    problem = generate("real-rows", n=12, seed=2)
    runs = [
        solve(problem, "mig_serving", options={**QUICK, "score": "plain"}, seed=seed)
        for seed in (1, 1, 2)
    ]
    one, two, other = ([(e.cost, e.source) for e in run.history] for run in runs)
    assert one == two != other
    assert runs[0].schedule == runs[1].schedule
    costs = [cost for cost, _ in one if cost is not None]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)
    assert one[0][1] == "mig_serving: fast algorithm"
    assert any("genetic algorithm, round" in source for _, source in one)
    assert runs[0].stop_reason is StopReason.FINISHED
    # what the machine gives beyond what is missing is not worth anything
    assert solve(problem, "mig_serving_fast").cost < costs[0]  # type: ignore[operator]


@pytest.mark.parametrize("mixed", few(2, [2, 1, 3]))
@pytest.mark.parametrize("method", BOTH)
def test_no_machine_has_more_jobs_than_may_be_mixed(method: str, mixed: int) -> None:
    problem = generate("mig-serving", n=16, seed=1)
    for last_mile, more in ((0, 0), ("1/10", 1)):
        options: dict[str, Any] = {"mixed": mixed, "last_mile": last_mile}
        options |= QUICK if method == "mig_serving" else {}
        schedule = solve(problem, method, options=options).schedule
        jobs = [len({job for _, job in group.assignment}) for group in schedule.groups]
        assert max(jobs) <= mixed + more
