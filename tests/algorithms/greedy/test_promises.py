"""The factors are rationals just above what the theory says."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from math import e, log

import pytest

from algorithms.greedy import opening
from algorithms.greedy.promises import (
    FACTORS,
    alone_factor,
    best_alone_inflation,
    best_inflation,
    harmonic_above,
    inflated_factor,
    log_above,
)
from algorithms.tables.integers import Tables
from cms.reduction.reduction import reduce
from proofs_checks import g_alone
from proofs_checks.tiny import Tiny
from tests.families import instance


@pytest.mark.parametrize(
    ("n", "table"),
    [
        (2, "2.68"),
        (4, "3.70"),
        (8, "4.61"),
        (16, "5.48"),
        (64, "7.13"),
        (256, "8.71"),
        (1024, "10.26"),
        (10**4, "12.76"),
        (10**6, "17.69"),
    ],
)
def test_the_inflated_factor_is_the_table_of_the_theory(n: int, table: str) -> None:
    delta = best_inflation(n)
    factor = inflated_factor(n, delta)
    true = float(1 + delta) * log((1 + delta) * n / delta)
    assert true <= factor < true + 2e-6
    assert float(table) - 0.01 < factor < float(table) * 1.01


@pytest.mark.parametrize("few", [1, 2, 7, 64, 10**6])
def test_the_factor_alone_is_nearly_the_best(few: int) -> None:
    delta = best_alone_inflation(few)
    assert 0 < delta <= 1
    factor = alone_factor(few, delta)
    assert factor >= (1 + delta) * (1 + log(few / delta)) - 1e-9
    # At the best delta ln(N / delta) is 1 / delta.
    best = min(float(1 + t) * (1 + log(few) - log(t)) for t in [i / 1000 for i in range(1, 1001)])
    assert factor <= best * 1.01


@pytest.mark.parametrize("number", [0, 1, 2, 30, 31, 999, 1000, 1001, 5000])
def test_harmonic_numbers_are_met_from_above(number: int) -> None:
    exact = sum(Fraction(1, i) for i in range(1, number + 1))
    assert exact <= harmonic_above(number) < exact + Fraction(1, 10**6)


def test_logarithms_are_met_from_above() -> None:
    getcontext().prec = 60
    for value in (Fraction(2), Fraction(10, 3), Fraction(10**40), Fraction(1)):
        true = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        assert 0 <= log_above(value) - Fraction(true) < Fraction(1, 10**30)


def test_the_inner_factor_of_independent_rounding_is_not_above_the_true_one() -> None:
    assert float(FACTORS["independent"]) < 1 - 1 / e < float(FACTORS["independent"]) + 1e-5


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
