"""The knapsacks of a job and of a machine, and jobs of one kind: against tables and listings."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cms.knapsack.cheapest_cover
import cms.knapsack.kinds
import cms.knapsack.packing
from cms.knapsack.kinds import kinds
from cms.knapsack.packing import Fullest, Packing, fullest_machine
from cms.knapsack.pricing import cheapest_option
from cms.problem.rows import Rows
from cms.running.stopping import Stopped
from proofs_checks.checker import cheapest_option as second_opinion
from proofs_checks.checker import dearest_filling
from tests.samples import rows_of, so_many

F = Fraction


def cheapest(prices: Sequence[int], supply: Sequence[int], demand: int) -> int | None:
    """The price of the cheapest option, by a table over what is left of the demand."""
    return _cheapest(tuple(prices), tuple(supply), demand)


@cache
def _cheapest(prices: tuple[int, ...], supply: tuple[int, ...], demand: int) -> int | None:
    useful = [(p, f) for p, f in zip(prices, supply, strict=True) if f > 0]
    if demand <= 0:
        return 0
    if not useful:
        return None
    # Far beyond f^2 the block of the best ratio is bought at every step (theory 6.5).
    price, step = min(useful, key=lambda block: Fraction(*block))
    largest = max(f for _, f in useful)
    skipped = max(0, (demand - 2 * step * largest) // step)
    table = [0] * largest  # what is left may be less than nothing
    for _ in range(demand - skipped * step):
        table.append(min([p + table[-f] for p, f in useful]))
    return skipped * price + table[-1]


def worth(prices: Sequence[int], option: Sequence[int]) -> int:
    return sum(p * n for p, n in zip(prices, option, strict=True))


def serves(supply: Sequence[int], option: Sequence[int], demand: int) -> bool:
    return min(option, default=0) >= 0 and worth(supply, option) >= demand


def assert_cheapest(prices: Sequence[int], supply: Sequence[int], demand: int) -> None:
    expected = cheapest(prices, supply, demand)
    found = cheapest_option(prices, supply, demand)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.value, found.exact) == (expected, True)
    assert serves(supply, found.option, demand)
    assert worth(prices, found.option) == expected


blocks = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 25)), min_size=1, max_size=6)


@given(blocks, st.integers(0, 300))
@example([(0, 3), (0, 5), (7, 0)], 11)
@example([(2, 2), (3, 3), (5, 5)], 299)
@example([(7, 6), (10, 9), (22, 20)], 43)  # not every demand is a sum
@example([(1, 1), (1, 1)], 1)
def test_the_cheapest_option_is_that_of_the_table(rows: list[tuple[int, int]], demand: int) -> None:
    prices, supply = [p for p, _ in rows], [f for _, f in rows]
    assert_cheapest(prices, supply, demand)
    opinion = second_opinion([*map(F, prices)], [F(f, 9) for f in supply], F(demand, 9))
    assert opinion == cheapest(prices, supply, demand)


@given(blocks, st.integers(0, 10**3), st.sampled_from([10**6, 10**12, 10**15, 10**18, 10**40]))
def test_a_huge_demand_is_served_at_the_exact_price(
    rows: list[tuple[int, int]], more: int, huge: int
) -> None:
    prices, supply = [p for p, _ in rows], [f for _, f in rows]
    assert_cheapest(prices, supply, huge + more)
    found = cheapest_option(prices, supply, huge + more)
    opinion = second_opinion(
        list(map(Fraction, prices)), list(map(Fraction, supply)), Fraction(huge + more)
    )
    assert (found.value if found else None) == opinion


@pytest.mark.parametrize("many", [0, 2**10])
def test_thousands_of_random_jobs_get_their_cheapest_options(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With 0, every demand is first reduced by what some cheapest option is known to contain.
    monkeypatch.setattr(cms.knapsack.cheapest_cover, "MANY_BLOCKS", many)
    rng = random.Random(many)
    for _ in range(so_many(500, 2_000)):
        k, unit, off = rng.randint(2, 5), rng.choice([1, 3, 100]), rng.choice([0, 1, 20])
        supply = [rng.randint(1, 12) for _ in range(k)]
        prices = [f * unit + rng.randint(0, off) for f in supply]
        assert_cheapest(prices, supply, rng.randint(1, 150))


def test_where_memory_for_lists_ends_the_value_is_a_bound_and_the_option_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, loose, number = random.Random(1), 0, so_many(20, 80)
    for entries in (1, 2, 5, 40):
        monkeypatch.setattr(cms.knapsack.cheapest_cover, "LONGEST_LIST", entries)
        for _ in range(number):
            supply = [rng.randint(50, 99) for _ in range(6)]
            prices = [f * 100 + rng.randint(-9, 9) for f in supply]
            demand = rng.randint(200, 4_000)
            expected = cheapest(prices, supply, demand)
            found = cheapest_option(prices, supply, demand)
            assert found is not None
            assert expected is not None
            assert 0 <= found.value <= expected <= worth(prices, found.option)
            assert serves(supply, found.option, demand)
            # never less than what the whole demand costs at the best ratio
            assert found.value >= demand * min(map(Fraction, prices, supply))
            if found.exact:
                assert found.value == expected == worth(prices, found.option)
            loose += not found.exact
    assert number * 5 / 4 < loose < 4 * number


Line = tuple[int, list[int]]


def by_definition(rows: Rows) -> list[int]:
    """The kind of each job, numbered by first jobs."""
    seen: dict[object, int] = {}
    return [seen.setdefault((rows.row(j)[:2], j in rows.wide), len(seen)) for j in range(len(rows))]


def rows_from(lines: list[Line]) -> Rows:
    return Rows.from_fractions([(Fraction(d), list(map(Fraction, fs))) for d, fs in lines], 2)


of_any_size = st.integers(0, 4) | st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62 + 1, 10**30])


@given(
    st.lists(
        st.tuples(of_any_size, st.lists(of_any_size, min_size=2, max_size=2)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([None, 0, 7]),
    st.randoms(use_true_random=False),
)
@example([(2**53, [2**52, 1]), (2**53 + 1, [2**52, 1])], None, random.Random(1))  # as floats
@example([(2**40, [1, 1]), (2**40, [1 + 2**24, 1]), (10**30, [1, 1])], 0, random.Random(1))
@example([(0, [0, 0]), (10**30, [1, 1])], 0, random.Random(1))  # wide: 0 in the arrays
def test_jobs_are_of_one_kind_exactly_if_their_rows_are_equal(
    drawn: list[Line], same_hash: int | None, rng: random.Random
) -> None:
    """Whatever the order, in parts of four rows, and where all hashes are equal."""
    lines = drawn * 2
    rng.shuffle(lines)
    rows = rows_from(lines)
    expected = by_definition(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cms.knapsack.kinds, "_ROWS", 4)
        if same_hash is not None:
            patch.setattr(
                cms.knapsack.kinds, "_hashes",
                lambda rows, _: np.full(len(rows), same_hash, dtype=np.uint64),
            )  # fmt: skip
        found = kinds(rows)
    assert found.kind_of.tolist() == expected
    firsts = [expected.index(kind) for kind in range(max(expected) + 1)]
    assert found.weights.tolist() == [expected.count(kind) for kind in range(len(firsts))]
    assert [found.rows.row(kind) for kind in range(len(firsts))] == [rows.row(j) for j in firsts]
    assert (found.rows is rows) == (len(firsts) == len(lines))


def test_denominators_do_not_matter_and_a_stopped_run_ends() -> None:
    rows = rows_of([0.5, "1/3", 2], [[0.25], ["1/6"], [1]])
    assert kinds(rows).kind_of.tolist() == [0, 0, 0]
    with pytest.raises(Stopped):
        kinds(rows, lambda: True)


prices_and_sizes = st.lists(
    st.tuples(
        st.fractions(min_value=-2, max_value=12, max_denominator=6),
        st.fractions(min_value=F(1, 2), max_value=7, max_denominator=6),
    ),
    max_size=4,
)


def by_listing(
    prices: Sequence[F],
    sizes: Sequence[F],
    capacity: F,
    max_blocks: int | None,
    most: Sequence[int] | None = None,
) -> Fraction:
    best = F(0)
    fits = [int(capacity / size) for size in sizes]
    if most is not None:
        fits = list(map(min, fits, most))
    for counts in itertools.product(*(range(number + 1) for number in fits)):
        if max_blocks is not None and sum(counts) > max_blocks:
            continue
        if sum((s * n for s, n in zip(sizes, counts, strict=True)), F(0)) <= capacity:
            best = max(best, sum((p * n for p, n in zip(prices, counts, strict=True)), F(0)))
    return best


def refuse_false_content(
    found: Fullest,
    prices: Sequence[F],
    sizes: Sequence[F],
    capacity: F,
    max_blocks: int | None,
    most: Sequence[int] | None = None,
) -> None:
    """The content must fit and, where the search was exact, be worth its value."""
    content = found.content
    assert min(content, default=0) >= 0
    assert most is None or all(map(operator.le, content, most))
    assert sum((s * n for s, n in zip(sizes, content, strict=True)), F(0)) <= capacity
    assert max_blocks is None or sum(content) <= max_blocks
    value = sum((p * n for p, n in zip(prices, content, strict=True)), F(0))
    assert value == found.value if found.exact else value <= found.value


def use(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiled code take over at once, or never; or a table over capacities after no node."""
    steps = -1 if way == "compiled" else 2**62
    monkeypatch.setattr(cms.knapsack.packing, "_PLAIN_STEPS", steps)
    monkeypatch.setattr(cms.knapsack.packing, "_FEW_NODES", 0 if way == "table" else 2**62)
    monkeypatch.setattr(cms.knapsack.packing, "_MOST_CELLS", 2**25 if way == "table" else -1)


@pytest.fixture(params=["plain", "compiled", "table"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    use(request.param, monkeypatch)
    return str(request.param)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blocks=prices_and_sizes,
    capacity=st.fractions(min_value=0, max_value=9, max_denominator=4),
    max_blocks=st.one_of(st.none(), st.integers(1, 6)),
    counts=st.one_of(st.none(), st.lists(st.integers(0, 4), min_size=4, max_size=4)),
)
@example(
    blocks=[(F(1, 3), F(44)), (F(1, 4), F(33)), (F(1, 11), F(12))],
    capacity=F(132),
    max_blocks=None,
    counts=None,
)
@example(
    blocks=[(F(4), F(44)), (F(3), F(33)), (F(1), F(12))],
    capacity=F(132),
    max_blocks=None,
    counts=[2, 3, 6],
)
@example(blocks=[(F(2), F(1)), (F(3), F(2))], capacity=F(5), max_blocks=2, counts=None)
@example(blocks=[(F(0), F(1)), (F(-1), F(2))], capacity=F(5), max_blocks=None, counts=None)
@example(
    blocks=[(F(2 * 10**30 + 1), F(1)), (F(3 * 10**30), F(2))],
    capacity=F(5),
    max_blocks=4,
    counts=None,
)
@example(blocks=[], capacity=F(0), max_blocks=None, counts=None)
def test_nothing_that_fits_is_worth_more(
    way: str,
    blocks: list[tuple[F, F]],
    capacity: F,
    max_blocks: int | None,
    counts: list[int] | None,
) -> None:
    prices, sizes = [p for p, _ in blocks], [s for _, s in blocks]
    most = None if counts is None else [*counts, *[10**30] * len(blocks)][: len(blocks)]
    found = fullest_machine(prices, sizes, capacity, max_blocks, most)
    assert found.exact
    best = by_listing(prices, sizes, capacity, max_blocks, most)
    assert found.value == best
    assert dearest_filling(prices, sizes, capacity, max_blocks, most=most or ()) == best
    refuse_false_content(found, prices, sizes, capacity, max_blocks, most)


@pytest.mark.parametrize("max_blocks", [None, 3])
def test_a_search_with_little_patience_tells_what_it_may_have_missed_whatever_the_code(
    max_blocks: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code searches as plain code does, to the last count, also where it is ended."""
    ended = 0
    for seed in range(60):
        rng = random.Random(seed)
        sizes = [F(rng.randint(3, 30)) for _ in range(7)]
        worth = [int(size) * 10 + rng.randint(-9, 9) for size in sizes]
        most, fewer = ([rng.randint(0, 3) for _ in sizes] for _ in range(2))
        packing = Packing(sizes, F(60), max_blocks, most)
        limits = list(map(min, most, fewer))
        best = by_listing([F(w) for w in worth], sizes, F(60), max_blocks, limits)
        for patience in (0, 1, 3, 10, 60, 10**6):
            both = []
            for way in ("plain", "compiled"):
                use(way, monkeypatch)
                both.append(packing.fullest(worth, fewer, patience))
            assert both[0] == both[1], (seed, patience)
            value, ceiling, content = both[0]
            assert value == sum(map(operator.mul, worth, content))
            assert all(map(operator.le, content, limits))
            assert sum(map(operator.mul, sizes, content)) <= 60
            assert max_blocks is None or sum(content) <= max_blocks
            assert value <= best <= ceiling
            ended += ceiling > value
        assert value == best == ceiling
    assert ended > 10


def test_an_upper_bound_goes_with_the_prices_and_knows_no_types_without_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A search scales prices to what a machine is worth, and a check then asks again.
    for name, value in (("_FEW_NODES", 1), ("_MOST_CELLS", -1), ("_MANY_NODES", 1)):
        monkeypatch.setattr(cms.knapsack.packing, name, value)
    source = random.Random(1)
    early = 0
    for _ in range(200):
        sizes = [F(source.randint(2, 9) * 2) for _ in range(4)]
        prices = [F(source.randint(1, 99)) for _ in range(4)]
        scale = F(source.randint(1, 99), source.randint(1, 99))
        found = fullest_machine(prices, sizes, F(35), None)
        scaled = fullest_machine([*(scale * p for p in prices), F(0)], [*sizes, F(3)], F(35), None)
        assert scaled.value == scale * found.value
        early += not found.exact
    assert early > 20


def test_hundreds_of_sizes_nearly_in_proportion_to_their_worth_are_decided_by_a_table() -> None:
    sizes = random.Random(0).sample(range(20_000, 35_001), 400)
    packing = Packing([*map(F, sizes)], F(100_000), None, [1] * 400)
    found = packing.fullest([size // 100 * 100 + size % 3 for size in sizes])
    assert found.value == found.ceiling == 99_908
