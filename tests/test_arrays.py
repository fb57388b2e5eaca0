"""Arrays of every kind become exact rows, or are refused by job and block."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cms.errors import InvalidProblem
from cms.problem.row import Row
from cms.problem.rows import Rows
from cms.values.arrays import decimal_rows, decimals, number_array
from tests.samples import rows_of

INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
BITS: dict[Any, Any] = {np.float64: np.uint64, np.float32: np.uint32, np.float16: np.uint16}
FLOATS = [*BITS, np.longdouble]


@pytest.mark.parametrize("left", [*INTS, *FLOATS, object, "U3"])
def test_two_arrays_of_any_kinds_keep_their_numbers(left: Any) -> None:
    for right in [*INTS, *FLOATS, object, "U3"]:
        rows = rows_of(np.array([5, 6]).astype(left), np.array([[3, 0], [0, 100]]).astype(right))
        assert [rows.row(j) for j in (0, 1)] == [Row(5, (3, 0), 1), Row(6, (0, 100), 1)]
    if left in BITS:
        # float32(0.1) as a float64 is 0.10000000149011612: widening it would change its meaning
        for right in BITS:
            rows = rows_of(np.array([0.3], dtype=left), np.array([[0.1, 0.2]], dtype=right))
            assert rows.row(0) == Row(3, (1, 2), 10)


def test_the_layout_of_the_arrays_does_not_matter() -> None:
    table = np.arange(24).reshape(4, 6) / 10
    for supply in (table[::2, ::3], table.T[::3, ::2].T, table[::2, ::3].astype(">f8")):
        rows = rows_of(np.arange(8)[::4], supply)
        # rows 0 and 2 of the table, columns 0 and 3: (0, 0.3) and (1.2, 1.5); demands 0 and 4
        assert [rows.row(j) for j in (0, 1)] == [Row(0, (0, 3), 10), Row(40, (12, 15), 10)]
    narrow = [np.array([0.1, 0.2], dtype=np.float32), np.array([0.3, 0.4], dtype=np.float32)]
    assert rows_of([1, 1], narrow).row(1) == Row(10, (3, 4), 10)
    assert number_array(np.ma.array([1, 2]), "x").tolist() == [1, 2]
    assert number_array([2**53 + 1, 0.5], "x").tolist() == [2**53 + 1, 0.5]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -1.0, -1, None, True, "x", "1/0", 1j, b"1", Decimal("NaN"), "-1",
     (1,), np.timedelta64(1), object(), np.float16("nan"), np.longdouble(-1)],
)  # fmt: skip
@pytest.mark.parametrize("place", ["demand", "supply"])
def test_a_bad_number_is_named_by_job_and_block(value: Any, place: str) -> None:
    demands, supply = [1, 2, 3], [[1, 2], [3, 4], [5, 6]]
    numbers: Any = demands if place == "demand" else supply[1]
    numbers[1] = value
    # a tuple among the demands makes a ragged array
    expected = {
        "demand": "demand of job 'j1'|demands is no array",
        "supply": "supply of block 'b1' to job 'j1'|supply is no array",
    }[place]
    with pytest.raises(InvalidProblem, match=f"^({expected})"):
        rows_of_shape(demands, supply)
    if isinstance(value, float | np.floating):
        with pytest.raises(InvalidProblem, match=f"^({expected})"):
            rows_of_shape(np.array(demands, type(value)), np.array(supply, type(value)))


def rows_of_shape(demands: Any, supply: Any) -> Rows:
    return Rows.from_arrays(demands, supply, ["j0", "j1", "j2"], ["b0", "b1"])


@pytest.mark.parametrize(
    ("demands", "supply", "words"),
    [
        (5, [[1, 1]], r"\(\)"),
        ([[1]], [[1, 1]], r"\(1, 1\)"),
        ([1, 2], [[1, 1]], r"\(1, 2\)"),
        ([1], [1, 1], r"\(2,\)"),
        ([1, 2], [[1, 1], [1]], "supply is no array"),
        ([1, [2]], [[1, 1], [1, 1]], "demands is no array"),
        (np.ma.array([1], mask=[True]), [[1, 1]], "demands has masked values"),
        ([1], np.ma.array([[1, 2]], mask=[[False, True]]), "supply has masked values"),
        (np.zeros(1, dtype=[("a", int)]), [[1, 1]], "demand of job 'j0' is "),
        ([1], np.array([[True, False]]), "supply of block 'b0' to job 'j0' is True"),
    ],
)
def test_what_is_no_pair_of_arrays_is_refused(demands: Any, supply: Any, words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        rows_of_shape(demands, supply)


SOME_FLOATS = st.floats(0, allow_infinity=False) | st.decimals(0, 10**9, places=3).map(float)
NUMBERS = st.one_of(
    st.integers(0, 20),
    st.integers(2**60, 2**66),
    SOME_FLOATS,
    st.fractions(0, 5, max_denominator=9),
    st.decimals(0, 100, places=3),
    st.fractions(0, 5, max_denominator=9).map(str),
)


def fraction(value: Any) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=4))
def test_a_list_gives_the_rows_of_its_numbers_taken_one_by_one(
    table: list[tuple[Any, Any, Any]],
) -> None:
    supply = np.empty((len(table), 2), dtype=object)
    for j, line in enumerate(table):
        supply[j] = line[1:]
    expected = Rows.from_fractions(
        [(fraction(d), [fraction(f) for f in fs]) for d, *fs in table], 2
    )
    for given_supply in (supply, supply.tolist() or np.empty((0, 2))):
        rows = rows_of([line[0] for line in table], given_supply)
        assert [rows.row(j) for j in range(len(rows))] == [
            expected.row(j) for j in range(len(table))
        ]


def any_bits(rng: np.random.Generator, kind: Any, n: int) -> NDArray[Any]:
    """Every finite float >= 0 is as likely as any other."""
    bits = rng.integers(0, np.iinfo(BITS[kind]).max, n, dtype=BITS[kind])
    values: NDArray[Any] = np.abs(bits.view(kind))
    finite: NDArray[Any] = values[np.isfinite(values)]
    return finite


def decimals_written(rng: np.random.Generator, kind: Any, n: int) -> NDArray[Any]:
    """Decimals of 1 to 17 digits with the point anywhere, as somebody would type them."""
    numbers = (rng.random(n) * 10.0 ** rng.integers(1, 18, n)).astype(np.uint64)
    points = rng.integers(-3, 20, n)
    values = np.array([float(f"{x}e{-p}") for x, p in zip(numbers, points, strict=True)])
    fitting: NDArray[Any] = values[values < float(np.finfo(kind).max)].astype(kind)
    return fitting


@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize("n", [1_000, pytest.param(400_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("likely", [0, 3, 18])
def test_a_float_is_the_decimal_it_prints_as(kind: Any, n: int, likely: int) -> None:
    rng = np.random.default_rng(7)
    written = decimals_written(rng, kind, n)
    beside = [np.abs(np.nextafter(written, kind(to))) for to in (0, 1)]
    values = np.concatenate([any_bits(rng, kind, n), written, *beside])
    if kind is np.float16:
        values = np.arange(2**15, dtype=np.uint16).view(np.float16)
        values = values[np.isfinite(values)]
    numerators, places = decimals(values, likely)
    for value, numerator, place in zip(values, numerators.tolist(), places.tolist(), strict=True):
        printed = Fraction(str(value))
        if place >= 0:
            assert Fraction(numerator, 10**place) == printed, repr(value)
            assert likely or place == 0 or numerator % 10 or not numerator, repr(value)
        else:  # left to the slow path: only if it does not fit in 18 digits before and after
            assert printed >= 10**18 or (printed * 10**18).denominator != 1, repr(value)


@pytest.mark.parametrize("kinds", [(float, float), (int, float), (float, np.float32)])
def test_rows_are_the_same_in_pieces_of_any_size(
    kinds: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    demands = rng.integers(0, 10**4, 50).astype(kinds[0]) // kinds[0](rng.choice([1, 3]))
    shares = rng.integers(0, 10**4, (50, 3)) / rng.choice([1, 3, 10, 1000], (50, 1))
    whole = decimal_rows(demands, shares.astype(kinds[1]))
    monkeypatch.setattr("cms.values.arrays._CHUNK", 7)
    pieces = decimal_rows(demands, shares.astype(kinds[1]))
    for one, two in zip(whole[:3], pieces[:3], strict=True):
        assert one.tolist() == two.tolist()
    assert whole.hard == pieces.hard
