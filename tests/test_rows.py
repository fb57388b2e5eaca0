"""Arrays and rows: every job's numbers as the smallest exact integers, or refused by place."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cms.errors import InvalidProblem
from cms.knapsack.pricing import cheapest_option
from cms.problem.row import Row
from cms.problem.rows import SAFE, Rows
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
    rows = rows_of([numbers[0]], [list(numbers[1:])])
    assert rows.row(0) == row
    fits = max(row.demand, row.denominator, *row.supply, 0) < 2**63
    assert (0 in rows.wide) == (not fits)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8, np.float32, object])
def test_there_may_be_no_jobs_or_no_blocks(kind: Any) -> None:
    for n, k in [(0, 0), (0, 3), (2, 0)]:
        rows = rows_of(np.ones(n, dtype=kind), np.ones((n, k), dtype=kind))
        assert rows.demands.tolist() == [1] * n
        assert (rows.supplies.shape, rows.supplies.dtype) == ((n, k), np.int64)
        assert rows.inner.supply.shape == (n, k)
        assert pickle.loads(pickle.dumps(rows)).supplies.shape == (n, k)


def test_numbers_without_a_common_denominator_that_can_be_written_are_refused() -> None:
    # two coprime denominators of 2401 digits each have a common one of 4801
    numbers = Fraction(1, 10**2400 + 1), [Fraction(1, 10**2400)]
    for names, words in ((["a", "b"], "job 'b'"), (None, "job number 1")):
        with pytest.raises(InvalidProblem, match=words):
            Rows.from_fractions([(Fraction(1), [Fraction(1)]), numbers], 1, names)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 3, 6, 10**30, Fraction(1, 6), Fraction(5, 4)]),
            st.lists(
                st.sampled_from([0, 1, 9, 10**31, Fraction(1, 3), Fraction(7, 8)]),
                min_size=3,
                max_size=3,
            ),
        ),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.integers(0, 5), max_size=8),
    st.lists(st.integers(0, 2), max_size=3, unique=True),
    st.booleans(),
)
def test_a_part_of_any_rows_is_that_of_their_fractions(
    lines: list[tuple[Any, list[Any]]], jobs: list[int], blocks: list[int], cut: bool
) -> None:
    jobs = [j % len(lines) for j in jobs]
    rows = rows_of([d for d, _ in lines], [fs for _, fs in lines])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cms.problem.rows._ROWS", 2)  # in pieces
        part = rows.select(np.array(jobs, dtype=np.int64), blocks, cut=cut)
    chosen = [
        (
            Fraction(lines[j][0]),
            [Fraction(min(lines[j][1][i], lines[j][0] if cut else 10**40)) for i in blocks],
        )
        for j in jobs
    ]
    expected = Rows.from_fractions(chosen, len(blocks))
    assert [part.row(at) for at in range(len(jobs))] == [
        expected.row(at) for at in range(len(jobs))
    ]
    assert part.wide == expected.wide
    joined = Rows.joined([rows.part(0, 1), rows.part(1, len(rows))], 3)
    assert [joined.row(j) for j in range(len(rows))] == [rows.row(j) for j in range(len(rows))]
    exchanged = rows.with_rows({0: expected.row(0)}) if len(blocks) == 3 and jobs else rows
    assert exchanged.row(0) == (expected if len(blocks) == 3 and jobs else rows).row(0)
    served = rows.servable(blocks).tolist()
    assert served == [not d or any(fs[i] for i in blocks) for d, fs in lines]
    tabled = sorted(d for part, _ in rows.tables(2) for d in part.tolist() if d)
    assert tabled == sorted(r.demand for r in map(rows.row, range(len(rows))) if r.demand)
    taken = rows.take(np.array(jobs, dtype=np.int64))
    assert [taken.row(at) for at in range(len(jobs))] == [rows.row(j) for j in jobs]


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


@given(
    st.lists(
        st.tuples(*[st.integers(0, 2**80) | st.integers(0, 2**40) | st.integers(0, 9)] * 3),
        min_size=1,
        max_size=3,
    )
)
def test_images_of_random_rows_err_on_the_safe_side(table: list[tuple[int, int, int]]) -> None:
    assert_images_hold(rows_of([line[0] for line in table], [list(line[1:]) for line in table]))
