"""The exact simplex method against scipy's, and on programs that make others go in circles."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import algorithms.solvers.simplex
from algorithms.solvers.simplex import Basic, cheapest
from tests.references.programs import minimum

Program = tuple[list[Fraction], list[list[int]], list[int]]


def drawn(seed: int) -> Program:
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


def refuse_faults(program: Program, found: Basic) -> None:
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


@pytest.mark.parametrize("seed", range(150))
def test_a_basic_optimal_solution_is_found(seed: int) -> None:
    program = drawn(seed)
    found = cheapest(*program)
    assert found is not None
    refuse_faults(program, found)
    costs, rows, least = program
    floats = minimum(costs, -np.array(rows), [-b for b in least])
    assert float(found.cost) == pytest.approx(floats.fun, abs=1e-7)


@pytest.mark.parametrize("seed", range(40))
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


def test_numbers_of_any_size_stay_exact() -> None:
    huge = 10**40
    found = cheapest([Fraction(1), Fraction(1)], [[3, 1], [1, 7]], [huge + 1, huge])
    assert found is not None
    x, y = found.values
    assert (3 * x + y, x + 7 * y) == (huge + 1, huge)


# --- planted faults -------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["the largest ratio enters", "a row too few is repaired"])
def test_a_wrong_pivot_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = algorithms.solvers.simplex._Dictionary
    if fault == "the largest ratio enters":
        monkeypatch.setattr(
            kind,
            "entering",
            lambda self, r: max(
                (e for e in range(self._n) if self._rows[r][e] > 0),
                key=lambda e: self._aim[e] / self._rows[r][e],
            ),
        )
    else:
        monkeypatch.setattr(
            kind,
            "leaving",
            lambda self, bland: next(
                (r for r, row in enumerate(self._rows[:-1]) if row[-1] < 0), None
            ),
        )
    caught = 0
    for seed in range(40):
        pivots = iter(range(200))
        try:
            found = cheapest(*drawn(seed), lambda: next(pivots, None) is None)  # noqa: B023
            assert found is not None
            refuse_faults(drawn(seed), found)
        except (AssertionError, ValueError):
            caught += 1
    assert caught
