"""All ways to hand out a machine's blocks: each once, counted without listing them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.mig_serving.candidates import MOST_NUMBERS, fitting
from algorithms.mig_serving.patterns import number, patterns
from algorithms.tables.integers import Tables
from cms import reduce
from cms.plugin.registry import load_instance

SHAPES = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 3), min_size=k, max_size=k), min_size=1, max_size=3)
)


def a100() -> list[list[int]]:
    scenario: Any = load_instance("S5")
    return Tables.of(reduce(scenario.as_problem().problem).problem).counts


def plainly(shapes: Sequence[Sequence[int]], places: int, mixed: int) -> list[object]:
    """Every block goes to every place in turn."""
    found: set[object] = set()
    for at, shape in enumerate(shapes):
        blocks = [i for i, count in enumerate(shape) for _ in range(count)]
        for way in product(range(places), repeat=len(blocks)):
            if blocks and len(set(way)) <= mixed:
                table = [[0] * len(shape) for _ in range(places)]
                for i, place in zip(blocks, way, strict=True):
                    table[place][i] += 1
                found.add((at, tuple(map(tuple, table))))
    return sorted(found, key=repr)


@given(SHAPES, st.integers(1, 3), st.integers(1, 3))
def test_every_way_is_listed_once(shapes: list[list[int]], places: int, mixed: int) -> None:
    rows = patterns(shapes, places, mixed)
    listed = [
        (at, tuple(tuple(int(x) for x in mine) for mine in table))
        for at, table in zip(rows.shapes.tolist(), rows.counts.tolist(), strict=True)
    ]
    assert sorted(listed, key=repr) == plainly(shapes, places, mixed)


@given(SHAPES.filter(lambda shapes: all(map(any, shapes))), st.integers(1, 6), st.integers(1, 4))
def test_they_are_counted_without_listing(shapes: list[list[int]], places: int, mixed: int) -> None:
    assert number(shapes, places, mixed) == len(patterns(shapes, places, mixed).shapes)


@pytest.mark.parametrize("mixed", [2, 3, 4])
def test_an_a100_has_some_thousand_ways_however_many_jobs_there_are(mixed: int) -> None:
    shapes = a100()
    assert len(shapes) == 12
    known = {2: 1107, 3: 3867, 4: 5727}
    assert fitting(shapes, 6, mixed) == 6
    assert number(shapes, 6, mixed) == len(patterns(shapes, 6, mixed).shapes) == known[mixed]


def test_a_table_of_all_jobs_would_be_too_large() -> None:
    assert number(a100(), 100, 3) == 22_657_350
    assert fitting(a100(), 100, 3) == 11
    assert 11 * 5 * number(a100(), 11, 3) <= MOST_NUMBERS < 12 * 5 * number(a100(), 12, 3)
