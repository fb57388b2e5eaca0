"""Maximal contents that prices leave: all of them, and enough for the optimum."""

from __future__ import annotations

import importlib
import random
from fractions import Fraction
from typing import Any

import pytest

import algorithms.conic.run
from algorithms.conic.polytope import HalfSpace, Point, Polytope
from algorithms.conic.valuable import valuable
from cms import Problem, UnsupportedProblem
from instances import hard
from tests.algorithms.conic.parts import inside, listed, of, polytopes, solved
from tests.references.programs import integer_program
from tests.samples import spread


def maximal(polytope: Polytope) -> list[Point]:
    """The points to which nothing can be added, from their definition."""
    found = []
    for point in listed(polytope):
        more = [(*point[:i], point[i] + 1, *point[i + 1 :]) for i in range(polytope.dimension)]
        if not any(inside(polytope, other) for other in more):
            found.append(point)
    return found


@pytest.mark.parametrize("polytope", spread(16, polytopes()), ids=str)
def test_the_maximal_points_of_a_half_space_are_listed(polytope: Polytope) -> None:
    rng = random.Random(str(polytope))
    points = maximal(polytope)
    for _ in range(4):
        normal = tuple(-rng.randint(0, 9) for _ in range(polytope.dimension))
        at = HalfSpace(normal, 0)
        half = HalfSpace(normal, rng.choice([0, -at.slack(rng.choice(points))]))
        wanted = [point for point in points if half.slack(point) >= 0]
        found = valuable(polytope, half, 10**6)
        assert found is not None
        assert sorted(found) == wanted


def test_it_gives_up_beyond_so_many_points_and_when_it_is_stopped() -> None:
    machine, everything = Polytope(((5, 4, 3),), (30,)), HalfSpace((0, 0, 0), 0)
    assert valuable(machine, everything, 30) is None
    assert valuable(machine, everything, 31) is not None
    assert valuable(machine, everything, 31, lambda: True) is None


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two maximal contents are too many to be listed without prices."""
    # The package has a function of the module's name.
    prepared = importlib.import_module("algorithms.conic.prepared")
    monkeypatch.setattr(prepared, "MOST_MAXIMAL", 1)


def dozens(seed: int) -> Problem:
    """Three or four block types, dozens of blocks a machine."""
    rng = random.Random(f"later {seed}")
    blocks = [f"b{i}" for i in range(rng.choice([3, 3, 4]))]
    jobs = {
        f"j{j}": (rng.randint(20, 300), {block: rng.randint(1, 9) for block in blocks})
        for j in range(rng.randint(1, 4))
    }
    sizes = {block: rng.randint(5, 14) for block in blocks}
    return of(sizes, rng.randint(70, 110), jobs, max_blocks=rng.choice([None, None, 9]))


def by_program(seed: int) -> bool:
    """Whether the integer program had a say, where the optimum was found."""
    problem = dozens(seed)
    solution = solved(problem)
    assert solution.status == "optimal"
    assert solution.cost == integer_program(problem)
    return "integer program" in solution.history[-1].source


@pytest.mark.usefixtures("many")
def test_the_contents_that_prices_leave_are_enough() -> None:
    assert sum(by_program(seed) for seed in range(10)) >= 2


@pytest.mark.usefixtures("many")
def test_a_bound_that_does_not_round_up_is_closed() -> None:
    # The demands of three whole machines more, so that no count of proper contents binds.
    sizes, demands = {"a": 44, "b": 33, "c": 12}, {"a": 5, "b": 7, "c": 17}
    jobs = {block: (number, {block: 1}) for block, number in demands.items()}
    solution = solved(of(sizes, 132, jobs))
    assert (solution.cost, solution.status, solution.proof) == (6, "optimal", "solver")
    assert solution.certificate.bound(of(sizes, 132, jobs)) == Fraction(655, 132)


@pytest.mark.usefixtures("many")
def test_without_an_optimum_a_run_may_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms.conic.run, "MOST_MAXIMAL", 0)
    with pytest.raises(UnsupportedProblem, match="that a better schedule may have"):
        solved(hard.NON_IRUP.make())


def test_a_rounding_that_is_proved_optimal_needs_no_contents() -> None:
    problem = of({"a": 3, "b": 5, "c": 7}, 10**6, {"x": (7, {"a": 3, "b": 1, "c": 1})})
    solution = solved(problem)
    assert (solution.cost, solution.proof) == (1, "checked")
    way: dict[str, Any] = {"plain": True}
    with pytest.raises(UnsupportedProblem, match="more than two block types"):
        solved(problem, **way)


@pytest.mark.usefixtures("many")
def test_contents_that_are_lost_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: of the valuable contents every other one is forgotten."""
    monkeypatch.setattr(
        algorithms.conic.run,
        "valuable",
        lambda *arguments: (valuable(*arguments) or ())[1::2],
    )
    with pytest.raises(AssertionError):
        test_the_contents_that_prices_leave_are_enough()
