"""Which jobs are free near a fractional schedule, and with which options."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from algorithms.branch_and_price import neighbourhood as module
from algorithms.branch_and_price.neighbourhood import Neighbourhood, Rung
from algorithms.branch_and_price.program import Answer, Task
from algorithms.branch_and_price.rounding import rounded
from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.fraction import fractional
from algorithms.prices.search import PriceSearch
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
