"""Rows: every job's numbers as the smallest exact integers, from whatever arrays hold them."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.arrays import frozen_array, number_array
from cms.errors import InvalidProblem
from cms.knapsack import cheapest_option
from cms.rows import SAFE, Row, Rows


def rows_of(demands: Any, supply: Any) -> Rows:
    k = np.shape(supply)[1]
    n = len(demands)
    return Rows.from_arrays(
        demands, supply, [f"j{j}" for j in range(n)], [f"b{i}" for i in range(k)]
    )


def only_row(demand: Any, *supply: Any) -> Row:
    """The row of one job, by both ways in; they must agree."""
    listed = rows_of([demand], [list(supply)])
    by_hand = Rows.from_fractions(
        [(_fraction(demand), [_fraction(value) for value in supply])], len(supply)
    )
    assert listed.row(0) == by_hand.row(0)
    assert listed.wide == by_hand.wide
    for name in ("demands", "supplies", "denominators"):
        one, two = getattr(listed, name), getattr(by_hand, name)
        assert (one.dtype, one.tolist()) == (two.dtype, two.tolist())
    return listed.row(0)


def _fraction(value: Any) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


# --- rows by hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "row"),
    [
        ((6, 4, 9), Row(6, (4, 9), 1)),  # integers stay as they are, common divisor or not
        ((0, 4), Row(0, (4,), 1)),
        ((5,), Row(5, (), 1)),
        ((Fraction(1, 2), Fraction(1, 3), 0), Row(3, (2, 0), 6)),
        (("310.5", 90), Row(621, (180,), 2)),
        ((0.3, 0.1), Row(3, (1,), 10)),
        ((0.5, 0.25, 1), Row(2, (1, 4), 4)),
        ((1.0, 2.0), Row(1, (2,), 1)),
        # 3 x 1/3 = 1 must be seen to be enough, and 3 x 0.333 not
        ((1, Fraction(1, 3)), Row(3, (1,), 3)),
        ((1, "0.333"), Row(1000, (333,), 1000)),
        # 3 x 333.3333333333333 = 999.9999999999999 exactly; q = 10**16 for the third number,
        # 0.0123456789012345 = 123456789012345 / 10**16 = 24691357802469 / (2 x 10**15)
        (
            (999.9999999999999, 333.3333333333333, 0.0123456789012345),
            Row(1999999999999999800, (666666666666666600, 24691357802469), 2 * 10**15),
        ),
        ((10**12, 1), Row(10**12, (1,), 1)),
        ((2**63 - 1, 1), Row(2**63 - 1, (1,), 1)),
        # wide rows: beyond 63 bits by a demand, a supply, or only by the common denominator
        ((10**30, 1), Row(10**30, (1,), 1)),
        ((1, 2**63), Row(1, (2**63,), 1)),
        ((2**63 - 1, 0.5), Row(2**64 - 2, (1,), 2)),
        ((Fraction(1, 2**62), Fraction(1, 3)), Row(3, (2**62,), 3 * 2**62)),
        ((Fraction(1, 3**30), Fraction(1, 3**30)), Row(1, (1,), 3**30)),
        ((1e300, 1e300), Row(10**300, (10**300,), 1)),
        ((5e-324, 0.0), Row(1, (0,), 2 * 10**323)),
        ((1e18, 0.5), Row(2 * 10**18, (1,), 2)),
    ],
    ids=lambda numbers: repr(numbers)[:40],
)
def test_a_row_is_the_numbers_over_their_least_common_denominator(
    numbers: tuple[Any, ...], row: Row
) -> None:
    assert only_row(*numbers) == row
    fits = max(row.demand, row.denominator, *row.supply, 0) < 2**63
    assert (0 in rows_of([numbers[0]], [list(numbers[1:])]).wide) == (not fits)


def test_a_wide_row_is_zero_in_the_arrays_and_the_others_are_not_touched() -> None:
    rows = rows_of([6, 10**30, 7], [[1, 2], [3, 4], [5, 0]])
    assert rows.demands.tolist() == [6, 0, 7]
    assert rows.denominators.tolist() == [1, 0, 1]
    assert rows.supplies.tolist() == [[1, 2], [0, 0], [5, 0]]
    assert dict(rows.wide) == {1: Row(10**30, (3, 4), 1)}
    assert (len(rows), rows.n_blocks) == (3, 2)
    assert (rows.demand(1), rows.supply(1, 1), rows.supply(2, 0)) == (10**30, 4, 5)


def test_demand_and_supply_are_those_of_the_user() -> None:
    rows = rows_of(["1/3", 0.1], [["2/7"], [Decimal("0.25")]])
    assert [rows.demand(j) for j in (0, 1)] == [Fraction(1, 3), Fraction(1, 10)]
    assert [rows.supply(j, 0) for j in (0, 1)] == [Fraction(2, 7), Fraction(1, 4)]


@pytest.mark.parametrize(("n", "k"), [(0, 0), (0, 3), (2, 0)])
@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8, np.float32, object])
def test_there_may_be_no_jobs_or_no_blocks(n: int, k: int, kind: Any) -> None:
    rows = rows_of(np.ones(n, dtype=kind), np.ones((n, k), dtype=kind))
    assert rows.demands.tolist() == [1] * n
    assert (rows.supplies.shape, rows.supplies.dtype) == ((n, k), np.int64)
    assert rows.inner.supply.shape == (n, k)
    assert not rows.wide
    twin = pickle.loads(pickle.dumps(rows))
    assert twin.supplies.shape == (n, k)


def test_numbers_without_a_common_denominator_that_can_be_written_are_refused() -> None:
    # two coprime denominators of 2401 digits each have a common one of 4801
    numbers = [Fraction(1, 10**2400 + 1), [Fraction(1, 10**2400)]]
    with pytest.raises(InvalidProblem) as error:
        Rows.from_fractions([(Fraction(1), [Fraction(1)]), tuple(numbers)], 1, ["a", "b"])  # type: ignore[list-item]
    assert str(error.value) == (
        "the numbers of job 'b' have more than 4300 digits over their common denominator; "
        "round them"
    )
    with pytest.raises(InvalidProblem, match="^the numbers of job number 0 have more"):
        Rows.from_fractions([tuple(numbers)], 1)  # type: ignore[list-item]


# --- arrays of every kind -------------------------------------------------------------------------

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


@pytest.mark.parametrize("kind", INT_KINDS)
def test_a_narrow_float_beside_ints_keeps_its_decimal(kind: Any) -> None:
    rows = rows_of(np.array([1], dtype=kind), np.array([[0.1]], dtype=np.float32))
    assert rows.row(0) == Row(10, (1,), 10)


def test_integers_beyond_53_bits_are_not_rounded_to_floats() -> None:
    big = 2**53 + 1  # the first that no float64 is
    assert only_row(big, 0.5) == Row(2 * big, (1,), 2)
    assert rows_of(np.array([big]), np.array([[0.5]])).row(0) == Row(2 * big, (1,), 2)
    assert rows_of([1], [[big, 0.5]]).row(0) == Row(2, (2 * big, 1), 2)
    assert rows_of([10**30 + 1], [[0.5]]).row(0) == Row(2 * 10**30 + 2, (1,), 2)
    assert rows_of([big, 0.5], [[1], [1]]).row(0) == Row(big, (1,), 1)


def test_unsigned_integers_beyond_63_bits_are_kept() -> None:
    rows = rows_of(np.array([2**64 - 1, 5], dtype=np.uint64), np.array([[3], [4]]))
    assert (rows.row(0), rows.row(1)) == (Row(2**64 - 1, (3,), 1), Row(5, (4,), 1))


def test_every_entry_of_a_list_keeps_its_meaning() -> None:
    rows = rows_of(
        ["1/3", np.float32(0.1), Decimal("0.25"), 2],
        [[0.1, "1e3"], [1, 2.5], [Fraction(1, 7), 0], [np.int8(3), np.float64(0.5)]],
    )
    assert rows.demand(0) == Fraction(1, 3)
    assert rows.demand(1) == Fraction(1, 10)
    assert rows.demand(2) == Fraction(1, 4)
    assert [rows.supply(0, i) for i in (0, 1)] == [Fraction(1, 10), 1000]
    assert [rows.supply(3, i) for i in (0, 1)] == [3, Fraction(1, 2)]


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


# --- what cannot be changed -----------------------------------------------------------------------


def changes(rows: Rows) -> Iterator[Callable[[], object]]:
    for name in ("demands", "supplies", "denominators"):
        array = getattr(rows, name)
        yield partial(array.__setitem__, 0, 1)
        yield partial(array.setflags, write=True)
        yield partial(array.base.setflags, write=True)
        yield partial(setattr, rows, name, None)
        yield partial(delattr, rows, name)
    for image in (rows.inner, rows.outer):
        yield partial(image.supply.__setitem__, (0, 0), 1)
        yield partial(image.demand.setflags, write=True)
    yield partial(operator.setitem, rows.wide, 0, None)
    yield partial(setattr, rows, "new", 1)


def test_rows_cannot_be_changed() -> None:
    demands, supply = np.array([6, 7]), np.array([[4], [9]])
    rows = rows_of(demands, supply)
    for change in changes(rows):
        with pytest.raises((AttributeError, TypeError, ValueError)):
            change()
    demands[0] = supply[0] = 1  # the user's own arrays are another matter
    assert rows.row(0) == Row(6, (4,), 1)
    for twin in (pickle.loads(pickle.dumps(rows)), copy.deepcopy(rows)):
        assert [twin.row(j) for j in (0, 1)] == [rows.row(j) for j in (0, 1)]
        for change in changes(twin):
            with pytest.raises((AttributeError, TypeError, ValueError)):
                change()


def test_a_frozen_array_is_a_copy_of_the_same_shape_and_kind() -> None:
    for values in (np.zeros((0, 3)), np.arange(6).reshape(2, 3).T, np.array([1], dtype=">i8")):
        frozen = frozen_array(values)
        assert (frozen.shape, frozen.dtype) == (values.shape, values.dtype)
        assert (frozen == values).all()


# --- a part of the rows ---------------------------------------------------------------------------


def test_a_part_of_the_rows_is_reduced_again() -> None:
    rows = rows_of(["1/2", 4, 10**30], [["1/3", 1, 0], [8, 6, 2], [10**31, 1, 5]])
    # 1/2 and 1 without 1/3: q falls from 6 to 2
    assert rows.select(np.array([0]), [1]).row(0) == Row(1, (2,), 2)
    part = rows.select(np.array([2, 1]), [2, 0])
    assert [part.row(j) for j in (0, 1)] == [Row(10**30, (5, 10**31), 1), Row(4, (2, 8), 1)]
    cut = rows.select(np.array([2, 1]), [2, 0], cut=True)
    assert [cut.row(j) for j in (0, 1)] == [Row(10**30, (5, 10**30), 1), Row(4, (2, 4), 1)]
    assert len(rows.select(np.array([], dtype=np.int64), [0])) == 0
    assert rows.select(np.array([0, 2]), []).supplies.shape == (2, 0)


def test_a_wide_row_may_fit_once_its_supply_is_cut_and_is_no_longer_wide() -> None:
    part = rows_of([3], [[10**30]]).select(np.array([0]), [0], cut=True)
    assert (part.row(0), dict(part.wide)) == (Row(3, (3,), 1), {})
    assert part.demands.tolist() == [3]


# --- images of rows that are too large for int64 arithmetic ---------------------------------------


def test_rows_that_fit_are_their_own_image_but_for_useless_supply() -> None:
    rows = rows_of([6, 0], [[4, 9], [3, 0]])
    assert rows.inner is rows.outer
    assert rows.inner.demand.tolist() == [6, 0]
    assert rows.inner.supply.tolist() == [[4, 6], [0, 0]]  # cut at the demand
    assert rows.far == frozenset()


def assert_images_hold(rows: Rows) -> None:
    """An option of the inner image serves the row; one of the row serves the outer image."""
    for image in (rows.inner, rows.outer):
        most = image.supply.max(axis=1, initial=0).astype(object)
        assert (most * (image.demand.astype(object) + most) < SAFE).all()
        assert (image.demand >= 0).all()
        assert (image.supply >= 0).all()
    for j in range(len(rows)):
        row = rows.row(j)
        cut = [min(f, row.demand) for f in row.supply]
        inner, outer = (
            (int(im.demand[j]), im.supply[j].tolist()) for im in (rows.inner, rows.outer)
        )
        # f / d of the inner image <= f / d of the row <= f / d of the outer one, for every block
        assert all(f * row.demand <= g * inner[0] for f, g in zip(inner[1], cut, strict=True))
        assert all(g * outer[0] <= f * row.demand for f, g in zip(outer[1], cut, strict=True))
        # a bound may never call a job infeasible that is not, nor the other way round
        assert [f > 0 for f in outer[1]] == [g > 0 for g in cut]
        assert (outer[0] > 0) == (inner[0] > 0) == (row.demand > 0)
        for values, (demand, supply) in (((row.demand, cut), inner), (outer, (row.demand, cut))):
            found = cheapest_option([1] * len(supply), supply, demand)
            if found is not None:
                served = sum(f * o for f, o in zip(values[1], found.option, strict=True))
                assert served >= values[0]


@pytest.mark.parametrize("demand", [0, 1, 2**31, 10**12, 2**62, 2**63 - 1, 2**70, 10**30, 10**60])
@pytest.mark.parametrize("supply", [0, 1, 3, 2**31 + 1, 10**12, 2**61, 2**63 - 1, 10**29, 10**31])
def test_an_image_errs_on_the_safe_side(demand: int, supply: int) -> None:
    assert_images_hold(rows_of([demand, 5], [[supply, supply // 3], [1, 2]]))


@given(
    st.lists(
        st.tuples(*[st.integers(0, 2**80) | st.integers(0, 2**40) | st.integers(0, 9)] * 3),
        min_size=1,
        max_size=3,
    )
)
def test_images_of_random_rows_err_on_the_safe_side(table: list[tuple[int, int, int]]) -> None:
    assert_images_hold(rows_of([line[0] for line in table], [list(line[1:]) for line in table]))


def test_a_job_too_far_from_its_blocks_is_named_to_be_worked_out_by_hand() -> None:
    # 10**30 / 10**18 = 10**12 < 2**40 < 10**13 = 10**30 / 10**17
    rows = rows_of([10**30, 10**30, 10**30, 0, 5], [[10**18], [10**17], [0], [2**63], [1]])
    assert rows.far == {1, 2}
    # a million blocks or so: the image is right to a part in a thousand
    demand, supply = int(rows.inner.demand[0]), int(rows.inner.supply[0, 0])
    assert 10**12 <= -(-demand // supply) <= 1.002 * 10**12
