"""The ways to hand out blocks, and the machines of the highest scores, as trying all finds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.mig_serving.fast import Filled, Services, count_patterns, patterns
from cms import Configuration, Job, Problem
from tests.algorithms.mig_serving.parts import PROBLEMS, assert_legal, parts

SHAPES = st.integers(1, 3).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(0, 3), min_size=k, max_size=k).filter(any), min_size=1, max_size=3
    )
)


def plainly(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> list[object]:
    """Every block goes to every place in turn."""
    found: set[object] = set()
    for at, shape in enumerate(shapes):
        blocks = [i for i, count in enumerate(shape) for _ in range(count)]
        for way in product(range(places), repeat=len(blocks)):
            if len(set(way)) <= mixed:
                table = [[0] * len(shape) for _ in range(places)]
                for i, place in zip(blocks, way, strict=True):
                    table[place][i] += 1
                found.add((at, tuple(map(tuple, table))))
    return sorted(found, key=repr)


@given(SHAPES, st.integers(1, 3), st.integers(1, 3))
def test_every_way_is_listed_once_and_counted(
    shapes: list[list[int]], places: int, mixed: int
) -> None:
    ways, counts = patterns(shapes, places, mixed)
    listed = [
        (at, tuple(tuple(int(x) for x in mine) for mine in table))
        for at, table in zip(ways.tolist(), counts.tolist(), strict=True)
    ]
    assert sorted(listed, key=repr) == plainly(shapes, places, mixed)
    assert count_patterns(shapes, places, mixed) == len(listed)


def score(services: Services, machine: Filled, missing: Sequence[int], *, capped: bool) -> Fraction:
    """The score by its definition, in rationals."""
    total = Fraction(0)
    for j, amount in machine.gives:
        left = Fraction(max(0, missing[j]), services.needs[j])
        worth = Fraction(amount, services.needs[j])
        total += left * (min(worth, left) if capped else worth)
    return total / services.tables.costs[machine.shape]


def every_machine(services: Services, jobs: Sequence[int], mixed: int) -> list[Filled]:
    """All ways to give every block of every configuration to one of the jobs."""
    found: dict[Filled, None] = {}
    for shape, row in enumerate(services.tables.counts):
        blocks = [i for i, count in enumerate(row) for _ in range(count)]
        for way in product(jobs, repeat=len(blocks)):
            if len(set(way)) <= mixed:
                given: dict[tuple[int, int], int] = {}
                for i, j in zip(blocks, way, strict=True):
                    given[i, j] = given.get((i, j), 0) + 1
                found[services.filled(shape, [(i, j, x) for (i, j), x in given.items()])] = None
    return list(found)


@given(PROBLEMS, st.integers(1, 2), st.booleans(), st.data())
def test_the_best_machine_is_the_best_of_all(
    problem: Problem, mixed: int, capped: bool, data: st.DataObject
) -> None:
    services, candidates, *_ = parts(problem, mixed=mixed, last_mile=0)
    missing = [data.draw(st.integers(1, need)) for need in services.needs]
    jobs = list(range(len(missing)))[:3]
    found = candidates.top(jobs, missing, keep=5, capped=capped)
    for machine in found:
        assert_legal(services, machine)
        assert len(machine.gives) <= mixed
        assert any(missing[j] > 0 for j, _ in machine.gives)
    scores = [float(score(services, machine, missing, capped=capped)) for machine in found]
    known = max(
        score(services, machine, missing, capped=capped)
        for machine in every_machine(services, jobs, mixed)
    )
    # Floats choose, so the order is right but for equals.
    assert scores[0] == pytest.approx(float(known), rel=1e-12)
    assert scores == pytest.approx(sorted(scores, reverse=True), rel=1e-12)


def test_in_the_last_mile_one_job_more_is_mixed_and_scores_are_capped() -> None:
    jobs = [Job(name, 101, {"b": 10}) for name in "wxyz"]
    candidates = parts(Problem(configurations=Configuration({"b": 4}), jobs=jobs)).candidates
    for missing, capped, mixed in ((11, True, 3), (11, False, 1), (10, True, 4), (10, False, 4)):
        [best] = candidates.top([0, 1, 2, 3], [missing] * 4, keep=1, capped=capped)
        assert len(best.gives) == mixed


@given(st.integers(7, 40), st.integers(0, 5), st.booleans())
def test_the_shortlist_holds_the_job_worth_most(n: int, seed: int, capped: bool) -> None:
    rng = np.random.default_rng(seed)
    jobs = [
        Job(f"j{j}", int(rng.integers(5, 90)), {"a": int(rng.integers(1, 9)), "b": 4})
        for j in range(n)
    ]
    problem = Problem(configurations=[Configuration({"a": 2, "b": 1})], jobs=jobs)
    services, candidates, *_ = parts(problem, last_mile=0)
    chosen = candidates.shortlist(np.array(services.needs), capped=capped)
    assert len(chosen) == len(set(chosen)) == 6
    utility = np.minimum(services.utility, 1.0)
    assert (utility[chosen].max(axis=0) == utility.max(axis=0)).all()
