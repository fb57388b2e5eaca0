"""Floats of every kind become the decimals they print as: the fast path against ``str``.

Drawn are random bit patterns, short and long decimals, and the floats next to these, where a fast
path that is off by one digit would show.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cms.values.decimals
from cms.values.decimals import decimal_rows, decimals

FEW = 2_000
BITS: dict[Any, Any] = {np.float64: np.uint64, np.float32: np.uint32, np.float16: np.uint16}
KINDS = list(BITS)


def any_bits(rng: np.random.Generator, kind: Any, n: int) -> NDArray[Any]:
    """Every finite float >= 0 is as likely as any other."""
    unsigned = BITS[kind]
    bits = rng.integers(0, np.iinfo(unsigned).max, n, dtype=unsigned)
    values: NDArray[Any] = np.abs(bits.view(kind))
    finite: NDArray[Any] = values[np.isfinite(values)]
    return finite


def decimals_written(rng: np.random.Generator, kind: Any, n: int) -> NDArray[Any]:
    """Decimals of 1 to 17 digits with the point anywhere, as somebody would type them."""
    digits = rng.integers(1, 18, n)
    numbers = (rng.random(n) * 10.0**digits).astype(np.uint64)
    points = rng.integers(-3, 20, n)
    largest = float(np.finfo(kind).max)
    values: NDArray[Any] = np.array(
        [float(f"{number}e{-point}") for number, point in zip(numbers, points, strict=True)]
    )
    fitting: NDArray[Any] = values[values < largest].astype(kind)
    return fitting


def neighbours(values: NDArray[Any]) -> NDArray[Any]:
    around: NDArray[Any] = np.abs(
        np.concatenate(
            [
                np.nextafter(values, values.dtype.type(0)),
                np.nextafter(values, values.dtype.type(1)),
            ]
        )
    )
    return around


def compare(values: NDArray[Any]) -> None:
    numerators, places = decimals(values)
    for value, numerator, place in zip(values, numerators.tolist(), places.tolist(), strict=True):
        printed = Fraction(str(value))
        if place >= 0:
            assert Fraction(numerator, 10**place) == printed, repr(value)
            assert place == 0 or numerator % 10 or not numerator, repr(value)
        else:  # left to the slow path: only if it does not fit in 18 digits before and after
            assert printed >= 10**18 or (printed * 10**18).denominator != 1, repr(value)


def examine(kind: Any, n: int) -> None:
    rng = np.random.default_rng(7)
    written = decimals_written(rng, kind, n)
    for values in (any_bits(rng, kind, n), written, neighbours(written)):
        compare(values)


@pytest.mark.parametrize("kind", KINDS)
def test_a_float_is_the_decimal_it_prints_as(kind: Any) -> None:
    examine(kind, FEW)


@pytest.mark.parametrize("kinds", [(float, float), (int, float), (float, np.float32)])
def test_rows_are_the_same_in_pieces_of_any_size(
    kinds: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    demands = rng.integers(0, 10**4, 50).astype(kinds[0]) // kinds[0](rng.choice([1, 3]))
    supply = (rng.integers(0, 10**4, (50, 3)) / rng.choice([1, 3, 10, 1000], (50, 1))).astype(
        kinds[1]
    )
    whole = decimal_rows(demands, supply)
    monkeypatch.setattr(cms.values.decimals, "_CHUNK", 7)
    pieces = decimal_rows(demands, supply)
    for one, two in zip(whole[:3], pieces[:3], strict=True):
        assert one.tolist() == two.tolist()
    assert whole.hard == pieces.hard
    for j in set(range(50)) - set(whole.hard):
        numbers = [Fraction(str(value)) for value in (demands[j], *supply[j])]
        denominator = lcm(*(number.denominator for number in numbers))
        assert whole.denominators[j] == denominator
        assert [whole.demands[j], *whole.supplies[j]] == [n * denominator for n in numbers]
