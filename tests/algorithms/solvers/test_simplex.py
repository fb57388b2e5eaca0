"""The exact simplex method against scipy's, and on programs that make others go in circles."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import algorithms.solvers.simplex
from algorithms.solvers.simplex import Basic, Program, cheapest
from tests.references.programs import minimum
from tests.samples import few, so_many

Numbers = tuple[list[Fraction], list[list[int]], list[int]]


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each pivot no reduced cost is negative, or no value: neither method loses its own."""
    pivot = Program.pivot

    def watched(self: Program, r: int, e: int) -> None:
        pivot(self, r, e)
        values = [row.numbers[-1] for row in self._rows]
        assert min(self._aim.numbers[:-1]) >= 0 or min(values) >= 0

    monkeypatch.setattr(Program, "pivot", watched)


def drawn(seed: int) -> Numbers:
    """A program that has a solution: with all columns large enough every row is satisfied."""
    rng = random.Random(seed)
    m, n = rng.randint(1, 6), rng.randint(1, 8)
    costs = [Fraction(rng.randint(0, 9), rng.randint(1, 4)) for _ in range(n)]
    rows = [[rng.choice([0, 0, 1, 2, 5, -3]) for _ in range(n)] for _ in range(m)]
    inside = [rng.randint(0, 4) for _ in range(n)]
    least = [
        sum(a * x for a, x in zip(row, inside, strict=True)) - rng.choice([0, 0, 1, 7])
        for row in rows
    ]
    return costs, rows, least


def refuse_faults(program: Numbers, found: Basic) -> None:
    """Primal and dual feasible, of one value, basic: proof of optimality without a solver."""
    costs, rows, least = program
    assert min(found.values) >= 0
    assert min(found.prices) >= 0
    for row, b in zip(rows, least, strict=True):
        assert sum((a * x for a, x in zip(row, found.values, strict=True)), Fraction(0)) >= b
    for column, cost in zip(zip(*rows, strict=True), costs, strict=True):
        worth = sum((a * p for a, p in zip(column, found.prices, strict=True)), Fraction(0))
        assert worth <= cost
    assert found.cost == sum((c * x for c, x in zip(costs, found.values, strict=True)), Fraction(0))
    assert found.cost == sum((b * p for b, p in zip(least, found.prices, strict=True)), Fraction(0))
    assert sum(x > 0 for x in found.values) <= len(rows)


@pytest.mark.parametrize("seed", few(15, range(150)))
def test_a_basic_optimal_solution_is_found(seed: int) -> None:
    program = drawn(seed)
    found = cheapest(*program)
    assert found is not None
    refuse_faults(program, found)
    costs, rows, least = program
    floats = minimum(costs, -np.array(rows), [-b for b in least])
    assert float(found.cost) == pytest.approx(floats.fun, abs=1e-7)


@pytest.mark.parametrize("seed", few(10, range(40)))
def test_the_rule_that_cannot_cycle_finds_the_same_value(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = cheapest(*drawn(seed))
    monkeypatch.setattr(algorithms.solvers.simplex, "_STEEPEST_A_ROW", -1)
    careful = cheapest(*drawn(seed))
    assert usual is not None
    assert careful is not None
    refuse_faults(drawn(seed), careful)
    assert careful.cost == usual.cost


def test_rows_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="contradict"):
        cheapest([Fraction(1)], [[1], [-1]], [3, -2])


def test_it_ends_when_it_is_stopped() -> None:
    assert cheapest([Fraction(1)], [[2]], [3], lambda: True) is None
    done = cheapest([Fraction(1)], [[2]], [0], lambda: True)
    assert done is not None  # there was nothing to do
    assert done.values == [0]


# --- columns that join late -----------------------------------------------------------------------


def late(seed: int) -> None:
    """Hold a program that columns, and a row that only they count in, join to one from scratch."""
    rng = random.Random(seed)
    costs, rows, least = drawn(seed)
    # With this column alone the rows do not contradict each other.
    costs, rows = [Fraction(99), *costs], [[1, *row] for row in rows]
    shared = rng.randint(1, len(costs))
    rows.append([0] * shared + [-1] * (len(costs) - shared))
    least.append(-rng.randint(0, 1))
    going_on = Program(least[:-1])
    for at, cost in enumerate(costs):
        if at == shared:
            going_on.add_row(least[-1])
        going_on.add(cost, {r: row[at] for r, row in enumerate(rows) if row[at]})
        if at + 1 in (shared, len(costs)) or rng.random() < 0.5:
            found = going_on.solve()
            assert found is not None
            part = [row[: at + 1] for row in rows[: len(rows) if at >= shared else -1]]
            refuse_faults((costs[: at + 1], part, least[: len(part)]), found)
            from_the_start = cheapest(costs[: at + 1], part, least[: len(part)])
            assert from_the_start is not None
            assert found.cost == from_the_start.cost


@pytest.mark.parametrize("steepest", [8, -1])
def test_columns_that_join_late_change_nothing(
    steepest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms.solvers.simplex, "_STEEPEST_A_ROW", steepest)
    for seed in range(so_many(50, 150)):
        late(seed)
