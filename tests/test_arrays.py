"""Arrays of every kind become exact rows, or are refused by job and block."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.problem.rows import Row, Rows
from cms.values.arrays import number_array
from tests.samples import rows_of


def _fraction(value: Any) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


INT_KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOAT_KINDS = [np.float16, np.float32, np.float64, np.longdouble]


@pytest.mark.parametrize("left", [*INT_KINDS, *FLOAT_KINDS, object, "U3"])
@pytest.mark.parametrize("right", [*INT_KINDS, *FLOAT_KINDS, object, "U3"])
def test_two_arrays_of_any_kinds_keep_their_numbers(left: Any, right: Any) -> None:
    rows = rows_of(np.array([5, 6]).astype(left), np.array([[3, 0], [0, 100]]).astype(right))
    assert [rows.row(j) for j in (0, 1)] == [Row(5, (3, 0), 1), Row(6, (0, 100), 1)]


@pytest.mark.parametrize("left", FLOAT_KINDS[:3])
@pytest.mark.parametrize("right", FLOAT_KINDS[:3])
def test_a_float_keeps_its_own_shortest_decimal_beside_one_of_another_kind(
    left: Any, right: Any
) -> None:
    # float32(0.1) as a float64 is 0.10000000149011612: widening it would change its meaning
    rows = rows_of(np.array([0.3], dtype=left), np.array([[0.1, 0.2]], dtype=right))
    assert rows.row(0) == Row(3, (1, 2), 10)


def test_arrays_in_a_list_keep_their_kind() -> None:
    narrow = [np.array([0.1, 0.2], dtype=np.float32), np.array([0.3, 0.4], dtype=np.float32)]
    assert rows_of([1, 1], narrow).row(1) == Row(10, (3, 4), 10)


def test_the_layout_of_the_arrays_does_not_matter() -> None:
    table = np.arange(24).reshape(4, 6) / 10
    for supply in (table[::2, ::3], table.T[::3, ::2].T, table[::2, ::3].astype(">f8")):
        rows = rows_of(np.arange(8)[::4], supply)
        # rows 0 and 2 of the table, columns 0 and 3: (0, 0.3) and (1.2, 1.5); demands 0 and 4
        assert [rows.row(j) for j in (0, 1)] == [Row(0, (0, 3), 10), Row(40, (12, 15), 10)]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -1.0, -1, None, True, "x", "1/0", 1j, b"1", Decimal("NaN"), "-1",
     (1,), np.timedelta64(1), object()],
)  # fmt: skip
@pytest.mark.parametrize("place", ["demand", "supply"])
def test_a_bad_number_is_named_by_job_and_block(value: Any, place: str) -> None:
    demands, supply = [1, 2, 3], np.array([[1, 2], [3, 4], [5, 6]], dtype=object).tolist()
    if place == "demand":
        demands[1] = value
    else:
        supply[1][1] = value
    # a tuple among the demands makes a ragged array
    expected = {
        "demand": "demand of job 'j1'|demands is no array",
        "supply": "supply of block 'b1' to job 'j1'|supply is no array",
    }[place]
    with pytest.raises(InvalidProblem, match=f"^({expected})"):
        rows_of_shape(demands, supply)


def rows_of_shape(demands: Any, supply: Any) -> Rows:
    return Rows.from_arrays(demands, supply, ["j0", "j1", "j2"], ["b0", "b1"])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int64])
def test_a_bad_number_in_an_array_is_named_by_job_and_block(kind: Any) -> None:
    table = np.ones((3, 2), dtype=kind)
    table[2, 0] = -1
    with pytest.raises(InvalidProblem) as error:
        rows_of(np.ones(3), table)
    assert str(error.value) == "supply of block 'b0' to job 'j2' is -1; expected a number >= 0"
    if np.dtype(kind).kind == "f":
        table[2, 0] = np.nan
        with pytest.raises(InvalidProblem, match="^supply of block 'b0' to job 'j2' is .*nan"):
            rows_of(np.ones(3), table)


@pytest.mark.parametrize(
    ("demands", "supply", "message"),
    [
        (5, [[1, 1]], r"demands has shape \(\); expected \(n,\)"),
        ([[1]], [[1, 1]], r"demands has shape \(1, 1\); expected \(n,\)"),
        ("123", [[1, 1]], r"demands has shape \(\)"),
        ([1, 2], [[1, 1]], r"supply has shape \(1, 2\); expected \(2, 2\): a row a job"),
        ([1], [1, 1], r"supply has shape \(2,\); expected \(1, 2\)"),
        ([1], [[1]], r"supply has shape \(1, 1\); expected \(1, 2\)"),
        ([1, 2], [[1, 1], [1]], "supply is no array: .*inhomogeneous"),
        ([1, [2]], [[1, 1], [1, 1]], "demands is no array: .*inhomogeneous"),
        (np.ma.array([1], mask=[True]), [[1, 1]], "demands has masked values"),
        ([1], np.ma.array([[1, 2]], mask=[[False, True]]), "supply has masked values"),
        (np.zeros(1, dtype=[("a", int)]), [[1, 1]], "demand of job 'j0' is "),
        (np.array([1], dtype="m8[s]"), [[1, 1]], "demand of job 'j0' is "),
        (np.array(["2020-01-01"], dtype="M8[D]"), [[1, 1]], "demand of job 'j0' is "),
        ([1], np.array([[True, False]]), "supply of block 'b0' to job 'j0' is True"),
        ([True], [[1, 1]], "demand of job 'j0' is True"),
    ],
)
def test_what_is_no_pair_of_arrays_is_refused(demands: Any, supply: Any, message: str) -> None:
    with pytest.raises(InvalidProblem, match=f"^{message}"):
        rows_of_shape(demands, supply)


def test_a_masked_array_without_a_masked_value_is_an_array() -> None:
    assert number_array(np.ma.array([1, 2]), "x").tolist() == [1, 2]


NUMBERS = st.one_of(
    st.integers(0, 20),
    st.integers(2**60, 2**66),
    st.floats(0, allow_infinity=False),
    st.decimals(0, 100, places=2).map(float),
    st.fractions(0, 5, max_denominator=9),
    st.decimals(0, 100, places=3),
    st.fractions(0, 5, max_denominator=9).map(str),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=4))
def test_a_list_gives_the_rows_of_its_numbers_taken_one_by_one(
    table: list[tuple[Any, Any, Any]],
) -> None:
    demands = [line[0] for line in table]
    supply = np.empty((len(table), 2), dtype=object)
    for j, line in enumerate(table):
        supply[j] = line[1:]
    for given_supply in (supply, supply.tolist() or np.empty((0, 2))):
        rows = rows_of(demands, given_supply)
        for j, line in enumerate(table):
            fractions = [_fraction(value) for value in line]
            row = rows.row(j)
            assert [Fraction(x, row.denominator) for x in (row.demand, *row.supply)] == fractions
            smallest = min(
                q
                for q in _divisors_of_interest(row)
                if all((q * x).denominator == 1 for x in fractions)
            )
            assert row.denominator == smallest


def _divisors_of_interest(row: Row) -> Iterator[int]:
    """The denominator and its quotients by each prime that could still be left out."""
    yield row.denominator
    for prime in (2, 3, 5, 7):
        if row.denominator % prime == 0:
            yield row.denominator // prime


FLOATS = st.floats(0, allow_infinity=False) | st.decimals(0, 10**9, places=3).map(float)


@given(
    st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=6), st.sampled_from(FLOAT_KINDS[1:3])
)
@example([(999.9999999999999, 333.3333333333333), (0.0, 1e308)], np.float64)
@example([(1e18, 0.1), (9.3e18, 1.0), (1e-18, 1.0)], np.float64)
def test_an_array_of_floats_gives_the_rows_of_their_printed_forms(
    table: list[tuple[float, float]], kind: Any
) -> None:
    with np.errstate(over="ignore"):
        values = np.array(table).astype(kind)
    values = np.where(np.isfinite(values), values, kind(1))
    rows = Rows.from_arrays(
        values[:, 0], values[:, 1:], [f"j{j}" for j in range(len(table))], ["b"]
    )
    plain = Rows.from_fractions([(Fraction(str(d)), [Fraction(str(f))]) for d, f in values], 1)
    assert [rows.row(j) for j in range(len(rows))] == [plain.row(j) for j in range(len(rows))]
    assert rows.wide == plain.wide
