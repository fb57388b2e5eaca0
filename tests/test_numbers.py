"""Numbers and names at the door: everything means what the user wrote, or is refused by name."""

from __future__ import annotations

import enum
import math
import pickle
import random
import string
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.errors import InvalidCertificate, InvalidProblem
from cms.values.names import NumberedNames, checked_names, nearest
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
from cms.values.words import brief, is_told_apart, printable, printable_lines
from tests.samples import refusal


class Level(enum.IntEnum):
    HIGH = 3


class Index:
    """What numpy, sympy and many others do to be taken for a whole number."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Index({self.value!r})"

    def __index__(self) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (10**30, Fraction(10**30)),
        (Level.HIGH, Fraction(3)),
        (np.int8(7), Fraction(7)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
        (0.1, Fraction(1, 10)),  # not 3602879701896397 / 2**55
        (1e23, Fraction(10**23)),  # the float itself is 99999999999999991611392
        (5e-324, Fraction(5, 10**324)),
        (999.9999999999999, Fraction(9999999999999999, 10**13)),
        (np.float32(0.1), Fraction(1, 10)),  # its own shortest decimal, not 0.10000000149011612
        (np.longdouble("0.1"), Fraction(1, 10)),
        (Fraction(2, 6), Fraction(1, 3)),
        (Decimal("1.50"), Fraction(3, 2)),
        (Decimal("0e-999999999"), Fraction(0)),
        (Decimal("1e400"), Fraction(10**400)),
        (Decimal("1e4299"), Fraction(10**4299)),
        (" 12.5\n", Fraction(25, 2)),
        ("1.e-2", Fraction(1, 100)),
        (".5", Fraction(1, 2)),
        (np.str_("+1/3"), Fraction(1, 3)),
        ("1e400", Fraction(10**400)),
        ("1/" + "9" * LARGEST_DIGITS, Fraction(1, 10**LARGEST_DIGITS - 1)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_number_means_what_the_user_wrote(value: Any, expected: Fraction) -> None:
    result = exact(value, "x")
    assert (type(result), result) == (Fraction, expected)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), np.float32("nan"), Decimal("NaN"), True, None, b"1", np.array(1),
     np.timedelta64(5, "D"), -1, -0.5, "-1/3", Decimal("-1e-9"), np.int64(-3), Decimal("1e4300"),
     10**4300, "", " ", "-", ".", "e5", "1e", "1e5.5", "1/2/3", "1.5/2", "1/-2", "1 / 2", "1_000",
     "1,5", "1 000", "0x10", "٣", "１", "½", "inf", "nan", "12 ms", "--1", "1e400e1", "1/0",
     "-3/000", "1e401", "1e-99999999999", "1" * 4301, "1e" + "1" * 5000, "1" * 4300 + "e1"],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_finite_number_at_least_zero_is_refused_by_name(value: Any) -> None:
    said = refusal(InvalidProblem, exact, value, "demand of job 'bert'")
    assert said.startswith("demand of job 'bert'")
    assert len(said) < 1_000
    if isinstance(value, str) and not value.startswith("-"):
        with pytest.raises(ValueError):  # noqa: PT011
            parse_exact(value)


@given(st.floats(0, allow_infinity=False))
@example(2.0**1023)
@example(5e-324)
def test_a_float_is_the_shortest_decimal_that_reads_as_it(value: float) -> None:
    assert exact(value, "x") == exact(np.float64(value), "x") == Fraction(repr(value))


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=12))
@example(Fraction(-1, 3))
@example(Fraction(1, 2**400))
@example(Fraction(1, 2**401))
@example(Fraction(10**30 + 1, 10**15))
@example(Fraction(10**LARGEST_DIGITS - 1, 2**400))
@example(Fraction(1, 10**LARGEST_DIGITS - 1))
def test_what_is_written_is_read_back(value: Fraction | Decimal) -> None:
    number = Fraction(value)
    text = format_exact(number)
    assert not has_too_many_digits(number)
    assert parse_exact(text) == exact(text, "x", nonnegative=False) == number
    if "/" not in text and "." in text:
        assert not text.endswith("0")


@pytest.mark.parametrize(
    "value", [3, np.int8(3), np.uint64(3), np.array(3), Level.HIGH, Index(3)], ids=repr
)
def test_a_whole_number_is_whatever_python_takes_for_an_index(value: Any) -> None:
    result = whole(value, "count")
    assert (type(result), result) == (int, 3)


@pytest.mark.parametrize(
    "value",
    [3.0, "3", True, np.True_, None, Fraction(3), np.float64(3), np.array([3]), np.array(3.0),
     Index("3"), Index(3.0), np.timedelta64(3), 1j, np.int64(-1), 10**5000],
    ids=lambda value: str(type(value)),
)  # fmt: skip
def test_what_is_no_whole_number_or_too_small_or_too_long_is_refused(value: Any) -> None:
    assert refusal(InvalidProblem, whole, value, "count", least=0).startswith("count ")
    if value != -1:
        with pytest.raises(InvalidCertificate):
            whole(value, "at_most", error=InvalidCertificate)


@given(st.lists(st.fractions(0, 100, max_denominator=60), max_size=5))
@example([Fraction(10**30), Fraction(1, 10**30)])
def test_the_common_step_is_the_largest_that_divides_all(values: list[Fraction]) -> None:
    step = common_step(values)
    if not any(values):
        assert step == 0
        return
    multiples = [value / step for value in values]
    assert all(multiple.denominator == 1 for multiple in multiples)
    assert math.gcd(*(multiple.numerator for multiple in multiples)) == 1


@given(st.fractions(), st.integers(-400, 400))
@example(Fraction(1), 639)
@example(Fraction(1), 640)
@example(Fraction(-1, 3), 6_000)
@example(Fraction(99_999, 10**5), -5_000)
def test_a_number_is_shown_exactly_or_in_round_figures(factor: Fraction, power: int) -> None:
    value = factor * Fraction(10) ** power
    text = shown(value)
    if not text.startswith("about "):
        assert Fraction(text) == value
        return
    rounded = text.removeprefix("about ")
    assert len(rounded.partition("e")[0].lstrip("-")) == 5
    assert abs(Fraction(rounded) / value - 1) <= Fraction(1, 1000)
    power = power_of_ten(value)
    assert Fraction(10) ** power <= abs(value) < Fraction(10) ** (power + 1)


def test_words_round_in_nobodys_favour_and_steer_no_terminal() -> None:
    assert (brief(1_234_567_890), brief(Fraction(2, 3), 2)) == ("1.23e9", "0.66")
    assert is_told_apart(Fraction(12), Fraction(12))
    assert not is_told_apart(Fraction(2, 3), Fraction(2, 3))
    assert printable("a\x1b[31mb") == "a\\x1b[31mb"
    assert printable_lines("one\ntwo\x9b2J\n") == "one\ntwo\\x9b2J\n"


class Colour(str, enum.Enum):  # noqa: UP042 - which prints as its value
    RED = "red"


@pytest.mark.parametrize("name", [np.str_("red"), Colour.RED])
def test_a_subclass_of_str_becomes_a_plain_text(name: str) -> None:
    # numpy prints its own as np.str_('red') in every message, and str(Colour.RED) is 'Colour.RED'
    names = checked_names(iter(["b", name, "猫 größe"]), "job")
    assert [*map(type, names)] == [str] * 3
    assert names == ("b", "red", "猫 größe")


@pytest.mark.parametrize(
    "names",
    [["good", name] for name in ("", None, 5, 1.5, b"bert", ("a",), ["a"], object)]
    + ["abc", 5, None, np.array("abc"), ["a", "c", "b", "c", "b"]],
    ids=str,
)
def test_what_are_no_names_is_refused(names: Any) -> None:
    said = refusal(InvalidProblem, checked_names, names, "job")
    assert "job" in said


@pytest.mark.parametrize(
    "code",
    [0, 9, 10, 13, 0x1B, 0x1F, 0x7F, 0x80, 0x85, 0x9B, 0x9F, 0x2028, 0x2029, 0xD800, 0xDFFF],
    ids=hex,
)
def test_a_control_character_is_refused_wherever_it_stands(code: int) -> None:
    for form in ("{}", "a{}", "{}a", "a{}b"):
        name = form.format(chr(code))
        said = refusal(InvalidProblem, checked_names, ["good", name, "fine"], "block")
        assert repr(name) in said
        assert said.isprintable()


def test_numbered_names_are_a_sequence_like_any_other() -> None:
    names, plain = NumberedNames("j", 12), [f"j{i}" for i in range(12)]
    assert list(names) == plain
    assert (len(names), names[0], names[-1], names[2:9:3]) == (12, "j0", "j11", plain[2:9:3])
    with pytest.raises(IndexError):
        names[12]
    assert names == NumberedNames("j", 12) == pickle.loads(pickle.dumps(names))
    assert hash(names) == hash(NumberedNames("j", 12))
    assert names != NumberedNames("j", 13)
    assert names != NumberedNames("k", 12)
    for span in [(), (3,), (0, 3), (4, 100), (-2,), (0, -1), (-100, 100)]:
        for name in [*plain, "j12", "j-1", "j", "", "k1", "j01", "j00", "j1 ", "j1\n", "J1", "j٣",
                     "j1.0", "j+1", "j" + "1" * 5000, 1, None, b"j1", ("j1",)]:  # fmt: skip
            assert found(names, name, span) == found(plain, name, span)


def found(names: Any, name: Any, span: tuple[int, ...]) -> int | None:
    try:
        return int(names.index(name, *span))
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("wrong", "known", "hint"),
    [
        ("bert-lrage", ["bert-large", "resnet"], "; nearest: 'bert-large'"),
        ("3G.40GB", ["1g.10gb", "3g.40gb"], "; nearest: '3g.40gb'"),
        ("BERT", ["Bert-Large", "berts"], "; nearest: 'berts'"),
        ("vgg", ["bert-large"], ""),
        ("", ["a"], ""),
        ("REDD", [Colour.RED], "; nearest: 'red'"),
        (5, ["5"], ""),
    ],
)
def test_the_nearest_name_is_found_whatever_its_case(
    wrong: Any, known: list[str], hint: str
) -> None:
    assert nearest(wrong, known) == hint
    assert nearest(wrong, iter(known), lead="") == hint.removeprefix("; ")


def test_very_long_names_are_not_compared_letter_by_letter() -> None:
    rng = random.Random(1)  # compared in full, these would take minutes
    long = ["".join(rng.choices(string.ascii_letters, k=10**5)) for _ in range(3)]
    assert nearest(long[0], [long[1], "short"]) == ""
    assert nearest("shirt", [*long, "short"]) == "; nearest: 'short'"
