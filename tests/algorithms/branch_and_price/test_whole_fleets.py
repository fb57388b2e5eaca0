"""Whole machines for whole jobs where jobs are alike: programs, and the schedules they lead to."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.branch_and_price.whole_fleets import WholeFleets
from bench.gates.in_tree import generate
from cms import Job, Problem, SizeBoundedConfigurations, solve
from tests.algorithms.branch_and_price.parts import Unlimited, searched


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


def test_programs_take_hundreds_of_kinds() -> None:
    # a rack costs as much as 19 machines; programs of a few dozen free jobs end at 825
    assert solve(generate("racks", n=400, seed=2), time_limit=60).cost == 823
