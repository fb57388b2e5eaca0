"""Which jobs are free near a fractional schedule, and with which options."""

from __future__ import annotations

from fractions import Fraction
from operator import mul

import numpy as np
import pytest

from algorithms.branch_and_price import neighbourhood as module
from algorithms.branch_and_price.neighbourhood import FIRST_RUNGS, WIDTHS, Neighbourhood, Rung
from algorithms.branch_and_price.program import Answer, Task, schedule_of
from algorithms.branch_and_price.rounding import rounded
from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.fraction import fractional
from algorithms.prices.search import PriceSearch
from cms import Configuration, Job, Problem, check
from cms.certificate.certificate import round_up
from cms.knapsack.pricing import cheapest_option, common_denominator
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Unlimited, searched
from tests.references.tables_of_options import told


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """The programs that a neighbourhood asks for, none of which is solved."""
    tasks: list[Task] = []

    def close(shapes: object, jobs: object, task: Task, *rest: object, **more: object) -> Answer:
        tasks.append(task)
        return Answer("unknown", None)

    monkeypatch.setattr(module, "close", close)
    return tasks


def test_no_more_kinds_are_freed_once_there_are_as_many_options_as_wanted(
    asked: list[Task],
) -> None:
    search = searched(generate("mixed-fleet", n=60, seed=3))
    assert search.best is not None
    mixture, shapes = fractional(search), Shapes(search.jobs.problem, search.region.rows)
    near = Neighbourhood(search, search.best, shapes, mixture, np.random.default_rng(0))
    start, target = rounded(search, mixture, 0), search.best.bound + 1
    for rung in (Rung(50, 15, 1, 40), Rung(50, 15, 1)):
        near.look(rung, start, least=Fraction(0), target=target, budget=Unlimited())
    small, large = asked
    sizes = [sum(map(len, task.free.values())) for task in asked]
    assert 40 <= sizes[0] < 40 + 15 < sizes[1]
    assert len(small.free) < len(large.free) <= 50
    for task in asked:
        assert not set(told(task).kinds.tolist()) & set(task.free)
        assert all(1 <= len(options) <= 15 for options in task.free.values())


def _near(search: PriceSearch) -> Neighbourhood:
    assert search.best is not None
    shapes = Shapes(search.jobs.problem, search.region.rows)
    return Neighbourhood(search, search.best, shapes, fractional(search), np.random.default_rng(0))


def test_a_wide_look_has_the_options_nearest_to_the_cheapest_among_all_kinds(
    asked: list[Task],
) -> None:
    search = searched(generate("mixed-fleet", n=60, seed=3))
    assert search.best is not None
    near, prices = _near(search), search.best.vector.prices
    for alternatives in (50, 50, 10**6):
        target = search.best.bound + 1
        near.look_widely(alternatives, least=Fraction(0), target=target, budget=Unlimited())
    narrow, other, whole = asked

    def dearer(task: Task) -> list[Fraction]:
        """What each option costs beyond the cheapest one of its kind, the cheapest left out."""
        found = []
        for options in task.free.values():
            costs = [sum(map(mul, prices, option), Fraction(0)) for option in options]
            assert costs == sorted(costs)
            found += [cost - costs[0] for cost in costs[1:]]
        return sorted(found)

    assert dearer(narrow) == dearer(other) == dearer(whole)[:50] != dearer(whole)
    for task in asked:
        assert {*told(task).kinds.tolist()} | {*task.free} == {*range(len(search.jobs))}
        assert not {*told(task).kinds.tolist()} & {*task.free}
        picks = zip(told(task).kinds.tolist(), told(task).options.tolist(), strict=True)
        for kind, option in picks:
            row, numbers = search.jobs.row(kind), common_denominator(prices)[0]
            best = cheapest_option(numbers, row.supply, row.demand)
            assert best is not None
            assert sum(map(mul, numbers, option)) == best.value


def test_of_options_that_cost_the_same_a_wide_look_takes_others_the_next_time(
    asked: list[Task],
) -> None:
    jobs = [Job(f"j{at}", 20 + at, {"a": 10 + at, "b": 20 + at}) for at in range(8)]
    search = searched(Problem(configurations=Configuration({"a": 2, "b": 1}), jobs=jobs))
    assert search.best is not None
    near, target = _near(search), search.best.bound + 1
    for _ in range(4):
        near.look_widely(3, least=Fraction(0), target=target, budget=Unlimited())
    assert {len(task.free) for task in asked} == {3}
    assert len({tuple(sorted(task.free)) for task in asked}) > 1


def test_a_wide_look_finds_a_fleet_of_many_types_at_its_bound_where_a_narrow_one_does_not() -> None:
    problem = generate("mixed-fleet", n=100, seed=1, types=5, limits="tight")
    search = searched(problem)
    assert search.best is not None
    for _ in search.refine():
        pass
    near, mixture = _near(search), fractional(search)
    least = round_up(search.best.bound, problem.cost_step)
    limits = {"least": least, "target": least, "budget": Unlimited()}
    start = rounded(search, mixture, 0)
    assert not any(near.look(rung, start, **limits)[0] for rung in FIRST_RUNGS[:3])  # type: ignore[arg-type]
    found = near.look_widely(WIDTHS[0], **limits)  # type: ignore[arg-type]
    assert found is not None
    assert found.cost == least
    shapes = Shapes(search.jobs.problem, search.region.rows)
    assert not check(search.jobs.problem, schedule_of(shapes, search.jobs, found))


def test_a_wide_look_leaves_very_many_kinds_alone_and_ends_when_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = searched(generate("mixed-fleet", n=30, seed=3))
    assert search.best is not None
    target, stopped = search.best.bound + 1, Unlimited()
    stopped.stopped = True
    near = _near(search)
    assert near.look_widely(9, least=Fraction(0), target=target, budget=stopped) is None
    monkeypatch.setattr(module, "_MOST_KINDS", 29)
    assert near.look_widely(9, least=Fraction(0), target=target, budget=Unlimited()) is None
