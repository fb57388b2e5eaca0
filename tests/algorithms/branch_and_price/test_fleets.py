"""Whole fleets, and size-bounded sets of thousands of contents: found and proved."""

from __future__ import annotations

import random
import threading
from fractions import Fraction
from typing import Any

import pytest

import cms
from algorithms.branch_and_price.whole_fleets import WholeFleets
from algorithms.tables.integers import listed
from bench.gates.in_tree import generate
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, check, solve
from instances import families
from tests.algorithms.branch_and_price.parts import Unlimited, searched
from tests.samples import few


@pytest.mark.parametrize("whole_jobs", [True, False])
@pytest.mark.parametrize(
    ("most", "target", "cost"), [(None, 9, 2), (2, 9, 3), (None, 1, None), (None, 10**400, None)]
)
def test_whole_fleets_cost_what_the_contents_that_are_known_do(
    most: int | None, target: int, cost: int | None, whole_jobs: bool
) -> None:
    # of six jobs that need one block of 2 or 3 parts three fit on a machine of 7, or two
    sets = SizeBoundedConfigurations({"a": 2, "b": 3}, 7, max_blocks=most)
    jobs = [Job(str(number), 1, {"a": 1, "b": 1}) for number in range(6)]
    search = searched(Problem(configurations=sets, jobs=jobs))
    assert search.best is not None
    fleets = WholeFleets(search, search.best, search.jobs, Unlimited())
    fleet = fleets.find(least=Fraction(1), target=Fraction(target), nodes=50, whole_jobs=whole_jobs)
    assert (fleet and (fleets.cost(fleet.machines), fleet.machines)) == (cost and (cost, (cost,)))
    choices = fleet and fleet.choices
    assert (choices and choices.counts.sum()) == (6 if fleet and whole_jobs else None)


def test_fleets_are_looked_for_again_once_branches_raise_the_bound() -> None:
    # the first programs end a tenth above what is best
    given: dict[str, Any] = {"n": 14_000, "seed": 12, "serving": "pods", "kinds": 70, "types": 7}
    assert solve(families.generate("cluster-fleet", **given), time_limit=None).cost == 5630


@pytest.mark.parametrize(
    ("family", "n", "seed", "given", "cost"),
    [
        (
            "mixed-fleet",
            32,
            1124697384,
            {"cost_step": "0.01", "limits": "tight", "types": 4},
            27.26,
        ),
        ("size-bounded-mixed", 42, 2552819479, {"m": 5, "mig_cost": "0.9"}, 33.5),
    ],
    ids=["all jobs are free at a node", "dives within a fleet"],
)
def test_nodes_lead_to_schedules(family: str, n: int, seed: int, given: Any, cost: float) -> None:
    problem = families.generate(family, n=n, seed=seed, **given)
    assert solve(problem, time_limit=None).cost == Fraction(str(cost))


def test_programs_take_hundreds_of_kinds() -> None:
    # a rack costs as much as 19 machines; programs of a few dozen free jobs end at 825
    assert solve(generate("racks", n=400, seed=2), time_limit=None).cost == 823


def shares(seed: int, n: int, *, beside: bool) -> Problem:
    """Ten sizes in a capacity of 1000, some beside listed configurations that nobody wants."""
    rng = random.Random(seed)
    sizes = {f"b{i}": rng.randint(40, 200) for i in range(10)}
    jobs = [
        Job(f"j{j}", rng.randint(100, 3000), {b: s + rng.randint(-9, 9) for b, s in sizes.items()})
        for j in range(n)
    ]
    large = SizeBoundedConfigurations(sizes, 1000, "m")
    if not beside:
        return Problem(configurations=large, jobs=jobs, machine_types=[MachineType("m")])
    useless = [Configuration({"z": 3}, "n"), Configuration({"b0": 9, "z": 1}, "n")]
    types = [MachineType("m", 2), MachineType("n", 3)]
    return Problem(configurations=[large, *useless], jobs=jobs, machine_types=types)


@pytest.mark.parametrize("seed", few(2, [0, 2, 5, 1, 3, 4, 6, 7]))
@pytest.mark.parametrize("beside", [False, True])
def test_sets_too_large_to_be_listed_are_scheduled_and_proved(seed: int, beside: bool) -> None:
    problem = shares(seed, 3 + 6 * seed, beside=beside)
    assert listed(problem, 2_000).left_out
    solution = solve(problem, threads=1, time_limit=None)
    assert check(problem, solution.schedule) == ()
    assert solution.proof == "checked"


def test_more_block_types_than_python_has_frames() -> None:
    rng = random.Random(5)
    sizes = {f"b{i}": rng.randint(400, 3000) for i in range(1_500)}
    jobs = [
        Job(f"j{j}", rng.randint(100, 9000), {b: s + rng.randint(0, 90) for b, s in sizes.items()})
        for j in range(4)
    ]
    problem = Problem(configurations=SizeBoundedConfigurations(sizes, 10_000), jobs=jobs)
    cancel = threading.Event()

    def improved(line: cms.Incumbent) -> None:
        if line.cost is not None and line.lower_bound > 0:
            cancel.set()

    solution = solve(problem, time_limit=None, cancel=cancel, on_improvement=improved)
    assert check(problem, solution.schedule) == ()
    assert solution.cost is not None
    assert 0 < solution.lower_bound <= solution.cost


@pytest.mark.parametrize(("costs", "cost"), [(("1.01", "3.67"), "4.68"), (("1", "4"), "5")])
def test_few_jobs_on_shares_in_steps_of_one_per_cent_are_proved(
    costs: tuple[str, str], cost: str
) -> None:
    rates = {"small": (2, 1, 5, 2), "large": (20, 20, 40, 20)}
    sizes = {m: {f"{m}:{share}": share for share in range(1, 101)} for m in rates}
    jobs = [
        Job(
            f"j{at}",
            demand,
            {b: Fraction(rates[m][at] * s, 100) for m in rates for b, s in sizes[m].items()},
        )
        for at, demand in enumerate((6, 3, 15, 6))
    ]
    problem = Problem(
        configurations=[SizeBoundedConfigurations(sizes[m], 100, m) for m in rates],
        jobs=jobs,
        machine_types=[MachineType(m, cost) for m, cost in zip(rates, costs, strict=True)],
    )
    solution = solve(problem, threads=1, time_limit=None)
    assert (solution.cost, solution.proof) == (Fraction(cost), "checked")
    assert solution.certificate.bound(problem) <= Fraction(cost)
