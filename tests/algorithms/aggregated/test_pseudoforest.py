"""The rounding lemma, and exact assignments on the support of a vertex."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.aggregated.pseudoforest import Edge, exact_assignment, round_pseudoforest
from tests.references.programs import minimum
from tests.samples import so_many

HALF = Fraction(1, 2)


def kept(blocks: dict[Edge, Fraction], rounded: dict[Edge, int]) -> None:
    """Assert what the lemma says of types and jobs."""
    types, whole = defaultdict[int, Fraction](Fraction), defaultdict[int, int](int)
    lowered = defaultdict[int, int](int)
    for (i, j), amount in blocks.items():
        types[i] += amount
        whole[i] += rounded[i, j]
        assert abs(rounded[i, j] - amount) < 1
        lowered[j] += rounded[i, j] < amount
    for i, total in types.items():
        assert whole[i] <= -floor(-total)
    assert max(lowered.values(), default=0) <= 1


@st.composite
def pseudoforests(draw: st.DrawFn) -> dict[Edge, Fraction]:
    """Trees and cycles over a few types and jobs, with amounts in parts."""
    blocks: dict[Edge, Fraction] = {}
    amounts = st.integers(0, 7).map(lambda n: Fraction(n, 3))
    for part in range(draw(st.integers(1, 2))):
        size = draw(st.integers(2, 4))
        nodes = [(10 * part + at // 2, at % 2) for at in range(2 * size)]
        for at in range(2 * size - 1):
            one, other = nodes[at], nodes[at + 1]
            blocks[(one if not one[1] else other)[0], (one if one[1] else other)[0]] = draw(amounts)
        if draw(st.booleans()):
            blocks[nodes[0][0], nodes[-1][0]] = draw(amounts)
        if draw(st.booleans()):  # a twig
            blocks[10 * part + 5, nodes[1][0]] = draw(amounts)
    return blocks


@given(pseudoforests())
def test_rounding_keeps_types_and_loses_less_than_a_block_a_job(
    blocks: dict[Edge, Fraction],
) -> None:
    kept(blocks, round_pseudoforest(blocks))


def test_a_cycle_rounds_each_type_up_once() -> None:
    cycle = {(0, 0): HALF, (0, 1): HALF, (1, 0): HALF, (1, 1): HALF}
    rounded = round_pseudoforest(cycle)
    kept(cycle, rounded)
    assert sorted(rounded.values()) == [0, 0, 1, 1]


def test_more_edges_than_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="no pseudoforest"):
        round_pseudoforest({(i, j): HALF for i in range(3) for j in range(3)})


def vertex(rng: random.Random) -> tuple[list[Edge], list[list[int]], list[int], list[int]] | None:
    """A vertex of an assignment system, by scipy: edges, supply, blocks, demands."""
    k, n = rng.randint(1, 4), rng.randint(1, 5)
    supply = [[rng.choice([0, 1, 2, 3, 5, 7]) for _ in range(k)] for _ in range(n)]
    held = [rng.randint(1, 6) for _ in range(k)]
    demands = [rng.randint(1, 12) for _ in range(n)]
    a, b = [], []
    for i in range(k):
        a.append([float(at % k == i) for at in range(n * k)])
        b.append(float(held[i]))
    for j in range(n):
        a.append([-float(supply[j][at % k]) if at // k == j else 0.0 for at in range(n * k)])
        b.append(-float(demands[j]))
    cost = [rng.random() for _ in range(n * k)]
    found = minimum(cost, a, b)
    if found is None:
        return None
    y = np.asarray(found.x)
    edges = [(at % k, at // k) for at in range(n * k) if y[at] > 1e-9]
    return edges, supply, held, demands


def test_the_support_of_a_vertex_carries_an_exact_assignment_that_rounds() -> None:
    rng, cases = random.Random(11), 0
    while cases < so_many(30, 300):
        case = vertex(rng)
        if case is None:
            continue
        cases += 1
        edges, supply, held, demands = case
        blocks = exact_assignment(edges, supply, held, dict(enumerate(map(Fraction, demands))))
        assert blocks is not None
        for i in range(len(held)):
            assert sum((y for (t, _), y in blocks.items() if t == i), Fraction(0)) <= held[i]
        for j, d in enumerate(demands):
            got = sum((y * supply[j][i] for (i, job), y in blocks.items() if job == j), Fraction(0))
            assert got >= d
        kept(blocks, round_pseudoforest(blocks))


def test_an_assignment_that_is_not_there_is_not_found() -> None:
    assert exact_assignment([(0, 0)], [[2]], [3], {0: Fraction(6)}) == {(0, 0): 3}
    assert exact_assignment([(0, 0)], [[2]], [3], {0: Fraction(6) + Fraction(1, 10**30)}) is None
    assert exact_assignment([], [[2]], [3], {0: Fraction(1)}) is None


def test_a_cycle_is_solved_exactly_or_opened() -> None:
    edges = [(0, 0), (1, 0), (0, 1), (1, 1)]
    supply = [[1, 3], [2, 1]]
    tight = {0: Fraction(5, 2), 1: Fraction(5, 2)}
    blocks = exact_assignment(edges, supply, [1, 1], {0: Fraction(3), 1: Fraction(2)})
    assert blocks is not None
    assert exact_assignment(edges, supply, [1, 1], tight) is None
