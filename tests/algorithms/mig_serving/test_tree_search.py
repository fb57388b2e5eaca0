"""The tree search and its playouts: what they return serves all, and no playout undercounts."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.mig_serving.services import Services
from algorithms.mig_serving.tree_search import Path
from cms import Problem
from instances.families import generate
from tests.algorithms.mig_serving.parts import PROBLEMS, Parts, assert_serves, parts
from tests.oracle import optimum


def some_missing(services: Services, data: st.DataObject) -> list[int]:
    return [data.draw(st.integers(-3, need)) for need in services.needs]


def assert_completes(made: Parts, missing: list[int], path: Path | None) -> None:
    """The path's machines give every job what it lacks, and cost what the path says."""
    assert path is not None
    services = made.services
    got = [
        need - left
        for need, left in zip(services.needs, services.missing(path.machines), strict=True)
    ]
    assert all(amount >= lack for amount, lack in zip(got, missing, strict=True))
    assert path.cost == services.cost(path.machines)


@given(PROBLEMS, st.integers(0, 3), st.integers(1, 12), st.data())
def test_a_playout_never_undercounts(
    problem: Problem, seed: int, buckets: int, data: st.DataObject
) -> None:
    made = parts(problem, seed, buckets=buckets)
    missing = some_missing(made.services, data)
    for _ in range(4):  # with pools that other states left behind
        assert_completes(made, missing, made.search.playout(missing))


@given(PROBLEMS, st.integers(0, 3))
def test_a_playout_from_the_start_costs_at_least_the_optimum(problem: Problem, seed: int) -> None:
    made = parts(problem, seed)
    path = made.search.playout(made.services.needs)
    assert path is not None
    assert_serves(made.services, path.machines)
    least = optimum(problem)
    assert least is not None
    assert made.services.tables.cost(made.services.counts(path.machines)[0]) >= least


@given(PROBLEMS, st.sampled_from(("minimum", "mean")), st.data())
def test_the_search_serves_what_is_missing(
    problem: Problem, backup: str, data: st.DataObject
) -> None:
    made = parts(problem, backup=backup, playouts=8)
    missing = some_missing(made.services, data)
    assert_completes(made, missing, made.search.best(missing))


def test_nothing_missing_costs_nothing() -> None:
    made = parts(generate("real-rows", n=4, seed=0))
    assert made.search.best([0, -5, 0, -1]) == Path([], 0)


def test_states_that_differ_by_less_than_a_step_share_a_pool() -> None:
    made = parts(generate("real-rows", n=2, m=1, seed=0), buckets=1, playouts=50)
    made.search.best(made.services.needs)
    # which of the two jobs is unfinished is all that is seen
    assert len(made.search._pools) <= 3


def test_more_playouts_are_no_worse() -> None:
    problem = generate("real-rows", n=24, seed=2)
    costs = []
    for playouts in (1, 20, 200):
        made = parts(problem, playouts=playouts)
        path = made.search.best(made.services.needs)
        assert path is not None
        costs.append(path.cost)
    assert costs[0] > costs[2]
    assert costs == sorted(costs, reverse=True)


def test_the_same_seed_finds_the_same() -> None:
    problem = generate("real-rows", n=10, seed=1)
    found = []
    for _ in range(2):
        made = parts(problem, seed=5)
        found.append(made.search.best(made.services.needs))
    assert found[0] == found[1]


class Clock:
    """Of a budget, what the search looks at: stopped after so many looks."""

    def __init__(self, looks: int) -> None:
        self._left = looks

    @property
    def stopped(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize("looks", [0, 1, 7, 30, 100])
def test_it_ends_when_stopped(looks: int) -> None:
    problem = generate("real-rows", n=12, seed=2)
    made = parts(problem, playouts=10**6)
    path = made.search.best(made.services.needs, Clock(looks))  # type: ignore[arg-type]
    if path is None:
        assert looks < 30
    else:
        assert_completes(made, made.services.needs, path)


def test_random_numbers_come_from_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    def refused(*args: object) -> None:
        raise AssertionError("a number from elsewhere")

    for name in ("random", "sample", "choice", "randint", "randrange"):
        monkeypatch.setattr(random, name, refused)
    made = parts(generate("real-rows", n=5, seed=0))
    assert made.search.best(made.services.needs) is not None
    assert isinstance(made.search._random, Random)
