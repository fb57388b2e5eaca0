"""Whole machines for whole jobs where jobs are alike: programs, and the schedules they lead to."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.branch_and_price.whole_fleets import WholeFleets
from cms import Job, Problem, SizeBoundedConfigurations
from tests.algorithms.branch_and_price.parts import Unlimited, searched


@pytest.mark.parametrize("whole_jobs", [True, False])
@pytest.mark.parametrize(("most", "target", "cost"), [(None, 9, 2), (2, 9, 3), (None, 1, None)])
def test_whole_fleets_cost_what_the_contents_that_are_known_do(
    most: int | None, target: int, cost: int | None, whole_jobs: bool
) -> None:
    # of six jobs that need one block of 2 or 3 parts three fit on a machine of 7, or two
    sets = SizeBoundedConfigurations({"a": 2, "b": 3}, 7, max_blocks=most)
    jobs = [Job(str(number), 1, {"a": 1, "b": 1}) for number in range(6)]
    search = searched(Problem(configurations=sets, jobs=jobs))
    assert search.best is not None
    programs = WholeFleets(search, search.best, search.jobs, Unlimited())
    given = Fraction(1), Fraction(target)
    fleet = programs.find(least=given[0], target=given[1], nodes=50, whole_jobs=whole_jobs)
    assert (fleet and programs.cost(fleet.machines)) == cost
    if fleet is not None:
        assert fleet.machines == (cost,)
        assert (fleet.choices is not None) == whole_jobs
        assert fleet.choices is None or fleet.choices.counts.sum() == 6
