"""The integers of a problem, and the configurations that are listed, against definitions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.tables.integers import Tables, listed, maximal_contents
from cms import Configuration, Job, Problem, SizeBoundedConfigurations


@given(st.data())
def test_the_maximal_contents_are_those_of_the_definition(data: st.DataObject) -> None:
    sizes = data.draw(
        st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1, max_size=4)
    )
    shape = SizeBoundedConfigurations(
        sizes, data.draw(st.integers(0, 20)), max_blocks=data.draw(st.none() | st.integers(1, 5))
    )
    counts = itertools.product(*(range(21 // size + 1) for size in sizes.values()))
    legal = [
        content
        for content in (dict(zip(sizes, many, strict=True)) for many in counts)
        if shape.allows({b: n for b, n in content.items() if n}) and any(content.values())
    ]
    maximal = {
        tuple(sorted((b, n) for b, n in content.items() if n))
        for content in legal
        if not any(shape.allows({**content, b: content[b] + 1}) for b in sizes)
    }
    found = maximal_contents(shape, most=10**6)
    assert found is not None
    assert {tuple(sorted(content.items())) for content in found} == maximal
    assert len(found) == len(maximal)


def test_a_set_of_too_many_contents_is_not_listed() -> None:
    shares = SizeBoundedConfigurations({"a": 2, "b": 3}, 60)
    problem = Problem(configurations=shares, jobs=[Job("x", 60, {"a": 1, "b": 1})])
    assert listed(problem, most=20) == ((), {problem.machine_types[0].name})
    found = listed(problem, most=21)
    assert not found.left_out
    assert len(found.shapes) == 21


def test_of_a_vast_set_the_contents_are_listed_that_somebody_has_a_use_for() -> None:
    vast = SizeBoundedConfigurations({"a": 2, "b": 3}, 10**4000)
    problem = Problem(configurations=vast, jobs=[Job("x", 7, {"a": 1, "b": 2}), Job("y", 0, {})])
    assert listed(problem, most=1).shapes == (Configuration({"a": 7, "b": 4}, "machine"),)


@given(st.data())
def test_tables_are_the_numbers_of_the_rows_of_any_size(data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from([1, 10**12, 10**40]))
    rows = data.draw(
        st.lists(
            st.tuples(*[st.integers(1, 10**6)] * 3).map(lambda row: (max(row), *row[:2])),
            min_size=1,
            max_size=4,
        )
    )
    jobs = [Job(f"j{j}", unit * d + 1, {"a": unit * a, "b": b}) for j, (d, a, b) in enumerate(rows)]
    tables = Tables.of(Problem(configurations=Configuration({"a": 1, "b": 2}), jobs=jobs))
    assert unit == 10**12 or (tables.supply.dtype == object) == (unit > 1)
    for j, (d, a, b) in enumerate(rows):
        demand, supply = int(tables.demands[j]), list(map(int, tables.supply[j]))
        assert gcd(demand, *supply) == 1
        assert [Fraction(f, demand) for f in supply] == [
            Fraction(unit * a, unit * d + 1),
            Fraction(b, unit * d + 1),
        ]
        assert tables.alone[j].tolist() == pytest.approx([demand / f for f in supply])
    assert tables.phi == max(Fraction(max(unit * a, b), unit * d + 1) for d, a, b in rows)
