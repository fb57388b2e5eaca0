"""The tree search and its playouts: what they return serves all, and no playout undercounts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.mig_serving.fast import Filled, Services
from algorithms.mig_serving.search import Path, _Node
from cms import Problem
from instances.families import generate
from tests.algorithms.mig_serving.parts import PROBLEMS, Parts, parts
from tests.property.problems import share


def some_missing(services: Services, data: st.DataObject) -> list[int]:
    return [data.draw(st.integers(-3, need)) for need in services.needs]


def assert_completes(made: Parts, missing: list[int], path: Path | None) -> None:
    """The path's machines give every job what it lacks, and cost what the path says."""
    assert path is not None
    left = made.services.missing(path.machines)
    got = [need - after for need, after in zip(made.services.needs, left, strict=True)]
    assert all(amount >= lack for amount, lack in zip(got, missing, strict=True))
    assert path.cost == made.services.cost(path.machines)


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
@given(PROBLEMS, st.sampled_from(("minimum", "mean")), st.data())
def test_the_search_serves_what_is_missing(
    problem: Problem, backup: str, data: st.DataObject
) -> None:
    made = parts(problem, backup=backup, playouts=8)
    missing = some_missing(made.services, data)
    assert_completes(made, missing, made.search.best(missing))
    assert made.search.best([0 for _ in missing]) == Path([], 0)


def node(costs: list[int], visits: int | None = None) -> _Node:
    """A node below which playouts ended with these costs."""
    made = _Node([], 0)
    made.visits, made.total = visits or len(costs), sum(costs)
    made.best, made.most = min(costs), max(costs)
    return made


@pytest.mark.parametrize(
    ("backup", "tenths", "chosen"),
    [
        ("minimum", [[11, 11], [10, 20], [19, 19]], 1),  # the least of all costs
        ("mean", [[11, 11], [10, 20], [19, 19]], 0),
        ("mean", [[11] * 100, [17] * 10, [10, 20] * 20], 0),  # looked at often, and cheap
        # the third was hardly looked at
        ("minimum", [[100, 200, 200, 200] * 9, [110] * 36, [110]], 2),
    ],
)
def test_the_way_down_weighs_costs_and_visits(
    backup: str, tenths: list[list[int]], chosen: int
) -> None:
    made = parts(generate("real-rows", n=2, seed=0), backup=backup)
    below = [node(costs) for costs in tenths]
    root = node([cost for costs in tenths for cost in costs])
    root.nodes = below
    assert made.search._promising(root, root) == chosen


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
    assert (ways[0][0].visits, ways[0][0].best) == (200, path.cost)
    assert max(map(len, ways)) > 3  # it goes deep where it is worth it
    for way in ways:
        for above, below in itertools.pairwise(way):
            assert above.best <= below.best
            assert above.visits > below.visits
    assert all(len(way[-1].nodes) <= 3 for way in ways)


class Clock:
    """Of a budget, what the search looks at: stopped after so many looks."""

    def __init__(self, looks: int) -> None:
        self._left = looks

    @property
    def stopped(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize("looks", [0, 7, 100])
def test_it_ends_when_stopped(looks: int) -> None:
    made = parts(generate("real-rows", n=12, seed=2), playouts=10**6)
    path = made.search.best(made.services.needs, Clock(looks))  # type: ignore[arg-type]
    if path is None:
        assert looks < 30
    else:
        assert_completes(made, made.services.needs, path)
