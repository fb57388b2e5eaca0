"""Whole machines for whole jobs where jobs are alike: programs, and the schedules they lead to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from algorithms.branch_and_price.whole_fleets import WholeFleets
from bench.gates.in_tree import generate
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, solve
from instances import families
from tests.algorithms.branch_and_price.parts import Unlimited, searched
from tests.algorithms.branch_and_price.proving import of

M = MachineType("m", cost=7)


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


@pytest.mark.parametrize("beside", [[], [Configuration({"b": 9}, "m")]])
def test_options_with_a_larger_block_in_a_smaller_ones_place_go(beside: list[Any]) -> None:
    # but where a configuration has the larger one, that may be what there is enough of
    sets = SizeBoundedConfigurations({"a": 2, "b": 3}, 7, "m")
    search = searched(of(sets, *beside, jobs={"x": (2, {"a": 1, "b": 1})}, types=(M,)))
    assert search.best is not None
    fleets = WholeFleets(search, search.best, search.jobs, Unlimited())
    assert {option for _, option in fleets.options} >= {(2, 0)}
    assert len(fleets.options) == (3 if beside else 1)


def test_fleets_are_looked_for_again_once_branches_raise_the_bound() -> None:
    # the first programs end a tenth above what is best
    given: dict[str, Any] = {"n": 14_000, "seed": 12, "serving": "pods", "kinds": 70, "types": 7}
    assert solve(families.generate("cluster-fleet", **given), time_limit=60).cost == 5630


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
    assert solve(problem, time_limit=60).cost == Fraction(str(cost))


def test_programs_take_hundreds_of_kinds() -> None:
    # a rack costs as much as 19 machines; programs of a few dozen free jobs end at 825
    assert solve(generate("racks", n=400, seed=2), time_limit=60).cost == 823
