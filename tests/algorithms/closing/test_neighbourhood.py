"""Which jobs are free near a fractional schedule, and with which options."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from algorithms.closing import neighbourhood as module
from algorithms.closing.neighbourhood import Neighbourhood, Rung
from algorithms.closing.program import Answer, Task
from algorithms.closing.rounding import rounded
from algorithms.closing.shapes import Shapes
from algorithms.prices.fraction import fractional
from instances.families import generate
from tests.algorithms.price_and_branch.parts import Unlimited, searched


def test_no_more_kinds_are_freed_once_there_are_as_many_options_as_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Task] = []

    def close(shapes: object, jobs: object, task: Task, *rest: object, **more: object) -> Answer:
        asked.append(task)
        return Answer("unknown", None)

    monkeypatch.setattr(module, "close", close)
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
        assert not set(task.fixed.kinds.tolist()) & set(task.free)
        assert all(1 <= len(options) <= 15 for options in task.free.values())
