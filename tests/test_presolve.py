"""What cannot matter: dominated configurations, useless blocks, machine types without use."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.prices.jobs import Jobs
from algorithms.prices.passes import certificate
from algorithms.prices.search import PriceSearch
from cms import (
    Certificate,
    Configuration,
    GroupLimit,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    Status,
    check,
    solve,
)
from cms.certificate.certificate import first_certificate
from cms.files.problems import problem_to_json
from cms.presolver.dominance import beaten
from cms.presolver.presolve import presolve
from cms.running.stopping import Stopped, never
from proofs_checks.checker import parse_document
from proofs_checks.checker.problem import read_problem
from proofs_checks.checker.usable import round_up as independently_rounded
from proofs_checks.checker.usable import usable as independently_usable
from tests.algorithms.branch_and_price.parts import Counting, Unlimited
from tests.families import FAMILIES, instance
from tests.oracle import limit_rows, optimum
from tests.property.problems import problems
from tests.property.schedules import random_schedule
from tests.samples import so_many


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reduced_problem_has_the_same_optimum(family: str) -> None:
    for number in range(so_many(2, 25)):
        problem = instance(family, number)
        assert optimum(presolve(problem).problem) == optimum(problem), (family, number)


def _shares(random: random.Random) -> Problem:
    """Draw shares of two machine types: in proportion, concave, with a least one, or any."""
    blocks, shapes = [], []
    for machine in "mn"[: random.randint(1, 2)]:
        sizes = {f"{machine}{size}": size for size in range(1, random.randint(3, 5))}
        most = random.choice([None, None, 2])
        shapes.append(SizeBoundedConfigurations(sizes, random.randint(3, 6), machine, most))
        blocks += list(sizes.items())
    listed = [Configuration({random.choice(blocks)[0]: 2}, "m")] if random.random() < 0.3 else []
    jobs = []
    for number in range(random.randint(1, 2)):
        curves: list[Callable[[int], int]] = [
            lambda size: 3 * size,
            lambda size: 10 * size // (size + 3),
            lambda size: 3 * size if size > 1 else 0,
            lambda size: random.randint(0, 9),
        ]
        curve = random.choice(curves)
        supply = {name: Fraction(curve(size), 3) for name, size in blocks}
        if any(supply.values()):
            jobs.append(Job(f"j{number}", random.randint(1, 4), supply))
    machines = [
        MachineType(m, random.randint(1, 4)) for m in dict.fromkeys(str(s.machine) for s in shapes)
    ]
    return Problem(configurations=[*shapes, *listed], jobs=jobs, machine_types=machines)


def test_where_smaller_blocks_replace_others_all_stays_as_it_was() -> None:
    went = 0
    for number in range(so_many(20, 1_000)):
        problem = _shares(random.Random(number))
        reduction = presolve(problem, fewer=True)
        small = reduction.problem
        went += len(problem.blocks) > len(small.blocks)
        assert optimum(small) == optimum(problem), number
        schedule = random_schedule(random.Random(number), small)
        if schedule is None or first_certificate(problem).proves_infeasible(problem):
            continue
        assert check(problem, reduction.restore(schedule)) == (), number
        search = PriceSearch(Jobs(small), Unlimited())
        points = list(search.run())
        if points:
            claim = certificate(reduction, search, points[-1]).claim
            assert isinstance(claim, Certificate), number
            assert claim.bound(problem) == points[-1].bound, number
    assert went > so_many(4, 250)


BLOCKS = {block: i for i, block in enumerate("abc")}


def case(seed: int) -> Problem:
    rng = random.Random(seed)
    types = [
        MachineType(f"m{m}", rng.choice([0, 1, 2]), rng.choice([None, None, 0, 3]))
        for m in range(rng.randint(1, 4))
    ]
    most = rng.choice([2, 3, 10**400])
    shapes = [
        Configuration(
            {b: rng.choice([1, 2, most]) for b in rng.sample("abc", rng.randint(1, 3))},
            rng.choice(types).name,
        )
        for _ in range(rng.randint(0, 14))
    ]
    names = [each.name for each in types]
    groups = [
        GroupLimit(
            f"g{g}", {m: Fraction(rng.choice([2, 2, 1]), 2) for m in rng.sample(names, 1 + g)}, 2
        )
        for g in range(rng.randint(0, len(types)))
    ]
    shapes = shapes or [Configuration({"a": 1}, "m0")]
    return Problem(configurations=shapes, machine_types=types, group_limits=groups)


def by_definition(problem: Problem) -> list[bool]:
    shapes, rows = problem.listed_configurations, limit_rows(problem).values()

    def beats(one: int, other: int) -> bool:
        rival, mine = (problem.machine_index[shapes[at].machine] for at in (one, other))
        types = problem.machine_types
        if types[rival].cost > types[mine].cost:
            return False
        if any(row.weights[rival] > row.weights[mine] for row in rows):
            return False
        return all(shapes[one].blocks.get(b, 0) >= shapes[other].blocks.get(b, 0) for b in BLOCKS)

    # Of two that beat each other, the first stays, unless limits count it more than the other.
    return [
        any(
            one != other and beats(one, other) and (one < other or not beats(other, one))
            for one in range(len(shapes))
        )
        for other in range(len(shapes))
    ]


def test_those_are_beaten_that_the_definition_says() -> None:
    for seed in range(400):
        problem = case(seed)
        found = beaten(problem.listed_configurations, problem, never)
        assert found.tolist() == by_definition(problem), seed


@pytest.mark.parametrize("looks", [0, 1, 2, 3])
def test_reducing_is_left_at_the_look_that_says_so(looks: int) -> None:
    problem = Problem.from_arrays(
        demands=[5, 6], supply=[[7, 1], [1, 9]], configurations=[[1, 2], [2, 2], [3, 1]]
    )
    budget = Counting(looks)
    with pytest.raises(Stopped):
        presolve(problem, lambda: budget.stopped)
    assert budget.asked == looks + 1


Shape = Configuration | SizeBoundedConfigurations

ONE = [Job("x", 3, {"a": 1, "b": 2})]
PLAIN = Configuration({"a": 2, "b": 1}, "plain")


def two_types(
    *other: Shape, jobs: list[Job] = ONE, first: Shape = PLAIN, **kind: object
) -> Problem:
    """A type of cost 2, and another one, by default of cost 7/3."""
    second = MachineType("other", **{"cost": "7/3", **kind})  # type: ignore[arg-type]
    types = [MachineType("plain", 2), second]
    return Problem(configurations=[first, *other], jobs=jobs, machine_types=types)


def listed(a: int, b: int = 0, machine: str = "other") -> Configuration:
    return Configuration({"a": a, "b": b}, machine)


def agree(problem: Problem) -> None:
    """Both checkers say the same, and reducing a problem does not change it."""
    again = read_problem(parse_document(json.dumps(problem_to_json(problem))))
    assert independently_usable(again) == [machine.name for machine in problem.usable_types()]
    step = problem.cost_step
    assert independently_rounded(again, Fraction(1, 10**9)) == (step or Fraction(1, 10**9))
    assert presolve(problem).problem.cost_step == step


@settings(max_examples=80)
@given(problems(("costs", "limits", "groups", "machine_types", "max_blocks")))
@example(two_types(Configuration({"c": 5}, "other")))
@example(two_types(listed(2), listed(1, 1)))
@example(two_types(listed(2), listed(3)))
@example(two_types(listed(9), limit=1))
@example(two_types(listed(2, 1), cost="5/3", limit=9))
@example(two_types(jobs=[]))
def test_the_least_cost_is_a_multiple_of_the_step(problem: Problem) -> None:
    agree(problem)
    best, step = optimum(problem), problem.cost_step
    if best is not None:
        assert best % step == 0 if step else best == 0


def test_counts_of_more_than_63_bits_are_compared_as_they_are() -> None:
    jobs = [Job("x", 2**63 + 2, {"a": 1}), Job("y", 1, {"b": 1})]
    larger = listed(2**63 + 2, 1)
    problem = two_types(
        larger, jobs=jobs, first=Configuration({"a": 2**63, "b": 1}, "plain"), cost=3
    )
    assert [machine.name for machine in problem.usable_types()] == ["plain", "other"]
    agree(problem)


@settings(max_examples=15)
@given(problems(), st.sampled_from(("auto", "cp_sat", "ptas", "lp_rounding")))
@example(two_types(listed(2, 1)), "auto")
def test_a_start_of_any_cost_hides_no_better_schedule(problem: Problem, method: str) -> None:
    """A schedule whose cost is no multiple of the step is no obstacle on the way to the optimum."""
    best = optimum(problem)
    start = random_schedule(random.Random(1), problem)
    if best is None or start is None or (method in ("ptas", "lp_rounding") and problem.limits):
        return
    solution = solve(problem, method, start=start, time_limit=60, threads=1)
    assert solution.lower_bound <= best
    assert (solution.claimed_bound or 0) <= best
    if method in ("auto", "cp_sat"):
        assert (solution.cost, solution.status) == (best, Status.OPTIMAL)
