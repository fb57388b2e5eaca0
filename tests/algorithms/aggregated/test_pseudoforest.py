"""The rounding lemma."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import floor

from hypothesis import given
from hypothesis import strategies as st

from algorithms.aggregated.pseudoforest import Edge, round_pseudoforest

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
