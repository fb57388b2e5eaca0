"""The fullest machine of a size-bounded set: listing every multiset finds no more."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cms.knapsack.packing
from cms.knapsack.packing import Fullest, Packing, fullest_machine
from proofs_checks.checker import dearest_filling

F = Fraction
numbers = st.fractions(min_value=0, max_value=12, max_denominator=6)
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
