"""The checker's knapsacks by enumeration; branches and proper counts by hand, and forgeries."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from fractions import Fraction
from itertools import product
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.knapsack.packing import fullest_machine
from cms.knapsack.pricing import cheapest_option as first_checkers
from proofs_checks.checker import cheapest_option, dearest_filling
from proofs_checks.checker.boxes import dearest_with_extras
from proofs_checks.checker.knapsacks import cheapest_price
from proofs_checks.checker.problem import Bounded
from tests.oracle import optimum
from tests.proofs_checks.both import plain_problem, proved, refused
from tests.proofs_checks.documents import Document, branch, leaf, problem
from tests.references.programs import lp_dw

F = Fraction


def having(blocks: Document, at_most: int, *sides: Document, machine: str | None = "m") -> Document:
    """A branch on the machines that have some content."""
    return branch({"machines_with": {"machine": machine, "blocks": blocks}}, at_most, *sides)


def weighing(weights: Any, at_most: Any, *sides: Document) -> Document:
    """A branch on a weighted sum of machines."""
    return branch({"machines_of_type": weights}, at_most, *sides)


# Machines of cost 3 with room for three blocks, and others of cost 7/2 with one: four blocks take
# two machines, 4 by prices alone. One machine at most has two blocks or more: then a block may cost
# 3, 6 of which the multiplier takes back once, 4 · 3 - 6 = 6. Or there are two, for 3 each.
FOUR = problem(
    [{"machine": "m", "sizes": {"a": 1}, "capacity": 3}, {"machine": "n", "blocks": {"a": 1}}],
    {"j": (4, {"a": 1})},
    [{"name": "m", "cost": 3}, {"name": "n", "cost": "7/2"}],
)
FOUR_SIDES = leaf({"a": 3}, 6), leaf({"a": 0}, 3)
# 101 blocks, two on a small machine of cost 2, four on a large one of cost 4; one on a machine of
# cost 5, so that costs have no common step but 1. A price of 1 proves 101, and 102 is the best:
# small + 2 large >= 51, or <= 50. Then the block may cost 5 (the dear machine's cost), 8 of which
# the multiplier takes back for each two: 5 · 101 - 8 · 50 = 105. On the other side 51 times 2.
BLOCKS, WEIGHTS = {"small": 2, "large": 4, "dear": 1}, {"small": 1, "large": 2}
ODD = problem(
    [{"machine": m, "blocks": {"x": n}} for m, n in BLOCKS.items()],
    {"j": (101, {"x": 1})},
    [{"name": m, "cost": cost} for m, cost in (("small", 2), ("large", 4), ("dear", 5))],
)
ODD_SIDES = leaf({"x": 5}, 8), leaf({"x": 0}, 2)
# A job of three blocks. A hundred fit on a large machine of cost 10, so that prices may be 1/10;
# but nobody needs more than three, and at a price of 1 these are worth less than 10. A small
# machine has one block and costs 1: three of them are the best.
SPACIOUS = problem(
    [{"machine": m, "sizes": {"a": 1}, "capacity": n} for m, n in (("large", 100), ("small", 1))],
    {"x": (3, {"a": 1})},
    [{"name": "large", "cost": 10}, {"name": "small", "cost": 1}],
)
# Two blocks of size 44, three of 33 and six of 12 (theory 6.11): 3 · 44 = 4 · 33 = 11 · 12 = 132,
# so that machines of one type each need 2/3 + 3/4 + 6/11 = 259/132 < 2. But with no more than two,
# three and six of them, no content is worth more than 11 at the prices 4, 3 and 1: with two of the
# first 44 of room are left, for 33 and nothing, or for 3 · 12: 8 + 3; with one of them 88, for
# 2 · 33 and one of 12, for 33 and 4 · 12, or for 6 · 12: 4 + 7; with none 132, for 3 · 33 and
# 2 · 12, for 2 · 33 and 5 · 12, or less: 11. All blocks are worth 8 + 9 + 6 = 23: so 23/11 > 2.
SIZES = {"a": 44, "b": 33, "c": 12}
STOCK = {"x": (2, {"a": 1}), "y": (3, {"b": 1}), "z": (6, {"c": 1})}
PRICES, PLAIN = {"a": "4/11", "b": "3/11", "c": "1/11"}, {"a": "1/3", "b": "1/4", "c": "1/11"}
PROPER = {"a": 2, "b": 3, "c": 6}
NO_ROUND_UP = problem([{"sizes": SIZES, "capacity": 132}], STOCK)
# The same beside a machine of cost 1/4 with room for one block of size 12: of cost 9/4 are two
# large ones with all but one block (2 · 44 + 33, and 2 · 33 + 5 · 12), and a small one. With at
# most two large machines, each may cost 7/4 more than it does, for 7/2 in all: prices are 11/4
# times those above then, that of a small block 1/4, and 11/4 · 23/11 - 7/2 = 9/4. Three large ones
# cost 3.
BESIDE = problem(
    [
        {"machine": "large", "sizes": SIZES, "capacity": 132},
        {"machine": "small", "sizes": {"c": 12}, "capacity": 12},
    ],
    STOCK,
    [{"name": "large", "cost": 1}, {"name": "small", "cost": "1/4"}],
)
BESIDE_PRICES = {"a": 1, "b": "3/4", "c": "1/4"}


def beside(below: Document, above: Document) -> Document:
    return weighing("large", 2, leaf(BESIDE_PRICES, "7/4", proper=below), leaf({}, 1, proper=above))


#: A problem, a proof, what it proves, and the best block prices.
PAPERS: dict[str, tuple[Document, Document, Fraction, Document]] = {
    "content": (FOUR, having({"a": 2}, 1, *FOUR_SIDES), F(6), {"a": 1}),
    "weights": (ODD, weighing(WEIGHTS, 50, *ODD_SIDES), F(102), {"x": 1}),
    "spacious": (SPACIOUS, leaf({"a": 1}, proper={"a": 3}), F(3), {"a": "1/10"}),
    "no round-up": (NO_ROUND_UP, leaf(PRICES, proper=PROPER), F(23, 11), PLAIN),
    "beside": (BESIDE, beside(PROPER, {}), F(9, 4), PLAIN),
}


@pytest.mark.parametrize("name", PAPERS)
def test_both_checkers_take_a_bound_above_that_of_all_prices(name: str) -> None:
    of, tree, bound, plain = PAPERS[name]
    about = plain_problem(of)
    best = optimum(about)
    assert best is not None
    assert proved(of, tree) == bound <= best < bound + 1
    alone = proved(of, leaf(plain))
    assert alone is not None
    assert alone < bound
    assert lp_dw(about) == pytest.approx(float(alone))  # which no prices without branches exceed


def test_a_fleet_of_two_is_proved_too_small() -> None:
    # The limit's price of 1 pays for all that a machine holds: 23/11 - 2 > 0 is left. Less than two
    # machines are needed by prices alone, which therefore cannot prove it.
    types = [{"name": "machine", "limit": 2}]
    short = problem([{"sizes": SIZES, "capacity": 132}], STOCK, types)
    more = {"limit_prices": {"machine": 1}}
    assert proved(short, leaf(PRICES, proper=PROPER, **more)) is None
    assert proved(short, leaf(PLAIN, **more)) == F(259, 132) - 2


def test_a_machine_may_go_without_blocks_that_nobody_can_use() -> None:
    # A count of 0, for a block that serves no job, or only jobs without demand.
    shape = {"sizes": {"a": 1, "b": 2, "c": 3}, "capacity": 6}
    of = problem([shape], {"x": (4, {"a": 2}), "y": (0, {"c": 1})})
    assert proved(of, leaf({"a": "1/2", "b": 9, "c": 9}, proper={"a": 2, "b": 0, "c": 0})) == 1
    # Larger counts than needed say less, and are true.
    assert proved(of, leaf({"a": "1/6"}, proper={"a": 10**30})) == F(1, 3)
    assert "worth" in refused(of, leaf({"a": "1/2"}, proper={"a": 10**30}))


LISTED = problem([{"blocks": {"a": 4}}, {"sizes": {"a": 1}, "capacity": 4}], {"x": (2, {"a": 1})})


def less(block: str, count: object) -> Document:
    """The proof without round-up, with another count."""
    return leaf(PRICES, proper={**PROPER, block: count})


@pytest.mark.parametrize(
    ("of", "tree", "message"),
    [
        # another content or weight than the prices count with, or the sides exchanged
        (FOUR, having({"a": 3}, 1, *FOUR_SIDES), "is worth 6 at these prices"),
        (ODD, weighing({"small": 1, "large": 3}, 50, *ODD_SIDES), "is worth 6 at these prices"),
        (ODD, weighing(WEIGHTS, 50, *ODD_SIDES[::-1]), "is worth 18 at these prices"),
        # no content or weight, or none that the problem knows
        (FOUR, having({}, 1, *FOUR_SIDES), "no blocks"),
        (FOUR, having({"A": 2}, 1, *FOUR_SIDES), "nearest: 'a'"),
        (FOUR, having({"a": 2}, 1, *FOUR_SIDES, machine=None), "of no machine type"),
        (ODD, weighing(WEIGHTS, 50.5, *ODD_SIDES), "at_most is 50.5, expected a whole number"),
        (ODD, weighing({**WEIGHTS, "dear": 0}, 50, *ODD_SIDES), "dear is 0, expected a whole num"),
        (ODD, weighing({}, 50, *ODD_SIDES), "a branch on machines of no type"),
        # a proper count too small by one, or prices that only smaller counts would allow
        (NO_ROUND_UP, less("c", 5), "a proper count of 5 for the block 'c': all jobs together"),
        (SPACIOUS, leaf({"a": 1}, proper={"a": 11}), "is worth 11 at these prices"),
        # a listed configuration may idle: no counts for it
        (LISTED, leaf({"a": "1/2"}, proper={"a": 2}), "configuration 4 x a is worth 2"),
        # no counts
        (NO_ROUND_UP, less("d", 6), "a proper count for the block 'd', which the problem"),
        (NO_ROUND_UP, less("c", 6.5), "proper.c is 6.5, expected a whole number >= 0"),
        (NO_ROUND_UP, leaf(PRICES, proper=[2]), "proper is an array"),
    ],
)
def test_neither_checker_takes_a_forgery(of: Document, tree: Document, message: str) -> None:
    assert message in refused(of, tree)


def chain(branches: int, multiplier: int) -> Document:
    tree = leaf({"a": 0}, *[multiplier] * branches)
    for depth in reversed(range(branches)):
        tree = having({"a": 9}, 1, tree, leaf({"a": 0}, *[0] * (depth + 1)))
    return tree


def test_so_many_contents_at_most_count_above_a_leaf() -> None:
    assert proved(FOUR, chain(12, 1)) is not None
    assert proved(FOUR, chain(13, 0)) == 0
    assert "name 13 blocks" in refused(FOUR, chain(13, 1))


amounts = st.fractions(min_value=-6, max_value=9, max_denominator=3)
contents = st.dictionaries(st.integers(0, 2), st.integers(1, 4), min_size=1)


@given(
    st.lists(st.tuples(amounts, st.integers(1, 5)), min_size=3, max_size=3),
    st.integers(1, 11),
    st.none() | st.integers(1, 4),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.lists(st.tuples(contents, amounts), max_size=4),
)
def test_both_knapsacks_find_what_listing_every_content_finds(
    types: list[tuple[Fraction, int]],
    capacity: int,
    max_blocks: int | None,
    most: list[int],
    extras: list[tuple[dict[int, int], Fraction]],
) -> None:
    prices, sizes = [p for p, _ in types], [F(s) for _, s in types]
    best = F(0)
    for content in product(*(range(n + 1) for n in most)):
        if sum(map(Fraction.__mul__, sizes, map(F, content))) > capacity:
            continue
        if max_blocks is not None and sum(content) > max_blocks:
            continue
        worth = sum(map(Fraction.__mul__, prices, map(F, content)), F(0))
        for least, amount in extras:
            if all(content[i] >= n for i, n in least.items()):
                worth += amount
        best = max(best, worth)
    found = fullest_machine(prices, sizes, F(capacity), max_blocks, most, extras)
    assert (found.exact, found.value) == (True, best)
    machine = Bounded("m", dict(zip("abc", sizes, strict=True)), F(capacity), max_blocks)
    by_name = [({"abc"[i]: n for i, n in least.items()}, amount) for least, amount in extras]
    worth_of, proper = dict(zip("abc", prices, strict=True)), dict(zip("abc", most, strict=True))
    assert dearest_with_extras(machine, worth_of, proper, by_name) == best
    enough = best + random.Random(0).choice([-1, 0, 1])
    told = dearest_with_extras(machine, worth_of, proper, by_name, enough)
    assert (told > enough) == (best > enough)


T = TypeVar("T")


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


near_ties = st.lists(
    st.tuples(st.integers(1, 12), st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=5
)


def with_limits(work: Callable[[], T], **limits: int) -> T:
    """Do it with other limits of the two searches, so that small problems meet them."""
    with ExitStack() as stack:
        for name, value in limits.items():
            module, constant = name.split("_", 1)
            stack.enter_context(patch(f"proofs_checks.checker.{module}._{constant.upper()}", value))
        return work()


@given(near_ties, st.integers(1, 4_000), st.booleans(), st.sampled_from([0, 1, 3]), st.booleans())
@example([(7, 0, 1), (7, 1, 1), (5, 1, 0), (3, 0, 0)], 2_345, True, 0, True)
def test_lists_pairs_and_a_table_over_remainders_find_what_the_table_has(
    sizes: list[tuple[int, int, int]], demand: int, even: bool, steps: int, few: bool
) -> None:
    # Prices and supply near the sizes: little is cut off early, and after a step others take over.
    # Even supplies have remainders in common with the demand, or with none of the others.
    prices = [F(7 * size + up, 7) for size, up, _ in sizes]
    supply = [max(0, 3 * size + up) * (1 + even) for size, _, up in sizes]
    exact = table_of_residual_demands(prices, supply, demand)
    limits = {"knapsacks_steps": steps, "knapsacks_few": 3 * few if steps else 0}
    found = with_limits(lambda: cheapest_option(prices, [*map(F, supply)], F(demand)), **limits)
    assert found == exact


@given(near_ties, st.integers(1, 150), st.integers(0, 12))
def test_lists_that_grow_too_long_end_on_the_right_side(
    sizes: list[tuple[int, int, int]], amount: int, longest: int
) -> None:
    prices = [F(7 * size + up, 7) for size, up, _ in sizes]
    supply = [F(3 * size + up) for size, _, up in sizes]
    demand = F(amount)
    h = cheapest_option(prices, supply, demand)
    w = dearest_filling(prices, supply, demand)
    limits = {"knapsacks_steps": 1, "knapsacks_few": 0, "knapsacks_longest": longest}
    lower = with_limits(lambda: cheapest_option(prices, supply, demand), **limits)
    upper = with_limits(lambda: dearest_filling(prices, supply, demand), filling_longest=longest)
    assert h is not None
    assert lower is not None
    assert demand * min(map(F.__truediv__, prices, (min(f, demand) for f in supply))) <= lower
    assert lower <= h
    assert w <= upper <= demand * max(map(F.__truediv__, prices, supply))


@pytest.mark.parametrize(
    ("prices", "supply", "demand", "best"),
    [  # of drawn problems with prime supplies or huge demands, at the prices of their certificates
        (
            [700261, 728840, 1048576, 776873], [38371, 39937, 57457, 42569],
            445_453_830, 8_129_414_704,
        ),
        ([945365, 137048, 1048576], [77527, 11239, 85991], 66_826_230, 814_877_127),
        (
            [160262, 46063, 1048576, 67005, 154752], [106369, 30573, 695960, 44473, 102712],
            4_000_000_001, 6_026_577_960,
        ),
    ],
)  # fmt: skip
def test_types_within_a_hair_of_one_another_are_settled_without_lists(
    prices: list[int], supply: list[int], demand: int, best: int
) -> None:
    assert with_limits(lambda: cheapest_price(prices, supply, demand), knapsacks_longest=0) == best
    theirs = first_checkers(prices, supply, demand)
    assert theirs is not None
    assert theirs.value <= best


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=5
    ),
    st.sampled_from([10**2, 10**5, 10**15, 10**30]),
    st.integers(1, 2_000),
)
def test_it_proves_no_less_than_the_first_checker(
    sizes: list[tuple[int, int, int]], digits: int, units: int
) -> None:
    prices = [size * digits + up for size, up, _ in sizes]
    supply = [size * digits + up for size, _, up in sizes]
    demand = units * digits
    theirs = first_checkers(prices, supply, demand)
    ours = cheapest_option([F(p) for p in prices], [F(f) for f in supply], F(demand))
    assert theirs is not None
    assert ours is not None
    assert ours == theirs.value if theirs.exact else ours >= theirs.value


@given(
    st.lists(st.tuples(st.integers(-2, 12), st.integers(1, 12)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.none() | st.integers(1, 6),
    st.integers(-3, 3),
)
def test_a_filling_that_is_worth_enough_need_not_be_the_dearest(
    blocks: list[tuple[int, int]], capacity: int, most: int | None, off: int
) -> None:
    prices, sizes = [F(p) for p, _ in blocks], [F(s) for _, s in blocks]
    exact = best_within(prices, sizes, F(capacity), most)
    enough = exact + off
    found = dearest_filling(prices, sizes, F(capacity), most, enough)
    assert found == exact if exact > enough else exact <= found <= enough


def test_a_machine_of_a_million_million_is_no_table() -> None:
    # 3 · 333333333332 + 5 = 10^12 + 1: ten thousand a unit, and one for each block.
    sizes, prices = [F(3), F(4), F(5)], [F(30_001), F(40_001), F(50_001)]
    capacity = F(10**12 + 1)
    assert dearest_filling(prices, sizes, capacity) == 10_000 * capacity + 333_333_333_333
    # With fewer blocks than fit, the lists end early, on the right side.
    few = 3 * 10**11
    found = with_limits(
        lambda: dearest_filling(prices, sizes, capacity, few), filling_longest=1_000
    )
    assert 10_000 * (capacity - 2) + few <= found <= capacity * prices[0] / 3
