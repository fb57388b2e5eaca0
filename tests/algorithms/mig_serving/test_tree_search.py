"""The tree search and its playouts: what they return serves all, and no playout undercounts."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms.mig_serving.tree_search as tree_search
from algorithms.mig_serving.services import Filled, Services
from algorithms.mig_serving.tree_search import Path, _Node
from cms import Problem, reduce
from instances.families import generate
from tests.algorithms.mig_serving.parts import PROBLEMS, Parts, assert_serves, parts
from tests.oracle import optimum
from tests.property.problems import share
from tests.samples import so_many


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


@share(2)
@given(PROBLEMS, st.integers(0, 3), st.integers(1, 12), st.data())
def test_a_playout_never_undercounts(
    problem: Problem, seed: int, buckets: int, data: st.DataObject
) -> None:
    made = parts(problem, seed, buckets=buckets)
    missing = some_missing(made.services, data)
    for _ in range(4):  # with pools that other states left behind
        assert_completes(made, missing, made.search.playout(missing))


@share(2)
@given(PROBLEMS, st.integers(0, 3))
def test_a_playout_from_the_start_costs_at_least_the_optimum(problem: Problem, seed: int) -> None:
    made = parts(problem, seed)
    path = made.search.playout(made.services.needs)
    assert path is not None
    assert_serves(made.services, path.machines)
    least = optimum(problem)
    assert least is not None
    machines = made.services.schedule(path.machines)
    assert reduce(problem).restore(machines).cost(problem) >= least


@share(2)
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


def test_a_pool_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parts(generate("real-rows", n=6, seed=0), buckets=4)
    asked: list[tuple[int, ...]] = []
    good = made.search._good

    def counted(missing: list[int]) -> list[Filled]:
        asked.append(tuple(-(-max(0, x) * 4 // n) for x, n in zip(missing, needs, strict=True)))
        return good(missing)

    needs = made.services.needs
    monkeypatch.setattr(made.search, "_good", counted)
    for _ in range(30):
        made.search.playout(needs)
    # Each state in quarters once, and far fewer than there were machines.
    assert len(asked) == len(set(asked))
    assert asked.count(tuple([4] * 6)) == 1
    for buckets, most in ((1, 2**6), (200, 10**9)):
        coarse = parts(generate("real-rows", n=6, seed=0), buckets=buckets)
        for _ in range(30):
            coarse.search.playout(needs)
        assert len(coarse.search._pools) < most


def test_coarser_steps_share_more_pools() -> None:
    known = []
    for buckets in (1, 4, 100):
        made = parts(generate("real-rows", n=8, seed=0), buckets=buckets)
        for _ in range(40):
            made.search.playout(made.services.needs)
        known.append(len(made.search._pools))
    assert known[0] < known[1] < known[2]


def test_pools_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_search, "_MOST_POOLED", 50)
    made = parts(generate("real-rows", n=12, seed=0), children=10)
    for _ in range(20):
        made.search.playout(made.services.needs)
        assert sum(map(len, made.search._pools.values())) <= 60


def node(visits: int, costs: list[int]) -> _Node:
    """A node below which playouts ended with these costs."""
    made = _Node([], 0)
    made.visits, made.total = visits, sum(costs)
    made.best, made.most = min(costs), max(costs)
    return made


@pytest.mark.parametrize(
    ("backup", "exploration", "chosen"),
    [
        ("minimum", 0, 1),  # the least of all costs is below the second
        ("mean", 0, 0),  # on average the first is best
        ("minimum", 100, 2),  # the third was hardly looked at
        ("mean", 100, 2),
    ],
)
def test_the_way_down_weighs_costs_and_visits(backup: str, exploration: int, chosen: int) -> None:
    made = parts(generate("real-rows", n=2, seed=0), backup=backup, exploration=exploration)
    below = [node(4, [11, 11, 11, 11]), node(4, [10, 20, 20, 20]), node(1, [19])]
    root = node(9, [10, 11, 11, 11, 11, 19, 20, 20, 20])
    root.nodes = below
    assert made.search._promising(root, root) == chosen


def test_what_is_known_of_a_node_is_a_part_of_the_range() -> None:
    root = node(3, [10, 14, 20])
    for backup, part in (("minimum", 0.4), ("mean", 0.7)):
        made = parts(generate("real-rows", n=2, seed=0), backup=backup)
        assert made.search._part(node(2, [14, 20]), root) == pytest.approx(part)


def test_playouts_are_counted_in_all_nodes_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parts(generate("real-rows", n=12, seed=0), playouts=200, children=3)
    ways: list[list[_Node]] = []
    descend = made.search._descend

    def seen(root: _Node) -> tuple[list[Filled], list[_Node]]:
        found = descend(root)
        ways.append(found[1])
        return found

    monkeypatch.setattr(made.search, "_descend", seen)
    path = made.search.best(made.services.needs)
    assert path is not None
    root = ways[0][0]
    assert root.visits == 200
    assert root.best == path.cost
    assert max(map(len, ways)) > 3  # it goes deep where it is worth it
    for way in ways:
        for above, below in itertools.pairwise(way):
            assert above.best <= below.best
            assert above.visits > below.visits
    assert all(len(way[-1].nodes) <= 3 for way in ways)


def test_more_playouts_are_no_worse() -> None:
    problem = generate("real-rows", n=16, seed=2)
    costs = []
    for playouts in (1, 20, so_many(100, 200)):
        made = parts(problem, playouts=playouts)
        path = made.search.best(made.services.needs)
        assert path is not None
        costs.append(path.cost)
    assert costs[0] > costs[2]
    assert costs == sorted(costs, reverse=True)


def test_the_same_seed_finds_the_same() -> None:
    problem = generate("real-rows", n=6, seed=1)
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
