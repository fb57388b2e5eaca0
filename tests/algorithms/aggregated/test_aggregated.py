"""The aggregated program, its roundings and the clean-up, on the tiny families."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from algorithms.aggregated import program
from algorithms.aggregated.program import Aggregated, certificate, doubled, one_block_each
from algorithms.aggregated.tidy import without_waste
from algorithms.tables.integers import Counts, Tables, without_limits
from cms import Configuration, Job, Problem, check
from cms.reduction.reduction import Reduction, reduce
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import so_many

CASES = [(family, n) for family in sorted(FAMILIES) for n in range(so_many(2, 12))]


def reduced(family: str, number: int) -> tuple[Reduction, Tables] | None:
    problem = instance(family, number)
    if not without_limits(problem):
        return None
    small = reduce(problem)
    tables = Tables.of(small.problem)
    return None if tables.unservable or not tables.n else (small, tables)


def serves(small: Reduction, tables: Tables, counts: Counts) -> None:
    assert check(small.original, tables.schedule(small, *counts)) == ()


def test_roundings_serve_everyone_within_their_bounds_and_prices_prove_the_program() -> None:
    seen = 0
    for family, number in CASES:
        pair = reduced(family, number)
        if pair is None:
            continue
        small, tables = pair
        vertex = Aggregated(tables).solve(None)
        seen += 1
        slack = 1 + Fraction(1, 10**6)
        best = optimum(small.original)
        assert best is not None
        assert vertex.value <= best * slack
        twice = doubled(vertex, tables)
        serves(small, tables, twice)
        allowed = (1 + tables.phi) * vertex.value + tables.dearest(tables.p)
        assert tables.cost(twice[0]) <= allowed * slack, (family, number)
        added = one_block_each(vertex, tables)
        serves(small, tables, added)
        each = max(tables.costs[tables.cheapest_with(i)] for i in range(tables.k))
        allowed = vertex.value + tables.dearest(tables.p) + tables.n * each
        assert tables.cost(added[0]) <= allowed * slack, (family, number)
        proof = certificate(small, vertex.prices)
        if proof is None:
            assert not any(tables.costs) or vertex.value == 0, (family, number)
        else:
            bound = proof.claim.bound(small.original)  # type: ignore[union-attr]
            assert vertex.value <= bound * slack, (family, number)
            assert bound <= best
    assert seen > len(CASES) // 2


@pytest.mark.parametrize("rounding", [doubled, one_block_each])
def test_clean_up_keeps_schedules_valid_and_never_dearer(rounding: object) -> None:
    for family, number in CASES[::3]:
        pair = reduced(family, number)
        if pair is None:
            continue
        small, tables = pair
        vertex = Aggregated(tables).solve(None)
        counts = rounding(vertex, tables)  # type: ignore[operator]
        clean = without_waste(tables, *counts)
        serves(small, tables, clean)
        assert tables.cost(clean[0]) <= tables.cost(counts[0])
        again = without_waste(tables, *clean)
        assert again[0] == clean[0]
        assert (again[1] == clean[1]).all()


def test_repair_uses_idle_blocks_before_new_machines() -> None:
    problem = Problem(
        configurations=Configuration({"b": 4}), jobs=[Job("x", 3, {"b": 1}), Job("y", 9, {"b": 2})]
    )
    tables = Tables.of(problem)
    for opened, there in ((1, 2), (0, 0)):
        machines, given = program.repaired(tables, [opened], np.array([[there], [0]]))
        assert machines == [2]
        assert given.tolist() == [[3], [5]]


def test_a_bound_keeps_its_digits_where_a_block_is_of_little_price() -> None:
    """Floats stand for no short fraction here, so the prices are rounded."""
    problem = Problem(
        configurations=[
            Configuration({"a": 1}),
            Configuration({"b": 10**7 + 9}),
            Configuration({"c": 10**8}),
        ],
        jobs=[Job("x", 10**18, {"b": 1}), Job("y", 1, {"a": 1}), Job("z", 1, {"c": 1})],
    )
    small = reduce(problem)
    vertex = Aggregated(Tables.of(small.problem)).solve(None)
    proof = certificate(small, vertex.prices)
    assert proof is not None
    bound = proof.claim.bound(problem)  # type: ignore[union-attr]
    assert vertex.value * (1 - Fraction(1, 10**9)) <= bound <= vertex.value
