"""Tidied schedules: never dearer, never less proved, never more layouts, never less even."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given

import cms
from cms import (
    Configuration,
    Job,
    MachineGroup,
    Problem,
    Schedule,
    Solution,
    check,
    simplify_schedule,
    solve,
)
from cms.fleet import Scenario
from cms.infeasibility.variants import PARTS, at_share
from cms.simplification.simplify import even_shares, merge_layouts
from tests.property.problems import problems, share
from tests.samples import PAIR, halves, refusal


def used(schedule: Schedule) -> tuple[Counter[Configuration], Counter[tuple[str, Any]]]:
    """The machines of each configuration, and the blocks of each content."""
    machines, blocks = Counter[Configuration](), Counter[tuple[str, Any]]()
    for group in schedule.groups:
        machines[group.configuration] += group.count
        for pair, count in group.assignment.items():
            blocks[pair] += count * group.count
    return machines, blocks


def least_share(problem: Problem, schedule: Schedule) -> Fraction | None:
    """The least of what the jobs get over what they demand; None if none demands any."""
    rows = {name: problem.rows.row(at) for at, name in enumerate(problem.job_names)}
    got = Counter[str]()
    for (block, job), count in used(schedule)[1].items():
        got[job] += count * rows[job].supply[problem.block_index[block]]
    shares = [Fraction(got[job], row.demand) for job, row in rows.items() if row.demand]
    return min(shares, default=None)


def require_tidy(problem: Problem, solution: Solution) -> Solution:
    """All that is promised of a tidied solution."""
    tidied = simplify_schedule(problem, solution)
    before, after = solution.schedule, tidied.schedule
    assert not check(problem, after)
    assert (after.cost(problem), tidied.cost) == (before.cost(problem), solution.cost)
    assert tidied.certificate is solution.certificate
    assert (tidied.status, tidied.proof) == (solution.status, solution.proof)
    assert (tidied.lower_bound, tidied.history) == (solution.lower_bound, solution.history)
    assert len(after.groups) <= len(before.groups)
    assert len({(g.configuration, frozenset(g.assignment.items())) for g in after.groups}) == len(
        after.groups
    )
    (machines, blocks), (others, shifted) = used(before), used(after)
    assert machines == others
    of_type = Counter[str](), Counter[str]()
    for counts, total in zip((blocks, shifted), of_type, strict=True):
        for (block, _), count in counts.items():
            total[block] += count
    assert of_type[0] == of_type[1]
    assert simplify_schedule(problem, solution).schedule == after
    return tidied


@share(1)
@given(problems())
def test_tidying_loses_nothing(problem: Problem) -> None:
    solution = solve(problem, time_limit=None, threads=1)
    if solution.cost is None:
        assert simplify_schedule(problem, solution) is solution
        return
    tidied = require_tidy(problem, solution)
    least = least_share(problem, solution.schedule)
    now = least_share(problem, tidied.schedule)
    assert (least is None) == (now is None)
    assert least is None or now is None or now >= least


def published(name: str) -> Problem:
    scenario = cms.load_instance(name)
    assert isinstance(scenario, Scenario)
    return scenario.build_problem().problem


@pytest.mark.parametrize(("name", "times", "most"), [("S5", 1, 8), ("S6", 1, 9), ("S5", 1000, 17)])
def test_published_plans_have_merge_layouts(name: str, times: int, most: int) -> None:
    """As measured: 10, 15 and 23 before."""
    problem = at_share(published(name), times * PARTS)
    solution = solve(problem, time_limit=None, threads=1)
    tidied = require_tidy(problem, solution)
    assert len(tidied.schedule.groups) <= most < len(solution.schedule.groups)


def fewest_by_enumeration(counts: tuple[int, int], machines: int) -> int:
    """The fewest kinds of pairs of halves that use up so many halves of x and of y."""
    kinds = [(2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)]
    best = machines
    for often in product(range(machines + 1), repeat=len(kinds)):
        if sum(often) == machines and all(
            sum(n * kind[at] for n, kind in zip(often, kinds, strict=True)) == counts[at]
            for at in (0, 1)
        ):
            best = min(best, sum(n > 0 for n in often))
    return best


def test_the_fewest_layouts_of_two_jobs_on_pairs_are_found() -> None:
    names = "xy"
    for x, y in product(range(7), repeat=2):
        machines = -(-(x + y) // 2)
        given_blocks = {("half", name): n for name, n in zip(names, (x, y), strict=True) if n}
        schedule = Schedule.from_counts(halves(*names), {PAIR: machines}, given_blocks)
        assert len(merge_layouts(schedule).groups) == fewest_by_enumeration((x, y), machines)


def test_what_would_take_long_is_left_as_it_is() -> None:
    names = [f"j{number}" for number in range(40)]
    problem = halves(*names, demand=7)
    solution = solve(problem, time_limit=None)
    assert merge_layouts(solution.schedule, effort=50) is solution.schedule
    assert even_shares(problem, solution.schedule, effort=10) is solution.schedule
    many = Schedule(MachineGroup(PAIR, {("half", name): 2}, 1) for name in names)
    assert merge_layouts(many, effort=400 * len(names) - 1) is many


def test_blocks_change_hands_until_no_step_lifts_the_least_share() -> None:
    """Of two GPUs x has six sevenths and two sevenths are idle; y can make use of a whole one."""
    six, seven = Configuration({"1g": 6}), Configuration({"1g": 7})
    problem = Problem(configurations=seven, jobs=[Job(name, 3, {"1g": 1}) for name in "xy"])
    schedule = Schedule(
        MachineGroup(seven, {("1g", "x"): n, ("1g", "y"): 1}, count)
        for n, count in ((3, 1), (6, 2))
    )
    assert least_share(problem, schedule) == 1
    even = even_shares(problem, schedule)
    # x had 15 and y 3: of 18 in use the nearest to half that two machines at a time can reach
    assert least_share(problem, even) == 3
    assert {job: n for (_, job), n in used(even)[1].items()} == {"x": 9, "y": 9}
    assert not check(problem, even)
    # to exchange the two jobs' blocks of two machines lifts nobody
    both = {("1g", "x"): 3, ("1g", "y"): 3}
    level = Schedule([MachineGroup(six, both, 1), MachineGroup(seven, both, 1)])
    assert even_shares(problem, level) is level


def test_the_answer_to_another_problem_is_not_tidied() -> None:
    said = refusal(cms.InvalidOption, simplify_schedule, halves("x"), solve(halves("y")))
    assert said == "solution is of another problem; give the answer to this one"
