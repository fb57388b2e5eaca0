"""Floats of every kind become the decimals they print as: the fast path against ``str``.

Drawn are random bit patterns, short and long decimals, and the floats next to these, where a fast
path that is off by one digit would show.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cms.decimals import decimals

FEW, MANY = 2_000, 400_000
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


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_floats_are_the_decimals_they_print_as(kind: Any) -> None:
    examine(kind, MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_floats_and_zero_have_no_places(kind: Any) -> None:
    numerators, places = decimals(np.array([0, 1, 7, 2000], dtype=kind))
    assert numerators.tolist() == [0, 1, 7, 2000]
    assert places.tolist() == [0, 0, 0, 0]


def test_the_shape_stays() -> None:
    numerators, places = decimals(np.array([[0.5, 0.25], [0.125, 3.0], [1e-30, 1e30]]))
    assert numerators.shape == places.shape == (3, 2)
    assert places.tolist() == [[1, 2], [3, 0], [-1, -1]]


def test_every_float16_is_the_decimal_it_prints_as() -> None:
    values = np.arange(2**15, dtype=np.uint16).view(np.float16)
    compare(values[np.isfinite(values)])


def test_the_layout_of_an_array_does_not_matter() -> None:
    values = np.array([[0.5, 1.25, 3.0], [1 / 3, 1e300, 7.0]])
    for other in (values.T, values[:, ::2], values[::-1], values.astype(">f8"), values[:0]):
        numerators, places = decimals(other)
        assert numerators.shape == places.shape == other.shape
        expected = np.vectorize(lambda value: decimals(np.array([value]))[0][0], otypes=[int])
        assert not other.size or (numerators == expected(other)).all()


def test_ints_are_decimals_without_places() -> None:
    for values in (np.array([3, 0], dtype=np.uint8), np.array([2**63 - 1])):
        numerators, places = decimals(values)
        assert numerators.tolist() == values.tolist()
        assert places.tolist() == [0] * len(values)
