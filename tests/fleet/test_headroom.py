"""Head-room: the quantile of a Poisson count, exactly, and tables of overheads."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import pdtr

from cms.errors import FileError
from cms.fleet.serving.headroom import Headroom, poisson_quantile, read_overheads

RATES = st.fractions(min_value=Fraction(1, 1000), max_value=550, max_denominator=1000)
_99 = Fraction(99, 100)


def test_the_published_rates_become_the_published_ones() -> None:
    more = Headroom("gpulet").planned_rps
    rates = {50: 68, 100: 125, 300: 342, 500: 554, 600: 660, 900: 990, 1200: 1320, 2400: 2640}
    assert {rate: more(Fraction(rate)) for rate in rates} == rates
    assert more(Fraction(0)) == 0
    assert more(Fraction(550)) == poisson_quantile(Fraction(550), _99) + 1
    assert more(Fraction(5501, 10)) == Fraction(5501, 10) * Fraction(11, 10)


@given(RATES)
def test_the_quantile_is_what_scipy_says_or_as_near_as_floats_tell(rate: Fraction) -> None:
    found = poisson_quantile(rate, _99)
    assert pdtr(found, float(rate)) >= 0.99 - 1e-12
    assert found == 0 or pdtr(found - 1, float(rate)) <= 0.99 + 1e-12


def test_a_rate_that_floats_cannot_tell_from_the_threshold_is_told() -> None:
    # e^-r = 0.99 to 50 digits: just below it the quantile is 0, just above it 1
    digits = 10050335853501441183548857558547706085515007674629
    edge = Fraction(digits, 10**51)
    assert [poisson_quantile(edge + Fraction(d, 10**45), _99) for d in (-1, 1)] == [0, 1]


def test_overheads_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("batch,overhead_ms\n8,2.5\n1,0\n")
    assert read_overheads(path) == {8: Fraction(5, 2), 1: 0}
    path.write_text("batch,overhead_ms\n8,2.5\n8,3\n")
    with pytest.raises(FileError, match=r"o\.csv:3.*a second row for a batch of 8"):
        read_overheads(path)
    path.write_text("batch,overhead_ms\n0,2.5\n")
    with pytest.raises(FileError, match='batch is "0", expected a whole number >= 1'):
        read_overheads(path)
