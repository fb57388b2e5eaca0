"""The factors are rationals just above what the theory says."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from math import e, exp, log

import pytest

from algorithms.greedy.factors import (
    best_inflation,
    harmonic_above,
    inflated_factor,
    kappa,
    log_above,
)
from algorithms.greedy.inner import FACTORS


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
def test_kappa_is_the_table_of_the_theory(n: int, table: str) -> None:
    value = float(kappa(n))
    assert value <= float(table) < value + 0.011
    assert e * value * exp(-value) <= 1 / n
    smaller = value - 2e-6
    assert e * smaller * exp(-smaller) > 1 / n


@pytest.mark.parametrize("number", [1, 2, 30, 31, 999, 1000, 1001, 5000])
def test_harmonic_numbers_are_met_from_above(number: int) -> None:
    exact = sum(Fraction(1, i) for i in range(1, number + 1))
    assert exact <= harmonic_above(number) < exact + Fraction(1, 10**6)


def test_logarithms_are_met_from_above() -> None:
    getcontext().prec = 60
    for value in (Fraction(2), Fraction(10, 3), Fraction(10**40), Fraction(1)):
        true = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        assert 0 <= log_above(value) - Fraction(true) < Fraction(1, 10**30)


@pytest.mark.parametrize("n", [1, 2, 16, 1024, 10**6])
def test_the_default_inflation_is_nearly_the_best(n: int) -> None:
    delta = best_inflation(n)
    assert 0 < delta
    factor = float(inflated_factor(n, delta))
    assert factor >= (1 + float(delta)) * log((1 + float(delta)) * n / float(delta))
    if n > 1:
        assert factor <= float(kappa(n)) * 1.01


def test_the_inner_factor_of_independent_rounding_is_not_above_the_true_one() -> None:
    assert float(FACTORS["independent"]) < 1 - 1 / e < float(FACTORS["independent"]) + 1e-5
