"""The door for numbers: everything becomes the rational the user wrote, or is refused by name."""

from __future__ import annotations

import enum
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.errors import InvalidCertificate, InvalidProblem
from cms.values.numbers import (
    LARGEST_DIGITS,
    common_step,
    exact,
    format_exact,
    has_too_many_digits,
    parse_exact,
    power_of_ten,
    shown,
    whole,
)

FORMS = 'a finite number (an int, float, Fraction, Decimal, or text such as "12.5" or "1/3")'


class Level(enum.IntEnum):
    HIGH = 3


class Index:
    """What numpy, sympy and many others do to be taken for a whole number."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"Index({self.value!r})"  # the same in every worker of a parallel run


# --- one number -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, Fraction(0)),
        (12, Fraction(12)),
        (10**30, Fraction(10**30)),
        (Level.HIGH, Fraction(3)),
        (np.int8(7), Fraction(7)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
        (0.1, Fraction(1, 10)),  # not 3602879701896397 / 2**55
        (1e23, Fraction(10**23)),  # the float itself is 99999999999999991611392
        (5e-324, Fraction(5, 10**324)),
        (1.7976931348623157e308, Fraction(17976931348623157 * 10**292)),
        (999.9999999999999, Fraction(9999999999999999, 10**13)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),  # its own shortest decimal, not 0.10000000149011612
        (np.longdouble("0.1"), Fraction(1, 10)),
        (np.float32(16777216.0), Fraction(16777216)),
        (Fraction(2, 6), Fraction(1, 3)),
        (Decimal("1.50"), Fraction(3, 2)),
        (Decimal("0e-999999999"), Fraction(0)),
        (Decimal("1e400"), Fraction(10**400)),
        ("12", Fraction(12)),
        (" 12.5\n", Fraction(25, 2)),
        ("1e3", Fraction(1000)),
        ("1.e-2", Fraction(1, 100)),
        (".5", Fraction(1, 2)),
        ("+1/3", Fraction(1, 3)),
        (np.str_("1/3"), Fraction(1, 3)),
        ("1e400", Fraction(10**400)),
        ("1" * LARGEST_DIGITS, Fraction((10**LARGEST_DIGITS - 1) // 9)),
        ("1/" + "9" * LARGEST_DIGITS, Fraction(1, 10**LARGEST_DIGITS - 1)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_number_means_what_the_user_wrote(value: Any, expected: Fraction) -> None:
    result = exact(value, "x")
    assert (type(result), result) == (Fraction, expected)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (np.float32("nan"), "nan"),
        (Decimal("NaN"), "Decimal('NaN')"),
        (True, "True"),
        (None, "None"),
        (b"1", "b'1'"),
        (np.array(1), "array(1)"),
        # numpy counts a duration among its integers
        (np.timedelta64(5, "D"), "datetime.timedelta(days=5)"),
    ],
)
def test_what_is_no_finite_number_is_refused_by_name(value: Any, shown: str) -> None:
    with pytest.raises(InvalidProblem) as error:
        exact(value, "demand of job 'bert'")
    assert str(error.value) == f"demand of job 'bert' is {shown}; expected {FORMS}"


@pytest.mark.parametrize(
    "text",
    ["", " ", "-", ".", "e5", "1e", "1e5.5", "1/2/3", "1.5/2", "1/-2", "1 / 2", "1_000", "1,5",
     "1 000", "0x10", "٣", "１", "½", "inf", "nan", "12 ms", "--1", "1e400e1"],
)  # fmt: skip
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number; write 12, 12.5, 1e3 or 1/3") as error:
        parse_exact(text)
    with pytest.raises(InvalidProblem) as wrapped:
        exact(text, "x")
    assert str(wrapped.value) == f"x: {error.value}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/0", "'1/0' divides by zero"),
        ("-3/000", "'-3/000' divides by zero"),
        ("1e401", "'1e401' has an exponent beyond 400"),
        ("1e-99999999999", "'1e-99999999999' has an exponent beyond 400"),
        ("1" * 4301, "a text of 4301 characters is too long for a number; at most 4300 digits"),
        ("1e" + "1" * 5000, "a text of 5002 characters is too long for a number"),
        ("1" * 4300 + "e1", "a number of more than 4300 digits"),
    ],
    ids=lambda text: text[:12],
)
def test_a_number_beyond_reason_is_refused_before_it_is_written_out(
    text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        parse_exact(text)


def test_the_longest_numbers_allowed_are_read_and_printed() -> None:
    longest = 10**LARGEST_DIGITS - 1
    for value in (Fraction(longest), Fraction(1, longest), Fraction(longest, 2**400)):
        assert not has_too_many_digits(value)
        assert parse_exact(format_exact(exact(value, "x"))) == value
    assert exact(Decimal("1e4299"), "x") == 10**4299


@pytest.mark.parametrize("value", [-1, -0.5, "-1/3", Decimal("-1e-9"), np.int64(-3)])
def test_a_negative_number_is_refused_unless_it_makes_sense(value: Any) -> None:
    with pytest.raises(InvalidProblem) as error:
        exact(value, "capacity")
    shown = format_exact(exact(value, "x", nonnegative=False))
    assert str(error.value) == f"capacity is {shown}; expected a number >= 0"


@given(st.floats(0, allow_infinity=False))
@example(2.0**1023)
@example(5e-324)
def test_a_float_is_the_shortest_decimal_that_reads_as_it(value: float) -> None:
    assert exact(value, "x") == Fraction(repr(value))
    assert exact(np.float64(value), "x") == Fraction(repr(value))


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=12))
@example(Fraction(1, 3))
@example(Fraction(-1, 3))
@example(Fraction(1, 2**400))
@example(Fraction(1, 2**401))
@example(Fraction(10**30 + 1, 10**15))
@example(Fraction(0))
def test_what_is_written_is_read_back(value: Fraction | Decimal) -> None:
    number = Fraction(value)
    text = format_exact(number)
    assert parse_exact(text) == number
    assert exact(text, "x", nonnegative=False) == number
    if "/" not in text and "." in text:
        assert not text.endswith("0")


# --- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [3, np.int8(3), np.uint64(3), np.array(3), Level.HIGH, Index(3)], ids=repr
)
def test_a_whole_number_is_whatever_python_takes_for_an_index(value: Any) -> None:
    result = whole(value, "count")
    assert (type(result), result) == (int, 3)


@pytest.mark.parametrize(
    "value",
    [3.0, "3", True, np.True_, None, Fraction(3), Decimal(3), np.float64(3), np.array([3]),
     np.array(3.0), np.array([3, 4]), Index("3"), Index(3.0), np.timedelta64(3), 1j],
    ids=repr,
)  # fmt: skip
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(InvalidProblem) as error:
        whole(value, "count of block 'a'", least=0)
    assert str(error.value) == f"count of block 'a' is {value!r}; expected a whole number >= 0"
    with pytest.raises(InvalidCertificate, match="expected a whole number$"):
        whole(value, "at_most", error=InvalidCertificate)


def test_a_whole_number_may_be_too_small_or_too_long() -> None:
    assert whole(0, "limit", least=0) == 0
    assert whole(-(10**30), "at_most") == -(10**30)
    with pytest.raises(InvalidProblem) as error:
        whole(np.int64(-1), "limit", least=0)
    assert str(error.value) == "limit is -1; expected a whole number >= 0"
    with pytest.raises(InvalidProblem, match="^limit has more than 4300 digits; expected a whole"):
        whole(10**5000, "limit", least=0)


# --- the common step of costs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([], Fraction(0)),
        ([Fraction(0)], Fraction(0)),
        ([Fraction(1)], Fraction(1)),
        ([Fraction(3, 2), Fraction(1)], Fraction(1, 2)),
        ([Fraction(1, 2), Fraction(1, 3)], Fraction(1, 6)),
        # 0.4 = 2/5 and 0.6 = 3/5
        ([Fraction(2, 5), Fraction(0), Fraction(3, 5)], Fraction(1, 5)),
        ([Fraction(6), Fraction(9)], Fraction(3)),
        ([Fraction(10**30), Fraction(1, 10**30)], Fraction(1, 10**30)),
    ],
)
def test_the_common_step_is_the_largest_that_divides_all(
    values: list[Fraction], step: Fraction
) -> None:
    assert common_step(values) == step


@given(st.lists(st.fractions(0, 100, max_denominator=60), min_size=1, max_size=5))
def test_every_value_is_a_whole_multiple_of_the_common_step(values: list[Fraction]) -> None:
    step = common_step(values)
    if not any(values):
        assert step == 0
        return
    multiples = [value / step for value in values]
    assert all(multiple.denominator == 1 for multiple in multiples)
    # and of no larger one: the multiples have no common divisor
    assert math.gcd(*(multiple.numerator for multiple in multiples)) == 1


# --- numbers in messages --------------------------------------------------------------------------


@given(st.fractions(), st.integers(-400, 400))
def test_a_number_is_shown_exactly_or_in_round_figures(factor: Fraction, power: int) -> None:
    value = factor * Fraction(10) ** power
    text = shown(value)
    if not text.startswith("about "):
        assert Fraction(text) == value
        return
    mantissa = text.removeprefix("about ").partition("e")[0]
    assert len(mantissa.lstrip("-")) == 5
    assert abs(Fraction(text.removeprefix("about ")) / value - 1) <= Fraction(1, 1000)
    assert (
        Fraction(10) ** power_of_ten(value)
        <= abs(value)
        < Fraction(10) ** (power_of_ten(value) + 1)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (10**640 - 1, "9" * 640),
        (10**640, "about 1.000e640"),
        (10**6000 - 1, "about 1.000e6000"),
        (-(10**6000) // 3, "about -3.333e5999"),
        (Fraction(1, 10**5000 + 1), "about 1.000e-5000"),
        (Fraction(10**5000 + 1, 10**5000), "about 1.000"),
    ],
    ids=range(7),
)
def test_long_numbers_are_shown_in_round_figures(value: Fraction | int, text: str) -> None:
    assert shown(value) == text


class Two(Fraction):
    """One that calls itself two halves of something."""

    @property
    def numerator(self) -> Any:
        return Odd(1)


class Odd(int):
    def __add__(self, other: object) -> Any:
        return 7


def test_an_exact_number_is_made_of_plain_integers() -> None:
    for value in (Two(1, 3), Odd(5), Fraction(Odd(1), Odd(3))):
        number = exact(value, "demand")
        assert {type(number), type(number.numerator), type(number.denominator)} == {Fraction, int}
