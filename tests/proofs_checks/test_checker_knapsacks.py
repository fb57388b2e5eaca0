"""The checker's two optimisation problems against plain enumeration."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from proofs_checks.checker import cheapest_option, dearest_filling

F = Fraction
small = st.integers(min_value=0, max_value=12)
sixths = st.fractions(min_value=0, max_value=4, max_denominator=6)


def table_of_residual_demands(prices: list[F], supply: list[int], demand: int) -> F | None:
    """least[r]: the cheapest way to cover r, by the block that is bought last."""
    least: list[F | None] = [F(0)]
    for r in range(1, demand + 1):
        ways = [
            before + price
            for price, f in zip(prices, supply, strict=True)
            if f > 0 and (before := least[max(0, r - f)]) is not None
        ]
        least.append(min(ways, default=None))
    return least[demand]


def best_within(prices: list[F], sizes: list[F], capacity: F, most: int | None) -> F:
    """Try every block as the next one, in every way."""
    if most == 0:
        return F(0)
    fewer = None if most is None else most - 1
    ways = [
        price + best_within(prices[i:], sizes[i:], capacity - size, fewer)
        for i, (price, size) in enumerate(zip(prices, sizes, strict=True))
        if size <= capacity and price > 0
    ]
    return max(ways, default=F(0))


@given(st.lists(st.tuples(sixths, small), max_size=4), st.integers(min_value=0, max_value=60))
@example([(F(2), 2), (F(3), 3), (F(6), 6)], 59)  # equal ratios
@example([(F(0), 1), (F(1), 7)], 60)  # a block for nothing
@example([(F(7), 6), (F(10), 9), (F(22), 20)], 43)  # not every demand is a sum
def test_the_cheapest_option_is_that_of_the_table(blocks: list[tuple[F, int]], demand: int) -> None:
    prices, supply = [p for p, _ in blocks], [f for _, f in blocks]
    exact = cheapest_option(prices, [F(f) for f in supply], F(demand))
    assert exact == table_of_residual_demands(prices, supply, demand)


@given(
    st.lists(st.tuples(sixths, st.integers(1, 30)), min_size=1, max_size=5),
    st.integers(900, 10**4),
    st.integers(1, 10**12),
)
def test_a_huge_demand_adds_the_price_of_the_best_blocks(
    blocks: list[tuple[F, int]], demand: int, more: int
) -> None:
    # Some cheapest option has fewer than F blocks besides those of the best type, which covers F
    # (theory 6.5). From a demand of 29 * 30 on, it has a block of the best type: F more demand cost
    # one of them more.
    prices, supply = [p for p, _ in blocks], [F(f) for _, f in blocks]
    p, f = min(zip(prices, supply, strict=True), key=lambda block: block[0] / block[1])
    h = cheapest_option(prices, supply, F(demand))
    assert h is not None
    assert cheapest_option(prices, supply, demand + more * f) == h + more * p


@given(
    st.lists(st.tuples(sixths, sixths), min_size=1, max_size=3),
    st.fractions(min_value=0, max_value=5, max_denominator=7),
    st.fractions(min_value=F(1, 9), max_value=9, max_denominator=9),
)
def test_the_unit_of_a_demand_does_not_matter(
    blocks: list[tuple[F, F]], demand: F, unit: F
) -> None:
    prices, supply = [p for p, _ in blocks], [f for _, f in blocks]
    scaled = cheapest_option(prices, [f * unit for f in supply], demand * unit)
    assert scaled == cheapest_option(prices, supply, demand)


def test_sixteen_digits_are_sixteen_digits() -> None:
    # Three blocks of 333.3333333333333 are exactly 999.9999999999999; a 10^-13 more needs a fourth,
    # or the small block.
    supply = [F("333.3333333333333"), F("0.0123456789012345")]
    assert cheapest_option([F(1), F(1)], supply, F("999.9999999999999")) == 3
    assert cheapest_option([F(1), F(1, 2)], supply, F("1000")) == F(7, 2)


def test_a_demand_of_a_million_million_is_quick() -> None:
    # At prices of 1/7 a slice 800 for 7/7 is the best. 10^12 = 800 * 1,250,000,000, without a rest.
    # 300 more cost 3/7: 310.5 for one 3g.
    supply = [F(90), F(200), F("310.5"), F(420), F(800)]
    prices = [F(1, 7), F(2, 7), F(3, 7), F(4, 7), F(1)]
    assert cheapest_option(prices, supply, F(10**12)) == 1_250_000_000
    assert cheapest_option(prices, supply, F(10**12 + 300)) == 1_250_000_000 + F(3, 7)


@given(
    st.lists(
        st.tuples(
            st.fractions(min_value=-2, max_value=4, max_denominator=6),
            st.fractions(min_value=F(1, 2), max_value=4, max_denominator=4),
        ),
        max_size=3,
    ),
    st.fractions(min_value=0, max_value=6, max_denominator=4),
    st.none() | st.integers(1, 7),
)
@example([(F(1, 3), F(44)), (F(1, 4), F(33)), (F(1, 11), F(12))], F(132), None)
def test_the_dearest_filling_is_the_best_of_all(
    blocks: list[tuple[F, F]], capacity: F, most: int | None
) -> None:
    prices, sizes = [p for p, _ in blocks], [s for _, s in blocks]
    value = dearest_filling(prices, sizes, capacity, most)
    assert value == best_within(prices, sizes, capacity, most)


@given(
    st.lists(st.tuples(sixths, st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(100, 10**3),
    st.integers(1, 10**12),
)
def test_a_huge_machine_is_filled_quickly(
    blocks: list[tuple[F, int]], capacity: int, more: int
) -> None:
    # As for demands: beyond 8 * 9 of room, s more are filled by one more of the best type.
    prices, sizes = [p for p, _ in blocks], [F(s) for _, s in blocks]
    p, s = max(zip(prices, sizes, strict=True), key=lambda block: block[0] / block[1])
    value = dearest_filling(prices, sizes, F(capacity))
    assert dearest_filling(prices, sizes, capacity + more * s) == value + more * p


def test_shares_of_a_gpu_for_at_most_48_clients() -> None:
    # If every share of 2 %, 4 %, ... is worth its size, 48 clients fill the GPU. If 2 % are worth
    # 3: 48 of them are worth 144; 47 leave 6 % for one more client, 141 + 6; 46 leave 8 % for two,
    # 138 + 8. 147 is the best.
    sizes = [F(share) for share in range(2, 101, 2)]
    assert dearest_filling(sizes, sizes, F(100), 48) == 100
    assert dearest_filling([F(3), *sizes[1:]], sizes, F(100), 48) == 147
