"""The factors are rationals just above what the theory says."""

from __future__ import annotations

from fractions import Fraction
from math import log

import pytest

from algorithms.greedy import opening
from algorithms.greedy.promises import best_inflation, harmonic_above, inflated_factor
from algorithms.tables.integers import Tables
from cms.reduction.reduction import reduce
from proofs_checks import g_alone
from proofs_checks.tiny import Tiny
from tests.families import instance


@pytest.mark.parametrize(
    ("n", "table"), [(2, "2.68"), (16, "5.48"), (1024, "10.26"), (10**4, "12.76"), (10**6, "17.69")]
)
def test_the_inflated_factor_is_the_table_of_the_theory(n: int, table: str) -> None:
    delta = best_inflation(n)
    factor = inflated_factor(n, delta)
    true = float(1 + delta) * log((1 + delta) * n / delta)
    assert true <= factor < true + 2e-6
    assert float(table) - 0.01 < factor < float(table) * 1.01


@pytest.mark.parametrize("number", [0, 1, 2, 30, 31, 999, 1000, 1001, 5000])
def test_harmonic_numbers_are_met_from_above(number: int) -> None:
    exact = sum(Fraction(1, i) for i in range(1, number + 1))
    assert exact <= harmonic_above(number) < exact + Fraction(1, 10**6)


@pytest.mark.parametrize(
    "family", ["random_configurations", "costs", "size_bounded", "long_numbers"]
)
def test_a_job_weighs_what_it_costs_alone(family: str) -> None:
    """By the plain fractions of the theorem's own check, up to a common factor."""
    for number in range(15):
        tables = Tables.of(reduce(instance(family, number)).problem)
        if not tables.n or tables.unservable or not all(tables.costs):
            continue
        tiny = Tiny.of(tables.demands.tolist(), tables.supply.tolist(), tables.counts, tables.costs)
        divisors = opening._divisors(tables, "alone", 3, 1, None)
        ratios = [d * g_alone.alone(tiny, j) for j, d in enumerate(divisors)]
        assert max(ratios) - min(ratios) <= max(ratios) / 10**9
